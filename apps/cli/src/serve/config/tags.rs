//! `tags`: names of tasks by which people find them, made of the arguments of a call.

use outlive::store::MAX_TAGS;
use serde_json::{json, value::RawValue};

use super::{
    argument::Argument,
    reader::{Problem, Read as _, Result, Section, Value},
    template::{Given, Word, placeholders},
};

/// Tags of the tasks of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tags {
    arguments: Vec<Argument>,
    templates: Vec<TagTemplate>,
}

/// A tag with placeholders in its value.
#[derive(Clone, Debug, PartialEq)]
struct TagTemplate {
    key: String,
    value: Word,
}

impl Tags {
    pub(crate) fn is_empty(&self) -> bool {
        self.templates.is_empty()
    }

    /// Returns the tags of a task with the arguments of a caller. A tag that needs an absent argument
    /// is left out.
    pub(crate) fn fill(&self, arguments: &RawValue) -> Vec<String> {
        let Ok(values) = serde_json::from_str(arguments.get()) else { return Vec::new() };
        let given = Given::new(&self.arguments, values);
        let tag = |TagTemplate { key, value }: &TagTemplate| {
            let words =
                value.fill(&self.arguments, &given).ok().filter(|words| !words.is_empty())?;
            Some(format!("{key}={}", words.join(",")))
        };
        self.templates.iter().filter_map(tag).collect()
    }
}

/// Reads `tags`, and reports mistakes. `arguments` are those of the tool; `None` if only its upstream
/// knows them.
pub(super) fn read(section: &mut Section<'_>, arguments: Option<&[Argument]>) -> Result<Tags> {
    let schema = json!({
        "type": "object",
        "additionalProperties": {"type": "string"},
        "maxProperties": MAX_TAGS,
    });
    let mut tags = Tags { arguments: arguments.unwrap_or_default().to_vec(), ..Tags::default() };
    let Some(value) = section.take_as("tags", schema) else { return Ok(tags) };
    let line = value.line;
    let Some(table) = section.attempt(|_| value.section()) else { return Ok(tags) };
    for (key, value) in table.entries() {
        let template = section.attempt(|_| {
            let text = TagText::read(key, value)?;
            if arguments.is_none() {
                tags.arguments.extend(placeholders(&text.value).map(Argument::of_upstream));
            }
            text.template(&tags.arguments)
        });
        tags.templates.extend(template);
    }
    if tags.templates.len() > MAX_TAGS {
        let count = tags.templates.len();
        let what = format!("a task has at most {MAX_TAGS} tags, and `tags` has {count}");
        section.report(Problem::at(line, what).remedy("remove the tags that searches do not use"));
    }
    Ok(tags)
}

/// A tag as written.
struct TagText {
    key: String,
    value: String,
    line: usize,
}

impl TagText {
    fn read(key: String, value: Value<'_>) -> Result<Self> {
        let line = value.line;
        if key.is_empty() || key.contains('=') {
            return Err(Problem::at(line, format_args!("`{key}` is not a valid name for a tag"))
                .remedy("write tags = { order = \"{order}\" }"));
        }
        Ok(Self { key, value: String::read(value)?, line })
    }

    fn template(self, arguments: &[Argument]) -> Result<TagTemplate> {
        Ok(TagTemplate { key: self.key, value: Word::parse(&self.value, self.line, arguments)? })
    }
}
