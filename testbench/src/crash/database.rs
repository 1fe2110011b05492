//! The database of the servers: a SQLite file, or a PostgreSQL server that can be killed.

use std::path::Path;

use anyhow::{Result, bail};

use crate::postgres::{Postgres, Programs};

/// The task store of the servers.
#[derive(Debug)]
pub(crate) enum Database {
    /// A file, without a process.
    Sqlite { url: String },
    /// A server process, which can be killed.
    Postgres(Box<Postgres>),
}

impl Database {
    /// Creates an empty database; a file goes into `folder`.
    pub(crate) fn start(kind: &str, folder: &Path) -> Result<Self> {
        match kind {
            "sqlite" => {
                let path = folder.join("tasks.db");
                Ok(Self::Sqlite { url: format!("sqlite:{}", path.display()) })
            }
            "postgres" => Ok(Self::Postgres(Box::new(Postgres::start(&Programs::find()?)?))),
            other => bail!("unknown store `{other}`; use `sqlite` or `postgres`"),
        }
    }

    /// The store URL for the servers.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite { url } => url.clone(),
            Self::Postgres(postgres) => postgres.url(),
        }
    }

    /// Whether the database is a process that can be killed.
    pub(crate) fn can_fall(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// The kinds of failures that may block every writer.
    pub(crate) fn holds_up(&self) -> &'static [&'static str] {
        match self {
            // A process that is frozen during a write keeps the file lock.
            Self::Sqlite { .. } => &["freeze", "thaw"],
            Self::Postgres(_) => &["database", "recovery"],
        }
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) -> Result<()> {
        match self {
            Self::Sqlite { .. } => bail!("a SQLite store has no process to kill"),
            Self::Postgres(postgres) => postgres.kill(),
        }
    }

    /// Restarts the database on its existing data.
    pub(crate) fn restart(&mut self) -> Result<()> {
        match self {
            Self::Sqlite { .. } => bail!("a SQLite store has no process to restart"),
            Self::Postgres(postgres) => postgres.restart(),
        }
    }
}
