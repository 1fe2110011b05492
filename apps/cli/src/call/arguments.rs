//! Parses the arguments of a tool from the command line.
//!
//! The tool's schema gives the type of `key=value`. `key:=JSON` is a JSON value. A repeated key
//! makes a list. A single `{…}`, `@FILE` or `-` is the whole object.

use std::{
    fs,
    io::{self, Read},
};

use outlive::{
    client::request::check_arguments,
    schema::{Field, FieldChoice, FieldKind, fields, is_open, plain_text},
    wire::Tool,
};
use serde_json::{Map, Value};

use crate::error::{CliError, Result};

/// Builds the arguments of a tool. Rejects unknown and missing arguments before anything is sent.
pub(crate) fn arguments(
    tool: &str,
    schema: &Value,
    words: &[String],
) -> Result<Map<String, Value>> {
    let fields = fields(schema);
    let arguments = match words {
        [word] if is_whole(word) => whole(word)?,
        words => typed(&fields, words)?,
    };
    let unknown = arguments.keys().find(|name| !fields.iter().any(|field| field.name == **name));
    if let Some(unknown) = unknown.filter(|_| !is_open(schema)) {
        return Err(CliError::usage(format!("`{tool}` has no argument `{unknown}`"))
            .remedy(named(tool, &fields)));
    }
    let missing = |field: &&Field| field.is_required && !arguments.contains_key(&field.name);
    if let Some(field) = fields.iter().find(missing) {
        return Err(CliError::usage(format!(
            "`{tool}` requires the argument `{}` ({})",
            field.name, field.hint
        ))
        .remedy(named(tool, &fields)));
    }
    Ok(arguments)
}

/// Validates arguments against the tool's schema, as its server would.
pub(crate) fn check(tool: &Tool, arguments: &Map<String, Value>) -> Result<()> {
    check_arguments(tool, arguments).map_err(|reason| {
        let schema = serde_json::to_value(&tool.input_schema).unwrap_or_default();
        // Reasons name a value by its JSON pointer. On the command line, it has a key.
        let reason = reason.replace("`/", "`");
        CliError::usage(format!("invalid arguments for `{}`: {reason}", tool.name))
            .remedy(named(&tool.name, &fields(&schema)))
    })
}

/// Parses `key=value` words into values of the fields, for forms.
pub(crate) fn typed(fields: &[Field], words: &[String]) -> Result<Map<String, Value>> {
    let mut values = Map::new();
    for word in words {
        let Some((key, text)) = word.split_once('=') else {
            return Err(CliError::usage(format!("`{word}` is not a valid argument"))
                .remedy("write key=value, key:=JSON, or the whole object as '{…}', @FILE or -"));
        };
        if let Some(key) = key.strip_suffix(':') {
            let value = serde_json::from_str(text).map_err(|error| {
                CliError::usage(format!("the value of `{key}:=` is not valid JSON: {error}"))
                    .remedy(format!("write {key}={text} to pass a string"))
            })?;
            values.insert(key.to_owned(), value);
            continue;
        }
        let kind = fields.iter().find(|field| field.name == key).map(|field| &field.kind);
        match kind {
            Some(FieldKind::List(item)) => add(&mut values, key, value(key, item, text)?),
            Some(FieldKind::Many(choices)) => add(&mut values, key, one_of(key, choices, text)?),
            Some(_) | None if values.contains_key(key) => {
                return Err(CliError::usage(format!("`{key}` is set twice"))
                    .remedy("pass it once; it takes a single value"));
            }
            Some(kind) => {
                let value = value(key, kind, text)?;
                values.insert(key.to_owned(), value);
            }
            None => {
                values.insert(key.to_owned(), Value::from(text));
            }
        }
    }
    Ok(values)
}

fn add(values: &mut Map<String, Value>, key: &str, value: Value) {
    match values.entry(key).or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(values) => values.push(value),
        other => *other = value,
    }
}

