//! Concurrency limits per key, such as connections per address or streams per caller.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Counters per key with a common maximum.
#[derive(Debug)]
pub(crate) struct Shares<K> {
    max: usize,
    open: Mutex<HashMap<K, usize>>,
}

/// One counted item. Dropping it decrements the counter.
#[derive(Debug)]
pub(crate) struct Share<K: Eq + Hash> {
    shares: Arc<Shares<K>>,
    key: K,
}

impl<K: Clone + Eq + Hash> Shares<K> {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, open: Mutex::default() })
    }

    /// Increments the counter of `key`. Returns `None` if the counter is at its maximum.
    pub(crate) fn enter(self: &Arc<Self>, key: K) -> Option<Share<K>> {
        let mut open = self.lock();
        let count = open.entry(key.clone()).or_default();
        if *count >= self.max {
            if *count == 0 {
                open.remove(&key);
            }
            return None;
        }
        *count += 1;
        drop(open);
        Some(Share { shares: Arc::clone(self), key })
    }
}

impl<K> Shares<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut open = self.shares.lock();
        if let Some(count) = open.get_mut(&self.key) {
            *count -= 1;
            // Remove unused keys: their number is otherwise unbounded.
            if *count == 0 {
                open.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Shares;

    #[test]
    fn key_at_its_limit_does_not_affect_other_keys() {
        let shares = Shares::new(2);
        let first = shares.enter("a").unwrap();
        let second = shares.enter("a").unwrap();
        assert!(shares.enter("a").is_none());
        let other = shares.enter("b").unwrap();
        drop(first);
        let third = shares.enter("a").unwrap();
        drop((second, third, other));
        assert!(shares.lock().is_empty());
        assert!(Shares::new(0).enter("a").is_none());
    }
}
