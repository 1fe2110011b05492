//! [`SqliteError`]: errors of a SQLite file, with their remedies.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::store::StoreError;

/// An error before its conversion to a [`StoreError`].
#[derive(Debug)]
pub(super) enum SqliteError {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for SqliteError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl SqliteError {
    /// Converts the error to a [`StoreError`] with the path and the remedy.
    pub(super) fn with(self, path: &Path) -> StoreError {
        let path = path.display();
        match self {
            Self::Store(StoreError::Unavailable(why)) => {
                StoreError::Unavailable(format!("`{path}`: {why}"))
            }
            Self::Store(StoreError::Incompatible(what)) => {
                StoreError::Incompatible(format!("`{path}`: {what}"))
            }
            Self::Store(lost) => lost,
            Self::Sqlite(error) => match remedy(&error) {
                Remedy::Later(remedy) => {
                    StoreError::Unavailable(format!("`{path}`: {error}; {remedy}"))
                }
                Remedy::Never(remedy) => {
                    StoreError::Incompatible(format!("`{path}`: {error}; {remedy}"))
                }
            },
        }
    }

    /// Returns whether the operation was rejected for its lease or byte limit. These checks come
    /// first, so the operation has written nothing.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Store(StoreError::LeaseLost | StoreError::BytesExceeded))
    }

    /// Returns whether the disk is full.
    pub(super) fn is_full_disk(&self) -> bool {
        matches!(self, Self::Sqlite(error) if code(error) == Some(ErrorCode::DiskFull))
    }

    /// Returns whether another connection has the lock.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Self::Sqlite(error) if code(error) == Some(ErrorCode::DatabaseBusy))
    }
}

enum Remedy {
    /// A retry may succeed after this remedy.
    Later(&'static str),
    /// The content of the file is invalid, so a retry cannot succeed.
    Never(&'static str),
}

fn code(error: &rusqlite::Error) -> Option<ErrorCode> {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => Some(failure.code),
        _ => None,
    }
}

fn remedy(error: &rusqlite::Error) -> Remedy {
    use rusqlite::Error;
    match code(error) {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Remedy::Later(
            "another process holds the lock; check for a hanging process or a running backup",
        ),
        Some(ErrorCode::DiskFull) => Remedy::Later("free some space on the disk"),
        Some(ErrorCode::ReadOnly) => Remedy::Later(
            "allow the user of this process to write the file and its folder; restart if the file \
             was replaced",
        ),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Remedy::Later(
            "check that the path is a file, and that the user of this process may write it and its folder",
        ),
        Some(ErrorCode::SystemIoFailure | ErrorCode::FileLockingProtocolFailed) => {
            Remedy::Later("check the disk; network folders are not supported")
        }
        Some(ErrorCode::OutOfMemory) => Remedy::Later("increase the memory limit of the process"),
        Some(ErrorCode::TooBig) => Remedy::Later("store smaller values"),
        Some(ErrorCode::NotADatabase) => Remedy::Never("use another file"),
        Some(ErrorCode::DatabaseCorrupt) => {
            Remedy::Never("restore the file from a backup, or use another file")
        }
        Some(_) => Remedy::Later("this is a bug; please report it"),
        None => match error {
            Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
            | Error::InvalidColumnType(..) => {
                Remedy::Never("another program has written to the file; restore it from a backup")
            }
            _ => Remedy::Later("this is a bug; please report it"),
        },
    }
}
