//! [`Outstanding`]: entries that have not ended.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

/// Entries that have not ended, by key.
pub(super) struct Outstanding<K: Ord>(Arc<Mutex<State<K>>>);

// A std mutex: no code awaits while it is held.
struct State<K> {
    /// Number of the next entry.
    next: u64,
    /// The entries by key and number, each with a channel that closes at its end. Only an entry
    /// that is waited for has the channel.
    entries: BTreeMap<(K, u64), Option<watch::Sender<()>>>,
}

/// An entry, which ends when the value is dropped.
pub(crate) struct Entry<K: Ord> {
    of: Arc<Mutex<State<K>>>,
    key: (K, u64),
}

impl<K: Ord + Clone> Outstanding<K> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(State { next: 0, entries: BTreeMap::new() })))
    }

    /// Starts an entry.
    pub(super) fn start(&self, key: K) -> Entry<K> {
        let mut state = lock(&self.0);
        let key = (key, state.next);
        state.next += 1;
        state.entries.insert(key.clone(), None);
        Entry { of: Arc::clone(&self.0), key }
    }

    /// Waits until the entries of this key that have started so far have ended. Does not wait for
    /// later ones.
    pub(super) async fn ended(&self, key: &K) {
        let next = lock(&self.0).next;
        // Entries end mostly in the order of their start, so most waits are for one entry.
        while let Some(mut last) = self.last(key, next) {
            // The channel has no values, so this returns when it closes.
            let _ = last.changed().await;
        }
    }

    /// Returns the channel of the last entry of this key before `next`.
    fn last(&self, key: &K, next: u64) -> Option<watch::Receiver<()>> {
        let mut state = lock(&self.0);
        let mut entries = state.entries.range_mut((key.clone(), 0)..(key.clone(), next));
        let (_, ended) = entries.next_back()?;
        Some(ended.get_or_insert_with(|| watch::Sender::new(())).subscribe())
    }
}

impl<K: Ord> Drop for Entry<K> {
    fn drop(&mut self) {
        let ended = lock(&self.of).entries.remove(&self.key);
        // Wakes the waiting tasks, without the mutex.
        drop(ended);
    }
}

fn lock<K>(state: &Mutex<State<K>>) -> MutexGuard<'_, State<K>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        pin::{Pin, pin},
        task::{Context, Waker},
    };

    use super::Outstanding;

    fn is_over(wait: Pin<&mut impl Future<Output = ()>>) -> bool {
        wait.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn wait_ends_with_the_last_earlier_entry_of_its_key() {
        let outstanding = Outstanding::new();
        let (first, second) = (outstanding.start("a"), outstanding.start("a"));
        let _other = outstanding.start("b");
        let mut ended = pin!(outstanding.ended(&"a"));
        assert!(!is_over(ended.as_mut()));
        let _later = outstanding.start("a");
        drop(second);
        assert!(!is_over(ended.as_mut()), "the first entry has not ended");
        drop(first);
        assert!(is_over(ended), "it does not wait for a later entry");
    }

    #[test]
    fn wait_without_entries_ends_at_once() {
        let outstanding = Outstanding::new();
        drop(outstanding.start("a"));
        assert!(is_over(pin!(outstanding.ended(&"a"))));
    }
}
