//! The dialects of JSON Schema that tools may use.

use serde_json::Value;

use super::error::SchemaError;

/// A dialect of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V2020_12,
    V2019_09,
    Draft7,
}

impl Dialect {
    /// Reads the dialect that a schema declares; 2020-12 without `$schema`.
    pub(super) fn of(at: &str, schema: &Value) -> Result<Self, SchemaError> {
        let declared = match schema.get("$schema") {
            None => return Ok(Self::V2020_12),
            Some(Value::String(uri)) => uri.as_str(),
            Some(other) => {
                return Err(SchemaError::Dialect { at: at.to_owned(), found: other.to_string() });
            }
        };
        match declared.strip_suffix('#').unwrap_or(declared) {
            "https://json-schema.org/draft/2020-12/schema" => Ok(Self::V2020_12),
            "https://json-schema.org/draft/2019-09/schema" => Ok(Self::V2019_09),
            "http://json-schema.org/draft-07/schema" => Ok(Self::Draft7),
            other => Err(SchemaError::Dialect { at: at.to_owned(), found: other.to_owned() }),
        }
    }

    /// Returns the common name of the dialect.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V2020_12 => "2020-12",
            Self::V2019_09 => "2019-09",
            Self::Draft7 => "draft-07",
        }
    }
}
