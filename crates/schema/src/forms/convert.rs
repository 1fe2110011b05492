//! Converts the schema of a type to the subset of JSON Schema that forms may use.

use outlive_wire::{
    BooleanSchema, EnumOption, NumberKind, NumberSchema, PrimitiveSchemaDefinition,
    RequestedSchema, StringFormat, StringSchema, TitledItems, TitledMultiSelectEnumSchema,
    TitledSingleSelectEnumSchema, UntitledItems, UntitledMultiSelectEnumSchema,
    UntitledSingleSelectEnumSchema,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use super::{check, error::FormError};
use crate::field_order::ordered_properties;

/// Keywords that do not constrain a value.
const REMARKS: &[&str] =
    &["$schema", "examples", "deprecated", "readOnly", "writeOnly", "$comment"];

/// Keywords that the schema of a form may have. Those about additional members are dropped, because
/// additional members of a response are ignored.
const OF_FORMS: &[&str] = &[
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "$comment",
    "deprecated",
    "examples",
];

/// Returns the form of a type. `fields` is the declaration order of its fields.
pub(super) fn form<T: JsonSchema>(fields: &[&str]) -> Result<RequestedSchema, FormError> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let name = T::schema_name();
    let not_flat = || {
        FormError(format!("`{name}` is not a struct with fields; only such a struct can be a form"))
    };
    let root = schema.as_object().ok_or_else(not_flat)?;
    if root.get("type").is_none_or(|kind| kind != "object") {
        return Err(not_flat());
    }
    if let Some(keyword) = root.keys().find(|keyword| !OF_FORMS.contains(&keyword.as_str())) {
        return Err(FormError(format!(
            "`{name}` has a `{keyword}`, which forms do not support; remove it and check the value in the handler"
        )));
    }
    let required: Vec<&str> = match root.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut form = RequestedSchema::default();
    for (name, property) in ordered_properties(root, fields) {
        let field = field(name, property)?;
        form = match required.contains(&name.as_str()) {
            true => form.with_required(name, field),
            false => form.with_optional(name, field),
        };
    }
    Ok(form)
}

/// Converts one field.
fn field(name: &str, property: &Value) -> Result<PrimitiveSchemaDefinition, FormError> {
    let wrong = |what: &str| FormError(format!("the field `{name}` {what}"));
    let Some(property) = property.as_object() else {
        return Err(wrong("accepts any value; give it a type"));
    };
    let mut members = Members { name, members: without_null(property) };
    let default = members.members.get("default").cloned();
    let kind = members.take("type").and_then(|kind| kind.as_str().map(str::to_owned));
    let choice = members.choice()?;
    let field = match (choice, kind.as_deref()) {
        (Some(choice), None | Some("string")) => members.single(choice)?,
        (None, Some("string")) => members.string()?.into(),
        (None, Some("boolean")) => members.boolean()?.into(),
        (None, Some("integer")) => members.number(NumberKind::Integer)?.into(),
        (None, Some("number")) => members.number(NumberKind::Number)?.into(),
        (None, Some("array")) => members.several()?,
        (None, Some("object")) => {
            return Err(wrong("is an object; a form is flat, so make its members fields"));
        }
        (None, None) => return Err(wrong("has several types; give it one")),
        _ => return Err(wrong("has a type that forms do not support")),
    };
    members.finish()?;
    // Clients prefill the default. An invalid one would be rejected in every round.
    match default.map_or(Ok(()), |default| check::check_field(&field, &default)) {
        Ok(()) => Ok(field),
        Err(why) => Err(wrong(&format!("has an invalid default; it {why}"))),
    }
}

/// Removes the `null` alternative that `schemars` writes for an `Option`.
fn without_null(property: &Map<String, Value>) -> Map<String, Value> {
    let mut members = property.clone();
    if let Some(Value::Array(kinds)) = members.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = &kinds[..] {
            let kind = kind.clone();
            members.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(branches)) = members.get("anyOf") {
        let others: Vec<&Value> = branches
            .iter()
            .filter(|branch| branch.get("type").is_none_or(|kind| kind != "null"))
            .collect();
        if let [Value::Object(only)] = others[..] {
            // Keywords of the field take precedence over those of its type.
            let mut inner = only.clone();
            members.remove("anyOf");
            inner.extend(members);
            members = inner;
        }
    }
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    members
}

