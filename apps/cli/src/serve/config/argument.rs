//! The arguments of a tool: what stands in the file becomes the schema that clients see, and values
//! become words for the command.

use serde_json::{Map, Value as Json, json};

use super::{
    reader::{Problem, Read, Result, Section, Value},
    tool::Asked,
};

/// One argument of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    pub(crate) default: Option<Json>,
    /// Whether a value may look like an option of the command.
    pub(crate) may_begin_with_dash: bool,
    schema: Map<String, Json>,
}

/// What values of an argument are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Number,
    Flag,
    /// Several of one kind, none of which is a list.
    List(Item),
}

/// What stands in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Text,
    Integer,
    Number,
}

const KINDS: &str = "string, integer, number, boolean or array";

impl Argument {
    /// Reads `[tools.NAME.arguments.NAME]`.
    pub(crate) fn read(name: String, value: Value<'_>, asked: &mut Asked) -> Result<Self> {
        let mut section = value.section()?;
        if !is_name(&name) {
            return Err(Problem::at(
                section.line,
                format_args!("`{name}` cannot be the name of an argument"),
            )
            .remedy("letters, digits and `_`, not beginning with a digit"));
        }
        let mut schema = Map::new();
        let kind = kind(&mut section, &mut schema)?;
        describe(&mut section, &mut schema)?;
        constrain(&mut section, kind, &mut schema)?;
        let default = default(&mut section, kind)?;
        if let Some(default) = &default {
            schema.insert("default".into(), default.clone());
        }
        let required = section.read("required")?.unwrap_or(default.is_none());
        let dash: bool = section.read("allow_dash")?.unwrap_or(false);
        // What the author has listed is the author's own.
        let may_begin_with_dash = dash || schema.contains_key("enum");
        asked.note("tools.NAME.arguments.NAME", section.finish()?);
        Ok(Self { name, kind, required, default, may_begin_with_dash, schema })
    }

    /// A value as words for a command line; one, unless it is a list.
    pub(crate) fn words(value: &Json) -> Vec<String> {
        match value {
            Json::Array(items) => items.iter().map(word).collect(),
            value => vec![word(value)],
        }
    }
}

