//! What can go wrong with a database, in words that say what to do.

use std::{error::Error as _, io};

use tokio_postgres::error::SqlState;

use crate::store::StoreError;

/// Why something was not done, before it is told to anybody.
#[derive(Debug)]
pub(super) enum PostgresError {
    Database(tokio_postgres::Error),
    Store(StoreError),
    /// It did not answer.
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

/// What a problem means for the connection, and for those who share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Whoever asked for it.
    One,
    /// Everybody who writes now: doing it again at once would fail the same.
    All,
    /// The connection: what was sent and not answered may be done or not.
    Connection,
}

impl PostgresError {
    /// As whoever uses the store hears of it; `place` is where the database is.
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
                "{place}: no answer in time; check its load and the network to it"
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

    /// Whether the database is there, and does not take connections yet.
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
            // A value that does not fit its column is the only other thing that is found here.
            let ours = error.source().is_some_and(|source| !source.is::<io::Error>());
            return if ours && !error.is_closed() { Reach::One } else { Reach::Connection };
        };
        match code.code().as_bytes() {
            // It has been shut down, or its statements are not those that were prepared.
            b"57P01" | b"57P02" | b"57P03" | b"57P05" | b"25P03" | b"26000" | b"0A000" => {
                Reach::Connection
            }
            [b'0', b'8', ..] => Reach::Connection,
            // No space, memory or connections left; cannot be written; no right to.
            [b'5', b'3', ..] | b"25006" | b"42501" => Reach::All,
            _ => Reach::One,
        }
    }
}

/// The error in one line, with its causes: "connection refused" says more than "error connecting". What
/// the library says of itself is left out where the database has spoken.
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
            true => "it closed the connection, which is opened again by itself",
            false if said(error).contains("password") => {
                "write it in the address, postgres://user:PASSWORD@host/database; PGPASSWORD and \
                 other variables of libpq are not read"
            }
            false => {
                "check that the database runs, and the host, port and TLS settings of its address"
            }
        };
    };
    match code.code().as_bytes() {
        [b'2', b'8', ..] => "check the user and the password of its address",
        b"3D000" => "create the database, or name another one",
        b"42501" => {
            "let this user create the schema and write to it: GRANT CREATE, USAGE ON DATABASE \
             and SCHEMA"
        }
        b"3F000" | b"42P01" | b"42883" => "somebody has removed its tables; restart this program",
        b"25006" => {
            "it can only be read: connect to the primary (`target_session_attrs=read-write`)"
        }
        b"53100" => "free some space on its disk",
        b"53200" => "give the database more memory",
        b"53300" => "allow it more connections (`max_connections`); each replica needs eight",
        b"57014" => "it took too long; check its load, and who holds locks (`pg_stat_activity`)",
        b"57P01" | b"57P02" | b"57P03" => "the database is being restarted; try again in a moment",
        b"55P03" | b"40P01" | b"40001" => "others were faster; try again",
        b"23505" => "somebody else is just using the name; choose another one",
        [b'5', b'4', ..] | b"22001" | b"22P05" => "keep less in one value or name",
        [b'X', b'X', ..] | b"58030" => "check its log and its disk; restore it from a backup",
        _ => "this should not happen: please report it",
    }
}
