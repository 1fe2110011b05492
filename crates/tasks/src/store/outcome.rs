//! Outcome of a task, and its name in lists, audit events and metrics.

use std::fmt;

use outlive_wire::{ErrorObject, RawJson};
use serde::{Deserialize, Serialize};

use super::result::{LargeResult, PART_BYTES, ResultPart, split};

/// Outcome of an ended task. It is not a status, because the eras name the same outcome
/// differently.
///
/// Exhaustive on purpose: a store that misses an outcome must not compile.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum TaskOutcome {
    /// The task returned a result, which may be a tool error.
    Result(RawJson),
    /// The task returned a large result, whose bodies are stored in parts.
    /// [`Engine::get`](crate::engine::Engine::get) returns it whole.
    LargeResult(Box<LargeResult>),
    /// The task failed with a protocol error.
    Error(ErrorObject),
    /// The task was cancelled.
    Cancelled,
    /// The task expired.
    Expired,
}

impl TaskOutcome {
    /// Returns whether the task ended before its handler returned, so that a cleanup may be
    /// necessary.
    pub fn needs_cleanup(&self) -> bool {
        matches!(self, Self::Cancelled | Self::Expired)
    }

    /// Converts a result of more than [`PART_BYTES`] into a large result, and returns its parts,
    /// which must be stored with it. Does not change other outcomes.
    pub fn take_parts(&mut self) -> Vec<ResultPart> {
        let Self::Result(result) = self else { return Vec::new() };
        if result.get().len() <= PART_BYTES {
            return Vec::new();
        }
        let Some(split) = split(result) else { return Vec::new() };
        *self = Self::LargeResult(Box::new(split.result));
        split.parts
    }

    /// Returns the kind of this outcome. A result with `isError` is a failure.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Result(result) if is_tool_error(result) => OutcomeKind::Failed,
            Self::LargeResult(large) if is_tool_error(&large.head) => OutcomeKind::Failed,
            Self::Result(_) | Self::LargeResult(_) => OutcomeKind::Completed,
            Self::Error(_) => OutcomeKind::Failed,
            Self::Cancelled => OutcomeKind::Cancelled,
            Self::Expired => OutcomeKind::Expired,
        }
    }
}

/// Kind of an outcome, without its data. Stores have a separate column for it, so that lists, audit
/// events and metrics agree and an operator can filter by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum OutcomeKind {
    /// The tool returned a result without `isError`.
    Completed,
    /// The tool returned a result with `isError`, or the call ended with an error.
    Failed,
    /// The caller or an operator cancelled the task.
    Cancelled,
    /// The TTL ended before the handler returned.
    Expired,
}

impl OutcomeKind {
    /// Returns the name in lists, audit events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }

    /// Returns the number in the database column.
    pub(super) fn column(self) -> i16 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Cancelled => 2,
            Self::Expired => 3,
        }
    }
}

impl fmt::Display for OutcomeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn is_tool_error(result: &RawJson) -> bool {
    #[derive(Deserialize)]
    struct ToolResult {
        #[serde(default, rename = "isError")]
        is_error: Option<bool>,
    }
    // Most results do not have the member, and a text search is cheaper than parsing JSON.
    result.get().contains("\"isError\"")
        && serde_json::from_str::<ToolResult>(result.get())
            .is_ok_and(|result| result.is_error == Some(true))
}

#[cfg(test)]
mod tests {
    use outlive_wire::ErrorObject;
    use serde_json::{json, value::to_raw_value};

    use super::{OutcomeKind, TaskOutcome};

    #[test]
    fn result_with_is_error_is_failed() {
        let kind = |value| TaskOutcome::Result(to_raw_value(&value).unwrap()).kind();
        assert_eq!(kind(json!({"content": [], "isError": true})), OutcomeKind::Failed);
        assert_eq!(kind(json!({"content": [], "isError": false})), OutcomeKind::Completed);
        assert_eq!(kind(json!({"content": []})), OutcomeKind::Completed);
        let nested = json!({"content": [], "structuredContent": {"isError": true}});
        assert_eq!(kind(nested), OutcomeKind::Completed);
        let error = ErrorObject { code: -32603, message: String::new(), data: None };
        assert_eq!(TaskOutcome::Error(error).kind(), OutcomeKind::Failed);
        assert_eq!(TaskOutcome::Cancelled.kind(), OutcomeKind::Cancelled);
        assert_eq!(TaskOutcome::Expired.kind(), OutcomeKind::Expired);
    }
}
