//! Annotations of content: audience, priority and time of the last change.

use serde::{Deserialize, Serialize};

use crate::field;

/// Audience, priority and time of the last change of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// Intended audience.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// Priority from 0 (optional) to 1 (required).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "field::optional_number"
    )]
    pub priority: Option<f64>,
    /// Time of the last change, in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Annotations {
    /// Creates empty annotations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the audience.
    #[must_use]
    pub fn with_audience(mut self, audience: impl IntoIterator<Item = Role>) -> Self {
        self.audience = Some(audience.into_iter().collect());
        self
    }

    /// Sets the priority, from 0 to 1.
    #[must_use]
    pub fn with_priority(mut self, priority: f64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the time of the last change, in ISO 8601.
    #[must_use]
    pub fn with_last_modified(mut self, time: impl Into<String>) -> Self {
        self.last_modified = Some(time.into());
        self
    }
}

/// The sender or recipient of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}