const NOTHING: &str = "has no choices; give its type a variant that clients can send";

/// The choices of a field.
enum Options {
    Untitled(Vec<String>),
    Titled(Vec<EnumOption>),
}

/// The keywords of a field that are not converted yet.
struct Members<'a> {
    name: &'a str,
    members: Map<String, Value>,
}

impl Members<'_> {
    fn take(&mut self, keyword: &str) -> Option<Value> {
        self.members.remove(keyword)
    }

    /// Takes a keyword. A value of the wrong type is an error, because it was meant to constrain
    /// the response.
    fn read<T: DeserializeOwned>(&mut self, keyword: &str) -> Result<Option<T>, FormError> {
        self.take(keyword)
            .map(serde_json::from_value)
            .transpose()
            .map_err(|error| self.wrong(format_args!("has an invalid `{keyword}`: {error}")))
    }

    fn wrong(&self, what: impl std::fmt::Display) -> FormError {
        FormError(format!("the field `{}` {what}", self.name))
    }

    /// Returns the choices, if the field has a fixed set of values.
    fn choice(&mut self) -> Result<Option<Options>, FormError> {
        if let Some(values) = self.take("enum") {
            return Ok(Some(Options::Untitled(self.options(&values)?)));
        }
        if let Some(value) = self.take("const") {
            return Ok(Some(Options::Untitled(self.texts(&Value::Array(vec![value]))?)));
        }
        let Some(branches) = self.take("oneOf") else { return Ok(None) };
        let mut options: Vec<EnumOption> = Vec::new();
        for branch in branches.as_array().into_iter().flatten() {
            // `schemars` groups variants without a description in one `enum`.
            if let Some(values) = branch.get("enum") {
                let untitled = self.texts(values)?;
                options.extend(
                    untitled.into_iter().map(|value| EnumOption { title: value.clone(), value }),
                );
                continue;
            }
            let Some(value) = branch.get("const").and_then(Value::as_str) else {
                return Err(self.wrong("has variants with data; use an enum without data"));
            };
            let said = branch.get("title").or_else(|| branch.get("description"));
            let title = said.and_then(Value::as_str).unwrap_or(value).to_owned();
            options.push(EnumOption { value: value.to_owned(), title });
        }
        if options.is_empty() {
            return Err(self.wrong(NOTHING));
        }
        Ok(Some(Options::Titled(options)))
    }

    fn texts(&self, values: &Value) -> Result<Vec<String>, FormError> {
        let texts: Option<Vec<String>> = values
            .as_array()
            .into_iter()
            .flatten()
            .map(|value| value.as_str().map(str::to_owned))
            .collect();
        texts.ok_or_else(|| self.wrong("has choices that are not strings; use strings"))
    }

    fn options(&self, values: &Value) -> Result<Vec<String>, FormError> {
        let values = self.texts(values)?;
        if values.is_empty() { Err(self.wrong(NOTHING)) } else { Ok(values) }
    }

    fn single(&mut self, options: Options) -> Result<PrimitiveSchemaDefinition, FormError> {
        let (title, description) = (self.read("title")?, self.read("description")?);
        let default = self.read("default")?;
        Ok(match options {
            Options::Untitled(values) => {
                UntitledSingleSelectEnumSchema { title, description, values, default }.into()
            }
            Options::Titled(options) => {
                TitledSingleSelectEnumSchema { title, description, options, default }.into()
            }
        })
    }

    fn several(&mut self) -> Result<PrimitiveSchemaDefinition, FormError> {
        let Some(Value::Object(items)) = self.take("items") else {
            return Err(self.wrong("is a list of any values; use a list of an enum"));
        };
        let mut items = Members { name: self.name, members: items };
        let Some(options) = items.choice()? else {
            return Err(self.wrong("is a list without choices; use a list of an enum"));
        };
        items.take("type");
        // The title and description of the enum apply if the field has none, as for a single
        // choice.
        let (items_title, items_description) = (items.read("title")?, items.read("description")?);
        items.finish()?;
        // `uniqueItems` is redundant: several choices are always a set.
        self.take("uniqueItems");
        let title = self.read("title")?.or(items_title);
        let description = self.read("description")?.or(items_description);
        let (min_items, max_items) = (self.read("minItems")?, self.read("maxItems")?);
        let default = self.read("default")?;
        Ok(match options {
            Options::Untitled(values) => UntitledMultiSelectEnumSchema {
                title,
                description,
                min_items,
                max_items,
                items: UntitledItems { values },
                default,
            }
            .into(),
            Options::Titled(options) => TitledMultiSelectEnumSchema {
                title,
                description,
                min_items,
                max_items,
                items: TitledItems { options },
                default,
            }
            .into(),
        })
    }

    fn string(&mut self) -> Result<StringSchema, FormError> {
        let format = match self.read::<String>("format")? {
            None => None,
            Some(format) => Some(match format.as_str() {
                "email" => StringFormat::Email,
                "uri" => StringFormat::Uri,
                "date" => StringFormat::Date,
                "date-time" => StringFormat::DateTime,
                other => {
                    return Err(self.wrong(format_args!(
                        "has the format `{other}`; forms support email, uri, date and date-time"
                    )));
                }
            }),
        };
        Ok(StringSchema {
            title: self.read("title")?,
            description: self.read("description")?,
            min_length: self.read("minLength")?,
            max_length: self.read("maxLength")?,
            format,
            default: self.read("default")?,
        })
    }

    fn boolean(&mut self) -> Result<BooleanSchema, FormError> {
        Ok(BooleanSchema {
            title: self.read("title")?,
            description: self.read("description")?,
            default: self.read("default")?,
        })
    }

    fn number(&mut self, kind: NumberKind) -> Result<NumberSchema, FormError> {
        // The `format` is redundant: the bounds express the width of the Rust type.
        self.take("format");
        Ok(NumberSchema {
            kind,
            title: self.read("title")?,
            description: self.read("description")?,
            minimum: self.bound("minimum", "exclusiveMinimum", kind, 1)?,
            maximum: self.bound("maximum", "exclusiveMaximum", kind, -1)?,
            default: self.read("default")?,
        })
    }

    /// Reads a bound. An exclusive bound is supported for integers only.
    fn bound(
        &mut self,
        inclusive: &str,
        exclusive: &str,
        kind: NumberKind,
        inwards: i128,
    ) -> Result<Option<Number>, FormError> {
        let included: Option<Number> = self.read(inclusive)?;
        let Some(excluded) = self.read::<Number>(exclusive)? else { return Ok(included) };
        let moved = excluded.as_i128().and_then(|bound| Number::from_i128(bound + inwards));
        let (NumberKind::Integer, Some(moved)) = (kind, moved) else {
            return Err(self.wrong(format_args!("has an `{exclusive}`; use `{inclusive}`")));
        };
        // The type may have its own, tighter bound.
        Ok(Some(match included {
            Some(included) if inwards > 0 && check::is_less(&moved, &included) => included,
            Some(included) if inwards < 0 && check::is_less(&included, &moved) => included,
            _ => moved,
        }))
    }

    /// Fails if a keyword is left: the form would neither express nor enforce it.
    fn finish(mut self) -> Result<(), FormError> {
        let is_remark = |keyword: &str| REMARKS.contains(&keyword) || keyword.starts_with("x-");
        self.members.retain(|keyword, _| !is_remark(keyword));
        match self.members.keys().next() {
            None => Ok(()),
            Some(keyword) => Err(self.wrong(format_args!(
                "has a `{keyword}`, which forms do not support; remove it and check the value in the handler"
            ))),
        }
    }
}
