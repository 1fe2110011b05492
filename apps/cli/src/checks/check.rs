//! A check, and how bad it is.

use crate::{
    error::Result,
    print,
    serve::config::{Mistake, Mistakes},
};

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// All is well.
    Ok,
    /// Probably not meant so. Both say it.
    Warning,
    /// Something of it cannot work, or is not safe. `doctor` fails, `serve` says it and serves the rest.
    Broken,
    /// It cannot be served. `doctor` fails, and so does `serve`.
    Refused,
}

/// What was found about one thing.
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

/// Says on standard error what `serve` has to warn of.
///
/// # Errors
///
/// Everything for which it must not serve, at once.
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

/// Says on standard error what is probably not meant so.
pub(crate) fn warn(mistake: &Mistake) {
    print::say(&print::hanging("warning: ", "         ", &mistake.what));
    if let Some(remedy) = &mistake.remedy {
        // Commands are copied: those are not folded.
        print::say(&format!("  try: {}", outlive::text::line(remedy)));
    }
}
