//! The outcome of a run, independent of the era.

use std::{sync::Arc, time::Duration};

use outlive_wire::{
    CacheHints, CallToolResult, CompleteResult, GetPromptResult, Implementation, InputRequests,
    Prompt, RawJson, ReadResourceResult, Resource, ResourceTemplate, ServerCapabilities, Tool,
};

use crate::{FinalSegments, RelayedKind, RelayedResult, ResponseModes, SegmentPage, TaskView};

/// The outcome of a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The final result.
    Complete(MethodResult),
    /// The client must send input responses in another round.
    InputRequired(Box<InputRequired>),
    /// The call became a task, in this state.
    Task(Box<TaskView>),
}

/// The input that a call requires before it can continue.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the server builds it, and the codecs read it")]
pub struct InputRequired {
    /// The input requests. Empty if the client only has to call again.
    pub requests: InputRequests,
    /// The request state, opaque to the client.
    pub state: String,
    /// Delay before the client calls again.
    pub retry_after: Option<Duration>,
}

/// The result of a method, independent of the era.
#[derive(Debug)]
#[non_exhaustive]
pub enum MethodResult {
    /// An empty result.
    Empty,
    /// The result of `initialize` and `server/discover`.
    Identity(Box<ServerDescription>),
    /// The result of a tool.
    Tool(CallToolResult),
    /// A page of tools.
    Tools(Page<Tool>),
    /// A page of resources.
    Resources(Page<Resource>),
    /// A page of resource templates.
    ResourceTemplates(Page<ResourceTemplate>),
    /// The contents of a resource, and their cache hints.
    Resource(ReadResourceResult, CacheHints),
    /// A page of prompts.
    Prompts(Page<Prompt>),
    /// A rendered prompt.
    Prompt(GetPromptResult),
    /// Completion suggestions.
    Completion(CompleteResult),
    /// The state of a task.
    Task(Box<TaskView>),
    /// The state of a task, and its new segments.
    TaskEmitted(Box<TaskView>, Box<SegmentPage>),
    /// The segments of a task, and its result if the task ended: the last of several responses, or
    /// the result of `tasks/result` with `lastSeqNr`.
    Rest(Box<FinalSegments>),
    /// A page of tasks, and the cursor of the next page.
    Tasks(Vec<TaskView>, Option<String>),
    /// The result of a task, and the task ID.
    TaskResult(Box<CallToolResult>, String),
    /// The end of a subscription.
    ListenEnded,
    /// The result of a custom method: an object.
    Raw(RawJson),
    /// The result of another server, whose members pass unchanged.
    Relayed(Box<RelayedResult>, RelayedKind),
}

impl Outcome {
    /// Parses the relayed result of a tool, for code that reads or changes its content. Returns any
    /// other outcome unchanged.
    #[must_use]
    pub fn typed(self) -> Self {
        match self {
            Self::Complete(MethodResult::Relayed(result, RelayedKind::Tool)) => {
                Self::Complete(MethodResult::Tool(result.to_tool_result()))
            }
            other => other,
        }
    }
}

/// The content of the results of `initialize` and `server/discover`.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the server builds it, and the codecs read it")]
pub struct ServerDescription {
    /// Name and version of the server.
    pub info: Implementation,
    /// Capabilities.
    pub capabilities: ServerCapabilities,
    /// Task support of the server, if it has any.
    pub tasks: Option<TaskCapability>,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// Cache hints of the result.
    pub cache: CacheHints,
}

/// Task support of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the server builds it, and the codecs read it")]
pub struct TaskCapability {
    /// Whether callers can list their tasks.
    pub list: bool,
    /// Response modes, if more than one is enabled.
    pub modes: Option<ResponseModes>,
    /// Whether clients can read partial results of running tasks, with the extension.
    pub partials: bool,
}

/// One page of a list.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the server builds it, and the codecs read it")]
pub struct Page<T> {
    /// Entries of the page.
    pub items: Vec<Arc<T>>,
    /// Cursor of the next page.
    pub next: Option<String>,
    /// Cache hints of the page.
    pub cache: CacheHints,
}
