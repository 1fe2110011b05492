//! Arguments that arrive as strings: of prompts, and of the variables in a URI.
//!
//! A string is parsed if the field is a number, a boolean or an enum.

use serde::{
    Deserializer,
    de::{DeserializeOwned, Error as _, IntoDeserializer, Visitor, value::MapDeserializer},
    forward_to_deserialize_any,
};

/// Names and string values.
pub(crate) type TextArgs = Vec<(String, String)>;

/// Decodes strings into a type.
pub(crate) fn decode<T: DeserializeOwned>(args: &TextArgs) -> Result<T, serde_json::Error> {
    let entries = args.iter().map(|(name, text)| (name.as_str(), Text(text)));
    T::deserialize(MapDeserializer::new(entries))
}

#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

impl<'de> IntoDeserializer<'de, serde_json::Error> for Text<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident => $visit:ident: $type:ty, $what:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, serde_json::Error> {
            match self.0.parse::<$type>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(serde_json::Error::custom(format_args!("`{}` is not {}", self.0, $what))),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    parsed! {
        deserialize_bool => visit_bool: bool, "`true` or `false`";
        deserialize_i8 => visit_i8: i8, "an integer in range";
        deserialize_i16 => visit_i16: i16, "an integer in range";
        deserialize_i32 => visit_i32: i32, "an integer in range";
        deserialize_i64 => visit_i64: i64, "an integer in range";
        deserialize_u8 => visit_u8: u8, "a non-negative integer in range";
        deserialize_u16 => visit_u16: u16, "a non-negative integer in range";
        deserialize_u32 => visit_u32: u32, "a non-negative integer in range";
        deserialize_u64 => visit_u64: u64, "a non-negative integer in range";
        deserialize_f32 => visit_f32: f32, "a number";
        deserialize_f64 => visit_f64: f64, "a number";
    }

    forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}
