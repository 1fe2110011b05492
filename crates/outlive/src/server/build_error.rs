//! The error of an invalid server configuration.

use std::fmt;

/// An invalid server configuration. The message names the remedy.
#[derive(Debug)]
pub struct BuildError(pub(crate) String);

impl BuildError {
    /// Creates an error with a message that says what to do, for crates that extend a server.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(crate) fn tool(name: &str, why: &dyn fmt::Display) -> Self {
        Self(format!("tool `{name}`: {why}"))
    }

    pub(crate) fn resource(uri: &str, why: &dyn fmt::Display) -> Self {
        Self(format!("resource `{uri}`: {why}"))
    }

    pub(crate) fn prompt(name: &str, why: &dyn fmt::Display) -> Self {
        Self(format!("prompt `{name}`: {why}"))
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BuildError {}
