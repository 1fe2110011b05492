//! The result of a check and its severity.

use crate::{
    error::Result,
    print,
    serve::config::{Mistake, Mistakes},
};

/// Severity of a check's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// No problem.
    Ok,
    /// Probably a mistake. `doctor` and `serve` both report it.
    Warning,
    /// A part does not work or is not safe. `doctor` fails; `serve` reports it and serves the rest.
    Broken,
    /// The server cannot start. `doctor` and `serve` fail.
    Refused,
}

/// Result of a check.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) topic: &'static str,
    pub(crate) level: Level,
    pub(crate) what: String,
    pub(crate) remedy: Option<String>,
}

impl Check {
    pub(super) fn ok(topic: &'static str, what: impl Into<String>) -> Self {
        Self { topic, level: Level::Ok, what: what.into(), remedy: None }
    }

    pub(super) fn new(
        topic: &'static str,
        level: Level,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { topic, level, what: what.into(), remedy: Some(remedy.into()) }
    }
}

/// Prints the warnings of `serve` to standard error.
///
/// # Errors
///
/// Returns all results that prevent the server from starting.
pub(crate) fn admit(checks: impl IntoIterator<Item = Check>) -> Result<()> {
    let mut refused = Vec::new();
    for Check { level, what, remedy, .. } in checks {
        let mistake = Mistake { what, remedy };
        match level {
            Level::Ok => {}
            Level::Warning | Level::Broken => warn(&mistake),
            Level::Refused => refused.push(mistake),
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(Mistakes(refused).into()) }
}

/// Prints a warning to standard error.
pub(crate) fn warn(mistake: &Mistake) {
    print::say(&print::hanging("warning: ", "         ", &mistake.what));
    if let Some(remedy) = &mistake.remedy {
        // A line break inside a command would break copy and paste.
        print::say(&format!("  try: {}", outlive::text::line(remedy)));
    }
}