/// The schema of all arguments of a tool.
pub(crate) fn schema(arguments: &[Argument]) -> Json {
    let properties: Map<String, Json> = arguments
        .iter()
        .map(|argument| (argument.name.clone(), Json::Object(argument.schema.clone())))
        .collect();
    let required: Vec<&str> = arguments
        .iter()
        .filter(|argument| argument.required)
        .map(|argument| argument.name.as_str())
        .collect();
    let mut schema =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn word(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether it can be the name of an argument.
pub(super) fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn kind(section: &mut Section<'_>, schema: &mut Map<String, Json>) -> Result<Kind> {
    let Some(value) = section.take("type") else {
        let what = format!("`{}` has no type", section.path());
        return Err(section.lacks("type", what).or_remedy(format_args!("type = one of {KINDS}")));
    };
    let (line, name) = (value.line, String::read(value)?);
    let items = section.take("items");
    if let Some(items) = items.as_ref().filter(|_| name != "array") {
        return Err(Problem::at(items.line, "`items` is for arrays only"));
    }
    let kind = match name.as_str() {
        "string" => Kind::Text,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Flag,
        "array" => Kind::List(item(items, schema)?),
        _ => {
            return Err(Problem::at(line, format_args!("`{name}` is no type of an argument"))
                .remedy(format_args!("one of {KINDS}")));
        }
    };
    schema.insert("type".into(), json!(name));
    Ok(kind)
}

fn item(items: Option<Value<'_>>, schema: &mut Map<String, Json>) -> Result<Item> {
    let Some(items) = items else {
        schema.insert("items".into(), json!({"type": "string"}));
        return Ok(Item::Text);
    };
    let (line, name) = (items.line, String::read(items)?);
    schema.insert("items".into(), json!({"type": name}));
    match name.as_str() {
        "string" => Ok(Item::Text),
        "integer" => Ok(Item::Integer),
        "number" => Ok(Item::Number),
        _ => {
            Err(Problem::at(line, format_args!("a list of `{name}` is nothing for a command line"))
                .remedy("items = string, integer or number"))
        }
    }
}

fn describe(section: &mut Section<'_>, schema: &mut Map<String, Json>) -> Result<()> {
    for key in ["title", "description"] {
        if let Some(text) = section.read::<String>(key)? {
            schema.insert(key.into(), json!(text));
        }
    }
    Ok(())
}

/// A limit of the file, its name in the schema, and for which kinds it means something.
type Limit = (&'static str, &'static str, fn(Kind) -> bool);

const LIMITS: [Limit; 6] = [
    ("minimum", "minimum", |kind| matches!(kind, Kind::Integer | Kind::Number)),
    ("maximum", "maximum", |kind| matches!(kind, Kind::Integer | Kind::Number)),
    ("min_length", "minLength", |kind| kind == Kind::Text),
    ("max_length", "maxLength", |kind| kind == Kind::Text),
    ("min_items", "minItems", |kind| matches!(kind, Kind::List(_))),
    ("max_items", "maxItems", |kind| matches!(kind, Kind::List(_))),
];

fn constrain(section: &mut Section<'_>, kind: Kind, schema: &mut Map<String, Json>) -> Result<()> {
    for (key, name, fits) in LIMITS {
        let Some(value) = section.take(key) else { continue };
        let line = value.line;
        if !fits(kind) {
            return Err(Problem::at(line, format_args!("`{key}` means nothing for this type"))
                .remedy("numbers have minimum and maximum, strings min_length, max_length and pattern, arrays min_items and max_items"));
        }
        let limit = match kind {
            Kind::Number => json!(f64::read(value)?),
            Kind::Integer => json!(i64::read(value)?),
            _ => match i64::read(value)? {
                amount @ 0.. => json!(amount),
                _ => return Err(Problem::at(line, format_args!("`{key}` cannot be less than 0"))),
            },
        };
        schema.insert(name.into(), limit);
    }
    if let Some(value) = section.take("pattern") {
        let line = value.line;
        if kind != Kind::Text {
            return Err(Problem::at(line, "`pattern` is for strings only"));
        }
        schema.insert("pattern".into(), json!(String::read(value)?));
    }
    let Some(value) = section.take("enum") else { return Ok(()) };
    let line = value.line;
    let choices = value.items()?.into_iter().map(Value::json).collect::<Result<Vec<_>>>()?;
    let one = match kind {
        Kind::List(Item::Text) => Kind::Text,
        Kind::List(Item::Integer) => Kind::Integer,
        Kind::List(Item::Number) => Kind::Number,
        kind => kind,
    };
    if choices.is_empty() || !choices.iter().all(|choice| fits(one, choice)) {
        return Err(Problem::at(
            line,
            "`enum` must list at least one value, all of the argument's type",
        ));
    }
    match (kind, schema.get_mut("items")) {
        // What may stand in a list is said of its items.
        (Kind::List(_), Some(Json::Object(items))) => {
            items.insert("enum".into(), Json::Array(choices))
        }
        _ => schema.insert("enum".into(), Json::Array(choices)),
    };
    Ok(())
}

fn default(section: &mut Section<'_>, kind: Kind) -> Result<Option<Json>> {
    let Some(value) = section.take("default") else { return Ok(None) };
    let line = value.line;
    let default = value.json()?;
    if !fits(kind, &default) {
        return Err(Problem::at(line, "the default is not of the argument's type"));
    }
    Ok(Some(default))
}

/// Whether a value is of a kind.
fn fits(kind: Kind, value: &Json) -> bool {
    match kind {
        Kind::Text => value.is_string(),
        Kind::Integer => value.is_i64() || value.is_u64(),
        Kind::Number => value.is_number(),
        Kind::Flag => value.is_boolean(),
        Kind::List(item) => value.as_array().is_some_and(|items| {
            items.iter().all(|value| match item {
                Item::Text => fits(Kind::Text, value),
                Item::Integer => fits(Kind::Integer, value),
                Item::Number => fits(Kind::Number, value),
            })
        }),
    }
}
