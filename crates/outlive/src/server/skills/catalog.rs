//! All skills of a server, validated and encoded for clients.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use outlive_wire::{JsonObject, RawJson, Resource, ResourceContents};
use serde::Serialize;
use serde_json::{Value, value::to_raw_value};
use sha2::{Digest, Sha256};

use crate::server::skills::{
    error::SkillError,
    mime_type::{DIRECTORY, mime_type},
    skill::{MAX_FILE_BYTES, MAX_TOTAL_BYTES, SKILL_MD, Skill},
};
use crate::skill_format::parse_frontmatter;

/// Maximum number of skills of a server.
const MAX_SKILLS: usize = 256;

/// Maximum number of files of a skill, as the extension defines it.
const MAX_FILES: usize = 512;

/// Maximum bytes of all files of a skill, as the extension defines it.
const MAX_SKILL_BYTES: usize = 16 << 20;

/// Maximum length of a skill's name.
const MAX_NAME: usize = 64;

/// All skills of a server.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// Skills, by the URI of their `SKILL.md`.
    entries: BTreeMap<String, Entry>,
    /// Files, by URI.
    files: BTreeMap<String, File>,
    /// Entries of each directory, by the URI of the directory.
    directories: BTreeMap<String, BTreeSet<Child>>,
}

/// A skill as `skills/list` and `skills/get` return it.
#[derive(Debug)]
struct Entry {
    name: String,
    description: String,
    json: RawJson,
}

/// A file of a skill.
#[derive(Debug)]
struct File {
    contents: Contents,
    mime_type: &'static str,
    digest: String,
    size: u64,
}

#[derive(Debug)]
enum Contents {
    Text(String),
    /// Encoded as Base64.
    Blob(String),
}

/// A direct entry of a directory.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Child {
    name: String,
    uri: String,
    is_directory: bool,
}

#[derive(Serialize)]
struct Written<'a> {
    uri: &'a str,
    frontmatter: &'a JsonObject,
    resources: Vec<WrittenFile<'a>>,
}

#[derive(Serialize)]
struct WrittenFile<'a> {
    uri: &'a str,
    digest: &'a str,
    size: u64,
}

impl Catalog {
    pub(crate) fn new(skills: Vec<Skill>) -> Result<Self, SkillError> {
        if skills.len() > MAX_SKILLS {
            let what =
                format!("a server can have at most {MAX_SKILLS} skills, not {}", skills.len());
            return Err(SkillError::at("set", what));
        }
        let mut catalog = Self::default();
        skills.into_iter().try_for_each(|skill| catalog.add(skill))?;
        let bytes: u64 = catalog.files.values().map(|file| file.size).sum();
        if bytes > MAX_TOTAL_BYTES as u64 {
            let what = format!("all files together have more than {MAX_TOTAL_BYTES} bytes");
            return Err(SkillError::at("set", what));
        }
        Ok(catalog)
    }

    fn add(&mut self, skill: Skill) -> Result<(), SkillError> {
        let (place, fields) = fields(&skill)?;
        let bad = |what: String| SkillError::at(&place, what);
        let name = text(&fields, "name").map_err(bad)?;
        let description = text(&fields, "description").map_err(bad)?;
        check_name(&name, &skill).map_err(bad)?;
        check_amount(&skill).map_err(bad)?;
        let path =
            if skill.prefix.is_empty() { name.clone() } else { format!("{}/{name}", skill.prefix) };
        check_path(&path).map_err(bad)?;
        let mut uris = Vec::new();
        for (file, contents) in skill.files {
            check_path(&file)
                .map_err(|what| SkillError::at(&place, format_args!("file `{file}`: {what}")))?;
            let uri = format!("skill://{}", encoded(&format!("{path}/{file}")));
            let read = File::new(&file, &contents);
            // A nested skill shares its files with the outer skill, so equal files are not a
            // conflict.
            if self.files.get(&uri).is_some_and(|known| known.digest != read.digest) {
                return Err(SkillError::at(&place, format_args!("two skills have a file {uri}")));
            }
            self.files.insert(uri.clone(), read);
            self.enter(&uri);
            uris.push(uri);
        }
        let uri = format!("skill://{}", encoded(&format!("{path}/{SKILL_MD}")));
        let resources = uris.iter().filter_map(|uri| {
            let File { digest, size, .. } = self.files.get(uri)?;
            Some(WrittenFile { uri, digest, size: *size })
        });
        let written = Written { uri: &uri, frontmatter: &fields, resources: resources.collect() };
        let json = to_raw_value(&written).map_err(|error| bad(error.to_string()))?;
        match self.entries.insert(uri.clone(), Entry { name, description, json }) {
            None => Ok(()),
            Some(_) => Err(bad(format!("there are two skills at {uri}"))),
        }
    }

