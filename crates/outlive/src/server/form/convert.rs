//! Turns the schema of a type into the part of JSON Schema that forms may use.

use outlive_wire::{
    BooleanSchema, EnumOption, NumberKind, NumberSchema, PrimitiveSchemaDefinition,
    RequestedSchema, StringFormat, StringSchema, TitledItems, TitledMultiSelectEnumSchema,
    TitledSingleSelectEnumSchema, UntitledItems, UntitledMultiSelectEnumSchema,
    UntitledSingleSelectEnumSchema,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Number, Value};

use super::FormError;

/// Keywords that say something about a value without constraining it.
const REMARKS: &[&str] =
    &["$schema", "examples", "deprecated", "readOnly", "writeOnly", "$comment"];

/// The form that a type is.
pub(super) fn form<T: JsonSchema>() -> Result<RequestedSchema, FormError> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let name = T::schema_name();
    let not_flat = || FormError(format!("`{name}` is no struct with fields; only those are forms"));
    let root = schema.as_object().ok_or_else(not_flat)?;
    if root.get("type").is_none_or(|kind| kind != "object") {
        return Err(not_flat());
    }
    let required: Vec<&str> = match root.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut form = RequestedSchema::default();
    for (name, property) in root.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        let field = field(name, property)?;
        form = match required.contains(&name.as_str()) {
            true => form.with_required(name, field),
            false => form.with_optional(name, field),
        };
    }
    Ok(form)
}

/// One field.
fn field(name: &str, property: &Value) -> Result<PrimitiveSchemaDefinition, FormError> {
    let wrong = |what: &str| FormError(format!("the field `{name}` {what}"));
    let Some(property) = property.as_object() else {
        return Err(wrong("can be anything; give it a type"));
    };
    let mut members = Members { name, members: without_null(property) };
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
        _ => return Err(wrong("is none that a form can have")),
    };
    members.finish(field)
}

/// A schema that also allows `null`, as that of an `Option`, without it.
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
            // What is said about the field wins over what is said about its type.
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

/// What can be chosen.
enum Options {
    Untitled(Vec<String>),
    Titled(Vec<EnumOption>),
}

/// The keywords of a field that have not been understood yet.
struct Members<'a> {
    name: &'a str,
    members: Map<String, Value>,
}

impl Members<'_> {
    fn take(&mut self, keyword: &str) -> Option<Value> {
        self.members.remove(keyword)
    }

    fn text(&mut self, keyword: &str) -> Option<String> {
        self.take(keyword).and_then(|value| value.as_str().map(str::to_owned))
    }

    fn count(&mut self, keyword: &str) -> Option<u64> {
        self.take(keyword).and_then(|value| value.as_u64())
    }

    fn wrong(&self, what: impl std::fmt::Display) -> FormError {
        FormError(format!("the field `{}` {what}", self.name))
    }

    /// The values to choose from, if the field is such.
    fn choice(&mut self) -> Result<Option<Options>, FormError> {
        if let Some(values) = self.take("enum") {
            return Ok(Some(Options::Untitled(self.texts(&values)?)));
        }
        if let Some(value) = self.take("const") {
            return Ok(Some(Options::Untitled(self.texts(&Value::Array(vec![value]))?)));
        }
        let Some(branches) = self.take("oneOf") else { return Ok(None) };
        let mut options = Vec::new();
        for branch in branches.as_array().into_iter().flatten() {
            // Variants without a remark of their own are gathered in one `enum`.
            if let Some(values) = branch.get("enum") {
                let untitled = self.texts(values)?;
                options.extend(
                    untitled.into_iter().map(|value| EnumOption { title: value.clone(), value }),
                );
                continue;
            }
            let Some(value) = branch.get("const").and_then(Value::as_str) else {
                return Err(self.wrong("has variants with data; only a plain enum can be chosen"));
            };
            let said = branch.get("title").or_else(|| branch.get("description"));
            let title = said.and_then(Value::as_str).unwrap_or(value).to_owned();
            options.push(EnumOption { value: value.to_owned(), title });
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
        texts.ok_or_else(|| self.wrong("has choices that are no texts; only texts can be chosen"))
    }

    fn single(&mut self, options: Options) -> Result<PrimitiveSchemaDefinition, FormError> {
        let (title, description) = (self.text("title"), self.text("description"));
        let default = self.text("default");
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
            return Err(self.wrong("is a list of anything; only a list of an enum can be chosen"));
        };
        let mut items = Members { name: self.name, members: items };
        let Some(options) = items.choice()? else {
            return Err(self.wrong("is a list; only a list of an enum can be chosen"));
        };
        // A set is what several choices are.
        self.take("uniqueItems");
        let (title, description) = (self.text("title"), self.text("description"));
        let (min_items, max_items) = (self.count("minItems"), self.count("maxItems"));
        let default = self.take("default").map(|default| self.texts(&default)).transpose()?;
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
        let format = match self.text("format") {
            None => None,
            Some(format) => Some(match format.as_str() {
                "email" => StringFormat::Email,
                "uri" => StringFormat::Uri,
                "date" => StringFormat::Date,
                "date-time" => StringFormat::DateTime,
                other => {
                    return Err(self.wrong(format_args!(
                        "has the format `{other}`; forms know email, uri, date and date-time"
                    )));
                }
            }),
        };
        Ok(StringSchema {
            title: self.text("title"),
            description: self.text("description"),
            min_length: self.count("minLength"),
            max_length: self.count("maxLength"),
            format,
            default: self.text("default"),
        })
    }

    fn boolean(&mut self) -> Result<BooleanSchema, FormError> {
        Ok(BooleanSchema {
            title: self.text("title"),
            description: self.text("description"),
            default: self.take("default").and_then(|value| value.as_bool()),
        })
    }

    fn number(&mut self, kind: NumberKind) -> Result<NumberSchema, FormError> {
        // The width of a Rust type, which its bounds say as well.
        self.take("format");
        Ok(NumberSchema {
            kind,
            title: self.text("title"),
            description: self.text("description"),
            minimum: self.bound("minimum", "exclusiveMinimum", kind, 1)?,
            maximum: self.bound("maximum", "exclusiveMaximum", kind, -1)?,
            default: self.take("default").and_then(as_number),
        })
    }

    /// A bound. One that is itself excluded can be said of integers only.
    fn bound(
        &mut self,
        inclusive: &str,
        exclusive: &str,
        kind: NumberKind,
        inwards: i64,
    ) -> Result<Option<Number>, FormError> {
        let included = self.take(inclusive).and_then(as_number);
        let Some(excluded) = self.take(exclusive) else { return Ok(included) };
        match (kind, excluded.as_i64().and_then(|bound| bound.checked_add(inwards))) {
            (NumberKind::Integer, Some(bound)) => Ok(Some(bound.into())),
            _ => Err(self.wrong(format_args!("has an `{exclusive}`; forms know `{inclusive}`"))),
        }
    }

    /// Everything must have been understood: what a form cannot say, it would not check either.
    fn finish(
        mut self,
        field: PrimitiveSchemaDefinition,
    ) -> Result<PrimitiveSchemaDefinition, FormError> {
        self.members.retain(|keyword, _| !REMARKS.contains(&keyword.as_str()));
        match self.members.keys().next() {
            None => Ok(field),
            Some(keyword) => Err(self.wrong(format_args!(
                "has a `{keyword}`, which no form can say; leave it out and check the answer yourself"
            ))),
        }
    }
}

fn as_number(value: Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number),
        _ => None,
    }
}
