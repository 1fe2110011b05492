//! Tools: what they look like in a list, how they are called and what they answer.
//!
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/server/tools>

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{ContentBlock, Icon, InputResponses, Meta, RawJson, field};

/// A JSON Schema, kept as its text and shared: it is listed far more often than it is made.
pub type Schema = Arc<RawValue>;

/// A tool as a server lists it.
///
/// ```
/// use outlive_wire::{Tool, ToolAnnotations};
/// use serde_json::value::RawValue;
///
/// let schema = RawValue::from_string(r#"{"type":"object"}"#.to_owned())?;
/// let tool = Tool::new("now", schema)
///     .with_description("Tells the time")
///     .with_annotations(ToolAnnotations::new().with_read_only(true));
/// assert_eq!(
///     serde_json::to_string(&tool)?,
///     r#"{"name":"now","description":"Tells the time","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#,
/// );
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// For programs; unique in the server.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// For the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What its arguments look like; always an object.
    pub input_schema: Schema,
    /// What its structured content looks like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Schema>,
    /// Hints on how it behaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Whether it may become a task; 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Pictures of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Beside the subject.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Tool {
    /// A tool with nothing but its name and the schema of its arguments.
    pub fn new(name: impl Into<String>, input_schema: impl Into<Schema>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: input_schema.into(),
            output_schema: None,
            annotations: None,
            execution: None,
            icons: None,
            meta: None,
        }
    }

    /// Sets the name for people.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description for the model.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets what its structured content looks like.
    #[must_use]
    pub fn with_output_schema(mut self, schema: impl Into<Schema>) -> Self {
        self.output_schema = Some(schema.into());
        self
    }

    /// Sets the hints on how it behaves.
    #[must_use]
    pub fn with_annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// Sets whether it may become a task; 2025-11-25 only.
    #[must_use]
    pub fn with_execution(mut self, execution: ToolExecution) -> Self {
        self.execution = Some(execution);
        self
    }

    /// Sets its pictures.
    #[must_use]
    pub fn with_icons(mut self, icons: impl IntoIterator<Item = Icon>) -> Self {
        self.icons = Some(icons.into_iter().collect());
        self
    }

    /// Sets its `_meta`.
    #[must_use]
    pub fn with_meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// Hints on how a tool behaves. A client believes them only of a server that it trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// For people; [`Tool::title`] goes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing. Absent means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// What it changes may be lost. Absent means true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Twice is the same as once. Absent means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It touches the world outside the server. Absent means true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// No hints.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name for people.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Says whether it changes nothing.
    #[must_use]
    pub fn with_read_only(mut self, hint: bool) -> Self {
        self.read_only_hint = Some(hint);
        self
    }

    /// Says whether what it changes may be lost.
    #[must_use]
    pub fn with_destructive(mut self, hint: bool) -> Self {
        self.destructive_hint = Some(hint);
        self
    }

    /// Says whether twice is the same as once.
    #[must_use]
    pub fn with_idempotent(mut self, hint: bool) -> Self {
        self.idempotent_hint = Some(hint);
        self
    }

    /// Says whether it touches the world outside the server.
    #[must_use]
    pub fn with_open_world(mut self, hint: bool) -> Self {
        self.open_world_hint = Some(hint);
        self
    }
}

/// How a tool may be run; 2025-11-25 only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// Whether it may become a task. Absent means [`TaskSupport::Forbidden`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

/// Whether a call may ask to become a task; 2025-11-25 only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TaskSupport {
    /// It must not.
    Forbidden,
    /// It may.
    Optional,
    /// It must.
    Required,
}

/// The result of `tools/list`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsResult {
    /// One page of tools.
    pub tools: Vec<Tool>,
    /// Where the next page begins; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Beside the subject.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The parameters of `tools/call`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolRequestParams {
    /// The tool.
    pub name: String,
    /// An object that fits its input schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<RawJson>,
    /// Asks for a task; 2025-11-25 only, and read by the tasks code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<RawJson>,
    /// Answers to the questions of the round before; 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// What the server gave with those questions; 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Beside the subject.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The result of `tools/call`.
///
/// ```
/// use outlive_wire::CallToolResult;
///
/// let json = serde_json::to_string(&CallToolResult::error("no such city"))?;
/// assert_eq!(json, r#"{"content":[{"type":"text","text":"no such city"}],"isError":true}"#);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// For the model, and for people.
    pub content: Vec<ContentBlock>,
    /// For programs; fits the output schema. `null` is a value, and differs from none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "field::present")]
    pub structured_content: Option<RawJson>,
    /// Whether the tool ran and failed. Absent means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Beside the subject.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CallToolResult {
    /// A tool that did what it should.
    pub fn new(content: impl IntoIterator<Item = ContentBlock>) -> Self {
        Self { content: content.into_iter().collect(), ..Self::default() }
    }

    /// A tool that did what it should, and has one text to say.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }

    /// A tool that ran and failed, and says why, for the model to do better.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: Some(true), ..Self::text(text) }
    }

    /// Returns the texts among its blocks.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
    }

    /// Adds a block.
    #[must_use]
    pub fn with_content(mut self, block: ContentBlock) -> Self {
        self.content.push(block);
        self
    }

    /// Sets what programs read.
    #[must_use]
    pub fn with_structured_content(mut self, json: RawJson) -> Self {
        self.structured_content = Some(json);
        self
    }

    /// Says whether the tool failed.
    #[must_use]
    pub fn with_is_error(mut self, is_error: bool) -> Self {
        self.is_error = Some(is_error);
        self
    }

    /// Sets its `_meta`.
    #[must_use]
    pub fn with_meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }
}
