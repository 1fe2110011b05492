//! Login stores: sealed values under keys, each with a TTL. A store cannot read the values.

use std::{
    collections::HashMap,
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use outlive_protocol::Clock;
use outlive_transport::TokioClock;

/// Store of sealed values under keys, which all replicas share.
pub trait LoginStore: Send + Sync + 'static {
    /// Stores `value` under `key` for `ttl` if the key is absent. Returns whether the value was
    /// stored.
    ///
    /// If several replicas call this at the same time, exactly one gets `true`.
    fn put_if_absent<'a>(
        &'a self,
        key: &'a str,
        value: String,
        ttl: Duration,
    ) -> LoginStoreFuture<'a, bool>;

    /// Stores `value` under `key` for `ttl`, and replaces an existing value.
    fn put<'a>(&'a self, key: &'a str, value: String, ttl: Duration) -> LoginStoreFuture<'a, ()>;

    /// Returns the value under `key` if it has not expired.
    fn get<'a>(&'a self, key: &'a str) -> LoginStoreFuture<'a, Option<String>>;

    /// Deletes the value under `key`.
    fn delete<'a>(&'a self, key: &'a str) -> LoginStoreFuture<'a, ()>;
}

/// Future of a [`LoginStore`] operation.
pub type LoginStoreFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, LoginStoreError>> + Send + 'a>>;

/// Failure of a [`LoginStore`]. A retry may succeed.
#[derive(Debug)]
pub struct LoginStoreError(Box<dyn Error + Send + Sync>);

impl LoginStoreError {
    /// Wraps the source of the failure.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for LoginStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the login store failed: {}", self.0)
    }
}

impl Error for LoginStoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

impl<N: LoginStore + ?Sized> LoginStore for Arc<N> {
    fn put_if_absent<'a>(
        &'a self,
        key: &'a str,
        value: String,
        ttl: Duration,
    ) -> LoginStoreFuture<'a, bool> {
        (**self).put_if_absent(key, value, ttl)
    }

    fn put<'a>(&'a self, key: &'a str, value: String, ttl: Duration) -> LoginStoreFuture<'a, ()> {
        (**self).put(key, value, ttl)
    }

    fn get<'a>(&'a self, key: &'a str) -> LoginStoreFuture<'a, Option<String>> {
        (**self).get(key)
    }

    fn delete<'a>(&'a self, key: &'a str) -> LoginStoreFuture<'a, ()> {
        (**self).delete(key)
    }
}

/// Login store in memory, for one process and its lifetime.
pub struct MemoryLoginStore {
    max: usize,
    clock: Arc<dyn Clock>,
    // A std mutex: no code awaits while it is held.
    entries: Mutex<HashMap<String, (String, Instant)>>,
}

impl MemoryLoginStore {
    /// Creates a store of at most `max` entries. A login has about three.
    pub fn new(max: usize) -> Self {
        Self::with_clock(max, Arc::new(TokioClock::new()))
    }

    /// Creates a store of at most `max` entries with this clock.
    pub fn with_clock(max: usize, clock: Arc<dyn Clock>) -> Self {
        Self { max, clock, entries: Mutex::default() }
    }

    /// Stores a value. Returns `false` if the key exists and `over` is `false`.
    fn insert(
        &self,
        key: &str,
        value: String,
        ttl: Duration,
        over: bool,
    ) -> Result<bool, LoginStoreError> {
        let now = self.clock.now();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let there = entries.get(key).is_some_and(|(_, until)| now < *until);
        if there && !over {
            return Ok(false);
        }
        if entries.len() >= self.max && !entries.contains_key(key) {
            entries.retain(|_, (_, until)| now < *until);
            // A valid entry is never evicted.
            if entries.len() >= self.max {
                return Err(LoginStoreError::new("the store is full; raise `max_logins`"));
            }
        }
        entries.insert(key.to_owned(), (value, now + ttl));
        Ok(true)
    }
}

impl LoginStore for MemoryLoginStore {
    fn put_if_absent<'a>(
        &'a self,
        key: &'a str,
        value: String,
        ttl: Duration,
    ) -> LoginStoreFuture<'a, bool> {
        Box::pin(async move { self.insert(key, value, ttl, false) })
    }

    fn put<'a>(&'a self, key: &'a str, value: String, ttl: Duration) -> LoginStoreFuture<'a, ()> {
        Box::pin(async move { self.insert(key, value, ttl, true).map(drop) })
    }

    fn get<'a>(&'a self, key: &'a str) -> LoginStoreFuture<'a, Option<String>> {
        Box::pin(async move {
            let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = entries.get(key).filter(|(_, until)| self.clock.now() < *until);
            Ok(entry.map(|(value, _)| value.clone()))
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> LoginStoreFuture<'a, ()> {
        Box::pin(async move {
            self.entries.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
            Ok(())
        })
    }
}

impl fmt::Debug for MemoryLoginStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLoginStore").field("max", &self.max).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LoginStore, MemoryLoginStore};

    #[tokio::test(start_paused = true)]
    async fn entry_is_stored_once_for_its_ttl_and_within_the_limit() {
        let store = MemoryLoginStore::new(2);
        let second = Duration::from_secs(1);
        assert!(store.put_if_absent("a", "1".into(), second).await.unwrap());
        assert!(!store.put_if_absent("a", "2".into(), second).await.unwrap());
        assert_eq!(store.get("a").await.unwrap().as_deref(), Some("1"));
        store.put("b", "3".into(), 5 * second).await.unwrap();
        assert!(store.put_if_absent("c", "4".into(), second).await.is_err(), "the store is full");
        store.put("b", "5".into(), 5 * second).await.unwrap();
        tokio::time::advance(2 * second).await;
        assert_eq!(store.get("a").await.unwrap(), None);
        assert!(store.put_if_absent("c", "4".into(), second).await.unwrap());
        store.delete("b").await.unwrap();
        assert_eq!(store.get("b").await.unwrap(), None);
    }
}
