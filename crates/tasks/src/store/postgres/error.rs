//! [`PostgresError`]: errors of a database, with their remedies.

use std::{error::Error as _, io};

use tokio_postgres::error::SqlState;

use crate::store::StoreError;

/// An error before its conversion to a [`StoreError`].
#[derive(Debug)]
pub(super) enum PostgresError {
    Database(tokio_postgres::Error),
    Store(StoreError),
    /// The database did not respond in time.
    Silent,
}

impl From<tokio_postgres::Error> for PostgresError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for PostgresError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Scope of an error: which operations it affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Only the operation that failed.
    One,
    /// All writes: an immediate retry of another write would fail, too.
    All,
    /// The connection: operations without a response may or may not have taken effect.
    Connection,
}

impl PostgresError {
    /// Converts the error to a [`StoreError`]. `place` is the address of the database.
    pub(super) fn with(&self, place: &str) -> StoreError {
        match self {
            Self::Store(StoreError::Unavailable(why)) => {
                StoreError::Unavailable(format!("{place}: {why}"))
            }
            Self::Store(StoreError::Incompatible(what)) => {
                StoreError::Incompatible(format!("{place}: {what}"))
            }
            Self::Store(lost) => lost.clone(),
            Self::Silent => StoreError::Unavailable(format!(
                "{place}: no response in time; check the load of the database and the network"
            )),
            Self::Database(error) => {
                let (why, remedy) = (said(error), remedy(error));
                match error.code() {
                    Some(&(SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED)) => {
                        StoreError::Incompatible(format!("{place}: {why}; {remedy}"))
                    }
                    _ => StoreError::Unavailable(format!("{place}: {why}; {remedy}")),
                }
            }
        }
    }

    /// Returns whether the database is starting and does not accept connections yet.
    pub(super) fn is_starting(&self) -> bool {
        matches!(self, Self::Database(error)
            if error.code().is_some_and(|code| *code == SqlState::CANNOT_CONNECT_NOW))
    }

    pub(super) fn reach(&self) -> Reach {
        let error = match self {
            Self::Database(error) => error,
            Self::Store(_) => return Reach::One,
            Self::Silent => return Reach::Connection,
        };
        let Some(code) = error.code() else {
            // The only other local error is a value that does not fit its column.
            let ours = error.source().is_some_and(|source| !source.is::<io::Error>());
            return if ours && !error.is_closed() { Reach::One } else { Reach::Connection };
        };
        match code.code().as_bytes() {
            // The database was shut down, or a prepared statement no longer exists.
            b"57P01" | b"57P02" | b"57P03" | b"57P05" | b"25P03" | b"26000" | b"0A000" => {
                Reach::Connection
            }
            [b'0', b'8', ..] => Reach::Connection,
            // No space, memory or connections are left; the database is read-only; a privilege is
            // missing.
            [b'5', b'3', ..] | b"25006" | b"42501" => Reach::All,
            _ => Reach::One,
        }
    }
}

/// Returns the error and its causes in one line: "connection refused" is more specific than "error
/// connecting". For an error of the database, omits the text of the client library.
fn said(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_owned();
    }
    let mut said = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        source = cause.source();
    }
    said
}

fn remedy(error: &tokio_postgres::Error) -> &'static str {
    let Some(code) = error.code() else {
        return match error.is_closed() {
            true => "the database closed the connection; the store reconnects automatically",
            false if said(error).contains("password") => {
                "write it into the URL, postgres://user:PASSWORD@host/database; PGPASSWORD and \
                 other libpq variables are ignored"
            }
            false => "check that the database runs, and the host, port and TLS settings of its URL",
        };
    };
    match code.code().as_bytes() {
        [b'2', b'8', ..] => "check the user and the password in the URL",
        b"3D000" => "create the database, or use another one",
        b"42501" => {
            "allow this user to create the schema and write to it: GRANT CREATE, USAGE ON DATABASE \
             and SCHEMA"
        }
        b"3F000" | b"42P01" | b"42883" => "the tables were removed; restart this program",
        b"25006" => {
            "the database is read-only; connect to the primary (`target_session_attrs=read-write`)"
        }
        b"53100" => "free some space on the disk of the database",
        b"53200" => "increase the memory of the database",
        b"53300" => "increase `max_connections`; each replica needs eight connections",
        b"57014" => {
            "the statement timed out; check the load and the locks of the database (`pg_stat_activity`)"
        }
        b"57P01" | b"57P02" | b"57P03" => "the database is restarting; retry in a moment",
        b"55P03" | b"40P01" | b"40001" => "conflict with another transaction; retry",
        b"23505" => "the name is already in use; choose another one",
        [b'5', b'4', ..] | b"22001" | b"22P05" => "store smaller values, or use shorter names",
        [b'X', b'X', ..] | b"58030" => {
            "check the log and the disk of the database; restore it from a backup"
        }
        _ => "this is a bug; please report it",
    }
}
