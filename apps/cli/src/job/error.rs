//! What goes wrong with jobs themselves, as opposed to their commands.

use std::{io, path::Path};

use crate::trouble::{Kind, Trouble};

/// What this module returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a job cannot be started, read or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or a socket of a job cannot be used.
    #[error("could not {doing}")]
    Io {
        /// What was tried.
        doing: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Sockets have short names.
    #[error(
        "the path of {} is too long for a socket; set OUTLIVE_DATA to a folder with a shorter path",
        .0.display()
    )]
    PathTooLong(std::path::PathBuf),
    /// Ids become names of folders.
    #[error("`{0}` cannot be the id of a job; it takes 1 to 64 hexadecimal digits")]
    BadId(String),
    /// What is running is not forgotten.
    #[error("job {0} is not over; end it first")]
    NotOver(String),
    /// The supervisor could not do its work.
    #[error("the supervisor did not start: {0}")]
    Supervisor(String),
    /// The supervisor lives, but its socket is gone.
    #[error(
        "the supervisor of job {job} does not listen; end its process{}, and the job counts as lost",
        .supervisor.map(|pid| format!(" {pid}")).unwrap_or_default()
    )]
    Deaf {
        /// The job.
        job: String,
        /// The process of the supervisor, if it can be seen from here.
        supervisor: Option<i32>,
    },
    /// The supervisor would not take an answer.
    #[error("the answer was refused: {0}")]
    Refused(String),
}

impl Error {
    pub(super) fn io(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let doing = format!("{doing} {}", path.display());
        move |source| Self::Io { doing, source }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match &error {
            Error::Io { source, .. } => Trouble::new(Kind::Failed, format!("{error}: {source}"))
                .remedy("check that the data folder is yours, and that its disk has room"),
            _ => Trouble::new(Kind::Failed, error),
        }
    }
}
