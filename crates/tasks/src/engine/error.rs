//! [`CreateError`]: reason why a task was not created.

use std::fmt;

use crate::store::{StoreError, TaskId};

/// Reason why a task was not created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreateError {
    /// The caller has reached its maximum number of open tasks.
    QuotaExceeded,
    /// The caller has reached its maximum number of stored bytes.
    BytesExceeded,
    /// The idempotency key was used for another request.
    KeyConflict,
    /// This task already has the idempotency key.
    Existing(TaskId),
    /// The store failed.
    Store(StoreError),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QuotaExceeded => f.write_str("the caller has reached its limit of open tasks"),
            Self::BytesExceeded => f.write_str("the caller has reached its limit of stored bytes"),
            Self::KeyConflict => f.write_str("the idempotency key was used for another request"),
            Self::Existing(id) => write!(f, "the idempotency key belongs to task {id}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}
