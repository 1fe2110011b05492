//! Call timeouts that the server learns, as key-value entries of the store.
//!
//! Each caller has one entry, so one caller cannot change the limits of another, and all replicas
//! use the same ones. A limit is a hint: if the store is unavailable, calls wait as without it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outlive_protocol::{Call, Clock};
use outlive_tasks::store::{Charge, KeyValueStore, StoreError};
use serde_json::value::to_raw_value;
use sha2::{Digest, Sha256};

use crate::{
    hex::hex,
    server::{
        hosts::{
            client::Client,
            observations::{LEARNED_TTL, LearnedLimit, Observations, ObservedTimeout},
        },
        time::{millis, wall_millis},
    },
};

/// Prefix of the entries in the store.
pub(crate) const PREFIX: &str = "learned/";

/// Maximum number of callers in the cache: about a megabyte. Beyond it, the cache is emptied, and
/// the next call of each caller reads the store.
const MAX_CACHED: usize = 1_024;

/// Time after which a cached entry is read again, because another replica may have learned.
const CACHE_TTL: Duration = Duration::from_secs(60);

/// Limits that the server learns from timeouts.
pub(crate) struct Learned {
    store: Arc<dyn KeyValueStore>,
    clock: Arc<dyn Clock>,
    // A std mutex: no code awaits while it is held, and each access is one map lookup.
    cache: Mutex<HashMap<String, Cached>>,
}

#[derive(Clone)]
struct Cached {
    read_at: u64,
    observed: Arc<Observations>,
}

/// Entry of a caller in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LearnedEntry {
    key: String,
    principal: Option<String>,
}

impl LearnedEntry {
    /// Returns the entry of a call's principal, or of the session of an anonymous client. Returns
    /// `None` if an anonymous client has no session: its address can stand for many clients.
    pub(crate) fn of(call: &Call) -> Option<Self> {
        let principal = call.principal();
        if principal.is_anonymous() {
            let session = call.session()?.portable()?;
            return Some(Self { key: key("session", &session.id), principal: None });
        }
        let principal = principal.key();
        Some(Self { key: key("principal", principal), principal: Some(principal.to_owned()) })
    }
}

/// Returns the key of an entry. A session ID grants access, so the store has only its hash.
fn key(kind: &str, id: &str) -> String {
    let hash = Sha256::new().chain_update(kind).chain_update([0]).chain_update(id).finalize();
    format!("{PREFIX}{}", hex(&hash[..16]))
}

