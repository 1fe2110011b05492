//! Content blocks of tool results and prompts.
//!
//! A block of an unknown type is kept as JSON text, so that messages of newer peers still
//! deserialize.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, de::Error};

use crate::{Annotations, Meta, RawJson, Resource, ResourceContents, Str};

/// One content block.
///
/// ```
/// use outlive_wire::ContentBlock;
///
/// let block = ContentBlock::text("sunny");
/// assert_eq!(serde_json::to_string(&block)?, r#"{"type":"text","text":"sunny"}"#);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
    /// Audio.
    Audio(AudioContent),
    /// A link to a resource, which the client may read.
    ResourceLink(Resource),
    /// A resource with its contents.
    Resource(EmbeddedResource),
    /// A block of an unknown type, as JSON text.
    #[serde(untagged)]
    Unknown(RawJson),
}

impl ContentBlock {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), annotations: None, meta: None })
    }

    /// Creates an image block.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::image_base64(STANDARD.encode(bytes), mime_type)
    }

    /// Creates an image block from Base64 data.
    pub fn image_base64(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent {
            data: data.into(),
            mime_type: mime_type.into(),
            annotations: None,
            meta: None,
        })
    }

    /// Creates an audio block.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::audio_base64(STANDARD.encode(bytes), mime_type)
    }

    /// Creates an audio block from Base64 data.
    pub fn audio_base64(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent {
            data: data.into(),
            mime_type: mime_type.into(),
            annotations: None,
            meta: None,
        })
    }

    /// Creates a link to a resource, which the client may read.
    pub fn resource_link(resource: Resource) -> Self {
        Self::ResourceLink(resource)
    }

    /// Creates an embedded resource with text contents.
    pub fn resource_text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Resource(ResourceContents::text(uri, text).into())
    }

    /// Creates an embedded resource with binary contents.
    pub fn resource_blob(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Resource(ResourceContents::blob(uri, bytes).into())
    }

    /// Sets audience and priority. Has no effect on an unknown block.
    #[must_use]
    pub fn with_annotations(mut self, annotations: Annotations) -> Self {
        match &mut self {
            Self::Text(block) => block.annotations = Some(annotations),
            Self::Image(block) => block.annotations = Some(annotations),
            Self::Audio(block) => block.annotations = Some(annotations),
            Self::ResourceLink(block) => block.annotations = Some(annotations),
            Self::Resource(block) => block.annotations = Some(annotations),
            Self::Unknown(_) => {}
        }
        self
    }

    /// Sets `_meta`. Has no effect on an unknown block.
    #[must_use]
    pub fn with_meta(mut self, meta: Meta) -> Self {
        match &mut self {
            Self::Text(block) => block.meta = Some(meta),
            Self::Image(block) => block.meta = Some(meta),
            Self::Audio(block) => block.meta = Some(meta),
            Self::ResourceLink(block) => block.meta = Some(meta),
            Self::Resource(block) => block.meta = Some(meta),
            Self::Unknown(_) => {}
        }
        self
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        let json = raw.get();
        match &*block_type(&raw).map_err(D::Error::custom)? {
            "text" => serde_json::from_str(json).map(Self::Text),
            "image" => serde_json::from_str(json).map(Self::Image),
            "audio" => serde_json::from_str(json).map(Self::Audio),
            "resource_link" => serde_json::from_str(json).map(Self::ResourceLink),
            "resource" => serde_json::from_str(json).map(Self::Resource),
            _ => return Ok(Self::Unknown(raw)),
        }
        .map_err(D::Error::custom)
    }
}

/// Reads the `type` of a block, which selects the type of the rest.
pub(crate) fn block_type(raw: &RawJson) -> serde_json::Result<Str<'_>> {
    #[derive(Deserialize)]
    struct Tag<'a> {
        #[serde(borrow)]
        r#type: Str<'a>,
    }

    serde_json::from_str::<Tag<'_>>(raw.get()).map(|tag| tag.r#type)
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// Text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// Bytes in Base64.
    pub data: String,
    /// MIME type.
    pub mime_type: String,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Audio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AudioContent {
    /// Bytes in Base64.
    pub data: String,
    /// MIME type.
    pub mime_type: String,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// A resource embedded in a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddedResource {
    /// Contents of the resource.
    pub resource: ResourceContents,
    /// Audience and priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl From<ResourceContents> for EmbeddedResource {
    fn from(resource: ResourceContents) -> Self {
        Self { resource, annotations: None, meta: None }
    }
}