    /// Adds a file to its directory, and each directory to its parent.
    fn enter(&mut self, uri: &str) {
        let (mut child, mut is_directory) = (uri, false);
        while let Some((directory, name)) = child.rsplit_once('/')
            && directory != "skill:/"
        {
            let entry = Child { name: decoded(name), uri: child.to_owned(), is_directory };
            self.directories.entry(directory.to_owned()).or_default().insert(entry);
            (child, is_directory) = (directory, true);
        }
    }

    /// Returns a page of skills: `count` entries after `skip`, and whether there are more.
    pub(crate) fn page(&self, skip: usize, count: usize) -> (Vec<&RawJson>, bool) {
        let page = self.entries.values().skip(skip).take(count).map(|entry| &entry.json).collect();
        (page, self.entries.len() > skip.saturating_add(count))
    }

    /// Returns the entry of the skill whose `SKILL.md` is at `uri`.
    pub(crate) fn entry(&self, uri: &str) -> Option<&RawJson> {
        self.entries.get(uri).map(|entry| &entry.json)
    }

    /// Returns a page of a directory's entries, and whether there are more.
    pub(crate) fn children(
        &self,
        uri: &str,
        skip: usize,
        count: usize,
    ) -> Option<(Vec<Resource>, bool)> {
        let children = self.directories.get(uri)?;
        let page = children.iter().skip(skip).take(count).map(|child| self.child(child)).collect();
        Some((page, children.len() > skip.saturating_add(count)))
    }

    fn child(&self, child: &Child) -> Resource {
        if let Some(entry) = self.entries.get(&child.uri) {
            return self.manifest(&child.uri, entry);
        }
        let mut resource = Resource::new(&child.uri, &child.name);
        match self.files.get(&child.uri).filter(|_| !child.is_directory) {
            Some(file) => {
                resource.mime_type = Some(file.mime_type.to_owned());
                resource.size = Some(file.size);
            }
            None => resource.mime_type = Some(DIRECTORY.to_owned()),
        }
        resource
    }

    /// Returns the `SKILL.md` of every skill as a `resources/list` entry.
    pub(crate) fn manifests(&self) -> Vec<Resource> {
        self.entries.iter().map(|(uri, entry)| self.manifest(uri, entry)).collect()
    }

    fn manifest(&self, uri: &str, entry: &Entry) -> Resource {
        let mut resource = Resource::new(uri, &entry.name);
        resource.description = Some(entry.description.clone());
        resource.mime_type = self.files.get(uri).map(|file| file.mime_type.to_owned());
        resource.size = self.files.get(uri).map(|file| file.size);
        resource
    }

    /// Returns whether the file exists.
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.files.contains_key(uri)
    }

    /// Returns the contents of the file at `uri`.
    pub(crate) fn read(&self, uri: &str) -> Option<ResourceContents> {
        let file = self.files.get(uri)?;
        let mut contents = match &file.contents {
            Contents::Text(text) => ResourceContents::text(uri, text),
            Contents::Blob(blob) => ResourceContents::blob_base64(uri, blob),
        };
        let slot = match &mut contents {
            ResourceContents::Text(contents) => &mut contents.mime_type,
            ResourceContents::Blob(contents) => &mut contents.mime_type,
            _ => return Some(contents),
        };
        *slot = Some(file.mime_type.to_owned());
        Some(contents)
    }
}

