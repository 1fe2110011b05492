//! Validation with the `jsonschema` crate, for schemas that the built-in validator does not cover.

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

/// A schema with keywords or a dialect that the built-in validator does not cover.
#[derive(Debug)]
pub(super) struct FullSchema(Validator);

/// A `pattern`, with the regular expressions of the `jsonschema` crate.
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

    /// Returns whether a value is valid.
    pub(super) fn fits(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// Calls `explained` with the first failure of a value, if it has one.
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

/// Returns the options of every validator. References are never fetched, whichever features of
/// `jsonschema` other crates enable. Formats are annotations in all dialects, as by default in
/// 2020-12.
pub(super) fn options(dialect: Dialect) -> ValidationOptions<'static> {
    let draft = match dialect {
        Dialect::V2020_12 => Draft::Draft202012,
        Dialect::V2019_09 => Draft::Draft201909,
        Dialect::Draft7 => Draft::Draft7,
    };
    jsonschema::options().with_draft(draft).offline().should_validate_formats(false)
}

/// Converts an error of `jsonschema`; `document` is its schema.
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
        // For `additionalProperties`, `jsonschema` reports the object with the value of one member.
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

/// Returns all required members that an object lacks, so that the caller can add them at once.
fn all_missing<'e>(error: &'e ValidationError<'_>, document: &'e Value) -> Vec<&'e str> {
    let required = refusing(error, document).and_then(|schema| schema.get("required")?.as_array());
    required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| error.instance().get(name).is_none())
        .collect()
}

/// Returns the schema that rejected the value.
fn refusing<'e>(error: &ValidationError<'_>, document: &'e Value) -> Option<&'e Value> {
    let (parent, _) = error.schema_path().as_str().rsplit_once('/')?;
    document.pointer(parent)
}

/// Returns the property names of the schema, as a hint for a misspelled one.
fn known_properties<'e>(error: &ValidationError<'_>, document: &'e Value) -> Vec<&'e str> {
    let known = refusing(error, document).and_then(|schema| schema.get("properties")?.as_object());
    known.into_iter().flat_map(|known| known.keys().map(String::as_str)).collect()
}
