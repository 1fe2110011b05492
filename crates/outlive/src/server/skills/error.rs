//! The error of an invalid skill.

use std::fmt;

/// A skill that cannot be served. The message names the skill and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillError(String);

impl SkillError {
    /// Returns an error at a place: a path or the URI of a file.
    pub(crate) fn at(place: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self(format!("skill {place}: {what}"))
    }
}

impl fmt::Display for SkillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SkillError {}
