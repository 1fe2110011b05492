//! Sampling: requests to the client's model.
//!
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/client/sampling>

use std::slice;

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use crate::{
    AudioContent, ContentBlock, ImageContent, JsonObject, Meta, RawJson, Role, TextContent, Tool,
    content::block_type, field,
};

/// The parameters of `sampling/createMessage`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageRequestParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// Preferences for the choice of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// System prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Context that the client adds; every value except `none` is deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// Sampling temperature.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "field::optional_number"
    )]
    pub temperature: Option<f64>,
    /// Maximum number of tokens to generate.
    pub max_tokens: u64,
    /// Texts that end the generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Metadata for the provider of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// Tools that the model may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether the model must use tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Request to run the elicitation or sampling as a task; 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<RawJson>,
    /// Metadata (`_meta`); legacy versions only.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The result of `sampling/createMessage`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageResult {
    /// Sender of the message: the model.
    pub role: Role,
    /// Content of the message.
    pub content: SamplingContent,
    /// Name of the model.
    pub model: String,
    /// Reason why the model stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or another
    /// value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A message of a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingMessage {
    /// Sender of the message.
    pub role: Role,
    /// Content of the message.
    pub content: SamplingContent,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SamplingMessage {
    /// Creates a message with one text block.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        let text = TextContent { text: text.into(), annotations: None, meta: None };
        let content = SamplingContent::One(SamplingMessageContentBlock::Text(text));
        Self { role, content, meta: None }
    }
}

/// One block or several. Until 2025-06-18, only one.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "the specification allows one block or a list")]
pub enum SamplingContent {
    /// A single block.
    One(SamplingMessageContentBlock),
    /// A list of blocks.
    Many(Vec<SamplingMessageContentBlock>),
}

impl SamplingContent {
    /// Returns the blocks.
    pub fn blocks(&self) -> &[SamplingMessageContentBlock] {
        match self {
            Self::One(block) => slice::from_ref(block),
            Self::Many(blocks) => blocks,
        }
    }
}

impl<'de> Deserialize<'de> for SamplingContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        if raw.get().starts_with('[') {
            serde_json::from_str(raw.get()).map(Self::Many)
        } else {
            serde_json::from_str(raw.get()).map(Self::One)
        }
        .map_err(D::Error::custom)
    }
}

/// A content block of a conversation.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SamplingMessageContentBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio.
    Audio(AudioContent),
    /// A tool call of the model.
    ToolUse(ToolUseContent),
    /// The result of a tool call.
    ToolResult(ToolResultContent),
    /// A block of an unknown type, as JSON text.
    #[serde(untagged)]
    Unknown(RawJson),
}

impl<'de> Deserialize<'de> for SamplingMessageContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        let json = raw.get();
        match &*block_type(&raw).map_err(D::Error::custom)? {
            "text" => serde_json::from_str(json).map(Self::Text),
            "image" => serde_json::from_str(json).map(Self::Image),
            "audio" => serde_json::from_str(json).map(Self::Audio),
            "tool_use" => serde_json::from_str(json).map(Self::ToolUse),
            "tool_result" => serde_json::from_str(json).map(Self::ToolResult),
            _ => return Ok(Self::Unknown(raw)),
        }
        .map_err(D::Error::custom)
    }
}

/// A tool call of the model.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUseContent {
    /// ID that the result repeats.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments of the tool.
    pub input: RawJson,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultContent {
    /// ID of the tool call.
    pub tool_use_id: String,
    /// Content for the model.
    pub content: Vec<ContentBlock>,
    /// Content for programs. `null` is a value and differs from an absent member.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "field::present")]
    pub structured_content: Option<RawJson>,
    /// Whether the tool failed. Absent means no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Preferences for the choice of a model. Priorities range from 0 (unimportant) to 1 (most
/// important).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPreferences {
    /// Model names; the first match counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// Priority of a low price.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "field::optional_number"
    )]
    pub cost_priority: Option<f64>,
    /// Priority of speed.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "field::optional_number"
    )]
    pub speed_priority: Option<f64>,
    /// Priority of intelligence.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "field::optional_number"
    )]
    pub intelligence_priority: Option<f64>,
}

/// A hint for a model or a family of models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelHint {
    /// Part of the model name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The context that the client adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum IncludeContext {
    /// No context.
    None,
    /// Context of the requesting server.
    ThisServer,
    /// Context of all servers.
    AllServers,
}

/// Control of the model's tool use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolChoice {
    /// Mode of tool use. Absent means [`ToolChoiceMode::Auto`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

/// The mode of the model's tool use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolChoiceMode {
    /// The model decides.
    Auto,
    /// The model must use at least one tool.
    Required,
    /// The model must not use tools.
    None,
}
