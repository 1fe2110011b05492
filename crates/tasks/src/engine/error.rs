//! Why a task was not created.

use std::fmt;

use crate::store::{StoreError, TaskId};

/// Why a task was not created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreateError {
    /// The caller has its maximum number of open tasks.
    QuotaExceeded,
    /// The caller has its maximum number of stored bytes.
    BytesExceeded,
    /// The idempotency key was used for another request.
    KeyConflict,
    /// The idempotency key belongs to this task.
    Existing(TaskId),
    /// The store failed.
    Store(StoreError),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QuotaExceeded => f.write_str("the caller has as many open tasks as it may have"),
            Self::BytesExceeded => {
                f.write_str("the caller has as many bytes stored as it may have")
            }
            Self::KeyConflict => f.write_str("the idempotency key was used for another request"),
            Self::Existing(id) => write!(f, "the idempotency key belongs to the task {id}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}
