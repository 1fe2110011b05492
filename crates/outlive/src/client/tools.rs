//! Calling tools: what goes with the call, and what is made of its result. `calling.rs` makes it.

use std::time::Duration;

use outlive_protocol::TaskDialect;
use outlive_wire::CallToolResult;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    core::Core,
    error::{ClientError, Result},
    link::Connection,
    request_builder::{Params, RequestBuilder, given, object},
    result_text::result_text,
};

/// Where `_meta` has the key of a call that is to be done once.
pub(crate) const IDEMPOTENCY_KEY: &str = "dev.outlive/idempotencyKey";

/// Calls a tool and waits for the result.
#[derive(Clone, Debug)]
pub struct ToolCall {
    pub(crate) name: String,
    pub(super) arguments: Params,
    pub(super) tasks: Tasks,
    pub(super) key: Option<String>,
    pub(super) ttl: Option<Duration>,
    pub(super) is_checked: bool,
    pub(crate) cancels_on_drop: bool,
    /// Whether its input requests are events.
    pub(super) has_events: bool,
}

/// Calls a tool and gives a handle on the call.
#[derive(Clone, Debug)]
pub struct StartTool(pub(crate) ToolCall);

/// Whether a call may become a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tasks {
    /// If the server says so, or insists.
    May,
    /// Wherever a client can ask for one, it does.
    Wanted,
    Never,
}

impl ToolCall {
    pub(crate) fn new(name: String, arguments: &impl Serialize) -> Self {
        Self {
            name,
            arguments: object(arguments),
            tasks: Tasks::May,
            key: None,
            ttl: None,
            is_checked: false,
            cancels_on_drop: false,
            has_events: false,
        }
    }
}

impl ToolCall {
    /// The same, as a task wherever there can be one.
    pub(crate) fn wanting_a_task(mut self) -> Self {
        if self.tasks == Tasks::May {
            self.tasks = Tasks::Wanted;
        }
        self
    }

    pub(crate) fn set_key(&mut self, key: String) {
        self.key = Some(key);
    }

    pub(crate) fn set_ttl(&mut self, ttl: Duration) {
        self.ttl = Some(ttl);
    }

    /// What `_meta` of the call says, besides what the request itself has there.
    pub(crate) fn meta(&self) -> String {
        let key = self.key.as_deref().map(Value::from);
        key.map_or_else(String::new, |key| format!("\"{IDEMPOTENCY_KEY}\":{key}"))
    }

    /// The parameters of a call whose result may come in parts; 2025-11-25.
    pub(crate) fn streaming_params(&self) -> Result<String> {
        let arguments = given(self.arguments.clone())?;
        let name = Value::from(self.name.as_str());
        let ttl = self.ttl.map_or_else(String::new, |ttl| format!(r#""ttl":{},"#, ttl.as_millis()));
        Ok(format!(
            r#"{{"name":{name},"arguments":{arguments},"task":{{{ttl}"responseModes":["streaming","task","immediate"]}}}}"#
        ))
    }
}

/// Whether both sides have agreed that results may come in parts; 2025-11-25.
pub(crate) fn offers_streaming(core: &Core, here: &Connection) -> bool {
    let declared = here.server.capabilities.tasks.as_ref();
    let modes = declared.and_then(|tasks| tasks.pointer("/responses/modes"));
    core.declared.streams
        && here.rules.tasks == TaskDialect::Requested
        && modes.and_then(Value::as_array).is_some_and(|modes| modes.contains(&"streaming".into()))
}

macro_rules! tool_options {
    ($kind:ty, $tool:ident => $place:expr) => {
        impl RequestBuilder<$kind> {
            /// Does not take a task for an answer: a tool that runs only as one is refused.
            pub fn inline(mut self) -> Self {
                let $tool = &mut self.kind;
                $place.tasks = Tasks::Never;
                self
            }

            /// Asks for a task, where a client has to ask for one.
            pub fn as_task(mut self) -> Self {
                let $tool = &mut self.kind;
                $place.tasks = Tasks::Wanted;
                self
            }

            /// How long the task should exist, where a client may say so.
            pub fn task_ttl(mut self, ttl: Duration) -> Self {
                let $tool = &mut self.kind;
                $place.ttl = Some(ttl);
                self
            }

            /// Has it done once, however often it is sent: a server that knows such keys gives the
            /// same answer to the same key.
            pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
                let $tool = &mut self.kind;
                $place.key = Some(key.into());
                self
            }

            /// Holds structured content against the schema that the tool has for it.
            pub fn validate_output(mut self) -> Self {
                let $tool = &mut self.kind;
                $place.is_checked = true;
                self
            }

            /// Cancels the task, too, when nobody waits for it any more.
            pub fn cancel_on_drop(mut self) -> Self {
                let $tool = &mut self.kind;
                $place.cancels_on_drop = true;
                self
            }
        }
    };
}

tool_options!(ToolCall, tool => tool);
tool_options!(StartTool, tool => tool.0);

impl RequestBuilder<StartTool> {
    /// Makes events of all input requests of the call: those before there is a task, and those of the
    /// task. The handle is there at once, and the call is made while its
    /// [events](crate::client::tasks::TaskHandle::events) are read.
    ///
    /// The client declares what it responds to with
    /// [`input_capabilities`](crate::client::ClientBuilder::input_capabilities). If it has an input handler
    /// instead, that one responds to the requests of servers before 2026-07-28, which name no call.
    ///
    /// ```no_run
    /// use outlive::client::{Client, input::{InputCapabilities, InputResponse}, tasks::TaskEvent};
    /// use serde_json::json;
    ///
    /// # async fn run() -> outlive::client::Result<()> {
    /// let client = Client::builder("my-app", "1.0.0")
    ///     .input_capabilities(InputCapabilities { form: true, ..Default::default() })
    ///     .connect("http://127.0.0.1:8000/mcp")
    ///     .await?;
    /// let mut handle = client.start_tool("deploy", json!({"repo": "shop"})).input_as_events().await?;
    /// let mut events = handle.events();
    /// while let Some(event) = events.next().await {
    ///     match event? {
    ///         TaskEvent::Input(input) => {
    ///             events.respond(&input, InputResponse::accept(json!({"yes": true}))).await?;
    ///         }
    ///         TaskEvent::Done(result) => println!("{result:?}"),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn input_as_events(mut self) -> Self {
        self.kind.0.has_events = true;
        self
    }
}

impl RequestBuilder<ToolCall> {
    /// The structured content, as a type. A tool that failed is an error here.
    ///
    /// # Errors
    ///
    /// As the call itself, and when there is no such content.
    pub async fn structured<T: DeserializeOwned>(self) -> Result<T> {
        let name = self.kind.name.clone();
        let result = self.validate_output().await?;
        structured(&name, &result)
    }
}

fn structured<T: DeserializeOwned>(name: &str, result: &CallToolResult) -> Result<T> {
    if result.is_error == Some(true) {
        let said = result_text(result);
        return Err(ClientError::SchemaViolated(format!("`{name}` failed: {said}")).into());
    }
    let content = result.structured_content.as_ref().ok_or_else(|| {
        ClientError::SchemaViolated(format!("`{name}` has no structured content"))
    })?;
    serde_json::from_str(content.get())
        .map_err(|error| ClientError::SchemaViolated(format!("`{name}`: {error}")).into())
}
