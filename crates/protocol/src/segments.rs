//! What a task has emitted so far, before an era has shaped it.
//!
//! A block has a number from 1 on, and keeps it. The legacy dialect sends blocks as further
//! responses to the call that made the task; the modern extension beside the answer to a look, or
//! as notifications of a subscription.

use outlive_wire::{CallToolResult, RawJson};

use crate::TaskView;

/// Blocks of a task, with the number of the first.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the server, read by the eras, both ours")]
pub struct Segments {
    /// The number of the first of them.
    pub first: u64,
    /// The blocks, as JSON objects.
    pub blocks: Vec<RawJson>,
}

/// A piece of the content of a task, for the client whose call made it.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the server, read by the eras, both ours")]
pub struct PartialResponse {
    /// The name of the task.
    pub id: String,
    /// The task itself, where the client hears of it for the first time.
    pub task: Option<Box<TaskView>>,
    /// What has been emitted; `None` if nothing has, and only the task is told of.
    pub blocks: Option<Segments>,
}

/// The last piece of the content of a task, or what there is of it now for one who asks.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the server, read by the eras, both ours")]
pub struct FinalSegments {
    /// The name of the task.
    pub id: String,
    /// What has been emitted; `None` if the task has failed before anything was: then the result has
    /// content of its own.
    pub blocks: Option<Segments>,
    /// What belongs to the end alone: structured content, `_meta`, and whether it has failed. `None`
    /// if it is not the end.
    pub end: Option<Box<CallToolResult>>,
}

/// What a task has emitted from after a number on, for one who looks at it or listens to it.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the server, read by the eras, both ours")]
pub struct SegmentPage {
    /// The name of the task.
    pub id: String,
    /// The blocks.
    pub blocks: Segments,
    /// The number of the last block there is, among these or not.
    pub last: u64,
    /// Whether nothing more will come after these.
    pub complete: bool,
}

/// In which ways a task can be answered, in the dialect of the legacy wire that knows several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the three of the proposal")]
pub struct ResponseModes {
    /// With the result itself, if it is there at once.
    pub immediate: bool,
    /// With several responses, as the content grows.
    pub streaming: bool,
    /// With the task.
    pub task: bool,
}

impl ResponseModes {
    /// Their names, in the order of their priority.
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