/// Parses a text into a value of a kind.
pub(crate) fn value(key: &str, kind: &FieldKind, text: &str) -> Result<Value> {
    let not = |what: &str| CliError::usage(format!("`{key}` must be {what}, not `{text}`"));
    match kind {
        FieldKind::Text => Ok(Value::from(text)),
        FieldKind::Integer => match text.trim().parse::<i64>() {
            Ok(number) => Ok(number.into()),
            Err(_) => Err(not("an integer").remedy(format!("write {key}=3"))),
        },
        FieldKind::Number => {
            let number = serde_json::from_str::<serde_json::Number>(text.trim());
            number
                .map(Value::Number)
                .map_err(|_| not("a number").remedy(format!("write {key}=2.5")))
        }
        FieldKind::Boolean => match text.trim() {
            "true" | "yes" | "y" => Ok(Value::Bool(true)),
            "false" | "no" | "n" => Ok(Value::Bool(false)),
            _ => Err(not("true or false").remedy(format!("write {key}=true"))),
        },
        FieldKind::One(choices) => one_of(key, choices, text),
        // A list in one word, for a prompt that has no key to repeat.
        FieldKind::Many(choices) => {
            let each = parts(text).map(|text| one_of(key, choices, text));
            each.collect::<Result<_>>().map(Value::Array)
        }
        FieldKind::List(item) => {
            parts(text).map(|text| value(key, item, text)).collect::<Result<_>>().map(Value::Array)
        }
        // To pass a string that is also valid JSON, the user writes it as a JSON string.
        _ => Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))),
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn one_of(key: &str, choices: &[FieldChoice], text: &str) -> Result<Value> {
    let found = choices.iter().find(|choice| plain_text(&choice.value) == text);
    found.map(|choice| choice.value.clone()).ok_or_else(|| {
        let all: Vec<String> = choices.iter().map(|choice| plain_text(&choice.value)).collect();
        CliError::usage(format!("`{key}` cannot be `{text}`"))
            .remedy(format!("use one of {}", all.join(", ")))
    })
}

fn is_whole(word: &str) -> bool {
    word == "-" || word.starts_with('{') || word.starts_with('@')
}

/// Reads the whole object: from the word, a file, or standard input.
pub(crate) fn whole(word: &str) -> Result<Map<String, Value>> {
    let (text, place) = match word.strip_prefix('@') {
        Some(file) => {
            let text = fs::read_to_string(file)
                .map_err(|error| CliError::usage(format!("cannot read {file}: {error}")))?;
            (text, file)
        }
        None if word == "-" => {
            let mut text = String::new();
            io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| CliError::usage(format!("cannot read standard input: {error}")))?;
            (text, "standard input")
        }
        None => (word.to_owned(), "the command line"),
    };
    serde_json::from_str(&text).map_err(|error| {
        CliError::usage(format!("{place} is not a JSON object: {error}"))
            .remedy("write an object such as {\"key\": 1}")
    })
}

/// Lists the arguments of a tool.
fn named(tool: &str, fields: &[Field]) -> String {
    if fields.is_empty() {
        return format!("remove the arguments; `{tool}` takes none");
    }
    let one = |field: &Field| match field.is_required {
        true => format!("{} ({})", field.name, field.hint),
        false => format!("[{} ({})]", field.name, field.hint),
    };
    format!("use its arguments: {}", fields.iter().map(one).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::arguments;

    fn schema() -> Value {
        json!({
            "properties": {
                "name": {"type": "string"},
                "count": {"type": "integer"},
                "ratio": {"type": "number"},
                "loud": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "size": {"enum": ["small", "large"]},
                "more": {"type": "object"},
            },
            "required": ["name"],
        })
    }

    fn made(words: &[&str]) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        arguments("greet", &schema(), &words).map(Value::Object).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_from_words_are_typed_by_schema() {
        let words =
            ["name=7", "count=-7", "ratio=1e3", "loud=yes", "tags=a", "tags=b=c", "size=large"];
        let expected = json!({"name": "7", "count": -7, "ratio": 1e3, "loud": true,
            "tags": ["a", "b=c"], "size": "large"});
        assert_eq!(made(&words), Ok(expected));
        let raw = ["name:=\"x\"", "more:={\"a\":[1]}"];
        assert_eq!(made(&raw), Ok(json!({"name": "x", "more": {"a": [1]}})));
        assert_eq!(made(&[r#"{"name": "x"}"#]), Ok(json!({"name": "x"})));
    }

    #[test]
    fn invalid_arguments_are_rejected_before_sending() {
        for (words, why) in [
            (&["name=a", "count=x"][..], "`count` must be an integer, not `x`"),
            (&["name=a", "loud=maybe"], "`loud` must be true or false, not `maybe`"),
            (&["name=a", "size=huge"], "`size` cannot be `huge`"),
            (&["name=a", "nmae=b"], "`greet` has no argument `nmae`"),
            (&["count=1"], "`greet` requires the argument `name` (text)"),
            (&["name=a", "name=b"], "`name` is set twice"),
            (&["name"], "`name` is not a valid argument"),
            (
                &[r#"{"name": 1"#],
                "the command line is not a JSON object: EOF while parsing an object at line 1 column 10",
            ),
        ] {
            assert_eq!(made(words), Err(why.to_owned()), "{words:?}");
        }
    }
}
