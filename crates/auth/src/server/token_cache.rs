//! Cache of verified tokens, by hash.
//!
//! Tokens cannot be recovered from the cache. The cache has two generations: new entries go into
//! the young one. When the young generation is full, it replaces the old one, and unused entries of
//! the old one are dropped. Memory is bounded, and entries in use stay.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasherDefault, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use outlive_protocol::Principal;

use super::digest::Digest;

/// Number of locks, so that requests on several threads rarely contend.
const SHARDS: usize = 16;

/// Result of verifying a token.
#[derive(Clone, Debug)]
pub(super) struct Accepted {
    pub(super) principal: Principal,
    /// End of validity in Unix seconds.
    pub(super) until: i64,
    /// Thumbprint of the key that the token is bound to.
    pub(super) key: Option<std::sync::Arc<str>>,
}

pub(super) struct Known {
    shards: [Mutex<Shard>; SHARDS],
    /// Capacity of one generation of a shard.
    room: usize,
}

#[derive(Default)]
struct Shard {
    young: Generation,
    old: Generation,
}

type Generation = HashMap<Digest, Accepted, BuildHasherDefault<Prefix>>;

impl Known {
    /// Creates a cache for about this number of tokens.
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

    // A std mutex: no code awaits while it is held, and each access takes less than a microsecond.
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

/// Hasher that uses the first bytes of a digest, which are uniformly distributed.
#[derive(Default)]
pub(super) struct Prefix(u64);

impl Hasher for Prefix {
    fn write(&mut self, bytes: &[u8]) {
        // `HashMap` passes the length first, and then the digest.
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
    fn cache_keeps_used_tokens_within_its_size() {
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
    fn expired_token_is_removed_from_the_cache() {
        let known = Known::new(64);
        known.insert(digest(7), accepted("ann"));
        assert!(known.get(&digest(7), 99).is_some());
        assert!(known.get(&digest(7), 100).is_none());
        assert!(known.get(&digest(7), 5).is_none());
    }
}
