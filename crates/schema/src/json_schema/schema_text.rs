//! Serializes a generated schema in a readable order.

use serde::{Serialize, Serializer};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::error::SchemaError;
use crate::field_order::ordered_properties;

/// Keywords that come first and last.
const FIRST: [&str; 7] = ["$id", "$schema", "title", "description", "type", "format", "properties"];
const LAST: [&str; 2] = ["$defs", "definitions"];

/// Keywords whose value is an object of schemas.
const NAMED: [&str; 4] = ["$defs", "definitions", "dependentSchemas", "patternProperties"];

/// Keywords whose value is data.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// Serializes a schema whose root type declares `fields` in this order.
pub(super) fn to_text(schema: &Value, fields: &[&str]) -> Result<Box<RawValue>, SchemaError> {
    to_raw_value(&Ordered { schema, fields }).map_err(SchemaError::NotJson)
}

/// A schema, or a list of schemas.
struct Ordered<'a> {
    schema: &'a Value,
    fields: &'a [&'a str],
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inner = |schema| Ordered { schema, fields: &[] };
        let keywords = match self.schema {
            Value::Array(schemas) => return serializer.collect_seq(schemas.iter().map(inner)),
            Value::Object(keywords) => keywords,
            other => return other.serialize(serializer),
        };
        let is_between = |name: &str| !FIRST.contains(&name) && !LAST.contains(&name);
        let first = FIRST.iter().filter_map(|name| keywords.get_key_value(*name));
        let between = keywords.iter().filter(|(name, _)| is_between(name));
        let last = LAST.iter().filter_map(|name| keywords.get_key_value(*name));
        serializer.collect_map(first.chain(between).chain(last).map(|(name, value)| {
            let value = match name.as_str() {
                "properties" => Part::Named(ordered_properties(keywords, self.fields)),
                name if NAMED.contains(&name) => {
                    Part::Named(value.as_object().into_iter().flatten().collect())
                }
                name if DATA.contains(&name) || name.starts_with("x-") => Part::Data(value),
                _ => Part::Schema(inner(value)),
            };
            (name, value)
        }))
    }
}

/// The value of a keyword.
enum Part<'a> {
    Data(&'a Value),
    Schema(Ordered<'a>),
    Named(Vec<(&'a String, &'a Value)>),
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Data(value) => value.serialize(serializer),
            Self::Schema(schema) => schema.serialize(serializer),
            Self::Named(schemas) => serializer.collect_map(
                schemas.iter().map(|(name, schema)| (name, Ordered { schema, fields: &[] })),
            ),
        }
    }
}
