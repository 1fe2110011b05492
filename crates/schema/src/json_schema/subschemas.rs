//! Finds the subschemas of a JSON Schema document and enforces its limits.
//!
//! All code that visits a whole document uses [`inside`], which knows the keywords that contain
//! schemas. A property named `$ref`, or an example that contains one, is data and is not visited.
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

/// Keywords whose value is an object of schemas with names that the author chooses.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// A schema directly inside another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inside<'a> {
    /// Keyword that contains the schema.
    pub(super) keyword: &'a str,
    /// Name or index under the keyword, if it contains several schemas.
    pub(super) member: Option<Member<'a>>,
    /// The schema.
    pub(super) schema: &'a Value,
}

/// The name or index of a schema under a keyword that contains several.
#[derive(Clone, Copy, Debug)]
pub(super) enum Member<'a> {
    Name(&'a str),
    Index(usize),
}

/// Returns the schemas directly inside `schema`.
pub(super) fn inside(schema: &Value) -> Vec<Inside<'_>> {
    let mut found = Vec::new();
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let keyword = keyword.as_str();
        let mut add = |member, schema| found.push(Inside { keyword, member, schema });
        match value {
            Value::Object(named) if NAMED.contains(&keyword) => {
                // A list in `dependencies` contains names, not schemas.
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

/// Returns the JSON pointer of a schema `inside` the one at `parent`.
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

/// The result of [`survey`] for a document within the limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survey {
    /// Dialect of the document.
    pub(super) dialect: Dialect,
    /// Whether all `#/…` references have the same base, because no schema has an `$id`.
    pub(super) one_base: bool,
}

/// Checks the size, the dialect and the references of a document in one pass.
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
