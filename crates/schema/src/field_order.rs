//! The order in which a type declares its fields.
//!
//! A `serde_json::Map` keeps no order, unless the program enables its feature `preserve_order`.
//! Forms and schemas must show the author's order, which a derived `Deserialize` reveals.

use std::cell::Cell;

use serde::{
    Deserializer,
    de::{DeserializeOwned, Error as _, Visitor, value::Error},
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};

/// Returns the field names of a struct in declaration order; empty if the type does not reveal
/// them.
pub(crate) fn declared_fields<T: DeserializeOwned>() -> &'static [&'static str] {
    let names = Cell::new(&[][..]);
    // Always fails: the probe has no value.
    let _ = T::deserialize(Probe(&names));
    names.get()
}

/// Returns the properties of an object schema in the order of `declared`.
///
/// Without a declared order, the order is that of `required` if every property is required:
/// `schemars` writes that list in field order.
pub(crate) fn ordered_properties<'a>(
    schema: &'a Map<String, Value>,
    declared: &[&str],
) -> Vec<(&'a String, &'a Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut ordered: Vec<_> = properties.into_iter().flatten().collect();
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let names = match declared {
        [] if ordered.iter().all(|(name, _)| required.contains(&name.as_str())) => &required,
        declared => declared,
    };
    let place = |name: &str| names.iter().position(|known| *known == name);
    ordered.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
    ordered
}

/// A deserializer that records the fields of a struct and then fails.
struct Probe<'p>(&'p Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("a probe has no value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.set(names);
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
