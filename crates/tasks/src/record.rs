//! Records of a journal: entries, segments and snapshots.

use std::collections::BTreeMap;

use outlive_wire::RawJson;
use serde::{Deserialize, Serialize};

use crate::setters::setters;

/// One immutable record in a journal.
///
/// The serialized names are short because clients carry journals in request states.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum JournalEntry {
    /// Result of a step.
    #[serde(rename = "v")]
    Value(RawJson),
    /// Result of a step that contains a secret. No interface shows the value.
    #[serde(rename = "x")]
    Secret(RawJson),
    /// Permanent failure of a step.
    #[serde(rename = "f")]
    Failed(StepFailure),
    /// The client's input response.
    #[serde(rename = "a")]
    Answer(RawJson),
    /// Failure of an input request.
    #[serde(rename = "u")]
    Unanswered(InputFailure),
    /// End of a timer, in milliseconds since 1970.
    #[serde(rename = "t")]
    Due(u64),
    /// Start of a step that must not execute twice.
    #[serde(rename = "b")]
    Begun,
    /// State that a handler of rounds receives again in the next round.
    #[serde(rename = "s")]
    State(RawJson),
}

/// Reason for the permanent failure of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepFailure {
    /// Error message.
    pub message: String,
    /// Error code, if the step failed with a protocol error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
}

impl StepFailure {
    /// Creates a failure without a code.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: None }
    }
}

setters!(StepFailure { code: Option<i32> });

/// Reason why an input request has no response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum InputFailure {
    /// The input request timed out.
    #[serde(rename = "late")]
    TimedOut,
    /// The client returned an error instead of a response.
    #[serde(rename = "error")]
    Refused {
        /// Code of the error.
        code: i32,
        /// Message of the error.
        message: String,
    },
}

impl JournalEntry {
    /// Returns the size of the entry and its key in bytes. The serialized form is never larger.
    pub(crate) fn size(&self, key: &str) -> usize {
        // An entry name, colons, braces and a comma.
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

/// Returns the number of bytes of a text as JSON.
pub(crate) fn written(text: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' => 1,
        0..=0x1f => 5,
        _ => 0,
    };
    2 + text.len() + text.bytes().map(escaped).sum::<usize>()
}

/// One content block that a run has emitted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SegmentRecord {
    /// Step or scope that emitted the segment; empty for the run itself.
    #[serde(rename = "s", default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// Number of the segment within its scope, from zero.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub ordinal: u32,
    /// Content block.
    #[serde(rename = "b")]
    pub block: RawJson,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(ordinal: &u32) -> bool {
    *ordinal == 0
}

impl SegmentRecord {
    /// Creates a segment.
    pub fn new(scope: impl Into<String>, ordinal: u32, block: RawJson) -> Self {
        Self { scope: scope.into(), ordinal, block }
    }

    /// Returns the identity of the segment, which is unique within its task.
    pub(crate) fn place(&self) -> (String, u32) {
        (self.scope.clone(), self.ordinal)
    }

    /// Returns the size of the segment in bytes.
    pub(crate) fn size(&self) -> usize {
        written(&self.scope) + self.block.get().len() + 28
    }
}

/// A journal as data, between runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JournalSnapshot {
    /// Entries, by journal key.
    #[serde(rename = "e", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub entries: BTreeMap<String, JournalEntry>,
    /// Segments, in the order of their emission.
    #[serde(rename = "g", default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<SegmentRecord>,
    /// Journal keys of the open input requests.
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    pub input_requests: Vec<String>,
    /// Number of reissues of each input request whose response was invalid.
    #[serde(rename = "r", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasked: BTreeMap<String, u32>,
}

setters!(JournalSnapshot {
    entries: BTreeMap<String, JournalEntry>,
    segments: Vec<SegmentRecord>,
    input_requests: Vec<String>,
    reasked: BTreeMap<String, u32>,
});

impl JournalSnapshot {
    /// Returns the wire key of an open input request.
    pub fn name(&self, key: &str) -> String {
        wire_key(key, &self.reasked)
    }
}

/// Returns the wire key of an input request: its journal key, plus the issue number after a
/// reissue.
pub(crate) fn wire_key(key: &str, reasked: &BTreeMap<String, u32>) -> String {
    match reasked.get(key) {
        None => key.to_owned(),
        Some(times) => format!("{key}#{}", times + 1),
    }
}
