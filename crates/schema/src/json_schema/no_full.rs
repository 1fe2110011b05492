//! Without the feature `json-schema`: rejects schemas that the built-in validator does not cover.

use serde_json::Value;

use super::{dialect::Dialect, error::SchemaError, failure::Failure, supported::Unsupported};

/// A schema that the built-in validator does not cover. Uninhabited without the feature.
#[derive(Debug)]
pub(super) enum FullSchema {}

/// A `pattern`. Uninhabited without the feature.
#[derive(Debug)]
pub(super) enum Pattern {}

impl FullSchema {
    /// Rejects a document.
    pub(super) fn build(
        _: &Value,
        _: Dialect,
        why: Unsupported,
        role: &'static str,
    ) -> Result<Self, SchemaError> {
        Err(match why {
            Unsupported::Keyword { at, what } => SchemaError::Unsupported { role, at, what },
            Unsupported::Misuse { at, reason } => SchemaError::Invalid { at, reason },
        })
    }

    pub(super) fn fits(&self, _: &Value) -> bool {
        match *self {}
    }

    pub(super) fn explain<T>(
        &self,
        _: &Value,
        _: &Value,
        _: impl FnOnce(&Failure<'_>) -> T,
    ) -> Option<T> {
        match *self {}
    }
}

impl Pattern {
    pub(super) fn new(_: &Value) -> Option<Self> {
        None
    }

    pub(super) fn matches(&self, _: &str) -> bool {
        match *self {}
    }
}
