//! The fields of a form: the small part of JSON Schema that every client can draw.
//!
//! A field of another shape is kept as its text, so that the rest of the form can still be read.

use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};
use serde_json::{Number, value::RawValue};

use crate::{OrderedMap, RawJson, Str};

/// The fields of a form.
///
/// ```
/// use outlive_wire::{BooleanSchema, RequestedSchema};
///
/// let form = RequestedSchema::default().with_required("sure", BooleanSchema::default());
/// assert_eq!(
///     serde_json::to_string(&form)?,
///     r#"{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}"#,
/// );
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "type", rename = "object")]
pub struct RequestedSchema {
    /// The dialect of JSON Schema.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The fields, in the order in which to show them.
    pub properties: OrderedMap<PrimitiveSchemaDefinition>,
    /// Those that must be filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<Vec<String>>,
}

impl RequestedSchema {
    /// Adds a field that may stay empty.
    #[must_use]
    pub fn with_optional(
        mut self,
        name: impl Into<String>,
        field: impl Into<PrimitiveSchemaDefinition>,
    ) -> Self {
        self.properties.insert(name, field.into());
        self
    }

    /// Adds a field that must be filled in.
    #[must_use]
    pub fn with_required(
        mut self,
        name: impl Into<String>,
        field: impl Into<PrimitiveSchemaDefinition>,
    ) -> Self {
        let name = name.into();
        self.required.get_or_insert_default().push(name.clone());
        self.properties.insert(name, field.into());
        self
    }
}

/// One field of a form.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum PrimitiveSchemaDefinition {
    /// A line of text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// Yes or no.
    Boolean(BooleanSchema),
    /// One of several values.
    UntitledSingleSelect(UntitledSingleSelectEnumSchema),
    /// One of several values that have names.
    TitledSingleSelect(TitledSingleSelectEnumSchema),
    /// Some of several values.
    UntitledMultiSelect(UntitledMultiSelectEnumSchema),
    /// Some of several values that have names.
    TitledMultiSelect(TitledMultiSelectEnumSchema),
    /// One of several values that have names, as it was written until 2025-06-18.
    LegacyTitled(LegacyTitledEnumSchema),
    /// Anything else, verbatim.
    Unknown(RawJson),
}

impl<'de> Deserialize<'de> for PrimitiveSchemaDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        Ok(known(&raw).unwrap_or(Self::Unknown(raw)))
    }
}

/// Reads a field by its `type` and by which members it has; `None` if it is none that we know.
fn known(raw: &RawValue) -> Option<PrimitiveSchemaDefinition> {
    use PrimitiveSchemaDefinition as Field;

    #[derive(Deserialize)]
    struct Shape<'a> {
        #[serde(borrow)]
        r#type: Str<'a>,
        r#enum: Option<IgnoredAny>,
        #[serde(rename = "enumNames")]
        enum_names: Option<IgnoredAny>,
        #[serde(rename = "oneOf")]
        one_of: Option<IgnoredAny>,
        items: Option<Items>,
    }

    #[derive(Deserialize)]
    struct Items {
        #[serde(rename = "anyOf")]
        any_of: Option<IgnoredAny>,
    }

    let json = raw.get();
    let shape: Shape<'_> = serde_json::from_str(json).ok()?;
    match &*shape.r#type {
        "string" if shape.one_of.is_some() => {
            serde_json::from_str(json).map(Field::TitledSingleSelect)
        }
        "string" if shape.enum_names.is_some() => {
            serde_json::from_str(json).map(Field::LegacyTitled)
        }
        "string" if shape.r#enum.is_some() => {
            serde_json::from_str(json).map(Field::UntitledSingleSelect)
        }
        "string" => serde_json::from_str(json).map(Field::String),
        "number" | "integer" => serde_json::from_str(json).map(Field::Number),
        "boolean" => serde_json::from_str(json).map(Field::Boolean),
        "array" if shape.items.is_some_and(|items| items.any_of.is_some()) => {
            serde_json::from_str(json).map(Field::TitledMultiSelect)
        }
        "array" => serde_json::from_str(json).map(Field::UntitledMultiSelect),
        _ => return None,
    }
    .ok()
}

/// A line of text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string", rename_all = "camelCase")]
pub struct StringSchema {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to fill in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The least number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// The greatest number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// What the text must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<StringFormat>,
    /// What the field holds at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// What a line of text must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StringFormat {
    /// An e-mail address.
    Email,
    /// A URI.
    Uri,
    /// A day.
    Date,
    /// A day and a time.
    DateTime,
}

/// A number. Its bounds are kept to the last digit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NumberSchema {
    /// Whether fractions are allowed.
    #[serde(rename = "type")]
    pub kind: NumberKind,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to fill in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The least value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// The greatest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    /// What the field holds at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Number>,
}

impl NumberSchema {
    /// A number without bounds.
    pub fn new(kind: NumberKind) -> Self {
        Self { kind, title: None, description: None, minimum: None, maximum: None, default: None }
    }
}

/// Whether a number may have a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum NumberKind {
    /// It may.
    Number,
    /// It may not.
    Integer,
}

/// Yes or no.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "boolean")]
pub struct BooleanSchema {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to fill in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What the field holds at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

/// One of several values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string")]
pub struct UntitledSingleSelectEnumSchema {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
    /// What is chosen at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// One of several values that have names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string")]
pub struct TitledSingleSelectEnumSchema {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values.
    #[serde(rename = "oneOf")]
    pub options: Vec<EnumOption>,
    /// What is chosen at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// A value that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnumOption {
    /// For programs.
    #[serde(rename = "const")]
    pub value: String,
    /// For people.
    pub title: String,
}

/// Some of several values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "array", rename_all = "camelCase")]
pub struct UntitledMultiSelectEnumSchema {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The least number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// The greatest number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// The values.
    pub items: UntitledItems,
    /// What is chosen at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

/// The values of [`UntitledMultiSelectEnumSchema`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string")]
pub struct UntitledItems {
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
}

/// Some of several values that have names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "array", rename_all = "camelCase")]
pub struct TitledMultiSelectEnumSchema {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The least number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// The greatest number of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// The values.
    pub items: TitledItems,
    /// What is chosen at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

/// The values of [`TitledMultiSelectEnumSchema`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitledItems {
    /// The values.
    #[serde(rename = "anyOf")]
    pub options: Vec<EnumOption>,
}

/// One of several values that have names, as it was written until 2025-06-18.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string", rename_all = "camelCase")]
pub struct LegacyTitledEnumSchema {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
    /// Their names, in the same order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enum_names: Option<Vec<String>>,
    /// What is chosen at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

macro_rules! into_field {
    ($($schema:ident => $variant:ident,)*) => {
        $(impl From<$schema> for PrimitiveSchemaDefinition {
            fn from(schema: $schema) -> Self {
                Self::$variant(schema)
            }
        })*
    };
}

into_field! {
    StringSchema => String,
    NumberSchema => Number,
    BooleanSchema => Boolean,
    UntitledSingleSelectEnumSchema => UntitledSingleSelect,
    TitledSingleSelectEnumSchema => TitledSingleSelect,
    UntitledMultiSelectEnumSchema => UntitledMultiSelect,
    TitledMultiSelectEnumSchema => TitledMultiSelect,
    LegacyTitledEnumSchema => LegacyTitled,
}
