//! What goes wrong, for people: what happened, what to do about it, and the exit code that says which
//! kind it was.

use std::{fmt, process::ExitCode};

use outlive::text;

use crate::print;

/// What commands return.
pub(crate) type Result<T, E = CliError> = std::result::Result<T, E>;

/// Which exit code a failure has. They are documented: `outlive --help`, docs/cli.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The tool failed, or a check did.
    Failed = 1,
    /// The command line or a file is wrong.
    Usage = 2,
    /// The server or the store cannot be reached, or breaks the protocol.
    Unreachable = 3,
    /// The call or task was cancelled.
    Cancelled = 4,
    /// The server asks something, and nobody is here who could answer.
    Unanswered = 5,
    /// The user stopped this program.
    Interrupted = 130,
    /// The reader of standard output has left. A task runs on.
    ReaderLeft = 141,
}

/// A failure, with a next step.
#[derive(Debug)]
pub(crate) struct CliError {
    kind: Kind,
    what: String,
    remedy: Option<String>,
}

impl CliError {
    pub(crate) fn new(kind: Kind, what: impl fmt::Display) -> Self {
        Self { kind, what: what.to_string(), remedy: None }
    }

    pub(crate) fn usage(what: impl fmt::Display) -> Self {
        Self::new(Kind::Usage, what)
    }

    pub(crate) fn unreachable(what: impl fmt::Display) -> Self {
        Self::new(Kind::Unreachable, what)
    }

    /// Which kind of failure it is.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// What the user can do about it.
    pub(crate) fn remedy(mut self, remedy: impl fmt::Display) -> Self {
        self.remedy = Some(remedy.to_string());
        self
    }

    /// What the user can do about it, if that is known.
    pub(crate) fn next_step(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// Says it on standard error. What a server wrote into it can neither steer the terminal nor pass
    /// for another line of this program.
    pub(crate) fn tell(&self) -> ExitCode {
        print::say(&print::hanging("error: ", "       ", &self.what));
        if let Some(remedy) = &self.remedy {
            // Commands are copied: those are not folded.
            print::say(&match remedy.contains("outlive ") {
                true => format!("  try: {}", text::line(remedy)),
                false => print::hanging("  try: ", "       ", remedy),
            });
        }
        ExitCode::from(self.kind as u8)
    }
}

impl From<outlive_jobs::Error> for CliError {
    fn from(error: outlive_jobs::Error) -> Self {
        use outlive_jobs::Error;

        match &error {
            Error::Io { source, .. } => Self::new(Kind::Failed, format!("{error}: {source}"))
                .remedy("check that the data folder is yours, and that its disk has room"),
            Error::Unsupported(_) => {
                Self::usage(error).remedy("run `outlive serve`, which runs commands itself")
            }
            _ => Self::new(Kind::Failed, error),
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}
