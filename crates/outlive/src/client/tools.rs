//! Options and results of tool calls. `tool_call.rs` executes the calls.

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

/// Member of `_meta` with the idempotency key.
pub(crate) const IDEMPOTENCY_KEY: &str = "dev.outlive/idempotencyKey";

/// Request to call a tool and wait for its result.
#[derive(Clone, Debug)]
pub struct ToolCall {
    pub(crate) name: String,
    pub(super) arguments: Params,
    pub(super) tasks: Tasks,
    pub(super) key: Option<String>,
    pub(super) ttl: Option<Duration>,
    pub(super) is_checked: bool,
    pub(crate) cancels_on_drop: bool,
    /// Whether input requests are reported as events.
    pub(super) has_events: bool,
}

/// Request to call a tool and return a handle.
#[derive(Clone, Debug)]
pub struct StartTool(pub(crate) ToolCall);

/// Whether a call may become a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tasks {
    /// If the server decides so or requires it.
    May,
    /// Request a task wherever the client can.
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
    /// Requests a task wherever the client can.
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

    /// Returns the members of `_meta` that belong to the call.
    pub(crate) fn meta(&self) -> String {
        let key = self.key.as_deref().map(Value::from);
        key.map_or_else(String::new, |key| format!("\"{IDEMPOTENCY_KEY}\":{key}"))
    }

    /// Returns the parameters of a call with partial results; 2025-11-25.
    pub(crate) fn streaming_params(&self) -> Result<String> {
        let arguments = given(self.arguments.clone())?;
        let name = Value::from(self.name.as_str());
        let ttl = self.ttl.map_or_else(String::new, |ttl| format!(r#""ttl":{},"#, ttl.as_millis()));
        Ok(format!(
            r#"{{"name":{name},"arguments":{arguments},"task":{{{ttl}"responseModes":["streaming","task","immediate"]}}}}"#
        ))
    }
}

/// Returns whether client and server support partial results; 2025-11-25.
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
            /// Disables tasks for this call. A tool that requires a task returns an error.
            pub fn inline(mut self) -> Self {
                let $tool = &mut self.kind;
                $place.tasks = Tasks::Never;
                self
            }

            /// Requests a task, for protocol versions in which the client decides.
            pub fn as_task(mut self) -> Self {
                let $tool = &mut self.kind;
                $place.tasks = Tasks::Wanted;
                self
            }

            /// Sets the TTL of the task, for protocol versions in which the client decides.
            pub fn task_ttl(mut self, ttl: Duration) -> Self {
                let $tool = &mut self.kind;
                $place.ttl = Some(ttl);
                self
            }

            /// Sets an idempotency key. A server that supports such keys executes the call once and
            /// returns the same outcome for the same key.
            pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
                let $tool = &mut self.kind;
                $place.key = Some(key.into());
                self
            }

            /// Validates structured content against the output schema of the tool.
            pub fn validate_output(mut self) -> Self {
                let $tool = &mut self.kind;
                $place.is_checked = true;
                self
            }

            /// Also cancels the task if the future or handle is dropped.
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
    /// Reports all input requests of the call as events, before and after it becomes a task.
    /// Returns the handle immediately. The call runs while its
    /// [events](crate::client::tasks::TaskHandle::events) are read.
    ///
    /// Declare the supported requests with
    /// [`input_capabilities`](crate::client::ClientBuilder::input_capabilities). An input handler
    /// responds instead to the requests of legacy servers, which name no call.
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
    /// Deserializes the structured content. A tool error is an error here.
    ///
    /// # Errors
    ///
    /// The errors of the call, and [`ClientError::SchemaViolated`] if the result has no such
    /// content.
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
