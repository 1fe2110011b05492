//! A gate inside a handler: the test learns that a call has come so far, and lets it go on.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time::timeout};

/// How long a test waits for a handler. Only one that fails waits so long.
const GUARD: Duration = Duration::from_secs(10);

/// Given to a server as state; handlers stop at [`Gate::pass`].
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Counts>);

struct Counts {
    arrived: Semaphore,
    open: Semaphore,
    abandoned: Semaphore,
}

impl Default for Counts {
    fn default() -> Self {
        let none = || Semaphore::new(0);
        Self { arrived: none(), open: none(), abandoned: none() }
    }
}

impl Gate {
    /// Waits until the test opens the gate. For handlers.
    pub(crate) async fn pass(&self) {
        let mut waiting = Waiting { gate: self, through: false };
        self.0.arrived.add_permits(1);
        take(&self.0.open).await;
        waiting.through = true;
    }

    /// Waits until a handler stands at the gate, each of them once.
    pub(crate) async fn arrived(&self) {
        timeout(GUARD, take(&self.0.arrived)).await.expect("a handler comes to the gate");
    }

    /// Lets so many handlers through, those that are still to come included.
    pub(crate) fn open(&self, handlers: usize) {
        self.0.open.add_permits(handlers);
    }

    /// Waits until a handler has been dropped at the gate, each of them once.
    pub(crate) async fn abandoned(&self) {
        timeout(GUARD, take(&self.0.abandoned)).await.expect("a handler is dropped at the gate");
    }

    /// How many handlers have been dropped at the gate.
    pub(crate) fn count_abandoned(&self) -> usize {
        self.0.abandoned.available_permits()
    }
}

struct Waiting<'a> {
    gate: &'a Gate,
    through: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.through {
            self.gate.0.abandoned.add_permits(1);
        }
    }
}

async fn take(semaphore: &Semaphore) {
    semaphore.acquire().await.expect("nobody closes it").forget();
}
