//! The placement of a run: inline, in a task, or in the cleanup of a task.
//!
//! Only `exec/promote.rs` and `dispatch/resume.rs` change a placement.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use outlive_tasks::store::{TaskId, TaskOutcome};

/// Placement of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// In the call itself: the client waits for the response.
    Inline(Promotable),
    /// In a task: its journal and input requests are in the store.
    Task {
        /// Task ID.
        id: TaskId,
    },
    /// In the cleanup of a task that has ended.
    Cleanup {
        /// Task ID.
        id: TaskId,
        /// Reason why the task ended before its handler did.
        reason: CleanupReason,
    },
}

/// Whether an inline call can be promoted to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promotable {
    /// The call cannot be promoted.
    No,
    /// The call can be promoted.
    Yes,
    /// The handler waits for the promotion.
    Requested,
}

/// Reason why a task ended before its handler did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CleanupReason {
    /// The client cancelled the task, or disconnected before it received the task ID.
    Cancelled,
    /// The TTL of the task expired.
    Expired,
}

impl CleanupReason {
    /// Returns the reason for a cleanup, or `None` if the handler ended the task.
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
    // A std mutex: no code awaits while it is held.
    Mutex<Placement>,
);

impl PlacementCell {
    pub(crate) fn new(placement: Placement) -> Self {
        Self(Mutex::new(placement))
    }

    pub(crate) fn set(&self, placement: Placement) {
        *self.lock() = placement;
    }

    /// Returns whether the run is in a task or in its cleanup.
    pub(crate) fn is_task(&self) -> bool {
        !matches!(*self.lock(), Placement::Inline(_))
    }

    /// Returns the task ID.
    pub(crate) fn task_id(&self) -> Option<TaskId> {
        match &*self.lock() {
            Placement::Inline(_) => None,
            Placement::Task { id } | Placement::Cleanup { id, .. } => Some(id.clone()),
        }
    }

    /// Returns the reason for the cleanup, if the run is one.
    pub(crate) fn cleanup_reason(&self) -> Option<CleanupReason> {
        match *self.lock() {
            Placement::Cleanup { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Returns whether the call can be promoted, or `None` if it is a task.
    pub(crate) fn promotable(&self) -> Option<Promotable> {
        match *self.lock() {
            Placement::Inline(promotable) => Some(promotable),
            _ => None,
        }
    }

    /// Requests the promotion of the call to a task. Returns whether the call can be promoted.
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
