//! Where a run takes place: inline, in a task, or in the cleanup of a task.
//!
//! Only `exec/promote.rs` and `dispatch/resume.rs` change a placement.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use outlive_tasks::store::{TaskId, TaskOutcome};

/// Where a run takes place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// In the call itself: its client waits.
    Inline(Promotable),
    /// In a task: its journal and input requests are in the store.
    Task {
        /// The task.
        id: TaskId,
    },
    /// In the cleanup of a task that has ended.
    Cleanup {
        /// The task.
        id: TaskId,
        /// Why it ended before its handler did.
        reason: CleanupReason,
    },
}

/// Whether an inline call may become a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promotable {
    /// It may not.
    No,
    /// It may.
    Yes,
    /// It has to before it continues: its handler waits for that.
    Requested,
}

/// Why a task ended before its handler did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CleanupReason {
    /// Its caller cancelled it, or left before it learned of the task.
    Cancelled,
    /// Its time to live was over.
    Expired,
}

impl CleanupReason {
    /// Returns why a task ended, if its handler did not end it.
    pub(crate) fn of(outcome: &TaskOutcome) -> Option<Self> {
        match outcome {
            TaskOutcome::Cancelled => Some(Self::Cancelled),
            TaskOutcome::Expired => Some(Self::Expired),
            _ => None,
        }
    }
}

/// The placement of a run, which changes when its call is promoted.
pub(crate) struct PlacementCell(
    // A std mutex: nothing awaits while it is held.
    Mutex<Placement>,
);

impl PlacementCell {
    pub(crate) fn new(placement: Placement) -> Self {
        Self(Mutex::new(placement))
    }

    pub(crate) fn set(&self, placement: Placement) {
        *self.lock() = placement;
    }

    /// Whether the run is that of a task, or of its cleanup.
    pub(crate) fn is_task(&self) -> bool {
        !matches!(*self.lock(), Placement::Inline(_))
    }

    /// Returns the task.
    pub(crate) fn task_id(&self) -> Option<TaskId> {
        match &*self.lock() {
            Placement::Inline(_) => None,
            Placement::Task { id } | Placement::Cleanup { id, .. } => Some(id.clone()),
        }
    }

    /// Returns why the task ended, in its cleanup.
    pub(crate) fn cleanup_reason(&self) -> Option<CleanupReason> {
        match *self.lock() {
            Placement::Cleanup { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Returns whether the call may become a task; `None` if it is one.
    pub(crate) fn promotable(&self) -> Option<Promotable> {
        match *self.lock() {
            Placement::Inline(promotable) => Some(promotable),
            _ => None,
        }
    }

    /// Requests that the call becomes a task. Returns whether it may.
    pub(crate) fn request_promotion(&self) -> bool {
        let mut placement = self.lock();
        match *placement {
            Placement::Inline(Promotable::Yes | Promotable::Requested) => {
                *placement = Placement::Inline(Promotable::Requested);
                true
            }
            _ => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Placement> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PlacementCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().fmt(f)
    }
}
