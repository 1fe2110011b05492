//! Findings of the checks.

use crate::checks::{self, Check};
use serde::Serialize;

/// Result of one check.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    Warning,
    Failure,
}

impl Finding {
    pub(super) fn ok(check: &'static str, what: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, what: what.into(), remedy: None }
    }

    pub(super) fn warning(
        check: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { check, level: Level::Warning, what: what.into(), remedy: Some(remedy.into()) }
    }

    pub(super) fn failure(
        check: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { check, level: Level::Failure, what: what.into(), remedy: Some(remedy.into()) }
    }
}

impl From<Check> for Finding {
    fn from(Check { topic, level, what, remedy }: Check) -> Self {
        let level = match level {
            checks::Level::Ok => Level::Ok,
            checks::Level::Warning => Level::Warning,
            checks::Level::Broken | checks::Level::Refused => Level::Failure,
        };
        Self { check: topic, level, what, remedy }
    }
}
