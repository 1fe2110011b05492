//! Tokens that have been found good, so that the next request with one costs a look-up.
//!
//! Kept by their hash: nobody can get a token out of here. There are two generations. New ones go
//! into the young one; when that is full it becomes the old one, and what was in the old one and
//! has not been used since is forgotten. So the memory is bounded, and what is used stays.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasherDefault, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use outlive_protocol::Principal;

use super::digest::Digest;

/// Locks, so that requests on several threads seldom wait for each other.
const SHARDS: usize = 16;

/// What a token was found to be.
#[derive(Clone, Debug)]
pub(super) struct Accepted {
    pub(super) principal: Principal,
    /// Until when that counts, in seconds since 1970.
    pub(super) until: i64,
    /// The thumbprint of the key that its bearer has to have.
    pub(super) key: Option<std::sync::Arc<str>>,
}

pub(super) struct Known {
    shards: [Mutex<Shard>; SHARDS],
    /// How many a generation of a shard may have.
    room: usize,
}

#[derive(Default)]
struct Shard {
    young: Generation,
    old: Generation,
}

type Generation = HashMap<Digest, Accepted, BuildHasherDefault<Prefix>>;

impl Known {
    /// Room for about this many.
    pub(super) fn new(tokens: usize) -> Self {
        Self { shards: Default::default(), room: (tokens / SHARDS / 2).max(1) }
    }

    pub(super) fn get(&self, token: &Digest, now: i64) -> Option<Accepted> {
        let mut shard = self.shard(token);
        let found = match shard.young.get(token) {
            Some(found) => found.clone(),
            None => {
                let found = shard.old.remove(token)?;
                self.put(&mut shard, *token, found.clone());
                found
            }
        };
        if now < found.until {
            return Some(found);
        }
        shard.young.remove(token);
        None
    }

    pub(super) fn insert(&self, token: Digest, accepted: Accepted) {
        let mut shard = self.shard(&token);
        self.put(&mut shard, token, accepted);
    }

    fn put(&self, shard: &mut Shard, token: Digest, accepted: Accepted) {
        if shard.young.len() >= self.room {
            shard.old = std::mem::take(&mut shard.young);
        }
        shard.young.insert(token, accepted);
    }

    // A std mutex: nothing awaits while it is held, for less than a microsecond.
    fn shard(&self, token: &Digest) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[usize::from(token[31]) % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

/// A digest is as good as random: its first bytes are hash enough.
#[derive(Default)]
pub(super) struct Prefix(u64);

impl Hasher for Prefix {
    fn write(&mut self, bytes: &[u8]) {
        // Called with the length first, and then with the digest.
        if let Some(first) = bytes.first_chunk::<8>() {
            self.0 ^= u64::from_le_bytes(*first);
        }
    }

    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use outlive_protocol::Principal;

    use super::{Accepted, Known, SHARDS};

    fn digest(number: u64) -> [u8; 32] {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&number.to_le_bytes());
        digest[31] = number as u8;
        digest
    }

    fn accepted(name: &str) -> Accepted {
        Accepted { principal: Principal::named(name), until: 100, key: None }
    }

    #[test]
    fn what_is_used_stays_and_the_rest_is_bounded() {
        let known = Known::new(SHARDS * 2 * 4);
        known.insert(digest(0), accepted("ann"));
        for number in 1..10_000 {
            known.insert(digest(number), accepted("x"));
            assert_eq!(known.get(&digest(0), 5).unwrap().principal.name(), Some("ann"));
        }
        let kept = (0..10_000).filter(|number| known.get(&digest(*number), 5).is_some()).count();
        assert!(kept <= SHARDS * 2 * 4, "{kept}");
        assert!(known.get(&digest(1), 5).is_none());
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let known = Known::new(64);
        known.insert(digest(7), accepted("ann"));
        assert!(known.get(&digest(7), 99).is_some());
        assert!(known.get(&digest(7), 100).is_none());
        assert!(known.get(&digest(7), 5).is_none());
    }
}
