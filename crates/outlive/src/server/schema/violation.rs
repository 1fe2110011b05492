//! What is wrong with a value, in words that a model can act on.
//!
//! Made from the errors of the `jsonschema` crate, which describe the schema's view, and from
//! those of `serde`, which describe the type's.

use std::fmt::{self, Write};

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

use super::{
    alternatives::{Reason, lacks},
    locate,
};

/// How much of an offending value or of a list a message repeats. Enough to recognise it, too
/// little to send somebody's file back to them.
const MAX_QUOTE: usize = 80;

/// Why a value does not fit its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Where: a JSON pointer like `/regions/0/name`, empty for the whole value.
    pub(crate) path: String,
    /// What is wrong there: the end of a sentence that the place begins.
    pub(crate) message: String,
    /// What the whole value is called.
    root: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.path.is_empty() { self.root } else { &self.path };
        write!(f, "`{place}` {}", self.message)
    }
}

impl std::error::Error for Violation {}

impl Violation {
    /// What an error says; `schema` is the document it comes from.
    pub(super) fn from_error(
        root: &'static str,
        schema: &Value,
        error: &ValidationError<'_>,
    ) -> Self {
        let reason = Reason::of(error, schema);
        Self { path: reason.path.to_owned(), message: reason.message, root }
    }

    /// What is said of a text that is too long to look for the reason.
    pub(super) fn unexplained(root: &'static str, text: &str) -> Self {
        let size = text.len();
        let message =
            format!("does not fit its schema, and with {size} bytes is too long to say where");
        Self { path: String::new(), message, root }
    }

    /// What deserialising complains about when the schema has no objection.
    pub(super) fn from_serde(root: &'static str, text: &str, error: &serde_json::Error) -> Self {
        let whole = error.to_string();
        let position = format!(" at line {} column {}", error.line(), error.column());
        let said = whole.strip_suffix(&position).unwrap_or(&whole);
        let path = locate::path_at(text, error.line(), error.column());
        Self { path, message: format!("is not accepted: {}", shortened(said)), root }
    }
}

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

/// Names in backticks, as many as fit.
pub(super) fn list(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    joined(names.into_iter().map(|name| format!("`{}`", name.as_ref())))
}

/// Values as JSON, as many as fit.
pub(super) fn values<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    joined(values.map(quoted))
}

fn joined(words: impl Iterator<Item = String>) -> String {
    let mut line = String::new();
    for word in words {
        if line.is_empty() {
            line = word;
        } else if line.len() + word.len() > 4 * MAX_QUOTE {
            line.push_str(", …");
            break;
        } else {
            write!(line, ", {word}").expect("writing to a String cannot fail");
        }
    }
    line
}

/// A value as JSON, shortened.
pub(super) fn quoted(value: &Value) -> String {
    shortened(&value.to_string())
}

pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTE) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
