//! Operations that wait for a write connection, and their lock order.

use super::{
    commit::QueuedWrite,
    create::Creation,
    statement::{Call, Reply},
};
use crate::store::TaskId;

/// An operation in a queue.
pub(super) enum Work {
    Create(Box<Creation>),
    Write(Box<QueuedWrite>),
    Call(Queued),
}

impl Work {
    pub(super) fn is_alone(&self) -> bool {
        matches!(self, Self::Call(queued) if queued.order == Order::Alone)
    }
}

/// A queued statement, and its reply to the caller.
pub(super) struct Queued {
    pub(super) call: Call,
    pub(super) order: Order,
    pub(super) reply: Reply,
}

/// Position of an operation within its transaction. All transactions take locks in this order,
/// which prevents deadlocks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    /// Runs in a separate transaction, because the operation locks many tasks.
    Alone,
    Note(String),
    Task(TaskId),
    Event,
}

impl Order {
    /// Returns the order of an operation on one task.
    pub(super) fn on(task: &TaskId) -> Self {
        Self::Task(task.clone())
    }

    /// Returns the task that the operation locks.
    pub(super) fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Task(task) => Some(task),
            Self::Alone | Self::Note(_) | Self::Event => None,
        }
    }
}
