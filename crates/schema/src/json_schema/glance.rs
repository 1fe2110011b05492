//! Schemas that are valid at a glance.
//!
//! To find out whether any schema is one, `jsonschema` compiles the schema of schemas first, which takes
//! longer than everything else that a small server does before it answers. What `schemars` writes for
//! ordinary types has few keywords, and whether those are used well is quickly seen. Whatever is unusual
//! counts as "no", which costs only time.
//! Spec: <https://json-schema.org/draft/2020-12/schema>

use std::collections::HashSet;

use serde_json::Value;

use super::subschemas::inside;

/// Whether a document of 2020-12, whose references stay inside of it, certainly is a valid schema.
pub(super) fn is_valid_at_a_glance(document: &Value) -> bool {
    let mut open = vec![document];
    while let Some(schema) = open.pop() {
        let mut keywords = schema.as_object().into_iter().flatten();
        if !keywords.all(|(keyword, value)| is_well_used(document, keyword, value)) {
            return false;
        }
        open.extend(inside(schema).iter().map(|inside| inside.schema));
    }
    is_one(document)
}

/// Whether a keyword has the kind of value that it must have. The schemas in it are looked at by
/// themselves.
fn is_well_used(document: &Value, keyword: &str, value: &Value) -> bool {
    match keyword {
        "const" | "default" => true,
        "enum" | "examples" => value.is_array(),
        "$schema" => value == "https://json-schema.org/draft/2020-12/schema",
        "$comment" | "description" | "format" | "title" => value.is_string(),
        "deprecated" | "readOnly" | "uniqueItems" | "writeOnly" => value.is_boolean(),
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" => value.is_number(),
        "maxItems" | "maxLength" | "maxProperties" | "minItems" | "minLength" | "minProperties" => {
            value.is_u64()
        }
        "type" => match value {
            Value::Array(kinds) => {
                !kinds.is_empty() && kinds.iter().all(is_kind) && are_distinct_strings(kinds)
            }
            kind => is_kind(kind),
        },
        "required" => value.as_array().is_some_and(|names| are_distinct_strings(names)),
        "$defs" | "properties" => value.as_object().is_some_and(|all| all.values().all(is_one)),
        "additionalProperties" | "items" => is_one(value),
        "anyOf" | "oneOf" | "prefixItems" => {
            value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_one))
        }
        "$ref" => value.as_str().is_some_and(|target| is_there(document, target)),
        _ => keyword.starts_with("x-"),
    }
}

/// Whether something may be a schema.
fn is_one(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

fn is_kind(value: &Value) -> bool {
    let kinds = ["array", "boolean", "integer", "null", "number", "object", "string"];
    value.as_str().is_some_and(|kind| kinds.contains(&kind))
}

fn are_distinct_strings(values: &[Value]) -> bool {
    let mut seen = HashSet::new();
    values.iter().all(|value| value.as_str().is_some_and(|text| seen.insert(text)))
}

/// Whether a reference is to the document, or to a definition in it.
fn is_there(document: &Value, target: &str) -> bool {
    let Some(name) = target.strip_prefix("#/$defs/") else { return target == "#" };
    // Names with other signs are written in another way than they are called.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let definitions = document.get("$defs");
    name.bytes().all(is_plain) && definitions.is_some_and(|all| all.get(name).is_some())
}
