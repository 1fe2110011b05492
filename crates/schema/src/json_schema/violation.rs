//! Messages for invalid values, which a model can act on.
//!
//! Created from failures of the schema and from errors of serde.

use std::fmt;

use super::{alternatives::Reason, failure::Failure, locate, quote::shortened};

/// The reason why a value violates its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer such as `/regions/0/name`; empty for the whole value.
    pub path: String,
    /// A predicate whose subject is the location.
    pub message: String,
    /// Name of the whole value.
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
    /// Creates a violation from a failure.
    pub(super) fn from_failure(root: &'static str, failure: &Failure<'_>) -> Self {
        let reason = Reason::of(failure);
        Self { path: reason.path.to_owned(), message: reason.message, root }
    }

    /// Creates a violation without a location, for a text that is too long to search.
    pub(super) fn unexplained(root: &'static str, text: &str) -> Self {
        let size = text.len();
        let message =
            format!("violates its schema; with {size} bytes it is too long to find the place");
        Self { path: String::new(), message, root }
    }

    /// Creates a violation from a serde error, for a value that the schema accepts.
    pub(super) fn from_serde(root: &'static str, text: &str, error: &serde_json::Error) -> Self {
        let whole = error.to_string();
        let position = format!(" at line {} column {}", error.line(), error.column());
        let said = whole.strip_suffix(&position).unwrap_or(&whole);
        let path = locate::path_at(text, error.line(), error.column());
        Self { path, message: format!("is not accepted: {}", shortened(said)), root }
    }
}
