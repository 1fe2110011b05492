//! [`Bridges`]: requests of this process that wait for tasks of bridged calls.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};

use super::outstanding::{Entry, Outstanding};

/// Time in which the server notices that a client disconnected. A client that repeats a call at
/// once may reach the server before its own disconnect does.
const NOTICE: Duration = Duration::from_millis(250);

/// Maximum time that a repeated call waits for departures that the store has not confirmed.
const SETTLE: Duration = Duration::from_secs(5);

/// Requests that wait for tasks of bridged calls, in this process.
pub(crate) struct Bridges {
    /// Waiting requests by fingerprint of their call.
    waiting: Outstanding<Arc<str>>,
    /// Departures that the store has not confirmed.
    departures: Outstanding<()>,
    draining: watch::Sender<bool>,
}

/// A request that waits for the run of a call. Dropping the value ends the wait.
pub(crate) type Waiting = Entry<Arc<str>>;

/// A departure that the store has not confirmed. Dropping it confirms the departure.
pub(crate) type PendingDeparture = Entry<()>;

impl Bridges {
    pub(crate) fn new() -> Self {
        let draining = watch::Sender::new(false);
        Self { waiting: Outstanding::new(), departures: Outstanding::new(), draining }
    }

    /// Records that a request waits for the run of a call.
    pub(crate) fn enter(&self, fingerprint: &Arc<str>) -> Waiting {
        self.waiting.start(Arc::clone(fingerprint))
    }

    /// Records that a request leaves its task, until the store has confirmed it.
    pub(crate) fn depart(&self) -> PendingDeparture {
        self.departures.start(())
    }

    /// Waits until a client that repeats a call has left its earlier request.
    ///
    /// An equal call in this process may belong to the same client, whose disconnect the server has
    /// not noticed yet. Later calls and later departures are not waited for.
    pub(crate) async fn settle(&self, fingerprint: &Arc<str>) {
        let _ = timeout(NOTICE, self.waiting.ended(fingerprint)).await;
        let _ = timeout(SETTLE, self.departures.ended(&())).await;
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
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::time::Instant;

    use super::{Bridges, NOTICE, SETTLE};

    #[tokio::test(start_paused = true)]
    async fn repeated_call_waits_only_for_equal_one() {
        let (bridges, equal) = (Bridges::new(), Arc::from("equal"));
        let waiting = bridges.enter(&equal);
        let began = Instant::now();
        bridges.settle(&Arc::from("other")).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        bridges.settle(&equal).await;
        assert_eq!(began.elapsed(), NOTICE);
        drop(waiting);
        bridges.settle(&equal).await;
        assert_eq!(began.elapsed(), NOTICE);
    }

    #[tokio::test(start_paused = true)]
    async fn repeated_call_waits_until_earlier_departures_are_confirmed() {
        let bridges = Arc::new(Bridges::new());
        let departure = bridges.depart();
        let waiting = tokio::spawn({
            let bridges = Arc::clone(&bridges);
            async move { bridges.settle(&Arc::from("any")).await }
        });
        tokio::time::sleep(SETTLE / 2).await;
        assert!(!waiting.is_finished());
        let _later = bridges.depart();
        drop(departure);
        let began = Instant::now();
        waiting.await.unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO, "it does not wait for a later departure");
    }
}
