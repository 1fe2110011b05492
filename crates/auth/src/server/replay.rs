//! Replay cache: each DPoP proof is accepted once while it is valid.
//!
//! The cache is bounded. A caller cannot evict other callers' proofs: each key has a limit, and a
//! full cache rejects new proofs.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Mutex, PoisonError},
};

use super::digest::Digest;

/// Used proofs in two generations. A generation lasts as long as a proof can be valid, and a proof
/// is kept for at least one generation.
pub(super) struct Replay {
    memory: Mutex<Memory>,
    /// Maximum validity of a proof in seconds.
    span: i64,
    most: usize,
    most_of_key: usize,
}

#[derive(Default)]
struct Memory {
    until: i64,
    young: HashSet<Digest>,
    old: HashSet<Digest>,
    /// Number of proofs per key in the young generation.
    of_key: HashMap<Box<str>, usize>,
}

/// Result of recording a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    First,
    Again,
    /// The cache is full, so the proof must be rejected.
    NoRoom,
}

impl Replay {
    pub(super) fn new(span: i64, most: usize) -> Self {
        let most_of_key = (most / 10).max(1);
        Self { memory: Mutex::default(), span: span.max(1), most, most_of_key }
    }

    /// Records the use of a proof.
    pub(super) fn enter(&self, key: &str, name: &Digest, now: i64) -> Use {
        // A std mutex: no code awaits while it is held.
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if now >= memory.until {
            // If a whole generation passed without a proof, the young proofs have expired too.
            let long_ago = now >= memory.until + self.span;
            let young = std::mem::take(&mut memory.young);
            memory.old = if long_ago { HashSet::new() } else { young };
            memory.of_key.clear();
            memory.until = now + self.span;
        }
        if memory.young.contains(name) || memory.old.contains(name) {
            return Use::Again;
        }
        let of_key = memory.of_key.get(key).copied().unwrap_or_default();
        if memory.young.len() >= self.most || of_key >= self.most_of_key {
            return Use::NoRoom;
        }
        memory.young.insert(*name);
        *memory.of_key.entry(key.into()).or_default() += 1;
        Use::First
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Replay, Use};

    fn name(number: u8) -> [u8; 32] {
        [number; 32]
    }

    #[test]
    fn proof_used_twice_while_valid_is_rejected() {
        let replay = Replay::new(10, 1_000);
        assert_eq!(replay.enter("k", &name(1), 100), Use::First);
        for now in [100, 105, 109, 110, 119] {
            assert_eq!(replay.enter("k", &name(1), now), Use::Again, "{now}");
        }
        // After two generations the proof is forgotten, and no longer valid.
        assert_eq!(replay.enter("k", &name(1), 140), Use::First);
    }

    #[test]
    fn key_at_its_limit_does_not_evict_other_keys() {
        let replay = Replay::new(10, 20);
        let used: Vec<Use> = (0..4).map(|n| replay.enter("greedy", &name(n), 100)).collect();
        assert_eq!(used, [Use::First, Use::First, Use::NoRoom, Use::NoRoom]);
        assert_eq!(replay.enter("other", &name(9), 100), Use::First);
        assert_eq!(replay.enter("greedy", &name(0), 100), Use::Again);
        assert_eq!(replay.enter("greedy", &name(3), 111), Use::First);
    }
}
