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

use super::locate;

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
    /// What the first of `errors` says; `schema` is the document they come from.
    pub(super) fn from_errors(
        root: &'static str,
        schema: &Value,
        errors: &[ValidationError<'_>],
    ) -> Option<Self> {
        let error = errors.first()?;
        let missing = missing(errors, error);
        let (error, message) = match missing.len() {
            0 | 1 => most_telling(error, schema),
            _ => (error, format!("lacks the required properties {}", list(missing))),
        };
        Some(Self { path: error.instance_path().as_str().to_owned(), message, root })
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

/// The required properties that the object of `first` lacks, so that a caller can add them all in
/// one go instead of being told of one after the other.
fn missing<'e>(errors: &'e [ValidationError<'_>], first: &ValidationError<'_>) -> Vec<&'e str> {
    errors
        .iter()
        .filter(|error| error.instance_path() == first.instance_path())
        .filter(|_| matches!(first.kind(), Kind::Required { .. }))
        .filter_map(|error| match error.kind() {
            Kind::Required { property } => property.as_str(),
            _ => None,
        })
        .collect()
}

/// The error to show for `error`, and its message. An error of `anyOf` and `oneOf` says nothing
/// by itself; if the value is clearly meant for one branch, that branch has the reason.
fn most_telling<'e, 'i>(
    error: &'e ValidationError<'i>,
    schema: &Value,
) -> (&'e ValidationError<'i>, String)
where
    'static: 'i,
{
    let mut error = error;
    loop {
        let (Kind::AnyOf { context } | Kind::OneOfNotValid { context }) = error.kind() else {
            return (error, message(error, schema));
        };
        let here = error.instance_path().as_str();
        let mut meant = context.iter().filter(|branch| !branch.iter().any(|e| excludes(e, here)));
        match (meant.next().and_then(|branch| branch.first()), meant.next()) {
            (Some(reason), None) => error = reason,
            _ => return (error, no_branch(error, context, schema)),
        }
    }
}

/// Whether an error says that the value was never meant for this branch: it is of another kind,
/// or its tag names another variant.
fn excludes(error: &ValidationError<'_>, here: &str) -> bool {
    match error.kind() {
        Kind::Type { .. } | Kind::Required { .. } => error.instance_path().as_str() == here,
        Kind::Constant { .. } | Kind::Enum { .. } => true,
        _ => false,
    }
}

/// The message for a value that is not clearly meant for any branch.
fn no_branch(
    error: &ValidationError<'_>,
    context: &[Vec<ValidationError<'static>>],
    schema: &Value,
) -> String {
    let found = quoted(error.instance());
    let literals: Option<Vec<&Value>> =
        context.iter().try_fold(Vec::new(), |mut all, branch| match branch[..] {
            [ref only] if only.instance_path() == error.instance_path() => match only.kind() {
                Kind::Constant { expected_value } => {
                    all.push(&**expected_value);
                    Some(all)
                }
                Kind::Enum { options } => {
                    all.extend(options.as_array()?);
                    Some(all)
                }
                _ => None,
            },
            _ => None,
        });
    if let Some(literals) = literals {
        return format!("must be one of {}, not {found}", values(literals.into_iter()));
    }
    let mut reasons: Vec<String> = Vec::new();
    for reason in context.iter().filter_map(|branch| branch.first()) {
        let inner = reason.instance_path().as_str();
        let inner = inner.strip_prefix(error.instance_path().as_str()).unwrap_or(inner);
        let place = if inner.is_empty() { String::new() } else { format!("`{inner}` ") };
        reasons.push(format!("{place}{}", shortened(&message(reason, schema))));
    }
    format!("fits none of its {} forms: {}", context.len(), reasons.join("; or "))
}

/// The end of a sentence whose subject is the place of the error.
fn message(error: &ValidationError<'_>, schema: &Value) -> String {
    let value: &Value = error.instance();
    let found = quoted(value);
    match error.kind() {
        Kind::Type { kind } => format!("must be {}, not {found}", types(kind)),
        Kind::Required { property } => {
            format!("lacks the required property {}", list(property.as_str()))
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("must not have {}{}", list(unexpected), known_properties(error, schema))
        }
        Kind::Enum { options } => {
            format!("must be one of {}, not {found}", values(options.as_array().into_iter().flatten()))
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
        Kind::FalseSchema => format!("must be left out, but is {found}"),
        Kind::Not { .. } => format!("is a value that is ruled out: {found}"),
        _ => format!("is not accepted: {}", shortened(&error.to_string())),
    }
}

fn types(kind: &TypeKind) -> String {
    let article = |name: &'static str| match name {
        "null" => "null".to_owned(),
        "integer" | "array" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    };
    match kind {
        TypeKind::Single(kind) => article(kind.as_str()),
        TypeKind::Multiple(kinds) => {
            kinds.iter().map(|kind| article(kind.as_str())).collect::<Vec<_>>().join(" or ")
        }
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

/// The names that the refusing schema does know, as a hint for a misspelt one.
fn known_properties(error: &ValidationError<'_>, schema: &Value) -> String {
    let (parent, _) = error.schema_path().as_str().rsplit_once('/').unwrap_or_default();
    let known = schema.pointer(parent).and_then(|schema| schema.get("properties")?.as_object());
    match known {
        Some(known) if !known.is_empty() => format!("; it knows {}", list(known.keys())),
        _ => String::new(),
    }
}

/// Names in backticks, as many as fit.
fn list(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    joined(names.into_iter().map(|name| format!("`{}`", name.as_ref())))
}

/// Values as JSON, as many as fit.
fn values<'a>(values: impl Iterator<Item = &'a Value>) -> String {
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
fn quoted(value: &Value) -> String {
    shortened(&value.to_string())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTE) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
