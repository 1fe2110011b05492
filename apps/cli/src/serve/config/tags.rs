//! `tags`: names of tasks by which people find them, made of the arguments of a call.

use outlive::store::MAX_TAGS;
use serde_json::json;

use super::{
    argument::Argument,
    reader::{Problem, Read as _, Result, Section, Value},
    template::{Given, Word},
};

/// A tag with placeholders in its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TagTemplate {
    key: String,
    value: Word,
}

impl TagTemplate {
    /// Returns the tag of a call. Returns `None` if it needs an argument that the call has not.
    pub(super) fn fill(&self, arguments: &[Argument], given: &Given) -> Option<String> {
        let words = self.value.fill(arguments, given).ok().filter(|words| !words.is_empty())?;
        Some(format!("{}={}", self.key, words.join(",")))
    }
}

/// Reads `tags`, and reports mistakes.
pub(super) fn read(section: &mut Section<'_>, arguments: &[Argument]) -> Result<Vec<TagTemplate>> {
    let schema = json!({
        "type": "object",
        "additionalProperties": {"type": "string"},
        "maxProperties": MAX_TAGS,
    });
    let Some(value) = section.take_as("tags", schema) else { return Ok(Vec::new()) };
    let line = value.line;
    let Some(table) = section.attempt(|_| value.section()) else { return Ok(Vec::new()) };
    let mut tags = Vec::new();
    for (key, value) in table.entries() {
        tags.extend(section.attempt(|_| tag(key, value, arguments)));
    }
    if tags.len() > MAX_TAGS {
        let what = format!("a task has at most {MAX_TAGS} tags, and `tags` has {}", tags.len());
        section.report(Problem::at(line, what).remedy("remove the tags that searches do not use"));
    }
    Ok(tags)
}

fn tag(key: String, value: Value<'_>, arguments: &[Argument]) -> Result<TagTemplate> {
    let line = value.line;
    if key.is_empty() || key.contains('=') {
        return Err(Problem::at(line, format_args!("`{key}` is not a valid name for a tag"))
            .remedy("write tags = { order = \"{order}\" }"));
    }
    Ok(TagTemplate { key, value: Word::parse(&String::read(value)?, line, arguments)? })
}
