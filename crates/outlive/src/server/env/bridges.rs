//! Requests of this process that wait for the tasks of bridged calls.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, watch};

/// Time in which the server notices that a client disconnected. A client that repeats a call at
/// once may reach the server before its own disconnect does.
const NOTICE: Duration = Duration::from_millis(25);

/// Maximum time that a repeated call waits for departures that the store has not confirmed.
const SETTLE: Duration = Duration::from_millis(500);

/// Requests that wait for tasks of bridged calls, in this process.
pub(crate) struct Bridges {
    /// Number of waiting requests by fingerprint of their call.
    // A std mutex: no code awaits while it is held.
    waiting: Mutex<HashMap<Arc<str>, usize>>,
    departures: Arc<Departures>,
    draining: watch::Sender<bool>,
}

/// Departures that the store has not confirmed.
#[derive(Default)]
struct Departures {
    pending: AtomicUsize,
    settled: Notify,
}

/// A departure that the store has not confirmed. Dropping it confirms the departure.
pub(crate) struct PendingDeparture(Arc<Departures>);

impl Bridges {
    pub(crate) fn new() -> Self {
        let (waiting, departures) = (Mutex::default(), Arc::default());
        Self { waiting, departures, draining: watch::Sender::new(false) }
    }

    /// Counts a request that waits for the run of a call.
    pub(crate) fn enter(&self, fingerprint: &Arc<str>) {
        *self.lock().entry(Arc::clone(fingerprint)).or_default() += 1;
    }

    /// Counts a request that no longer waits.
    pub(crate) fn leave(&self, fingerprint: &Arc<str>) {
        let mut waiting = self.lock();
        if let Some(count) = waiting.get_mut(fingerprint) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(fingerprint);
            }
        }
    }

    /// Records that a request leaves its task, until the store has confirmed it.
    pub(crate) fn depart(&self) -> PendingDeparture {
        self.departures.pending.fetch_add(1, Ordering::AcqRel);
        PendingDeparture(Arc::clone(&self.departures))
    }

    /// Waits until a client that repeats a call has left its earlier request.
    ///
    /// An equal call in this process may belong to the same client, whose disconnect the server has
    /// not noticed yet. Calls without an equal one do not wait.
    pub(crate) async fn settle(&self, fingerprint: &str) {
        if self.lock().contains_key(fingerprint) {
            tokio::time::sleep(NOTICE).await;
        }
        let settled = async {
            loop {
                let settled = self.departures.settled.notified();
                if self.departures.pending.load(Ordering::Acquire) == 0 {
                    return;
                }
                settled.await;
            }
        };
        let _ = tokio::time::timeout(SETTLE, settled).await;
    }

    /// Ends all waits: their clients continue at another replica.
    pub(crate) fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Completes when the server drains.
    pub(crate) async fn drained(&self) {
        let mut draining = self.draining.subscribe();
        // The sender lives as long as `self`.
        let _ = draining.wait_for(|draining| *draining).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PendingDeparture {
    fn drop(&mut self) {
        if self.0.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.settled.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::time::Instant;

    use super::{Bridges, NOTICE};

    #[tokio::test(start_paused = true)]
    async fn repeated_call_waits_only_for_equal_one() {
        let (bridges, equal) = (Bridges::new(), Arc::from("equal"));
        bridges.enter(&equal);
        let began = Instant::now();
        bridges.settle("other").await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        bridges.settle("equal").await;
        assert_eq!(began.elapsed(), NOTICE);
        bridges.leave(&equal);
        bridges.settle("equal").await;
        assert_eq!(began.elapsed(), NOTICE);
    }

    #[tokio::test(start_paused = true)]
    async fn repeated_call_waits_until_departure_is_confirmed() {
        let bridges = Arc::new(Bridges::new());
        let departure = bridges.depart();
        let waiting = tokio::spawn({
            let bridges = Arc::clone(&bridges);
            async move { bridges.settle("any").await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!waiting.is_finished());
        drop(departure);
        waiting.await.unwrap();
    }
}
