//! [`VersionCache`]: the era of each server, by origin.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

/// Cache of the era of each server, by origin. The clients of a process share one by default.
#[derive(Clone, Default)]
pub struct VersionCache(Arc<Mutex<HashMap<String, Found>>>);

/// Era and transport of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Modern,
    Legacy,
    HttpSse,
}

static SHARED: LazyLock<VersionCache> = LazyLock::new(VersionCache::new);

impl VersionCache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the cache that clients share.
    pub(crate) fn shared() -> Self {
        SHARED.clone()
    }

    pub(super) fn of(&self, place: &str) -> Option<Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(place).copied()
    }

    pub(super) fn note(&self, place: &str, found: Found) {
        /// Maximum number of origins. The cache is cleared beyond it.
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
