//! Determines whether the built-in validator covers a document: it must use only the keywords that
//! `schemars` writes, with valid values.
//!
//! Any other document needs the feature `json-schema`, so an unknown keyword is never ignored.
//! Spec: <https://json-schema.org/draft/2020-12/schema>

use std::{
    collections::{HashMap, HashSet},
    ptr,
};

use serde_json::{Map, Value};

use super::{
    dialect::Dialect,
    number::Number,
    subschemas::{Survey, inside, pointer_to, push_step},
};

/// Patterns of `patternProperties` that `schemars` writes for maps with integer keys.
pub(super) const INTEGER_NAMES: [&str; 2] = [r"^\d+$", r"^-?\d+$"];

/// Maximum number of schemas that apply to one value through references and nesting. Bounds the
/// stack of the validator; generated schemas need about four.
const MAX_IN_PLACE: usize = 16;

/// The reason why the validator does not cover a document.
#[derive(Debug)]
pub(super) enum Unsupported {
    /// The document uses an unknown keyword. `at` points to the schema.
    Keyword { at: String, what: String },
    /// A keyword has an invalid value. `at` points to the keyword.
    Misuse { at: String, reason: String },
}

/// The use of a keyword.
enum Use {
    Well,
    /// The value is invalid. Contains a description of the valid values.
    Badly(&'static str),
    /// The keyword is unknown.
    Unknown,
}

/// Checks that the validator covers a surveyed document.
pub(super) fn check(document: &Value, survey: Survey) -> Result<(), Unsupported> {
    if survey.dialect != Dialect::V2020_12 {
        let what = format!("the dialect {}", survey.dialect.name());
        return Err(Unsupported::Keyword { at: String::new(), what });
    }
    let mut open = vec![(String::new(), document)];
    let mut places = HashMap::new();
    while let Some((at, schema)) = open.pop() {
        open.extend(inside(schema).iter().map(|inner| (pointer_to(&at, inner), inner.schema)));
        places.insert(ptr::from_ref(schema), (at, schema));
    }
    for (at, schema) in places.values() {
        check_schema(at, schema, document, |target| places.contains_key(&ptr::from_ref(target)))?;
    }
    match circle(document, places.values().map(|(_, schema)| *schema).collect()) {
        None => Ok(()),
        Some(schema) => {
            let at =
                places.get(&ptr::from_ref(schema)).map_or_else(String::new, |(at, _)| at.clone());
            Err(Unsupported::Keyword { at, what: "a cycle or a long chain of `$ref`".to_owned() })
        }
    }
}

fn check_schema(
    at: &str,
    schema: &Value,
    document: &Value,
    is_schema: impl Fn(&Value) -> bool,
) -> Result<(), Unsupported> {
    let misuse = |at: String, reason: String| Err(Unsupported::Misuse { at, reason });
    let keywords = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(keywords) => keywords,
        other => return misuse(at.to_owned(), format!("a schema must be an object, not {other}")),
    };
    for (keyword, value) in keywords {
        let used = match keyword.as_str() {
            "$ref" => match value.as_str() {
                Some(target) if !is_plain_pointer(target) => Use::Unknown,
                target => match target.and_then(|target| resolve(document, target)) {
                    Some(target) if is_schema(target) => Use::Well,
                    _ => Use::Badly("a reference to a schema of this document"),
                },
            },
            keyword => how_used(keyword, value),
        };
        match used {
            Use::Well => {}
            Use::Badly(needed) => {
                let mut at = at.to_owned();
                push_step(&mut at, keyword);
                return misuse(at, format!("`{keyword}` must be {needed}, not {value}"));
            }
            Use::Unknown => {
                let (at, what) = (at.to_owned(), format!("`{keyword}`"));
                return Err(Unsupported::Keyword { at, what });
            }
        }
    }
    Ok(())
}

