//! The lists of one upstream as one catalog has them.

use std::{sync::OnceLock, time::Duration};

use outlive::wire::{Prompt, Resource, ResourceTemplate, Tool};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// SHA-256 of a definition or of lists.
pub(crate) type Digest = [u8; 32];

/// The lists of one upstream as one catalog has them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Definitions {
    pub(crate) tools: Vec<Tool>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
    /// Instructions for models, cut to the part that clients may see.
    #[serde(default)]
    pub(crate) instructions: Option<String>,
    /// Entries that were left out because of a limit, or because they are invalid.
    pub(crate) left_out: Vec<String>,
    /// Time for which the lists are fresh, if the upstream names one.
    #[serde(skip)]
    pub(crate) ttl: Option<Duration>,
    #[serde(skip)]
    pub(super) digest: OnceLock<Digest>,
    #[serde(skip)]
    pub(super) tool_digests: OnceLock<Vec<Digest>>,
}

impl Definitions {
    /// Returns the digest of all lists.
    pub(crate) fn digest(&self) -> Digest {
        *self.digest.get_or_init(|| {
            let mut hash = Sha256::new();
            for part in [
                serde_json::to_vec(&self.tools),
                serde_json::to_vec(&self.prompts),
                serde_json::to_vec(&self.resources),
                serde_json::to_vec(&self.templates),
                serde_json::to_vec(&self.instructions),
            ] {
                let part = part.unwrap_or_default();
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(&part);
            }
            hash.finalize().into()
        })
    }

    /// Returns the digest of each tool, for pins: name, title, description, both schemas and
    /// annotations.
    pub(crate) fn tool_digests(&self) -> &[Digest] {
        self.tool_digests.get_or_init(|| self.tools.iter().map(tool_digest).collect())
    }

    /// Returns the digest of the instructions, for pins.
    pub(crate) fn instructions_digest(&self) -> Option<Digest> {
        self.instructions.as_ref().map(|text| Sha256::digest(text).into())
    }

    /// Returns whether the upstream offers resources or templates.
    pub(crate) fn has_resources(&self) -> bool {
        !self.resources.is_empty() || !self.templates.is_empty()
    }
}

fn tool_digest(tool: &Tool) -> Digest {
    let mut hash = Sha256::new();
    let parts = [
        serde_json::to_vec(&tool.name),
        serde_json::to_vec(&tool.title),
        serde_json::to_vec(&tool.description),
        serde_json::to_vec(&tool.input_schema),
        serde_json::to_vec(&tool.output_schema),
        serde_json::to_vec(&tool.annotations),
    ];
    for part in parts {
        let part = part.unwrap_or_default();
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(&part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(description: &str) -> Tool {
        serde_json::from_value(serde_json::json!({
            "name": "read", "description": description, "inputSchema": {"type": "object"}
        }))
        .unwrap()
    }

    #[test]
    fn digest_covers_the_description_of_a_tool() {
        let first = Definitions { tools: vec![tool("a")], ..Definitions::default() };
        let same = Definitions { tools: vec![tool("a")], ..Definitions::default() };
        let other = Definitions { tools: vec![tool("b")], ..Definitions::default() };
        assert_eq!(first.digest(), same.digest());
        assert_ne!(first.digest(), other.digest());
        assert_eq!(first.tool_digests(), same.tool_digests());
        assert_ne!(first.tool_digests(), other.tool_digests());
    }

    #[test]
    fn stored_definitions_have_the_same_digest() {
        let first = Definitions { tools: vec![tool("a")], ..Definitions::default() };
        let text = serde_json::to_string(&first).unwrap();
        let read: Definitions = serde_json::from_str(&text).unwrap();
        assert_eq!(read.digest(), first.digest());
    }
}
