//! Support for the handler macros: decides by type whether a parameter is an extractor or an
//! argument.
//!
//! A macro sees names but not types, so it emits code that lets the compiler decide. For an
//! extractor, [`ExtractorProbe::IS_EXTRACTOR`] is the inherent constant; for other types it is the
//! constant of [`NotExtractor`].

use std::{borrow::Cow, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, Visitor},
};
use serde_json::{Map, Value};

use crate::server::extract::{
    cx::Cx,
    extractor::{Extract, Rejection},
};

/// Key that marks the schema of a parameter that is not an argument.
const MARK: &str = "x-outlive-extractor";

/// Probe that tests whether a type is an extractor.
#[derive(Debug)]
pub struct ExtractorProbe<T>(PhantomData<T>);

impl<T: Extract> ExtractorProbe<T> {
    /// True for extractors. The compiler prefers this inherent constant to the one of
    /// [`NotExtractor`].
    pub const IS_EXTRACTOR: bool = true;
}

/// Fallback for types that are not extractors.
pub trait NotExtractor {
    /// False for types that are not extractors.
    const IS_EXTRACTOR: bool = false;
}

impl<T> NotExtractor for ExtractorProbe<T> {}

/// Type-level result of the probe.
#[derive(Debug)]
pub struct Choice<const IS_EXTRACTOR: bool>;

/// Types of a parameter, selected by the result of the probe.
pub trait Choose<T> {
    /// Type of the field in the arguments struct.
    type Field;
    /// Extractor of the parameter.
    type Extracted: Extract;

    /// Returns the value of the parameter.
    fn take(field: Self::Field, extracted: Self::Extracted) -> T;
}

impl<T: Extract> Choose<T> for Choice<true> {
    type Field = NoArgument;
    type Extracted = T;

    fn take(_: NoArgument, extracted: T) -> T {
        extracted
    }
}

impl<T> Choose<T> for Choice<false> {
    type Field = T;
    type Extracted = Nothing;

    fn take(field: T, _: Nothing) -> T {
        field
    }
}

/// An extractor without a value, for parameters that are arguments.
#[derive(Debug)]
pub struct Nothing;

impl Extract for Nothing {
    fn extract(_: &Cx) -> Result<Self, Rejection> {
        Ok(Self)
    }
}

/// Field of a parameter that is an extractor. The schema omits the field, and clients do not send
/// it.
#[derive(Debug)]
pub struct NoArgument;

impl<'de> Deserialize<'de> for NoArgument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Decoded as an option, because serde lets an option field be missing.
        deserializer.deserialize_option(Ignore)
    }
}

struct Ignore;

impl<'de> Visitor<'de> for Ignore {
    type Value = NoArgument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_none<E>(self) -> Result<NoArgument, E> {
        Ok(NoArgument)
    }

    fn visit_unit<E>(self) -> Result<NoArgument, E> {
        Ok(NoArgument)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<NoArgument, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| NoArgument)
    }
}

impl JsonSchema for NoArgument {
    fn schema_name() -> Cow<'static, str> {
        "NoArgument".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ MARK: true })
    }
}

/// Removes extractor parameters from the schema of the arguments.
pub fn without_extractors(schema: &mut Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    let is_argument = |schema: &Value| schema.get(MARK).is_none();
    let (kept, left_out): (Vec<_>, Vec<_>) =
        std::mem::take(properties).into_iter().partition(|(_, property)| is_argument(property));
    *properties = kept.into_iter().collect::<Map<_, _>>();
    let is_empty = properties.is_empty();
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !left_out.iter().any(|(left_out, _)| name == left_out));
        if required.is_empty() {
            schema.remove("required");
        }
    }
    if is_empty {
        // The schema of a handler without arguments.
        schema.remove("properties");
        schema.insert("additionalProperties".to_owned(), false.into());
    }
}
