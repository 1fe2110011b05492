//! [`LargeResult`]: a result whose large bodies are stored in parts.

use std::sync::Arc;

use outlive_wire::RawJson;
use serde::{Deserialize, Serialize};

/// Bytes of a result part, except the last part of a body. Also the size above which a result is
/// stored in parts.
pub const PART_BYTES: usize = 64 << 10;

/// A result without the bodies of its large blocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LargeResult {
    /// The result as JSON. A placeholder replaces each body, so this is a valid result, too.
    pub head: RawJson,
    /// Blocks with a stored body, in their order in the JSON.
    pub blocks: Vec<StoredBlock>,
}

impl LargeResult {
    /// Creates a result whose bodies are all in the head.
    pub fn from_whole(head: RawJson) -> Self {
        Self { head, blocks: Vec::new() }
    }

    /// Returns the bytes of the head and of all bodies.
    pub fn bytes(&self) -> u64 {
        let bodies: u64 = self.blocks.iter().map(|block| block.bytes).sum();
        self.head.get().len() as u64 + bodies
    }
}

/// A block of a result whose body is stored in parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredBlock {
    /// Kind of the body.
    pub kind: BlockKind,
    /// Index of the block in `content` of the head; `None` for the structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<usize>,
    /// MIME type that the result states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Number of the body in the store. Equal bodies are stored once: structured content and its
    /// copy as text have the same number.
    pub body: u32,
    /// Bytes of the body.
    pub bytes: u64,
    /// Number of line ends before each part; empty for Base64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newlines: Vec<u64>,
    /// Number and bytes of the body that lists the length of each text of [`BlockKind::Texts`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengths: Option<(u32, u64)>,
    /// Position of the placeholder in the head.
    pub(super) at: usize,
    /// Length of the placeholder.
    pub(super) placeholder: usize,
}

impl StoredBlock {
    /// Returns the number of parts of the body.
    pub fn parts(&self) -> u32 {
        parts_of(self.bytes)
    }

    /// Returns the bytes of the content: of Base64, the bytes after decoding.
    pub fn size(&self) -> u64 {
        match self.kind {
            BlockKind::Base64 { padding } => self.bytes / 4 * 3 - u64::from(padding),
            _ => self.bytes,
        }
    }
}

/// Returns the number of parts of a body with this many bytes.
pub(super) fn parts_of(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PART_BYTES as u64)).unwrap_or(u32::MAX)
}

/// Kind of a stored body.
///
/// Exhaustive on purpose: a reader that misses a kind must not compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "readers must handle every variant")]
pub enum BlockKind {
    /// Text of one block.
    Text,
    /// Consecutive text blocks as one text. A line end separates two texts, unless the first one
    /// ends with a line end.
    Texts,
    /// Other small consecutive blocks, as a JSON array.
    Items,
    /// Base64 data of an image, audio or embedded resource.
    Base64 {
        /// Number of padding characters at the end.
        padding: u8,
    },
    /// JSON text of the structured content.
    Json,
}

/// Part of a stored body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResultPart {
    /// Number of the body.
    pub block: u32,
    /// Number of the part in its body, from zero.
    pub number: u32,
    /// Bytes of the part: [`PART_BYTES`], or fewer in the last part. A part of a text can end
    /// inside a character.
    pub body: Arc<[u8]>,
}

impl ResultPart {
    /// Creates a part.
    pub fn new(block: u32, number: u32, body: impl Into<Arc<[u8]>>) -> Self {
        Self { block, number, body: body.into() }
    }
}

/// A large result and the parts to store with it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SplitResult {
    /// The result without the bodies.
    pub result: LargeResult,
    /// Parts of all bodies.
    pub parts: Vec<ResultPart>,
}
