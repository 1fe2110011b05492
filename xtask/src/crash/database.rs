//! The database under the servers: a file that cannot fall over, or a server that can.

use std::path::Path;

use anyhow::{Result, bail};

/// Where the servers keep their tasks.
#[derive(Debug)]
pub(crate) enum Database {
    /// A file. It needs nobody to run it.
    Sqlite { url: String },
}

impl Database {
    /// Makes an empty one inside of a folder.
    pub(crate) fn start(kind: &str, folder: &Path) -> Result<Self> {
        match kind {
            "sqlite" => {
                let path = folder.join("tasks.db");
                Ok(Self::Sqlite { url: format!("sqlite:{}", path.display()) })
            }
            other => bail!("unknown store `{other}`; there is `sqlite`"),
        }
    }

    /// What the servers are told.
    pub(crate) fn url(&self) -> &str {
        match self {
            Self::Sqlite { url } => url,
        }
    }

    /// Whether it is a process of its own, which can be killed.
    pub(crate) fn can_fall(&self) -> bool {
        match self {
            Self::Sqlite { .. } => false,
        }
    }

    /// Which faults may hold up everybody who writes, and not only whom they hit.
    pub(crate) fn holds_up(&self) -> &'static [&'static str] {
        match self {
            // A process that is frozen while it writes keeps the lock of the file.
            Self::Sqlite { .. } => &["freeze", "thaw"],
        }
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) -> Result<()> {
        match self {
            Self::Sqlite { .. } => bail!("there is no process behind a file"),
        }
    }

    /// Starts it again, on what it had on its disk.
    pub(crate) fn restart(&mut self) -> Result<()> {
        match self {
            Self::Sqlite { .. } => bail!("there is no process behind a file"),
        }
    }
}
