//! [`StoreError`].

use std::fmt;

/// Why a store did not execute an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The lease is lost, or the task has ended: its worker must stop.
    LeaseLost,
    /// The store cannot be reached or written. The operation may or may not have taken effect; a retry is
    /// safe.
    Unavailable(String),
    /// The store holds data that this version cannot read.
    Incompatible(String),
    /// The principal has its maximum number of stored bytes. Nothing was written.
    BytesExceeded,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeaseLost => f.write_str("another worker has the task, or it is over"),
            Self::Unavailable(why) => write!(f, "the store cannot be used: {why}"),
            Self::Incompatible(what) => write!(f, "the store holds what cannot be read: {what}"),
            Self::BytesExceeded => f.write_str("the caller has as many bytes stored as it may"),
        }
    }
}

impl std::error::Error for StoreError {}
