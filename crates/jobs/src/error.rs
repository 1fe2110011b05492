//! Errors of jobs. Failures of their commands are exits, not errors.

use std::{io, path::Path};

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of starting, reading or ending a job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or a socket of a job failed.
    #[error("failed to {doing}")]
    Io {
        /// Attempted operation.
        doing: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The path of the data folder is too long for a Unix socket, and cannot be shortened by a link.
    #[error(
        "the path of {} is too long for a socket, and no link to it can be created in {}; set \
         OUTLIVE_DATA_DIR to a folder with a shorter path, or TMPDIR to a folder for temporary files",
        .folder.display(),
        std::env::temp_dir().display()
    )]
    PathTooLong {
        /// The data folder.
        folder: std::path::PathBuf,
        /// Why the link could not be created.
        source: io::Error,
    },
    /// The ID is not a valid folder name.
    #[error("`{0}` is not a valid job ID; use 1 to 64 hexadecimal digits")]
    BadId(String),
    /// The job has not ended, so it cannot be removed.
    #[error("job {0} has not ended; end it first")]
    NotEnded(String),
    /// The supervisor did not start.
    #[error("the supervisor did not start: {0}")]
    Supervisor(String),
    /// The program could not be started. The text says why, and what to do.
    #[error("{0}")]
    NotStarted(String),
    /// The supervisor is alive, but its socket is gone.
    #[error(
        "the supervisor of job {job} does not accept connections; kill its process{} to mark the job as lost",
        .supervisor.map(|pid| format!(" {pid}")).unwrap_or_default()
    )]
    Deaf {
        /// Job ID.
        job: String,
        /// Process ID of the supervisor, if it is visible.
        supervisor: Option<i32>,
    },
    /// The supervisor rejected an input response.
    #[error("the response was rejected: {0}")]
    ResponseRejected(String),
    /// This system does not support supervisors.
    #[error("supervisors are not supported on this system, so {} cannot be supervised", .0.display())]
    Unsupported(std::path::PathBuf),
}

impl Error {
    pub(super) fn io(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let doing = format!("{doing} {}", path.display());
        move |source| Self::Io { doing, source }
    }
}
