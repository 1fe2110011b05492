//! Errors of jobs themselves, as opposed to those of their commands.

use std::{io, path::Path};

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of starting, reading or ending a job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or a socket of a job failed.
    #[error("could not {doing}")]
    Io {
        /// What was attempted.
        doing: String,
        /// The cause.
        source: io::Error,
    },
    /// The path of the data folder is too long for a Unix socket.
    #[error(
        "the path of {} is too long for a socket; set OUTLIVE_DATA_DIR to a folder with a shorter path",
        .0.display()
    )]
    PathTooLong(std::path::PathBuf),
    /// The id is not a valid name of a job folder.
    #[error("`{0}` cannot be the id of a job; it takes 1 to 64 hexadecimal digits")]
    BadId(String),
    /// The job has not ended, so it cannot be removed.
    #[error("job {0} has not ended; end it first")]
    NotEnded(String),
    /// The supervisor did not start.
    #[error("the supervisor did not start: {0}")]
    Supervisor(String),
    /// The supervisor is alive, but its socket is gone.
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
    /// The supervisor rejected an input response.
    #[error("the response was rejected: {0}")]
    ResponseRejected(String),
    /// This system has no supervisors.
    #[error("there are no supervisors on this system, so none for {}", .0.display())]
    Unsupported(std::path::PathBuf),
}

impl Error {
    pub(super) fn io(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let doing = format!("{doing} {}", path.display());
        move |source| Self::Io { doing, source }
    }
}
