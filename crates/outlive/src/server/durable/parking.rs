//! Runs that must not be parked, because they hold something that no replay restores.

use std::{fmt, sync::Arc};

use outlive_tasks::Journal;

use crate::server::durable::context::Durable;

impl Durable {
    /// Prevents that the run is parked while the guard lives, for handlers that hold something which
    /// no replay restores, such as an open exchange with another server.
    ///
    /// The run then counts as inside a step. An input request of an inline call on 2026-07-28 first
    /// promotes the call to a task, so that the run continues while the client responds. If the call
    /// cannot become a task, the input request fails with
    /// [`DurableError::TaskRequired`](crate::server::durable::DurableError::TaskRequired).
    pub fn prevent_parking(&self) -> ParkGuard {
        let journal = Arc::clone(self.run().journal());
        journal.prevent_parking();
        ParkGuard { journal }
    }
}

/// Prevents that a run is parked; see [`Durable::prevent_parking`].
#[must_use = "the run can be parked when the guard is dropped"]
pub struct ParkGuard {
    journal: Arc<Journal>,
}

impl Drop for ParkGuard {
    fn drop(&mut self) {
        self.journal.allow_parking();
    }
}

impl fmt::Debug for ParkGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkGuard").finish_non_exhaustive()
    }
}