impl Learned {
    pub(crate) fn new(store: Arc<dyn KeyValueStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, cache: Mutex::default() }
    }

    /// Returns what was learned for a client of a caller.
    pub(crate) async fn limit(
        &self,
        entry: &LearnedEntry,
        client: &Client,
    ) -> Option<LearnedLimit> {
        let now = wall_millis(&*self.clock);
        let observed = match self.cached(entry, now) {
            Some(observed) => observed,
            None => match self.read(entry).await {
                Ok(observed) => self.cache(entry, observed, now),
                Err(error) => {
                    tracing::debug!(%error, "learned limits not read; using the host table");
                    return None;
                }
            },
        };
        observed.limit(client, now)
    }

    /// Adds a timeout of a caller's client. The entry counts in the bytes of `charge`.
    pub(crate) async fn record_timeout(
        &self,
        entry: &LearnedEntry,
        client: &Client,
        timeout: ObservedTimeout,
        charge: &Charge,
    ) {
        let now = wall_millis(&*self.clock);
        // Read again, so that a timeout at another replica counts.
        let read = self.read(entry).await;
        let mut observed = match (read, self.cached(entry, now)) {
            (Ok(observed), _) => observed,
            (Err(_), Some(cached)) => Observations::clone(&cached),
            (Err(_), None) => Observations::default(),
        };
        observed.record(client, timeout, now);
        observed.principal.clone_from(&entry.principal);
        if let Err(error) = self.write(entry, &observed, charge).await {
            tracing::debug!(%error, "learned limit not stored; only this process uses it");
        }
        self.cache(entry, observed, now);
    }

    async fn read(&self, entry: &LearnedEntry) -> Result<Observations, StoreError> {
        let stored = self.store.get_value(&entry.key).await?;
        // An entry of another version is learned again.
        Ok(stored.and_then(|stored| serde_json::from_str(stored.get()).ok()).unwrap_or_default())
    }

    async fn write(
        &self,
        entry: &LearnedEntry,
        observed: &Observations,
        charge: &Charge,
    ) -> Result<(), StoreError> {
        let value = to_raw_value(observed).expect("observations are plain values");
        self.store.put(&entry.key, value, LEARNED_TTL, Some(charge)).await
    }

    fn cached(&self, entry: &LearnedEntry, now: u64) -> Option<Arc<Observations>> {
        let cache = self.lock();
        let cached = cache.get(&entry.key)?;
        let fresh = now.saturating_sub(cached.read_at) < millis(CACHE_TTL);
        fresh.then(|| Arc::clone(&cached.observed))
    }

    fn cache(&self, entry: &LearnedEntry, observed: Observations, now: u64) -> Arc<Observations> {
        let observed = Arc::new(observed);
        let mut cache = self.lock();
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(entry.key.clone(), Cached { read_at: now, observed: Arc::clone(&observed) });
        observed
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Cached>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use outlive_tasks::store::{Charge, KeyValueStore, MemoryStore, StoreMonitor};
    use outlive_transport::TokioClock;

    use super::{Learned, LearnedEntry, MAX_CACHED, key};
    use crate::server::hosts::{
        client::{Client, Transport},
        observations::ObservedTimeout,
    };

    const MINUTE: Duration = Duration::from_secs(60);

    fn entry(principal: &str) -> LearnedEntry {
        LearnedEntry { key: key("principal", principal), principal: Some(principal.to_owned()) }
    }

    fn client() -> Client {
        Client::new("Agent", "1", Transport::Http)
    }

    fn replica(store: &Arc<MemoryStore>) -> Learned {
        Learned::new(Arc::clone(store) as _, Arc::new(TokioClock::new()))
    }

    async fn time_out(learned: &Learned, principal: &str, max_bytes: u64) {
        let timeout = ObservedTimeout { round: 0, request: MINUTE, call: MINUTE };
        let charge = Charge::new(principal, max_bytes);
        learned.record_timeout(&entry(principal), &client(), timeout, &charge).await;
    }

    async fn limit(learned: &Learned, principal: &str) -> Option<Duration> {
        learned.limit(&entry(principal), &client()).await?.call_timeout
    }

    #[tokio::test]
    async fn timeouts_at_two_replicas_count_together_for_their_caller_only() {
        let store = Arc::new(MemoryStore::new());
        let (one, other) = (replica(&store), replica(&store));
        time_out(&one, "name:ada", u64::MAX).await;
        assert_eq!(limit(&one, "name:ada").await, None);
        time_out(&other, "name:ada", u64::MAX).await;
        assert_eq!(limit(&other, "name:ada").await, Some(MINUTE));
        assert_eq!(limit(&replica(&store), "name:ada").await, Some(MINUTE));
        time_out(&one, "name:bob", u64::MAX).await;
        assert_eq!(limit(&one, "name:bob").await, None);
        assert!(store.stored_bytes("name:ada").await.unwrap() > 0, "the entry is charged");
    }

    #[tokio::test]
    async fn caller_without_free_bytes_learns_in_this_process_only() {
        let store = Arc::new(MemoryStore::new());
        let learned = replica(&store);
        time_out(&learned, "name:ada", 10).await;
        assert!(store.get_value(&entry("name:ada").key).await.unwrap().is_none());
        assert_eq!(store.stored_bytes("name:ada").await.unwrap(), 0);
    }

    #[tokio::test]
    async fn cache_never_exceeds_its_size() {
        let store = Arc::new(MemoryStore::new());
        let learned = replica(&store);
        for caller in 0..MAX_CACHED + 10 {
            limit(&learned, &format!("name:{caller}")).await;
        }
        assert!(learned.lock().len() <= MAX_CACHED);
    }

    #[test]
    fn entry_of_session_differs_from_entry_of_principal() {
        assert_ne!(key("session", "ada"), key("principal", "ada"));
        assert!(!key("session", "secret-id").contains("secret-id"));
    }
}
