//! Errors for invalid or unsupported schemas. They occur only while a server is built.

use std::{error, fmt};

use super::limits::{MAX_DEPTH, MAX_SUBSCHEMAS};

/// The reason why a schema cannot be used. `at` is a JSON pointer into the schema.
#[derive(Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the doc of each variant covers its fields")]
pub enum SchemaError {
    /// The text is not valid JSON.
    NotJson(serde_json::Error),
    /// `$schema` names an unsupported dialect.
    Dialect { at: String, found: String },
    /// A reference points outside the document.
    Outside { at: String, target: String },
    /// The nesting of schemas is too deep.
    TooDeep { at: String },
    /// The document has too many schemas.
    TooMany,
    /// The input schema of a tool allows values that are not objects.
    NotAnObject { name: String, found: String },
    /// The schema needs the feature `json-schema`. `role` is `input` or `output`.
    Unsupported { role: &'static str, at: String, what: String },
    /// The schema violates the rules of its dialect.
    Invalid { at: String, reason: String },
    /// An `x-mcp-header` annotation is invalid.
    Header { at: String, reason: String },
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(error) => write!(f, "the schema is not valid JSON: {error}"),
            Self::Dialect { at, found } => write!(
                f,
                "unknown dialect `{found}` in `$schema` at `#{at}`; use 2020-12, 2019-09 or \
                 draft-07, or leave `$schema` out for 2020-12"
            ),
            Self::Outside { at, target } => write!(
                f,
                "the reference `{target}` at `#{at}` points outside the schema, and references are never \
                 fetched; copy its target into `$defs` and write `#/$defs/<name>`"
            ),
            Self::TooDeep { at } => write!(
                f,
                "the schema is nested deeper than {MAX_DEPTH} levels at `#{at}`; move inner parts \
                 into `$defs`"
            ),
            Self::TooMany => write!(
                f,
                "the schema has more than {MAX_SUBSCHEMAS} subschemas; allow more values and \
                 check it in the handler"
            ),
            Self::NotAnObject { name, found } => write!(
                f,
                "the input `{name}` can be {found}, but the arguments of a tool are always an \
                 object; make it a field of a struct"
            ),
            Self::Unsupported { role, at, what } => {
                write!(f, "{role} schema uses {what} at `#{at}`; enable the feature `json-schema`")
            }
            Self::Invalid { at, reason } => {
                write!(f, "the schema is invalid at `#{at}`: {reason}")
            }
            Self::Header { at, reason } => {
                write!(f, "the `x-mcp-header` annotation at `#{at}` {reason}")
            }
        }
    }
}

impl error::Error for SchemaError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::NotJson(error) => Some(error),
            _ => None,
        }
    }
}
