//! Which proofs have been used. Each may be used once for as long as it is valid.
//!
//! The memory is bounded, and nobody can push another's proofs out of it: when it is full, those who
//! come with a proof have to wait, and each key has a share of it.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Mutex, PoisonError},
};

use super::digest::Digest;

/// Proofs that have been used, in two generations. A proof is remembered for a whole generation at
/// least, and a generation lasts as long as a proof can be valid.
pub(super) struct Replay {
    memory: Mutex<Memory>,
    /// How long a proof can be valid, in seconds.
    span: i64,
    most: usize,
    most_of_key: usize,
}

#[derive(Default)]
struct Memory {
    until: i64,
    young: HashSet<Digest>,
    old: HashSet<Digest>,
    /// How many the young generation has of each key.
    of_key: HashMap<Box<str>, usize>,
}

/// What is known of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    First,
    Again,
    /// There is no room to remember it, so it cannot be taken.
    NoRoom,
}

impl Replay {
    pub(super) fn new(span: i64, most: usize) -> Self {
        let most_of_key = (most / 10).max(1);
        Self { memory: Mutex::default(), span: span.max(1), most, most_of_key }
    }

    /// Uses a proof up: one name, of one key.
    pub(super) fn enter(&self, key: &str, name: &Digest, now: i64) -> Use {
        // A std mutex: nothing awaits while it is held.
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if now >= memory.until {
            // Longer than a generation without a proof: the young ones are over as well.
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
    fn a_proof_is_used_once_while_it_is_valid() {
        let replay = Replay::new(10, 1_000);
        assert_eq!(replay.enter("k", &name(1), 100), Use::First);
        for now in [100, 105, 109, 110, 119] {
            assert_eq!(replay.enter("k", &name(1), now), Use::Again, "{now}");
        }
        // Over twice the time it is forgotten, and no longer valid either.
        assert_eq!(replay.enter("k", &name(1), 140), Use::First);
    }

    #[test]
    fn nobody_pushes_others_out() {
        let replay = Replay::new(10, 20);
        let used: Vec<Use> = (0..4).map(|n| replay.enter("greedy", &name(n), 100)).collect();
        assert_eq!(used, [Use::First, Use::First, Use::NoRoom, Use::NoRoom]);
        assert_eq!(replay.enter("other", &name(9), 100), Use::First);
        assert_eq!(replay.enter("greedy", &name(0), 100), Use::Again);
        assert_eq!(replay.enter("greedy", &name(3), 111), Use::First);
    }
}
