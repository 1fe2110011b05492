//! Errors of the program: a message, a remedy, and the exit code.

use std::{fmt, process::ExitCode};

use outlive::text;

use crate::print;

/// Result of a command.
pub(crate) type Result<T, E = CliError> = std::result::Result<T, E>;

/// Exit code of a failure. `outlive --help` and docs/cli.md document the codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The tool failed, or a check failed.
    Failed = 1,
    /// The command line or a configuration file is invalid.
    Usage = 2,
    /// The server or the store is unreachable, or the server violates the protocol.
    Unreachable = 3,
    /// The call or task was cancelled.
    Cancelled = 4,
    /// The server requires input, and the program has neither a terminal nor a prepared answer.
    Unanswered = 5,
    /// The user stopped this program.
    Interrupted = 130,
    /// The reader of standard output closed the pipe. A task keeps running.
    ReaderLeft = 141,
}

/// A failure with a message and a remedy.
#[derive(Debug)]
pub(crate) struct CliError {
    kind: Kind,
    what: String,
    remedy: Option<String>,
    /// Further failures of the same command.
    others: Vec<CliError>,
}

impl CliError {
    pub(crate) fn new(kind: Kind, what: impl fmt::Display) -> Self {
        Self { kind, what: what.to_string(), remedy: None, others: Vec::new() }
    }

    pub(crate) fn usage(what: impl fmt::Display) -> Self {
        Self::new(Kind::Usage, what)
    }

    pub(crate) fn unreachable(what: impl fmt::Display) -> Self {
        Self::new(Kind::Unreachable, what)
    }

    /// Returns the kind of the failure, which determines the exit code.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Sets the remedy: the next step for the user.
    pub(crate) fn remedy(mut self, remedy: impl fmt::Display) -> Self {
        self.remedy = Some(remedy.to_string());
        self
    }

    /// Adds another failure, which is printed after this one.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.others.push(other);
        self
    }

    /// Returns the remedy, if one is set.
    pub(crate) fn next_step(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// Prints the message and the remedy of each failure to standard error, and returns the exit code.
    ///
    /// Text from a server is escaped and indented. It cannot control the terminal or imitate other
    /// output of the program.
    pub(crate) fn tell(&self) -> ExitCode {
        print::say(&print::hanging("error: ", "       ", &self.what));
        if let Some(remedy) = &self.remedy {
            // A line break inside a command would break copy and paste.
            print::say(&match remedy.contains("outlive ") {
                true => format!("  try: {}", text::line(remedy)),
                false => print::hanging("  try: ", "       ", remedy),
            });
        }
        for other in &self.others {
            other.tell();
        }
        ExitCode::from(self.kind as u8)
    }
}

impl From<outlive_jobs::Error> for CliError {
    fn from(error: outlive_jobs::Error) -> Self {
        use outlive_jobs::Error;

        match &error {
            Error::Io { source, .. } => Self::new(Kind::Failed, format!("{error}: {source}"))
                .remedy("check that you own the data folder and that its disk has free space"),
            Error::Unsupported(_) => Self::usage(error)
                .remedy("run `outlive serve`, which runs commands itself on this system"),
            _ => Self::new(Kind::Failed, error),
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}
