//! The fields of an elicitation form: a subset of JSON Schema that every client can render.
//!
//! A field of an unknown shape is kept as JSON text, so that the rest of the form still
//! deserializes.

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
    /// JSON Schema dialect.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Fields in display order.
    pub properties: OrderedMap<PrimitiveSchemaDefinition>,
    /// Names of the required fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<Vec<String>>,
}

impl RequestedSchema {
    /// Adds an optional field.
    #[must_use]
    pub fn with_optional(
        mut self,
        name: impl Into<String>,
        field: impl Into<PrimitiveSchemaDefinition>,
    ) -> Self {
        self.properties.insert(name, field.into());
        self
    }

    /// Adds a required field.
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
    /// A text field.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// A yes-or-no field.
    Boolean(BooleanSchema),
    /// Selection of one value.
    UntitledSingleSelect(UntitledSingleSelectEnumSchema),
    /// Selection of one value; the values have titles.
    TitledSingleSelect(TitledSingleSelectEnumSchema),
    /// Selection of several values.
    UntitledMultiSelect(UntitledMultiSelectEnumSchema),
    /// Selection of several values; the values have titles.
    TitledMultiSelect(TitledMultiSelectEnumSchema),
    /// Selection of one value; the values have titles in the format of 2025-06-18.
    LegacyTitled(LegacyTitledEnumSchema),
    /// A field of an unknown shape, as JSON text.
    Unknown(RawJson),
}

impl<'de> Deserialize<'de> for PrimitiveSchemaDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        Ok(known(&raw).unwrap_or(Self::Unknown(raw)))
    }
}

/// Deserializes a field by its `type` and members. Returns `None` for an unknown shape.
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

/// A text field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string", rename_all = "camelCase")]
pub struct StringSchema {
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Minimum number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// Maximum number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// Required format of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<StringFormat>,
    /// Initial value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// The format of a text field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StringFormat {
    /// An email address.
    Email,
    /// A URI.
    Uri,
    /// A date.
    Date,
    /// A date with a time.
    DateTime,
}

/// A number field. The bounds keep their exact digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NumberSchema {
    /// Kind of number.
    #[serde(rename = "type")]
    pub kind: NumberKind,
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Minimum value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// Maximum value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    /// Initial value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Number>,
}

impl NumberSchema {
    /// Creates a number field without bounds.
    pub fn new(kind: NumberKind) -> Self {
        Self { kind, title: None, description: None, minimum: None, maximum: None, default: None }
    }
}

/// The kind of a number field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum NumberKind {
    /// Any number.
    Number,
    /// An integer.
    Integer,
}

/// A yes-or-no field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "boolean")]
pub struct BooleanSchema {
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Initial value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

/// Selection of one value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string")]
pub struct UntitledSingleSelectEnumSchema {
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Allowed values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
    /// Initial selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Selection of one value; the values have titles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string")]
pub struct TitledSingleSelectEnumSchema {
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Allowed values with titles.
    #[serde(rename = "oneOf")]
    pub options: Vec<EnumOption>,
    /// Initial selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// An allowed value with a title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnumOption {
    /// Value for programs.
    #[serde(rename = "const")]
    pub value: String,
    /// Title for people.
    pub title: String,
}

/// Selection of several values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "array", rename_all = "camelCase")]
pub struct UntitledMultiSelectEnumSchema {
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Minimum number of selected values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// Maximum number of selected values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// Allowed values.
    pub items: UntitledItems,
    /// Initial selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

/// Allowed values of [`UntitledMultiSelectEnumSchema`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string")]
pub struct UntitledItems {
    /// Allowed values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
}

/// Selection of several values; the values have titles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "array", rename_all = "camelCase")]
pub struct TitledMultiSelectEnumSchema {
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Minimum number of selected values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// Maximum number of selected values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// Allowed values.
    pub items: TitledItems,
    /// Initial selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

/// Allowed values of [`TitledMultiSelectEnumSchema`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitledItems {
    /// Allowed values with titles.
    #[serde(rename = "anyOf")]
    pub options: Vec<EnumOption>,
}

/// Selection of one value; the values have titles in the format of 2025-06-18.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "string", rename_all = "camelCase")]
pub struct LegacyTitledEnumSchema {
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Allowed values.
    #[serde(rename = "enum")]
    pub values: Vec<String>,
    /// Titles of the values, in the same order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enum_names: Option<Vec<String>>,
    /// Initial selection.
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
