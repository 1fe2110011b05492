//! [`ReadError`]: why a range of a result cannot be read.

use std::fmt;

use outlive_tasks::store::StoreError;

/// Reason why a range of a result cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The result, or the block, does not exist or was deleted.
    Unknown,
    /// The range does not fit the result. The text tells the caller what to change.
    Range(String),
    /// The store cannot be read.
    Store(StoreError),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("no such result, or it was deleted"),
            Self::Range(reason) => f.write_str(reason),
            Self::Store(error) => error.fmt(f),
        }
    }
}
