//! The names of tools, resources and prompts of a server.
//!
//! The servers in `conformance/interop` use the names of our everything server. Third-party servers
//! have other names and lack some features.

use serde_json::{Value, json};

/// A tool, valid arguments, and a part of its result.
#[derive(Debug)]
pub(crate) struct Tool(pub(crate) &'static str, pub(crate) Value, pub(crate) &'static str);

/// The calls for each feature; `None` if a server lacks it.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) plain: Tool,
    pub(crate) resource: &'static str,
    /// A prompt and its arguments.
    pub(crate) prompt: (&'static str, &'static [(&'static str, &'static str)]),
    /// A prompt, one of its arguments, the typed text, and an expected completion.
    pub(crate) completion: [&'static str; 4],
    pub(crate) logging: Option<Tool>,
    pub(crate) progress: Tool,
    pub(crate) elicitation: Tool,
    pub(crate) sampling: Tool,
    pub(crate) roots: Tool,
    pub(crate) task: Tool,
    /// A tool that waits, and a tool that reports whether the first was cancelled.
    pub(crate) cancel: Option<(Tool, Tool)>,
    /// The subscribed resource (`None` for the tool list), and the tool that changes it.
    pub(crate) listen: Option<(Option<&'static str>, Tool)>,
    pub(crate) resumption: Option<Tool>,
}

impl Profile {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "ours" => Some(Self::ours()),
            "everything" => Some(Self::everything()),
            _ => None,
        }
    }

    fn ours() -> Self {
        Self {
            plain: Tool("test_simple_text", json!({}), "simple text response"),
            resource: "test://static-text",
            prompt: ("test_prompt_with_arguments", &[("arg1", "one"), ("arg2", "two")]),
            completion: ["test_prompt_with_arguments", "arg1", "te", "test"],
            logging: Some(Tool("test_tool_with_logging", json!({}), "logged")),
            progress: Tool("test_tool_with_progress", json!({}), "done"),
            elicitation: Tool(
                "test_elicitation",
                json!({"message": "Who are you?"}),
                "ada@example.com",
            ),
            sampling: Tool("test_sampling", json!({"prompt": "Say something"}), "a sampled text"),
            roots: Tool("test_input_required_result_list_roots", json!({}), "1 roots"),
            task: Tool("slow_compute", json!({"seconds": 0.3, "label": "it"}), "it took"),
            cancel: Some((Tool("hold", json!({}), ""), Tool("held", json!({}), "cancelled: 1"))),
            listen: Some((None, Tool("test_trigger_tool_change", json!({}), "changed"))),
            resumption: Some(Tool("test_reconnection", json!({}), "completed successfully")),
        }
    }

    /// `@modelcontextprotocol/server-everything`.
    fn everything() -> Self {
        Self {
            plain: Tool("echo", json!({"message": "hello"}), "Echo: hello"),
            resource: "demo://resource/static/document/features.md",
            prompt: ("args-prompt", &[("city", "Oslo")]),
            completion: ["completable-prompt", "department", "E", "Engineering"],
            logging: Some(Tool("toggle-simulated-logging", json!({}), "")),
            progress: Tool(
                "trigger-long-running-operation",
                json!({"duration": 1, "steps": 4}),
                "completed",
            ),
            elicitation: Tool("trigger-elicitation-request", json!({}), "provided"),
            sampling: Tool(
                "trigger-sampling-request",
                json!({"prompt": "Say something", "maxTokens": 10}),
                "a sampled text",
            ),
            roots: Tool("get-roots-list", json!({}), "file:///interop"),
            task: Tool("simulate-research-query", json!({"topic": "tasks"}), "tasks"),
            cancel: None,
            listen: Some((
                Some("demo://resource/static/document/features.md"),
                Tool("toggle-subscriber-updates", json!({}), ""),
            )),
            resumption: None,
        }
    }
}
