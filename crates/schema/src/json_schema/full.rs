//! The documents that only the `jsonschema` crate covers.

use jsonschema::{
    Draft, ValidationError, ValidationOptions, Validator,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::{Map, Value};

use super::{
    dialect::Dialect,
    error::SchemaError,
    failure::{Failure, Rule},
    supported::Unsupported,
};

/// A document with keywords or a dialect that our own validator does not cover.
#[derive(Debug)]
pub(super) struct FullSchema(Validator);

/// A `pattern`, in exactly the dialect of regular expressions of the full check.
#[derive(Debug)]
pub(super) struct Pattern(Validator);

impl FullSchema {
    /// Compiles a document.
    pub(super) fn build(
        document: &Value,
        dialect: Dialect,
        _: Unsupported,
        _: &'static str,
    ) -> Result<Self, SchemaError> {
        let built = options(dialect).build(document).map_err(|error| SchemaError::Invalid {
            at: error.instance_path().as_str().to_owned(),
            reason: error.to_string(),
        });
        built.map(Self)
    }

    /// Whether a value fits.
    pub(super) fn fits(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// Passes the first failure of a value on, if there is one.
    pub(super) fn explain<T>(
        &self,
        document: &Value,
        value: &Value,
        explained: impl FnOnce(&Failure<'_>) -> T,
    ) -> Option<T> {
        let error = self.0.validate(value).err()?;
        Some(explained(&failure(&error, document)))
    }
}

impl Pattern {
    pub(super) fn new(pattern: &Value) -> Option<Self> {
        let alone = Value::Object(Map::from_iter([("pattern".to_owned(), pattern.clone())]));
        options(Dialect::V2020_12).build(&alone).ok().map(Self)
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.0.is_valid(&text.into())
    }
}

/// How every validator is built. Nothing is fetched, whatever features of `jsonschema` other
/// crates switch on; formats are annotations in all dialects, as they are by default in 2020-12.
pub(super) fn options(dialect: Dialect) -> ValidationOptions<'static> {
    let draft = match dialect {
        Dialect::V2020_12 => Draft::Draft202012,
        Dialect::V2019_09 => Draft::Draft201909,
        Dialect::Draft7 => Draft::Draft7,
    };
    jsonschema::options().with_draft(draft).offline().should_validate_formats(false)
}

/// An error of `jsonschema` as a failure; `document` is the schema that it comes from.
fn failure<'e>(error: &'e ValidationError<'_>, document: &'e Value) -> Failure<'e> {
    let path = error.instance_path().as_str().to_owned();
    Failure { path, value: error.instance(), rule: rule(error, document) }
}

fn rule<'e>(error: &'e ValidationError<'_>, document: &'e Value) -> Rule<'e> {
    let bound = |relation, limit: &Value| Rule::Bound { relation, limit: limit.to_string() };
    let size = |side, limit: &u64, unit| Rule::Size { side, limit: *limit, unit };
    match error.kind() {
        Kind::Type { kind } => Rule::Type(match kind {
            TypeKind::Single(kind) => vec![kind.as_str()],
            TypeKind::Multiple(kinds) => kinds.iter().map(|kind| kind.as_str()).collect(),
        }),
        Kind::Required { property } => Rule::Required(match all_missing(error, document) {
            missing if missing.is_empty() => property.as_str().into_iter().collect(),
            missing => missing,
        }),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names = unexpected.iter().map(|name| &**name).collect();
            Rule::Unexpected { names, known: known_properties(error, document) }
        }
        Kind::Enum { options } => Rule::Enum(options.as_array().into_iter().flatten().collect()),
        Kind::Constant { expected_value } => Rule::Const(expected_value),
        Kind::Minimum { limit } => bound("at least", limit),
        Kind::ExclusiveMinimum { limit } => bound("more than", limit),
        Kind::Maximum { limit } => bound("at most", limit),
        Kind::ExclusiveMaximum { limit } => bound("less than", limit),
        Kind::MinLength { limit } => size("at least", limit, "character"),
        Kind::MaxLength { limit } => size("at most", limit, "character"),
        Kind::MinItems { limit } => size("at least", limit, "item"),
        Kind::MaxItems { limit } => size("at most", limit, "item"),
        Kind::MinProperties { limit } => size("at least", limit, "member"),
        Kind::MaxProperties { limit } => size("at most", limit, "member"),
        Kind::UniqueItems => Rule::UniqueItems,
        Kind::Pattern { pattern } => Rule::Pattern(pattern),
        Kind::OneOfMultipleValid { .. } => Rule::SeveralFit,
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let branch = |errors: &'e Vec<ValidationError<'static>>| {
                errors.iter().map(|error| failure(error, document)).collect()
            };
            Rule::NoneFits(context.iter().map(branch).collect())
        }
        // Told of the object, with the value of a member whose name is not known here.
        Kind::FalseSchema if error.schema_path().as_str().ends_with("/additionalProperties") => {
            Rule::NoMembers
        }
        Kind::FalseSchema => Rule::Nothing,
        Kind::Not { .. } => Rule::Not,
        Kind::MultipleOf { multiple_of } => {
            Rule::Bound { relation: "a multiple of", limit: multiple_of.to_string() }
        }
        _ => Rule::Other(error.to_string()),
    }
}

/// The required members that an object lacks: all at once, so that they need not be found out one
/// after the other.
fn all_missing<'e>(error: &'e ValidationError<'_>, document: &'e Value) -> Vec<&'e str> {
    let required = refusing(error, document).and_then(|schema| schema.get("required")?.as_array());
    required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| error.instance().get(name).is_none())
        .collect()
}

/// The schema that an error comes from.
fn refusing<'e>(error: &ValidationError<'_>, document: &'e Value) -> Option<&'e Value> {
    let (parent, _) = error.schema_path().as_str().rsplit_once('/')?;
    document.pointer(parent)
}

/// The names that the refusing schema does know, as a hint for a misspelt one.
fn known_properties<'e>(error: &ValidationError<'_>, document: &'e Value) -> Vec<&'e str> {
    let known = refusing(error, document).and_then(|schema| schema.get("properties")?.as_object());
    known.into_iter().flat_map(|known| known.keys().map(String::as_str)).collect()
}
