//! Where the subschemas of a JSON Schema document are, and the limits a document must keep.
//!
//! Everything that looks at a whole document goes through [`inside`], which knows the keywords that
//! hold schemas. A property that happens to be called `$ref`, or an example that contains one, is
//! data and is not looked at.
//! Spec: <https://json-schema.org/draft/2020-12/json-schema-core#section-10>

use std::fmt::Write;

use serde_json::Value;

use super::{
    dialect::Dialect,
    error::SchemaError,
    limits::{MAX_DEPTH, MAX_SUBSCHEMAS},
};

/// Keywords whose value is a schema.
const ONE: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value is a list of schemas. `items` is one in drafts before 2020-12.
const LIST: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];

/// Keywords whose value is an object of schemas under names of the author's choice.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// One schema directly inside another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inside<'a> {
    /// The keyword it stands under.
    pub(super) keyword: &'a str,
    /// Its name or number under the keyword, if the keyword holds several.
    pub(super) member: Option<Member<'a>>,
    /// The schema.
    pub(super) schema: &'a Value,
}

/// The place of a schema under a keyword that holds several.
#[derive(Clone, Copy, Debug)]
pub(super) enum Member<'a> {
    Name(&'a str),
    Index(usize),
}

/// The schemas that stand directly inside `schema`.
pub(super) fn inside(schema: &Value) -> Vec<Inside<'_>> {
    let mut found = Vec::new();
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let keyword = keyword.as_str();
        let mut add = |member, schema| found.push(Inside { keyword, member, schema });
        match value {
            Value::Object(named) if NAMED.contains(&keyword) => {
                // In `dependencies` a list of names may stand in place of a schema.
                for (name, schema) in named.iter().filter(|(_, schema)| !schema.is_array()) {
                    add(Some(Member::Name(name)), schema);
                }
            }
            Value::Array(list) if LIST.contains(&keyword) => {
                for (index, schema) in list.iter().enumerate() {
                    add(Some(Member::Index(index)), schema);
                }
            }
            Value::Object(_) | Value::Bool(_) if ONE.contains(&keyword) => add(None, value),
            _ => {}
        }
    }
    found
}

/// Appends one step to a JSON pointer.
pub(super) fn push_step(pointer: &mut String, step: &str) {
    pointer.push('/');
    for character in step.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// The JSON pointer of a schema `inside` the one at `parent`.
pub(super) fn pointer_to(parent: &str, inside: &Inside<'_>) -> String {
    let mut pointer = parent.to_owned();
    push_step(&mut pointer, inside.keyword);
    match inside.member {
        Some(Member::Name(name)) => push_step(&mut pointer, name),
        Some(Member::Index(index)) => {
            write!(pointer, "/{index}").expect("writing to a String cannot fail");
        }
        None => {}
    }
    pointer
}

/// What [`survey`] learned about a document that keeps the limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    /// The dialect it is written in.
    pub(super) dialect: Dialect,
    /// Whether a `#/…` reference means the same wherever it stands: no schema has an `$id`.
    pub(super) one_base: bool,
}

/// Reads a whole document once: its size, its dialect, and that it refers to nothing outside.
pub(super) fn survey(document: &Value) -> Result<Survey, SchemaError> {
    let mut survey = Survey { dialect: Dialect::of("", document)?, one_base: true };
    let mut count = 0;
    let mut open = vec![(String::new(), document, 1)];
    while let Some((pointer, schema, depth)) = open.pop() {
        count += 1;
        if count > MAX_SUBSCHEMAS {
            return Err(SchemaError::TooMany);
        }
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep { at: pointer });
        }
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            match schema.get(keyword).and_then(Value::as_str) {
                Some(target) if !target.starts_with('#') => {
                    return Err(SchemaError::Outside { at: pointer, target: target.to_owned() });
                }
                _ => {}
            }
        }
        Dialect::of(&pointer, schema)?;
        survey.one_base &= schema.get("$id").is_none();
        open.extend(
            inside(schema)
                .iter()
                .map(|inside| (pointer_to(&pointer, inside), inside.schema, depth + 1)),
        );
    }
    Ok(survey)
}
