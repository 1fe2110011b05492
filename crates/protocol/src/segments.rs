//! Segments of a task, independent of the era.
//!
//! A segment is a content block with a permanent sequence number from 1. The legacy era sends
//! segments as partial responses to the call that created the task. The modern extension sends them
//! with the results of polls, or as notifications of a subscription.

use outlive_wire::{CallToolResult, RawJson};

use crate::TaskView;

/// Consecutive segments of a task.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the server builds it, and the codecs read it")]
pub struct Segments {
    /// Sequence number of the first segment.
    pub first: u64,
    /// Content blocks, as JSON objects.
    pub blocks: Vec<RawJson>,
}

/// A partial response to the call that created a task.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the server builds it, and the codecs read it")]
pub struct PartialResponse {
    /// Task ID.
    pub id: String,
    /// The task, in the first message about it.
    pub task: Option<Box<TaskView>>,
    /// The segments; `None` if the message only announces the task.
    pub blocks: Option<Segments>,
}

/// The last partial response of a task, or its segments so far for `tasks/result`.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the server builds it, and the codecs read it")]
pub struct FinalSegments {
    /// Task ID.
    pub id: String,
    /// The segments; `None` if the task failed before the first segment. `end` then has content.
    pub blocks: Option<Segments>,
    /// The other members of the result: structured content, `_meta` and `isError`. `None` if the
    /// task has not ended.
    pub end: Option<Box<CallToolResult>>,
}

/// The segments of a task after a sequence number, for a poll or a subscription.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the server builds it, and the codecs read it")]
pub struct SegmentPage {
    /// Task ID.
    pub id: String,
    /// The segments.
    pub blocks: Segments,
    /// Sequence number of the newest segment of the task.
    pub last: u64,
    /// Whether no segments follow.
    pub complete: bool,
}

/// The response modes of a call that requests a task, in the legacy era.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the proposal defines three modes")]
pub struct ResponseModes {
    /// Respond with the result, if it is available at once.
    pub immediate: bool,
    /// Respond with several partial responses.
    pub streaming: bool,
    /// Respond with the task.
    pub task: bool,
}

impl ResponseModes {
    /// Returns the names of the enabled modes, by priority.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let Self { immediate, streaming, task } = self;
        [(immediate, Self::IMMEDIATE), (streaming, Self::STREAMING), (task, Self::TASK)]
            .into_iter()
            .filter_map(|(has, name)| has.then_some(name))
    }

    pub(crate) const IMMEDIATE: &'static str = "immediate";
    pub(crate) const STREAMING: &'static str = "streaming";
    pub(crate) const TASK: &'static str = "task";
}
