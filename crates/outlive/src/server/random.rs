//! Random IDs.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use sha2::{Digest, Sha256};

use crate::hex::hex;

/// Returns 128 random bits in hex, or `None` if the operating system has no random bytes.
pub(crate) fn random_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}

/// Returns whether an ID has the format of task IDs, which are random IDs. Other IDs, which can have
/// any length and content, are neither looked up nor logged.
pub(crate) fn is_task_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Generator of call IDs: 128 bits each, unguessable and unique.
///
/// IDs are derived from a random seed and a counter, so only the constructor can fail.
pub(crate) struct CallIds {
    seed: [u8; 32],
    next: AtomicU64,
}

impl CallIds {
    /// Takes the seed from the operating system. Returns `None` if it has no random bytes.
    pub(crate) fn new() -> Option<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).ok()?;
        Some(Self { seed, next: AtomicU64::new(0) })
    }

    /// Returns the next ID.
    pub(crate) fn next(&self) -> String {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let hash = Sha256::new().chain_update(self.seed).chain_update(count.to_le_bytes());
        hex(&hash.finalize()[..16])
    }
}

impl fmt::Debug for CallIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallIds").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::CallIds;

    #[test]
    fn call_ids_of_two_servers_are_128_bits_and_differ() {
        let servers = [CallIds::new().unwrap(), CallIds::new().unwrap()];
        let ids: HashSet<_> = servers.iter().flat_map(|ids| (0..100).map(|_| ids.next())).collect();
        assert_eq!(ids.len(), 200);
        assert!(ids.iter().all(|id| id.len() == 32));
    }
}
