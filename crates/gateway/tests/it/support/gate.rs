//! A point at which the tools of an upstream wait for the test.

use std::sync::Arc;

use tokio::sync::watch;

use super::Counter;

/// Tools wait until the test opens the gate. Counts how many have arrived and left.
#[derive(Clone)]
pub(crate) struct Gate {
    open: Arc<watch::Sender<bool>>,
    pub(crate) arrived: Counter,
    /// Those that were dropped while they waited.
    pub(crate) dropped: Counter,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            open: Arc::new(watch::Sender::new(false)),
            arrived: Counter::default(),
            dropped: Counter::default(),
        }
    }

    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    pub(crate) fn close(&self) {
        self.open.send_replace(false);
    }

    /// Waits until the gate is open.
    pub(crate) async fn pass(&self) {
        self.arrived.add();
        let guard = DropGuard(Some(self.dropped.clone()));
        let mut open = self.open.subscribe();
        open.wait_for(|open| *open).await.unwrap();
        guard.disarm();
    }
}

struct DropGuard(Option<Counter>);

impl DropGuard {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        if let Some(dropped) = &self.0 {
            dropped.add();
        }
    }
}
