//! What can go wrong with a file, in words that say what to do.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::store::StoreError;

/// Why something was not done, before it is told to anybody.
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
    /// As whoever uses the store hears of it.
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

    /// Whether whoever asked has no right to it. That is the first thing to be found, and nothing
    /// has been written by then.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Store(StoreError::LeaseLost | StoreError::BytesExceeded))
    }

    /// Whether the disk has no space left.
    pub(super) fn is_full_disk(&self) -> bool {
        matches!(self, Self::Sqlite(error) if code(error) == Some(ErrorCode::DiskFull))
    }

    /// Whether somebody else has the lock.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Self::Sqlite(error) if code(error) == Some(ErrorCode::DatabaseBusy))
    }
}

enum Remedy {
    /// It may work later, if this is done.
    Later(&'static str),
    /// What is in the file is the problem.
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
            "another process keeps it locked; look for one that hangs, or for a backup that runs",
        ),
        Some(ErrorCode::DiskFull) => Remedy::Later("free some space on its disk"),
        Some(ErrorCode::ReadOnly) => Remedy::Later(
            "let the user of this process write the file and its folder, and restart if the file \
             was replaced",
        ),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Remedy::Later(
            "check that it is a file, and that the user of this process may write it and its folder",
        ),
        Some(ErrorCode::SystemIoFailure | ErrorCode::FileLockingProtocolFailed) => {
            Remedy::Later("check its disk; a network folder will not do")
        }
        Some(ErrorCode::OutOfMemory) => Remedy::Later("give the process more memory"),
        Some(ErrorCode::TooBig) => Remedy::Later("keep less in one value"),
        Some(ErrorCode::NotADatabase) => Remedy::Never("name another file"),
        Some(ErrorCode::DatabaseCorrupt) => {
            Remedy::Never("restore it from a backup, or name another file")
        }
        Some(_) => Remedy::Later("this should not happen: please report it"),
        None => match error {
            Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
            | Error::InvalidColumnType(..) => {
                Remedy::Never("somebody else has written it; restore it from a backup")
            }
            _ => Remedy::Later("this should not happen: please report it"),
        },
    }
}
