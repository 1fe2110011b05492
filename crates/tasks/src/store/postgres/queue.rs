//! Operations that wait for a write connection, and the order of their locks.

use super::{
    commit::QueuedWrite,
    create::Creation,
    statement::{Call, Reply},
};
use crate::store::TaskId;

/// What is to be done.
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

/// A statement in a queue.
pub(super) struct Queued {
    pub(super) call: Call,
    pub(super) order: Order,
    pub(super) reply: Reply,
}

/// When something is done in a transaction. Everybody takes locks in this order, so nobody waits in
/// a circle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    /// In a transaction of its own, because it locks many tasks.
    Alone,
    Note(String),
    Task(TaskId),
    Event,
}

impl Order {
    /// The order of an operation on one task.
    pub(super) fn on(task: &TaskId) -> Self {
        Self::Task(task.clone())
    }

    /// The name of the task that is locked.
    pub(super) fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Task(task) => Some(task),
            Self::Alone | Self::Note(_) | Self::Event => None,
        }
    }
}
