//! Tools: definitions, calls and results.
//!
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/server/tools>

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{ContentBlock, Icon, InputResponses, Meta, RawJson, field};

/// A JSON Schema, kept as text. Shared, because every list of tools contains it.
pub type Schema = Arc<RawValue>;

/// A tool in a list.
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
    /// Name for programs; unique in the server.
    pub name: String,
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments, which are an object.
    pub input_schema: Schema,
    /// JSON Schema of the structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Schema>,
    /// Hints on the behavior of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Task support of the tool; 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Icons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl Tool {
    /// Creates a tool with a name and the schema of its arguments.
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

    /// Sets the title for people.
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

    /// Sets the JSON Schema of the structured content.
    #[must_use]
    pub fn with_output_schema(mut self, schema: impl Into<Schema>) -> Self {
        self.output_schema = Some(schema.into());
        self
    }

    /// Sets the hints on the behavior of the tool.
    #[must_use]
    pub fn with_annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = Some(annotations);
        self
    }

    /// Sets the task support of the tool; 2025-11-25 only.
    #[must_use]
    pub fn with_execution(mut self, execution: ToolExecution) -> Self {
        self.execution = Some(execution);
        self
    }

    /// Sets the icons.
    #[must_use]
    pub fn with_icons(mut self, icons: impl IntoIterator<Item = Icon>) -> Self {
        self.icons = Some(icons.into_iter().collect());
        self
    }

    /// Sets `_meta`.
    #[must_use]
    pub fn with_meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// Hints on the behavior of a tool. A client should use them only for trusted servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// Title for people; [`Tool::title`] takes precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool changes nothing. Absent means no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The changes may destroy data. Absent means yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Repeated calls with the same arguments have no additional effect. Absent means no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool interacts with systems outside the server. Absent means yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// Creates annotations without hints.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the title for people.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets whether the tool changes nothing.
    #[must_use]
    pub fn with_read_only(mut self, hint: bool) -> Self {
        self.read_only_hint = Some(hint);
        self
    }

    /// Sets whether the changes may destroy data.
    #[must_use]
    pub fn with_destructive(mut self, hint: bool) -> Self {
        self.destructive_hint = Some(hint);
        self
    }

    /// Sets whether repeated calls have no additional effect.
    #[must_use]
    pub fn with_idempotent(mut self, hint: bool) -> Self {
        self.idempotent_hint = Some(hint);
        self
    }

    /// Sets whether the tool interacts with systems outside the server.
    #[must_use]
    pub fn with_open_world(mut self, hint: bool) -> Self {
        self.open_world_hint = Some(hint);
        self
    }
}

/// Execution properties of a tool; 2025-11-25 only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// Task support. Absent means [`TaskSupport::Forbidden`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

/// Whether a call may request a task; 2025-11-25 only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TaskSupport {
    /// The call must not request a task.
    Forbidden,
    /// The call may request a task.
    Optional,
    /// The call must request a task.
    Required,
}

/// The result of `tools/list`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsResult {
    /// One page of tools.
    pub tools: Vec<Tool>,
    /// Cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The parameters of `tools/call`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToolRequestParams {
    /// Name of the tool.
    pub name: String,
    /// Arguments: an object that is valid for the input schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<RawJson>,
    /// Request to run the call as a task; 2025-11-25 only. The codecs interpret the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<RawJson>,
    /// Input responses for the previous round; 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// Request state of the previous round; 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata (`_meta`).
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
    /// Content for the model and for people.
    pub content: Vec<ContentBlock>,
    /// Content for programs; valid for the output schema. `null` is a value and differs from an
    /// absent member.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "field::present")]
    pub structured_content: Option<RawJson>,
    /// Whether the tool ran and failed. Absent means no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CallToolResult {
    /// Creates a successful result.
    pub fn new(content: impl IntoIterator<Item = ContentBlock>) -> Self {
        Self { content: content.into_iter().collect(), ..Self::default() }
    }

    /// Creates a successful result with one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }

    /// Creates a tool error. The model reads `text` and can correct its call.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: Some(true), ..Self::text(text) }
    }

    /// Returns the texts of the text blocks.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
    }

    /// Adds a content block.
    #[must_use]
    pub fn with_content(mut self, block: ContentBlock) -> Self {
        self.content.push(block);
        self
    }

    /// Sets the structured content.
    #[must_use]
    pub fn with_structured_content(mut self, json: RawJson) -> Self {
        self.structured_content = Some(json);
        self
    }

    /// Sets whether the tool failed.
    #[must_use]
    pub fn with_is_error(mut self, is_error: bool) -> Self {
        self.is_error = Some(is_error);
        self
    }

    /// Sets `_meta`.
    #[must_use]
    pub fn with_meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }
}
