//! Annotations: who content is for, and how much it matters.

use serde::{Deserialize, Serialize};

use crate::field;

/// Says for whom something is and how much it matters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// For whom it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// From 0, which may be left out, to 1, which must not.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "field::optional_number"
    )]
    pub priority: Option<f64>,
    /// When it changed, in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Annotations {
    /// Says nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets for whom it is.
    #[must_use]
    pub fn with_audience(mut self, audience: impl IntoIterator<Item = Role>) -> Self {
        self.audience = Some(audience.into_iter().collect());
        self
    }

    /// Sets how much it matters, from 0 to 1.
    #[must_use]
    pub fn with_priority(mut self, priority: f64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets when it changed, in ISO 8601.
    #[must_use]
    pub fn with_last_modified(mut self, time: impl Into<String>) -> Self {
        self.last_modified = Some(time.into());
        self
    }
}

/// Who speaks, or is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// A person.
    User,
    /// A model.
    Assistant,
}
