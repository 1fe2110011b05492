//! The database under the servers: a file that cannot fall over, or a server that can.

use std::path::Path;

use anyhow::{Result, bail};

use crate::postgres::{Postgres, Programs};

/// Where the servers keep their tasks.
#[derive(Debug)]
pub(crate) enum Database {
    /// A file. It needs nobody to run it.
    Sqlite { url: String },
    /// A server, which can be killed.
    Postgres(Box<Postgres>),
}

impl Database {
    /// Makes an empty one; what is a file lies in the folder.
    pub(crate) fn start(kind: &str, folder: &Path) -> Result<Self> {
        match kind {
            "sqlite" => {
                let path = folder.join("tasks.db");
                Ok(Self::Sqlite { url: format!("sqlite:{}", path.display()) })
            }
            "postgres" => Ok(Self::Postgres(Box::new(Postgres::start(&Programs::find()?)?))),
            other => bail!("unknown store `{other}`; there are `sqlite` and `postgres`"),
        }
    }

    /// What the servers are told.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite { url } => url.clone(),
            Self::Postgres(postgres) => postgres.url(),
        }
    }

    /// Whether it is a process of its own, which can be killed.
    pub(crate) fn can_fall(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Which faults may hold up everybody who writes, and not only whom they hit.
    pub(crate) fn holds_up(&self) -> &'static [&'static str] {
        match self {
            // A process that is frozen while it writes keeps the lock of the file.
            Self::Sqlite { .. } => &["freeze", "thaw"],
            Self::Postgres(_) => &["database", "recovery"],
        }
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) -> Result<()> {
        match self {
            Self::Sqlite { .. } => bail!("there is no process behind a file"),
            Self::Postgres(postgres) => postgres.kill(),
        }
    }

    /// Starts it again, on what it had on its disk.
    pub(crate) fn restart(&mut self) -> Result<()> {
        match self {
            Self::Sqlite { .. } => bail!("there is no process behind a file"),
            Self::Postgres(postgres) => postgres.restart(),
        }
    }
}
