//! Skills of a server (extension `io.modelcontextprotocol/skills`, SEP-2640).
//!
//! The list contains the frontmatter of each skill and the digest of each file. Files are read on
//! demand and verified against the list, because a model follows the instructions of a skill.
//! Spec: <https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx>

use std::{collections::HashSet, fmt::Write as _};

use base64::{Engine, engine::general_purpose::STANDARD};
use outlive_wire::{JsonObject, RawJson, ReadResourceResult, ResourceContents};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    attempt::read,
    core::Client,
    error::{ClientError, Error, Result},
};
use crate::skill_format::{EXTENSION, LIST, parse_frontmatter};

/// Entry of a skill in a server's list, without its files.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "Listed")]
#[non_exhaustive]
pub struct SkillEntry {
    /// URI of its `SKILL.md`.
    pub uri: String,
    /// Frontmatter of its `SKILL.md`.
    pub frontmatter: JsonObject,
    /// Files of the skill, including `SKILL.md`. `None` if the server generates them on read; such
    /// files cannot be verified.
    #[serde(serialize_with = "files_or_dynamic")]
    pub resources: Option<Vec<SkillFile>>,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SkillFile {
    /// URI of the file.
    pub uri: String,
    /// Digest of the content: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Size in bytes.
    pub size: u64,
}

/// Value of `resources` if the server generates the files on read.
const DYNAMIC: &str = "dynamic";

#[derive(Deserialize)]
struct Listed {
    uri: String,
    frontmatter: JsonObject,
    resources: Value,
}

impl TryFrom<Listed> for SkillEntry {
    type Error = String;

    fn try_from(Listed { uri, frontmatter, resources }: Listed) -> Result<Self, String> {
        let resources = match resources {
            Value::String(word) if word == DYNAMIC => None,
            files => Some(serde_json::from_value(files).map_err(|error| error.to_string())?),
        };
        Ok(Self { uri, frontmatter, resources })
    }
}

fn files_or_dynamic<S: Serializer>(
    files: &Option<Vec<SkillFile>>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    match files {
        Some(files) => files.serialize(serializer),
        None => DYNAMIC.serialize(serializer),
    }
}

/// Parses an entry. Omits an invalid one, because it must not hide the others.
fn entry(raw: &RawJson) -> Option<SkillEntry> {
    match serde_json::from_str(raw.get()) {
        Ok(entry) => Some(entry),
        Err(error) => {
            tracing::warn!(%error, "omitted an invalid skill entry");
            None
        }
    }
}

impl SkillEntry {
    /// Returns the name of the skill.
    pub fn name(&self) -> &str {
        self.field("name")
    }

    /// Returns the description: purpose of the skill and when to use it.
    pub fn description(&self) -> &str {
        self.field("description")
    }

    fn field(&self, name: &str) -> &str {
        self.frontmatter.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns whether a URI may be a file of the skill: listed, or in its folder if files are not
    /// listed.
    fn has(&self, uri: &str) -> bool {
        match &self.resources {
            Some(files) => files.iter().any(|file| file.uri == uri),
            None => {
                let folder = self.uri.rsplit_once('/').map_or("", |(folder, _)| folder);
                uri.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
                    && !uri.split('/').any(|part| part == "..")
            }
        }
    }

    /// Verifies the size and digest of a file against the entry.
    fn verify(&self, uri: &str, bytes: &[u8]) -> Result<()> {
        let file = self.resources.iter().flatten().find(|file| file.uri == uri);
        let Some(SkillFile { digest, size, .. }) = file else { return Ok(()) };
        if *size != bytes.len() as u64 {
            let what = format!("{uri} has {} bytes, but its entry lists {size}", bytes.len());
            return Err(Error::broke(what));
        }
        let mut found = String::from("sha256:");
        for byte in Sha256::digest(bytes) {
            let _ = write!(found, "{byte:02x}");
        }
        match digest.eq_ignore_ascii_case(&found) {
            true => Ok(()),
            false => Err(Error::broke(format!("the digest of {uri} differs from its entry"))),
        }
    }
}

impl Client {
    /// Lists the skills of the server. Reads none of their files.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotOffered`] if the server has no skills, and the errors of any call.
    pub async fn skills(&self) -> Result<Vec<SkillEntry>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page {
            skills: Vec<RawJson>,
            next_cursor: Option<String>,
        }
        let offered = self.server_info().await?.capabilities.extensions;
        if !offered.is_some_and(|offered| offered.contains_key(EXTENSION)) {
            return Err(Error::not_offered("the server does not offer skills"));
        }
        let (limits, mut seen) = (self.core.limits(), HashSet::new());
        let (mut skills, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..limits.max_pages {
            let params = match &cursor {
                Some(cursor) => json!({"cursor": cursor}),
                None => json!({}),
            };
            let page: Page = read(self.request(LIST, params).await?.get())?;
            skills.extend(page.skills.iter().filter_map(entry));
            if skills.len() > limits.max_entries {
                return Err(ClientError::TooManyPages(limits.max_entries).into());
            }
            match page.next_cursor {
                None => return Ok(skills),
                Some(next) if !seen.insert(next.clone()) => {
                    return Err(ClientError::CursorLoop.into());
                }
                next => cursor = next,
            }
        }
        Err(ClientError::TooManyPages(limits.max_pages).into())
    }

    /// Reads the `SKILL.md` of a skill, verifies the file and its frontmatter against the entry,
    /// and returns the text.
    ///
    /// # Errors
    ///
    /// [`Error::ProtocolViolation`] if the file differs from its entry, and the errors of any call.
    pub async fn load_skill(&self, skill: &SkillEntry) -> Result<String> {
        let bytes = self.read_skill_file(skill, &skill.uri).await?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::broke(format!("{} is not UTF-8", skill.uri)))?;
        let fields = parse_frontmatter(&text).map_err(|why| {
            Error::broke(format!("the frontmatter of {} cannot be parsed: {why}", skill.uri))
        })?;
        match fields == skill.frontmatter {
            true => Ok(text),
            false => {
                let what = format!("the frontmatter of {} differs from its entry", skill.uri);
                Err(Error::broke(what))
            }
        }
    }

    /// Reads a file of a skill and verifies it against the entry.
    ///
    /// # Errors
    ///
    /// [`Error::ProtocolViolation`] if the file differs from its entry, [`ClientError::NotOffered`]
    /// if the skill has no such file, and the errors of any call.
    pub async fn read_skill_file(&self, skill: &SkillEntry, uri: &str) -> Result<Vec<u8>> {
        if !skill.has(uri) {
            return Err(Error::not_offered(format!(
                "{uri} is not a file of the skill {}",
                skill.uri
            )));
        }
        let ReadResourceResult { contents, .. } = self.read_resource(uri).await?;
        let bytes = match &contents[..] {
            [ResourceContents::Text(text)] => text.text.clone().into_bytes(),
            [ResourceContents::Blob(blob)] => STANDARD
                .decode(&blob.blob)
                .map_err(|error| Error::broke(format!("{uri} is not valid Base64: {error}")))?,
            _ => return Err(Error::broke(format!("{uri} must have exactly one content"))),
        };
        skill.verify(uri, &bytes)?;
        Ok(bytes)
    }
}
