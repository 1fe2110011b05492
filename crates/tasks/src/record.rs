//! The records of a journal: entries, segments, snapshots.

use std::collections::BTreeMap;

use outlive_wire::RawJson;
use serde::{Deserialize, Serialize};

use crate::setters::setters;

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
#[non_exhaustive]
pub struct StepFailure {
    /// The error message.
    pub message: String,
    /// The code, if it was a protocol error.
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

/// One content block that a run has emitted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SegmentRecord {
    /// The step or scope that emitted it; empty for the run itself.
    #[serde(rename = "s", default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// Its number there, from zero.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub ordinal: u32,
    /// The content block.
    #[serde(rename = "b")]
    pub block: RawJson,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(ordinal: &u32) -> bool {
    *ordinal == 0
}

impl SegmentRecord {
    /// Creates a segment.
    pub fn new(scope: impl Into<String>, ordinal: u32, block: RawJson) -> Self {
        Self { scope: scope.into(), ordinal, block }
    }

    /// Where it comes from. No other segment of its task has the same.
    pub(crate) fn place(&self) -> (String, u32) {
        (self.scope.clone(), self.ordinal)
    }

    /// How many bytes it is counted as.
    pub(crate) fn size(&self) -> usize {
        written(&self.scope) + self.block.get().len() + 28
    }
}

/// A journal as data, between runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JournalSnapshot {
    /// The entries, by journal key.
    #[serde(rename = "e", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub entries: BTreeMap<String, JournalEntry>,
    /// The segments, in order.
    #[serde(rename = "g", default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<SegmentRecord>,
    /// Journal keys of the open input requests.
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    pub input_requests: Vec<String>,
    /// How often an input request was issued again, because its response did not fit.
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

/// Returns the wire key of an input request: its journal key, and the number of its issue if not the first.
pub(crate) fn wire_key(key: &str, reasked: &BTreeMap<String, u32>) -> String {
    match reasked.get(key) {
        None => key.to_owned(),
        Some(times) => format!("{key}#{}", times + 1),
    }
}
