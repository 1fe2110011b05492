//! The placement of a run: inline, in a task, or in the cleanup of a task.
//!
//! Only `exec/promote.rs` and `dispatch/resume.rs` change a placement.

use std::{
    fmt, mem,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
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
pub(crate) struct PlacementCell {
    // A std mutex: no code awaits while it is held.
    inner: Mutex<Inner>,
}

struct Inner {
    placement: Placement,
    /// Futures of the handler that wait for the promotion.
    waiting: Vec<Waker>,
}

impl PlacementCell {
    pub(crate) fn new(placement: Placement) -> Self {
        Self { inner: Mutex::new(Inner { placement, waiting: Vec::new() }) }
    }

    /// Changes the placement, and wakes the futures that wait for it.
    pub(crate) fn set(&self, placement: Placement) {
        let waiting = {
            let mut inner = self.lock();
            inner.placement = placement;
            mem::take(&mut inner.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns whether the run is in a task or in its cleanup.
    pub(crate) fn is_task(&self) -> bool {
        !matches!(self.lock().placement, Placement::Inline(_))
    }

    /// Returns the task ID.
    pub(crate) fn task_id(&self) -> Option<TaskId> {
        match &self.lock().placement {
            Placement::Inline(_) => None,
            Placement::Task { id } | Placement::Cleanup { id, .. } => Some(id.clone()),
        }
    }

    /// Returns the reason for the cleanup, if the run is one.
    pub(crate) fn cleanup_reason(&self) -> Option<CleanupReason> {
        match self.lock().placement {
            Placement::Cleanup { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Returns whether the call can be promoted, or `None` if it is a task.
    pub(crate) fn promotable(&self) -> Option<Promotable> {
        match self.lock().placement {
            Placement::Inline(promotable) => Some(promotable),
            _ => None,
        }
    }

    /// Requests the promotion of the call to a task. Returns whether the call can be promoted.
    pub(crate) fn request_promotion(&self) -> bool {
        self.lock().request_promotion()
    }

    /// Waits until the call is a task, and requests its promotion. Returns `false` if the call cannot
    /// become a task.
    pub(crate) fn poll_task(&self, task: &mut Context<'_>) -> Poll<bool> {
        let mut inner = self.lock();
        if !matches!(inner.placement, Placement::Inline(_)) {
            return Poll::Ready(true);
        }
        if !inner.request_promotion() {
            return Poll::Ready(false);
        }
        if !inner.waiting.iter().any(|waker| waker.will_wake(task.waker())) {
            inner.waiting.push(task.waker().clone());
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn request_promotion(&mut self) -> bool {
        let is_possible =
            matches!(self.placement, Placement::Inline(Promotable::Yes | Promotable::Requested));
        if is_possible {
            self.placement = Placement::Inline(Promotable::Requested);
        }
        is_possible
    }
}

impl fmt::Debug for PlacementCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().placement.fmt(f)
    }
}