/// Classifies the use of a keyword. Does not visit the schemas in its value.
fn how_used(keyword: &str, value: &Value) -> Use {
    let needs = |well: bool, needed| if well { Use::Well } else { Use::Badly(needed) };
    match keyword {
        "const" | "default" => Use::Well,
        "enum" | "examples" => needs(value.is_array(), "an array"),
        "$schema" => match Dialect::of("", &Value::from_iter([("$schema", value.clone())])) {
            Ok(Dialect::V2020_12) => Use::Well,
            _ => Use::Unknown,
        },
        "$comment" | "contentEncoding" | "contentMediaType" | "description" | "format"
        | "title" => needs(value.is_string(), "a string"),
        "deprecated" | "readOnly" | "uniqueItems" | "writeOnly" => {
            needs(value.is_boolean(), "true or false")
        }
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" => {
            needs(value.is_number(), "a number")
        }
        "multipleOf" => match value.as_number().and_then(Number::of) {
            Some(step) if step.compare(Number::Integer(0)).is_le() => {
                Use::Badly("a number above 0")
            }
            Some(step) if step.whole().is_some() => Use::Well,
            Some(_) => Use::Unknown,
            None => Use::Badly("a number"),
        },
        "maxItems" | "maxLength" | "maxProperties" | "minItems" | "minLength" | "minProperties" => {
            needs(value.is_u64(), "an integer of at least 0")
        }
        "type" => match value {
            Value::Array(kinds) => needs(
                !kinds.is_empty() && kinds.iter().all(is_kind) && are_distinct_strings(kinds),
                "a list of different types",
            ),
            kind => needs(is_kind(kind), "a JSON type"),
        },
        "required" => needs(
            value.as_array().is_some_and(|names| are_distinct_strings(names)),
            "a list of different names",
        ),
        "$defs" | "definitions" | "properties" => {
            needs(value.as_object().is_some_and(are_schemas), "an object of schemas")
        }
        "patternProperties" => match value.as_object() {
            None => Use::Badly("an object of schemas"),
            Some(patterns) if !are_schemas(patterns) => Use::Badly("an object of schemas"),
            Some(patterns) if patterns.keys().all(|name| is_integer_names(name)) => Use::Well,
            Some(_) => Use::Unknown,
        },
        "additionalProperties" | "contentSchema" | "items" | "not" | "unevaluatedProperties" => {
            needs(value.is_object() || value.is_boolean(), "a schema")
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
            needs(value.as_array().is_some_and(|all| !all.is_empty()), "a list of schemas")
        }
        keyword if keyword.starts_with("x-") => Use::Well,
        _ => Use::Unknown,
    }
}

fn are_schemas(named: &Map<String, Value>) -> bool {
    named.values().all(|schema| schema.is_object() || schema.is_boolean())
}

fn is_integer_names(pattern: &str) -> bool {
    INTEGER_NAMES.contains(&pattern)
}

fn is_kind(value: &Value) -> bool {
    let kinds = ["array", "boolean", "integer", "null", "number", "object", "string"];
    value.as_str().is_some_and(|kind| kinds.contains(&kind))
}

fn are_distinct_strings(values: &[Value]) -> bool {
    let mut seen = HashSet::new();
    values.iter().all(|value| value.as_str().is_some_and(|text| seen.insert(text)))
}

/// Returns the target of a reference that is a plain JSON pointer.
pub(super) fn resolve<'a>(document: &'a Value, target: &str) -> Option<&'a Value> {
    let pointer = target.strip_prefix('#').filter(|_| is_plain_pointer(target))?;
    document.pointer(pointer)
}

/// Returns whether a reference is a JSON pointer without percent-encoding.
fn is_plain_pointer(target: &str) -> bool {
    (target == "#" || target.starts_with("#/")) && !target.contains('%')
}

/// Returns a schema at the end of a chain that is too long, and so possibly a cycle. The schemas of
/// a chain all apply to the same value.
fn circle<'a>(document: &'a Value, schemas: Vec<&'a Value>) -> Option<&'a Value> {
    let mut reached = schemas;
    for _ in 0..MAX_IN_PLACE {
        let mut seen = HashSet::new();
        reached = reached
            .into_iter()
            .flat_map(|schema| in_place(document, schema))
            .filter(|schema| seen.insert(ptr::from_ref(*schema)))
            .collect();
    }
    reached.into_iter().next()
}

/// Returns the schemas that apply to the same value as `schema`.
fn in_place<'a>(document: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let target = schema.get("$ref").and_then(Value::as_str);
    let target = target.and_then(|target| resolve(document, target));
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|name| schema.get(name));
    let branches = lists.filter_map(Value::as_array).flatten();
    target.into_iter().chain(schema.get("not")).chain(branches).collect()
}
