//! What a journal holds under a key.

use outlive_wire::RawJson;
use serde::{Deserialize, Serialize};

/// One entry. Once it is there it never changes.
///
/// The names on the outside are short because journals travel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum JournalEntry {
    /// What a step returned.
    #[serde(rename = "v")]
    Value(RawJson),
    /// What a step returned, if there is a secret in it: it is shown to nobody.
    #[serde(rename = "x")]
    Secret(RawJson),
    /// A step failed, and trying again would not help.
    #[serde(rename = "f")]
    Failed(StepFailure),
    /// What the client answered.
    #[serde(rename = "a")]
    Answer(RawJson),
    /// The client will not answer.
    #[serde(rename = "u")]
    Unanswered(InputFailure),
    /// When a timer is over, in milliseconds since 1970.
    #[serde(rename = "t")]
    Due(u64),
    /// A step that must not be done twice was begun.
    #[serde(rename = "b")]
    Begun,
    /// What a handler that asks by itself wants to have back.
    #[serde(rename = "s")]
    State(RawJson),
}

/// Why a step failed for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "made and read by the floor above")]
pub struct StepFailure {
    /// In words.
    pub message: String,
    /// The code of a refusal, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum InputFailure {
    /// Nobody answered in time.
    #[serde(rename = "late")]
    TimedOut,
    /// The client refused to ask, or failed to.
    #[serde(rename = "error")]
    Refused {
        /// The code of its error.
        code: i32,
        /// Its words.
        message: String,
    },
}

impl JournalEntry {
    /// How many bytes it is counted as, under its key: at least as many as are written.
    pub(crate) fn size(&self, key: &str) -> usize {
        // A name, colons, braces and a comma.
        const FRAME: usize = 10;
        FRAME
            + written(key)
            + match self {
                Self::Value(raw) | Self::Secret(raw) | Self::Answer(raw) | Self::State(raw) => {
                    raw.get().len()
                }
                Self::Failed(StepFailure { message, .. })
                | Self::Unanswered(InputFailure::Refused { message, .. }) => written(message) + 48,
                Self::Unanswered(InputFailure::TimedOut) | Self::Due(_) | Self::Begun => 20,
            }
    }
}

/// How many bytes a text has as JSON.
pub(crate) fn written(text: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' => 1,
        0..=0x1f => 5,
        _ => 0,
    };
    2 + text.len() + text.bytes().map(escaped).sum::<usize>()
}
