//! Errors of tool workers.

/// Error of starting or reloading a tool worker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The data folder cannot be used.
    #[error("the data folder of the tool worker `{tool_worker}` cannot be used: {reason}")]
    Folder {
        /// Name of the tool worker.
        tool_worker: String,
        /// Error of the operating system.
        reason: String,
    },
    /// A process did not start, or did not declare valid tools.
    #[error("the tool worker `{tool_worker}` did not start: {reason}")]
    NotStarted {
        /// Name of the tool worker.
        tool_worker: String,
        /// Reason.
        reason: String,
        /// Last lines of its standard error.
        stderr: String,
    },
    /// Another tool of the server has the name.
    #[error(
        "the tool `{tool}` of the tool worker `{tool_worker}` has the name of a tool of `{other}`; rename one of them"
    )]
    NameTaken {
        /// Name of the tool worker.
        tool_worker: String,
        /// Name of the tool.
        tool: String,
        /// Owner of the other tool.
        other: String,
    },
}

impl WorkerError {
    /// Returns the last lines of standard error of a process that did not start.
    pub fn stderr(&self) -> &str {
        match self {
            Self::NotStarted { stderr, .. } => stderr,
            Self::Folder { .. } | Self::NameTaken { .. } => "",
        }
    }
}
