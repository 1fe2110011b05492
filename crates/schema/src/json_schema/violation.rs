//! What is wrong with a value, in words that a model can act on.
//!
//! Made from failures, which describe the schema's view, and from errors of `serde`, which describe
//! the type's.

use std::fmt;

use super::{alternatives::Reason, failure::Failure, locate, quote::shortened};

/// Why a value does not fit its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where: a JSON pointer like `/regions/0/name`, empty for the whole value.
    pub path: String,
    /// What is wrong there: the end of a sentence that the place begins.
    pub message: String,
    /// What the whole value is called.
    root: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() { self.root } else { &self.path };
        write!(f, "`{place}` {}", self.message)
    }
}

impl std::error::Error for Violation {}

impl Violation {
    /// What a failure says.
    pub(super) fn from_failure(root: &'static str, failure: &Failure<'_>) -> Self {
        let reason = Reason::of(failure);
        Self { path: reason.path.to_owned(), message: reason.message, root }
    }

    /// What is said of a text that is too long to look for the reason.
    pub(super) fn unexplained(root: &'static str, text: &str) -> Self {
        let size = text.len();
        let message =
            format!("does not fit its schema, and with {size} bytes is too long to say where");
        Self { path: String::new(), message, root }
    }

    /// What deserialising complains about when the schema has no objection.
    pub(super) fn from_serde(root: &'static str, text: &str, error: &serde_json::Error) -> Self {
        let whole = error.to_string();
        let position = format!(" at line {} column {}", error.line(), error.column());
        let said = whole.strip_suffix(&position).unwrap_or(&whole);
        let path = locate::path_at(text, error.line(), error.column());
        Self { path, message: format!("is not accepted: {}", shortened(said)), root }
    }
}
