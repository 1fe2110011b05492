//! The line with which a command asks its user something.
//!
//! Here, because two must agree on what is a question: who counts them, which is the supervisor, and who puts them.

use serde::Deserialize;
use serde_json::{Map, Value};

/// How a line begins with which a command asks its user something; JSON follows.
pub const MARKER: &str = "@outlive ";

/// A question.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// What is asked.
    pub ask: String,
    /// The fields of a form, as JSON Schema has them.
    #[serde(default)]
    pub fields: Option<Map<String, Value>>,
    /// Which of them must be filled in.
    #[serde(default)]
    pub required: Option<Vec<String>>,
    /// A page to send the user to, instead of a form.
    #[serde(default)]
    pub url: Option<String>,
}

impl Ask {
    /// Reads a line. What begins with the marker and is no question is a line like any other.
    pub fn read(line: &[u8]) -> Option<Self> {
        let json = line.strip_prefix(MARKER.as_bytes())?;
        // What is no text is replaced before it is read, here as for everybody who reads lines.
        serde_json::from_str(&String::from_utf8_lossy(json)).ok()
    }
}
