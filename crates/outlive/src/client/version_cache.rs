//! [`VersionCache`]: the protocol generation of each server, by origin.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

/// Which generation each server was of, by its origin. Clients of one process share one unless they
/// are given another.
#[derive(Clone, Default)]
pub struct VersionCache(Arc<Mutex<HashMap<String, Found>>>);

/// What a server turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Modern,
    Legacy,
    HttpSse,
}

static SHARED: LazyLock<VersionCache> = LazyLock::new(VersionCache::new);

impl VersionCache {
    /// Remembers nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The one that clients share.
    pub(crate) fn shared() -> Self {
        SHARED.clone()
    }

    pub(super) fn of(&self, place: &str) -> Option<Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(place).copied()
    }

    pub(super) fn note(&self, place: &str, found: Found) {
        /// More origins than a program talks to; beyond it everything is found out again.
        const MOST: usize = 10_000;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(place.to_owned(), found);
    }
}

impl fmt::Debug for VersionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VersionCache")
    }
}
