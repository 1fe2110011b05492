//! A gate inside a handler: the test learns that a call has reached it, and lets the call continue.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time::timeout};

/// Upper limit of every wait. Only a failing test waits this long.
const GUARD: Duration = Duration::from_secs(10);

/// The gate, as state of a server. Handlers wait at [`Gate::pass`].
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
    /// Waits until the test opens the gate. Called by handlers.
    pub(crate) async fn pass(&self) {
        let mut waiting = Waiting { gate: self, through: false };
        self.0.arrived.add_permits(1);
        take(&self.0.open).await;
        waiting.through = true;
    }

    /// Waits until a handler reaches the gate. Each arrival counts once.
    pub(crate) async fn arrived(&self) {
        timeout(GUARD, take(&self.0.arrived)).await.expect("a handler reaches the gate");
    }

    /// Lets `handlers` handlers through, including later ones.
    pub(crate) fn open(&self, handlers: usize) {
        self.0.open.add_permits(handlers);
    }

    /// Waits until a handler is dropped at the gate. Each drop counts once.
    pub(crate) async fn abandoned(&self) {
        timeout(GUARD, take(&self.0.abandoned)).await.expect("a handler is dropped at the gate");
    }

    /// Number of handlers that were dropped at the gate.
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
    semaphore.acquire().await.expect("the semaphore is never closed").forget();
}
