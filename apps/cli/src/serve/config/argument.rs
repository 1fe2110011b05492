//! The arguments of a tool: reads them from the file, builds the schema for clients, and converts
//! values to words of the command.

use serde_json::{Map, Value as Json, json};

use super::{
    asked::Asked,
    reader::{Problem, Read, Result, Section, Value},
    trial,
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
    /// Line of the argument in the file.
    pub(crate) line: usize,
    schema: Map<String, Json>,
}

/// Type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Number,
    Flag,
    /// A list of values of one type. Lists cannot be nested.
    List(Item),
}

/// Type of the values in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Text,
    Integer,
    Number,
}

const KINDS: &str = "string, integer, number, boolean or array";

impl Argument {
    /// Reads `[tools.NAME.arguments.NAME]`, and reports mistakes.
    ///
    /// Always returns an argument, so that a placeholder for it does not cause a second error.
    pub(crate) fn read(name: String, value: Value<'_>, asked: &mut Asked) -> Self {
        let (line, report) = (value.line, value.reported());
        let mut argument = Self {
            name,
            kind: Kind::Text,
            required: false,
            default: None,
            may_begin_with_dash: false,
            line,
            schema: Map::new(),
        };
        if let Err(problem) = argument.fill(value, asked) {
            report.add(problem);
        }
        argument
    }

    /// Creates an argument whose type only an upstream knows.
    pub(super) fn of_upstream(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: Kind::Text,
            required: false,
            default: None,
            may_begin_with_dash: true,
            line: 0,
            schema: Map::new(),
        }
    }

    fn fill(&mut self, value: Value<'_>, asked: &mut Asked) -> Result<()> {
        let mut section = value.section()?;
        if !is_argument_name(&self.name) {
            let what = format!("`{}` is not a valid name for an argument", self.name);
            section.report(
                Problem::at(section.line, what)
                    .remedy("use letters, digits and `_`, and do not start with a digit"),
            );
        }
        let schema = &mut self.schema;
        let kind = section.attempt(|section| kind(section, schema));
        describe(&mut section, schema)?;
        constrain(&mut section, kind, schema);
        let pattern = section.attempt(|section| pattern(section, kind, &self.name, schema));
        section.attempt(|section| listed(section, kind, schema));
        let fits = pattern.is_some().then_some(&*schema);
        self.default = section.attempt(|section| default(section, kind, fits)).flatten();
        if let Some(default) = &self.default {
            schema.insert("default".into(), default.clone());
        }
        self.kind = kind.unwrap_or(Kind::Text);
        self.required = section.read("required")?.unwrap_or(self.default.is_none());
        let dash: bool = section.read("allow_dash")?.unwrap_or(false);
        // The author listed these values, so they are safe.
        self.may_begin_with_dash = dash || schema.contains_key("enum");
        asked.note("tools.NAME.arguments.NAME", section.finish()?);
        Ok(())
    }

    /// Validates a value as if a caller sent it.
    pub(super) fn check(&self, value: &Json) -> Result<(), String> {
        trial::value(&self.schema, value)
    }

    /// Converts a value to words of the command line: one word, or one per list item.
    pub(crate) fn words(value: &Json) -> Vec<String> {
        match value {
            Json::Array(items) => items.iter().map(word).collect(),
            value => vec![word(value)],
        }
    }
}

/// Returns the schema of all arguments of a tool.
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

