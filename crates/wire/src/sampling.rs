//! Asking the client's model.
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
    /// Which model to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// What to tell the model first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Which context to add; all but `none` is deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<IncludeContext>,
    /// How freely to choose.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "field::optional_number"
    )]
    pub temperature: Option<f64>,
    /// How long the answer may be.
    pub max_tokens: u64,
    /// What ends the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// What the provider of the model understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// Tools that the model may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// Whether it must use them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Asks the client for a task; 2025-11-25 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<RawJson>,
    /// Beside the subject; legacy revisions only.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The result of `sampling/createMessage`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateMessageResult {
    /// Who speaks: the model.
    pub role: Role,
    /// What it says.
    pub content: SamplingContent,
    /// Which model it was.
    pub model: String,
    /// Why it stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or another word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Beside the subject.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// One message of a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: SamplingContent,
    /// Beside the subject.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SamplingMessage {
    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        let text = TextContent { text: text.into(), annotations: None, meta: None };
        let content = SamplingContent::One(SamplingMessageContentBlock::Text(text));
        Self { role, content, meta: None }
    }
}

/// One block, or several; until 2025-06-18 only one.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "there is no third way to have blocks")]
pub enum SamplingContent {
    /// A block that stands alone.
    One(SamplingMessageContentBlock),
    /// A list of blocks.
    Many(Vec<SamplingMessageContentBlock>),
}

impl SamplingContent {
    /// The blocks, however they were written.
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

/// One block of a conversation.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SamplingMessageContentBlock {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(ImageContent),
    /// A sound.
    Audio(AudioContent),
    /// The model wants to use a tool.
    ToolUse(ToolUseContent),
    /// What the tool answered.
    ToolResult(ToolResultContent),
    /// A block of another type, verbatim.
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

/// The model wants to use a tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUseContent {
    /// What the answer will name.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: RawJson,
    /// Beside the subject.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// What a tool answered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultContent {
    /// Which use of a tool it answers.
    pub tool_use_id: String,
    /// For the model.
    pub content: Vec<ContentBlock>,
    /// For programs. `null` is a value, and differs from none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "field::present")]
    pub structured_content: Option<RawJson>,
    /// Whether the tool failed. Absent means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Beside the subject.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Which model to take. The priorities go from 0, no matter, to 1, above all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelPreferences {
    /// Names, the first that fits counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// How much a low price matters.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "field::optional_number"
    )]
    pub cost_priority: Option<f64>,
    /// How much speed matters.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "field::optional_number"
    )]
    pub speed_priority: Option<f64>,
    /// How much skill matters.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "field::optional_number"
    )]
    pub intelligence_priority: Option<f64>,
}

/// A model, or a family of models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelHint {
    /// A part of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Which context the client shall add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum IncludeContext {
    /// None.
    None,
    /// That of the server that asks.
    ThisServer,
    /// That of all servers.
    AllServers,
}

/// Whether the model must use tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolChoice {
    /// Absent means [`ToolChoiceMode::Auto`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ToolChoiceMode>,
}

/// Whether the model must use tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolChoiceMode {
    /// As it likes.
    Auto,
    /// At least one.
    Required,
    /// None.
    None,
}
