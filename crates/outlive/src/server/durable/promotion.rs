//! Whether a call becomes a task, and whether it has to before it goes on.

use std::{
    sync::atomic::Ordering,
    task::{Context, Poll},
};

use super::Durability;

impl Durability {
    /// The call may become a task, or may not after all.
    pub(in crate::server) fn allow_task(&self, may: bool) {
        self.may_become_task.store(may, Ordering::Release);
    }

    /// The call becomes a task before its first step, if it may.
    pub(in crate::server) fn promote_at_step(&self) {
        self.promotes_at_step.store(true, Ordering::Release);
    }

    /// Whether it has to become a task before a step.
    pub(super) fn promotes_at_step(&self) -> bool {
        self.promotes_at_step.load(Ordering::Acquire) && !self.is_task()
    }

    /// Whether the call has to become a task before it can go on.
    pub(in crate::server) fn wants_task(&self) -> bool {
        self.wants_task.load(Ordering::Acquire) && !self.is_task()
    }

    /// The call has to become a task before it can go on, if it may.
    pub(super) fn want_task(&self) -> bool {
        let may = self.may_become_task.load(Ordering::Acquire) && !self.is_task();
        if may {
            self.wants_task.store(true, Ordering::Release);
        }
        may
    }

    /// Waits until the call is a task; `false` if it will not be one. Whoever makes a task of it
    /// polls it again then.
    pub(super) fn poll_task(&self, _task: &mut Context<'_>) -> Poll<bool> {
        match (self.is_task(), self.may_become_task.load(Ordering::Acquire)) {
            (true, _) => Poll::Ready(true),
            (false, false) => Poll::Ready(false),
            (false, true) => {
                self.wants_task.store(true, Ordering::Release);
                Poll::Pending
            }
        }
    }
}
