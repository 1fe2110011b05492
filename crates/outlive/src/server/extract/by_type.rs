//! Parameters of handlers that macros made, which are extractors or arguments as their type decides.
//!
//! A macro sees names and no types. So it writes code that asks the compiler: whether
//! [`ExtractorProbe::IS_EXTRACTOR`] is the constant of the type itself or that of [`NotExtractor`].

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

/// Marks the schema of a parameter that is not an argument.
const MARK: &str = "x-outlive-extractor";

/// Tells whether a type is an extractor.
#[derive(Debug)]
pub struct ExtractorProbe<T>(PhantomData<T>);

impl<T: Extract> ExtractorProbe<T> {
    /// It is one. Found before the constant of the trait, if the bound holds.
    pub const IS_EXTRACTOR: bool = true;
}

/// What is found where a type is no extractor.
pub trait NotExtractor {
    /// It is none.
    const IS_EXTRACTOR: bool = false;
}

impl<T> NotExtractor for ExtractorProbe<T> {}

/// The decision about a parameter.
#[derive(Debug)]
pub struct Choice<const IS_EXTRACTOR: bool>;

/// What a decision makes of the type of a parameter.
pub trait Choose<T> {
    /// The field in the struct of the arguments.
    type Field;
    /// What is made from the call.
    type Extracted: Extract;

    /// The value of the parameter.
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

/// The extractor of nothing.
#[derive(Debug)]
pub struct Nothing;

impl Extract for Nothing {
    fn extract(_: &Cx) -> Result<Self, Rejection> {
        Ok(Self)
    }
}

/// The field of a parameter that is no argument: absent from the schema, and from what clients send.
#[derive(Debug)]
pub struct NoArgument;

impl<'de> Deserialize<'de> for NoArgument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As an option, because serde lets a field of that kind be missing.
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

/// Removes the parameters that are no arguments from the schema of the arguments.
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
        // As of a handler that takes no arguments.
        schema.remove("properties");
        schema.insert("additionalProperties".to_owned(), false.into());
    }
}