impl File {
    fn new(path: &str, bytes: &[u8]) -> Self {
        let mut digest = String::from("sha256:");
        for byte in Sha256::digest(bytes) {
            let _ = write!(digest, "{byte:02x}");
        }
        let size = bytes.len() as u64;
        let contents = match std::str::from_utf8(bytes) {
            Ok(text) => Contents::Text(text.to_owned()),
            Err(_) => Contents::Blob(STANDARD.encode(bytes)),
        };
        let mime_type = mime_type(path, matches!(contents, Contents::Text(_)));
        Self { contents, mime_type, digest, size }
    }
}

/// Returns the location of a skill for errors, and the frontmatter of its `SKILL.md`.
fn fields(skill: &Skill) -> Result<(String, JsonObject), SkillError> {
    let text = skill.files.get(SKILL_MD).map_or(Ok(""), |text| std::str::from_utf8(text));
    let parsed = match text {
        Ok(text) => parse_frontmatter(text),
        Err(_) => Err("the file is not UTF-8".to_owned()),
    };
    let name = |fields: &JsonObject| Some(format!("`{}`", fields.get("name")?.as_str()?));
    let place = match &skill.origin {
        Some(origin) => origin.place.clone(),
        None => parsed.as_ref().ok().and_then(name).unwrap_or_else(|| "(unnamed)".to_owned()),
    };
    match parsed {
        Ok(fields) => Ok((place, fields)),
        Err(what) => Err(SkillError::at(place, format_args!("{SKILL_MD}: {what}"))),
    }
}

fn text(fields: &JsonObject, field: &str) -> Result<String, String> {
    match fields.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(_) => Err(format!("{SKILL_MD}: `{field}` must be a string; quote it")),
        None => Err(format!("{SKILL_MD} has no `{field}`")),
    }
}

fn check_name(name: &str, skill: &Skill) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = name.len() <= MAX_NAME
        && name.bytes().all(plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    if !is_name {
        return Err(format!(
            "`{name}` is not a valid skill name; use 1 to {MAX_NAME} lowercase letters, digits and single hyphens"
        ));
    }
    match &skill.origin {
        Some(origin) if origin.name != name => Err(format!(
            "its name `{name}` differs from its folder `{}`; rename one of them",
            origin.name
        )),
        _ => Ok(()),
    }
}

fn check_amount(skill: &Skill) -> Result<(), String> {
    let bytes: usize = skill.files.values().map(Bytes::len).sum();
    let largest = skill.files.iter().find(|(_, contents)| contents.len() > MAX_FILE_BYTES);
    match (skill.files.len() > MAX_FILES, bytes > MAX_SKILL_BYTES, largest) {
        (true, _, _) => Err(format!("it has more than {MAX_FILES} files")),
        (_, true, _) => Err(format!("its files have more than {MAX_SKILL_BYTES} bytes together")),
        (_, _, Some((path, _))) => {
            Err(format!("the file `{path}` has more than {MAX_FILE_BYTES} bytes"))
        }
        _ => Ok(()),
    }
}

/// Checks that a path is relative and has no empty, `.` or `..` parts.
fn check_path(path: &str) -> Result<(), String> {
    let is_odd = |part: &str| matches!(part, "" | "." | "..");
    match path.split('/').any(is_odd) || path.contains(['\\', '\0']) {
        true => Err(format!("`{path}` is not a path inside a skill; use names separated by `/`")),
        false => Ok(()),
    }
}

/// Percent-encodes a path for a URI.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Decodes a part of a URI that [`encoded`] returned.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let (hex, after) = after.split_at_checked(2).unwrap_or((after, ""));
        bytes.extend(u8::from_str_radix(hex, 16).ok());
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}
