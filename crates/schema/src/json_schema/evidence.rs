//! Determines whether deserializing a type already rejects every value that its schema rejects.
//!
//! For a flat struct of plain fields this is usually true, and then a call needs no separate check.
//! But a field may have a lenient `deserialize_with`, an alias, a default for a required property,
//! or the schema of another type. So the type is tested once, when the tool is registered. It is
//! deserialized from a mock struct that records the request for each field, then again with one
//! flaw at a time. Any unusual behavior counts as "no", which only costs time.

use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, MapAccess, Visitor,
        value::{Error, StrDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};

/// Returns whether every text that starts with `{` and deserializes into `T` matches `schema`.
pub(super) fn deserialising_suffices<T: DeserializeOwned>(schema: &Value) -> bool {
    let Some(flat) = Flat::read(schema) else { return false };
    let accepts = |flaw| T::deserialize(Trial { flat: &flat, flaw }).is_ok();
    accepts(Flaw::None)
        && (flat.open || !accepts(Flaw::Stranger))
        && flat.fields.iter().enumerate().all(|(place, field)| {
            (!field.required || !accepts(Flaw::Missing(place)))
                && (!field.integer || field.number || !accepts(Flaw::Fraction(place)))
        })
}

/// An object schema whose properties have only `type` and bounds.
struct Flat<'a> {
    fields: Vec<Field<'a>>,
    /// Whether additional members are allowed.
    open: bool,
}

/// The values that the schema allows for one member.
struct Field<'a> {
    name: &'a str,
    required: bool,
    null: bool,
    boolean: bool,
    string: bool,
    integer: bool,
    number: bool,
    min: i128,
    max: i128,
}

impl<'a> Flat<'a> {
    fn read(schema: &'a Value) -> Option<Self> {
        let map = schema.as_object()?;
        let expected = ["additionalProperties", "properties", "required", "type"];
        if map.get("type")? != "object" || !has_only(map, &expected) {
            return None;
        }
        let required = map.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|n| n == name));
        let properties = map.get("properties").and_then(Value::as_object);
        let fields: Vec<_> = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| Field::read(name, schema, is_required(name)))
            .collect::<Option<_>>()?;
        // A required member that is not a property is unknown to the type.
        let all_known =
            required.map_or(0, Vec::len) == fields.iter().filter(|f| f.required).count();
        let open = map.get("additionalProperties").map_or(Some(true), Value::as_bool)?;
        all_known.then_some(Self { fields, open })
    }
}

impl<'a> Field<'a> {
    fn read(name: &'a str, schema: &Value, required: bool) -> Option<Self> {
        let map = schema.as_object()?;
        if !has_only(map, &["maximum", "minimum", "type"]) {
            return None;
        }
        let kind = map.get("type")?;
        let kinds = kind.as_array().map_or(std::slice::from_ref(kind), Vec::as_slice);
        let has = |name: &str| kinds.iter().any(|kind| kind == name);
        let bound = |keyword, default| {
            map.get(keyword).map_or(Some(default), |bound| Some(bound.as_i64()?.into()))
        };
        Some(Self {
            name,
            required,
            null: has("null"),
            boolean: has("boolean"),
            string: has("string"),
            integer: has("integer"),
            // Bounded numbers are checked by the tree walk.
            number: has("number") && !map.contains_key("minimum") && !map.contains_key("maximum"),
            min: bound("minimum", i128::MIN)?,
            max: bound("maximum", i128::MAX)?,
        })
    }

    fn allows_integers(&self, min: i128, max: i128) -> bool {
        (self.integer || self.number) && self.min <= min && max <= self.max
    }
}

fn has_only(map: &Map<String, Value>, expected: &[&str]) -> bool {
    const SAID: [&str; 6] = ["default", "deprecated", "description", "examples", "format", "title"];
    map.keys().map(String::as_str).all(|keyword| {
        expected.contains(&keyword) || SAID.contains(&keyword) || keyword.starts_with("x-")
    })
}

/// The flaw of the mock struct in one trial. Fields are identified by their index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    Missing(usize),
    /// A fraction in place of an integer.
    Fraction(usize),
    /// An unknown member.
    Stranger,
}

/// The mock struct that a trial deserializes.
#[derive(Clone, Copy)]
struct Trial<'a> {
    flat: &'a Flat<'a>,
    flaw: Flaw,
}

impl<'de> Deserializer<'de> for Trial<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(unusual())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        // An alias is a name that only the type has.
        let known = |name: &str| self.flat.fields.iter().any(|field| field.name == name);
        if names.len() != self.flat.fields.len() || !names.iter().all(|name| known(name)) {
            return Err(unusual());
        }
        visitor.visit_map(Fields { trial: self, next: 0 })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The members of the mock struct. The unknown member comes last.
struct Fields<'a> {
    trial: Trial<'a>,
    next: usize,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Trial { flat, flaw } = self.trial;
        if flaw == Flaw::Missing(self.next) {
            self.next += 1;
        }
        let name = match flat.fields.get(self.next) {
            Some(field) => field.name,
            None if flaw == Flaw::Stranger && self.next == flat.fields.len() => "\u{1}stranger",
            None => return Ok(None),
        };
        self.next += 1;
        let name: StrDeserializer<'_, Error> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let place = self.next - 1;
        let fraction = self.trial.flaw == Flaw::Fraction(place);
        seed.deserialize(Plain { field: self.trial.flat.fields.get(place), fraction })
    }
}

/// A mock value of any type that the schema allows. For JSON, serde answers each request with this
/// type of value only.
struct Plain<'a> {
    /// `None` for the unknown member, which the type ignores or rejects.
    field: Option<&'a Field<'a>>,
    fraction: bool,
}

impl Plain<'_> {
    fn allow(&self, allows: impl Fn(&Field<'_>) -> bool) -> Result<(), Error> {
        if self.field.is_some_and(allows) { Ok(()) } else { Err(unusual()) }
    }
}

macro_rules! integers {
    ($($method:ident: $type:ty),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.allow(|field| field.allows_integers(<$type>::MIN.into(), <$type>::MAX.into()))?;
            // The parser reports the type of the number, not the requested type.
            if self.fraction { visitor.visit_f64(0.5) } else { visitor.visit_u64(0) }
        }
    )*};
}

impl<'de> Deserializer<'de> for Plain<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(unusual())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.field {
            None => visitor.visit_unit(),
            Some(_) => Err(unusual()),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.allow(|field| field.boolean)?;
        visitor.visit_bool(false)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.allow(|field| field.string)?;
        visitor.visit_str("")
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    integers! {
        deserialize_i8: i8, deserialize_i16: i16, deserialize_i32: i32, deserialize_i64: i64,
        deserialize_u8: u8, deserialize_u16: u16, deserialize_u32: u32, deserialize_u64: u64
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.allow(|field| field.number)?;
        visitor.visit_f64(0.5)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.allow(|field| field.null)?;
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct seq tuple tuple_struct map struct enum
        identifier
    }
}

/// Returns the error that stops a trial.
fn unusual() -> Error {
    Error::custom("the type does not deserialize like its schema")
}
