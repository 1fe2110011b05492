//! Messages of errors of the `jsonschema` crate, in words that a model can act on.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

use super::quote::{list, quoted, shortened, values};

/// The end of a sentence whose subject is the place of the error.
pub(super) fn message(error: &ValidationError<'_>, schema: &Value) -> String {
    let value: &Value = error.instance();
    let found = quoted(value);
    match error.kind() {
        Kind::Type { kind } => format!("must be {}, not {found}", types(kind).join(" or ")),
        Kind::Required { property } => match all_missing(error, schema)[..] {
            [] => lacks(property.as_str().as_slice()),
            ref names => lacks(names),
        },
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("must not have {}{}", list(unexpected), known_properties(error, schema))
        }
        Kind::Enum { options } => {
            format!(
                "must be one of {}, not {found}",
                values(options.as_array().into_iter().flatten())
            )
        }
        Kind::Constant { expected_value } => {
            format!("must be {}, not {found}", quoted(expected_value))
        }
        Kind::Minimum { limit } => format!("must be at least {limit}, not {found}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}, not {found}"),
        Kind::Maximum { limit } => format!("must be at most {limit}, not {found}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}, not {found}"),
        Kind::MultipleOf { multiple_of } => {
            format!("must be a multiple of {multiple_of}, not {found}")
        }
        Kind::MinLength { limit } => sized("at least", *limit, "character", value),
        Kind::MaxLength { limit } => sized("at most", *limit, "character", value),
        Kind::MinItems { limit } => sized("at least", *limit, "item", value),
        Kind::MaxItems { limit } => sized("at most", *limit, "item", value),
        Kind::MinProperties { limit } => sized("at least", *limit, "member", value),
        Kind::MaxProperties { limit } => sized("at most", *limit, "member", value),
        Kind::UniqueItems => format!("must not have the same item twice, but is {found}"),
        Kind::Pattern { pattern } => format!("must match the pattern `{pattern}`, not {found}"),
        Kind::OneOfMultipleValid { .. } => {
            format!("fits more than one of its forms, and must fit only one: {found}")
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            format!("fits none of its {} forms: {found}", context.len())
        }
        // Told of the object, with the value of a member whose name is not known here.
        Kind::FalseSchema if error.schema_path().as_str().ends_with("/additionalProperties") => {
            format!("must have no members, but one is {found}")
        }
        Kind::FalseSchema => format!("must be left out, but is {found}"),
        Kind::Not { .. } => format!("is a value that is ruled out: {found}"),
        _ => format!("is not accepted: {}", shortened(&error.to_string())),
    }
}

/// "lacks the required …"
pub(super) fn lacks(names: &[&str]) -> String {
    let noun = if names.len() == 1 { "property" } else { "properties" };
    format!("lacks the required {noun} {}", list(names))
}

/// Types in words, with their articles.
pub(super) fn types(kind: &TypeKind) -> Vec<String> {
    let article = |name: &'static str| match name {
        "null" => "null".to_owned(),
        "integer" | "array" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    };
    match kind {
        TypeKind::Single(kind) => vec![article(kind.as_str())],
        TypeKind::Multiple(kinds) => kinds.iter().map(|kind| article(kind.as_str())).collect(),
    }
}

fn sized(side: &str, limit: u64, unit: &str, value: &Value) -> String {
    let size = match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    let plural = if limit == 1 { "" } else { "s" };
    format!("must have {side} {limit} {unit}{plural}, but has {size}: {}", quoted(value))
}

/// The required members that an object lacks: all at once, so that they need not be found out one
/// after the other.
fn all_missing<'s>(error: &ValidationError<'_>, schema: &'s Value) -> Vec<&'s str> {
    let required = refusing(error, schema).and_then(|schema| schema.get("required")?.as_array());
    required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| error.instance().get(name).is_none())
        .collect()
}

/// The schema that an error comes from.
fn refusing<'s>(error: &ValidationError<'_>, schema: &'s Value) -> Option<&'s Value> {
    let (parent, _) = error.schema_path().as_str().rsplit_once('/')?;
    schema.pointer(parent)
}

/// The names that the refusing schema does know, as a hint for a misspelt one.
fn known_properties(error: &ValidationError<'_>, schema: &Value) -> String {
    let refusing = refusing(error, schema);
    match refusing.and_then(|schema| schema.get("properties")?.as_object()) {
        Some(known) if !known.is_empty() => format!("; it knows {}", list(known.keys())),
        _ => String::new(),
    }
}
