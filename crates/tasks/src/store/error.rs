//! [`StoreError`].

use std::fmt;

/// Reason why a store did not execute an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The lease is lost, or the task has ended. The worker must stop.
    LeaseLost,
    /// The store cannot be reached or written. Whether the operation took effect is unknown; a
    /// retry is safe.
    Unavailable(String),
    /// The store contains data that this version cannot read.
    Incompatible(String),
    /// The principal has reached its maximum number of stored bytes. Nothing was written.
    BytesExceeded,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeaseLost => f.write_str("the lease is lost, or the task has ended"),
            Self::Unavailable(why) => write!(f, "the task store is unavailable: {why}"),
            Self::Incompatible(what) => {
                write!(f, "the task store is incompatible with this version: {what}")
            }
            Self::BytesExceeded => f.write_str("the caller has reached its limit of stored bytes"),
        }
    }
}

impl std::error::Error for StoreError {}
