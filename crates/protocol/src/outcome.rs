//! What a run ends with. The era decides how each answer looks on the wire.

use std::{sync::Arc, time::Duration};

use outlive_wire::{
    CacheHints, CallToolResult, CompleteResult, GetPromptResult, Implementation, InputRequests,
    Prompt, RawJson, ReadResourceResult, Resource, ResourceTemplate, ServerCapabilities, Tool,
};

use crate::{FinalSegments, ResponseModes, SegmentPage, TaskView};

/// How a call ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The final result.
    Complete(MethodResult),
    /// Not yet: the client answers, and calls again with the answers and the state.
    InputRequired(Box<InputRequired>),
    /// It is a task now, and this is how far it is.
    Task(Box<TaskView>),
}

/// What a call needs before it can go on.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the server, read by the eras, both ours")]
pub struct InputRequired {
    /// The questions; none if the client is only to come again.
    pub requests: InputRequests,
    /// What the client gives back, unread.
    pub state: String,
    /// When it should come again, if not at once.
    pub retry_after: Option<Duration>,
}

/// The result of a method, before an era has shaped it.
#[derive(Debug)]
#[non_exhaustive]
pub enum MethodResult {
    /// Nothing to say but that it is done.
    Empty,
    /// Who we are and what we can do: the handshake's answer and that of discovery.
    Identity(Box<ServerDescription>),
    /// The result of a tool.
    Tool(CallToolResult),
    /// A page of tools.
    Tools(Page<Tool>),
    /// A page of resources.
    Resources(Page<Resource>),
    /// A page of resource templates.
    ResourceTemplates(Page<ResourceTemplate>),
    /// The contents of a resource, and how long they may be kept.
    Resource(ReadResourceResult, CacheHints),
    /// A page of prompts.
    Prompts(Page<Prompt>),
    /// A prompt, filled in.
    Prompt(GetPromptResult),
    /// Suggestions.
    Completion(CompleteResult),
    /// How far a task is.
    Task(Box<TaskView>),
    /// How far a task is, and what it has emitted.
    TaskEmitted(Box<TaskView>, Box<SegmentPage>),
    /// What a task has emitted, and how it has ended if it has, where that is a response of several
    /// or the answer to one who asks for the rest.
    Rest(Box<FinalSegments>),
    /// A page of tasks, and where the next one begins.
    Tasks(Vec<TaskView>, Option<String>),
    /// What a task has come to, and its name.
    TaskResult(Box<CallToolResult>, String),
    /// The end of a subscription.
    ListenEnded,
    /// An object that a method of the application's own returned.
    Raw(RawJson),
}

/// What `initialize` and `server/discover` tell.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the server, read by the eras, both ours")]
pub struct ServerDescription {
    /// Name and version of the server.
    pub info: Implementation,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// Whether it runs tasks, and whether it lists them.
    pub tasks: Option<TaskCapability>,
    /// How to use it.
    pub instructions: Option<String>,
    /// How long the answer may be kept.
    pub cache: CacheHints,
}

/// How a server offers tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by the server, read by the eras, both ours")]
pub struct TaskCapability {
    /// Whether callers can list theirs.
    pub list: bool,
    /// In which ways it answers calls that ask for one, where more than one is switched on.
    pub modes: Option<ResponseModes>,
    /// Whether what they emit can be read while they run, by the extension for that.
    pub partials: bool,
}

/// One page of a list.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the server, read by the eras, both ours")]
pub struct Page<T> {
    /// The entries.
    pub items: Vec<Arc<T>>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
    /// How long the page may be kept.
    pub cache: CacheHints,
}