/// Returns whether a text is a valid name for an argument.
pub(crate) fn is_argument_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn kind(section: &mut Section<'_>, schema: &mut Map<String, Json>) -> Result<Kind> {
    let words = json!({"enum": ["string", "integer", "number", "boolean", "array"]});
    let said = section.take_as("type", words);
    let items = section.take_as("items", json!({"enum": ["string", "integer", "number"]}));
    let Some(value) = said else {
        let what = format!("`{}` has no type", section.path());
        return Err(section
            .lacks("type", what)
            .or_remedy(format_args!("set type to one of {KINDS}")));
    };
    let (line, name) = (value.line, String::read(value)?);
    if let Some(items) = items.as_ref().filter(|_| name != "array") {
        section.report(Problem::at(items.line, "`items` is valid only for arrays"));
    }
    let kind = match name.as_str() {
        "string" => Kind::Text,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Flag,
        "array" => Kind::List(item(items, schema)?),
        _ => {
            return Err(Problem::at(line, format_args!("`{name}` is not an argument type"))
                .remedy(format_args!("use one of {KINDS}")));
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
        _ => Err(Problem::at(line, format_args!("a command line cannot have a list of `{name}`"))
            .remedy("set items to string, integer or number")),
    }
}

fn describe(section: &mut Section<'_>, schema: &mut Map<String, Json>) -> Result<()> {
    for key in ["title", "description"] {
        if let Some(text) = section.read::<String>(key)? {
            schema.insert(key.into(), json!(text));
        }
    }
    // Interfaces for people hide values that the schema marks so.
    if section.read("secret")?.unwrap_or(false) {
        schema.insert("writeOnly".into(), json!(true));
    }
    Ok(())
}

/// A key of the file, its name in the schema, and the types it applies to.
type Limit = (&'static str, &'static str, fn(Kind) -> bool);

const LIMITS: [Limit; 6] = [
    ("minimum", "minimum", |kind| matches!(kind, Kind::Integer | Kind::Number)),
    ("maximum", "maximum", |kind| matches!(kind, Kind::Integer | Kind::Number)),
    ("min_length", "minLength", |kind| kind == Kind::Text),
    ("max_length", "maxLength", |kind| kind == Kind::Text),
    ("min_items", "minItems", |kind| matches!(kind, Kind::List(_))),
    ("max_items", "maxItems", |kind| matches!(kind, Kind::List(_))),
];

/// Reads the limits. If the type is unknown, only marks the keys as known.
fn constrain(section: &mut Section<'_>, kind: Option<Kind>, schema: &mut Map<String, Json>) {
    let mut lines = Vec::new();
    for (key, name, fits) in LIMITS {
        let any = if key.ends_with("imum") {
            f64::schema()
        } else {
            json!({"type": "integer", "minimum": 0})
        };
        let value = section.take_as(key, any);
        let (Some(value), Some(kind)) = (value, kind) else { continue };
        lines.push((key, value.line));
        if let Some(limit) = section.attempt(|_| limit(key, value, kind, fits)) {
            schema.insert(name.into(), limit);
        }
    }
    for [least, most] in LIMITS.as_chunks().0 {
        let value = |(_, name, _): &Limit| schema.get(*name).and_then(Json::as_f64);
        if let (Some(low), Some(high)) = (value(least), value(most))
            && low > high
        {
            let (least, most) = (least.0, most.0);
            let what =
                format!("`{least}` is {low}, but `{most}` is only {high}, so no value is valid");
            let line = lines.iter().find(|(key, _)| *key == least).map_or(section.line, |it| it.1);
            section.report(
                Problem::at(line, what).remedy(format_args!("set `{least}` to at most `{most}`")),
            );
        }
    }
}

fn limit(key: &str, value: Value<'_>, kind: Kind, fits: fn(Kind) -> bool) -> Result<Json> {
    let line = value.line;
    if !fits(kind) {
        return Err(Problem::at(line, format_args!("`{key}` does not apply to this type"))
            .remedy("use minimum and maximum for numbers; min_length, max_length and pattern for strings; min_items and max_items for arrays"));
    }
    Ok(match kind {
        Kind::Number => json!(f64::read(value)?),
        Kind::Integer => json!(i64::read(value)?),
        _ => {
            let unfit = value.unfit("an integer of at least 0");
            json!(u64::try_from(i64::read(value)?).map_err(|_| unfit)?)
        }
    })
}

/// Reads the pattern, and validates it with the regex engine that checks values.
fn pattern(
    section: &mut Section<'_>,
    kind: Option<Kind>,
    argument: &str,
    schema: &mut Map<String, Json>,
) -> Result<()> {
    let Some(value) = section.take_as("pattern", json!({"type": "string", "format": "regex"}))
    else {
        return Ok(());
    };
    let line = value.line;
    if kind.is_some_and(|kind| kind != Kind::Text) {
        return Err(Problem::at(line, "`pattern` is valid only for strings"));
    }
    let unfit = value.unfit("a regular expression");
    let pattern = json!(String::read(value)?);
    trial::input(&json!({"type": "object", "properties": {argument: {"pattern": pattern}}}))
        .map_err(|why| unfit.remedy(why))?;
    schema.insert("pattern".into(), pattern);
    Ok(())
}

/// Reads `enum`.
fn listed(
    section: &mut Section<'_>,
    kind: Option<Kind>,
    schema: &mut Map<String, Json>,
) -> Result<()> {
    let Some(value) = section.take_as("enum", json!({"type": "array", "minItems": 1})) else {
        return Ok(());
    };
    let line = value.line;
    let choices = value.items()?.into_iter().map(Value::json).collect::<Result<Vec<_>>>()?;
    let Some(kind) = kind else { return Ok(()) };
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
        // The schema of a list has the choices in its `items`.
        (Kind::List(_), Some(Json::Object(items))) => {
            items.insert("enum".into(), Json::Array(choices))
        }
        _ => schema.insert("enum".into(), Json::Array(choices)),
    };
    Ok(())
}

/// Reads the default, which must be valid as a value from a caller.
fn default(
    section: &mut Section<'_>,
    kind: Option<Kind>,
    schema: Option<&Map<String, Json>>,
) -> Result<Option<Json>> {
    let Some(value) = section.take("default") else { return Ok(None) };
    let line = value.line;
    let default = value.json()?;
    let Some(kind) = kind else { return Ok(Some(default)) };
    if !fits(kind, &default) {
        return Err(Problem::at(
            line,
            format_args!("the default {default} is not of the argument's type"),
        ));
    }
    let refused = schema.and_then(|schema| trial::value(schema, &default).err());
    if let Some(why) = refused {
        let what = format!("the default is not a valid value of the argument: {why}");
        return Err(Problem::at(line, what)
            .remedy("change the default to match the other keys of the argument"));
    }
    Ok(Some(default))
}

/// Returns whether a value has a type.
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
