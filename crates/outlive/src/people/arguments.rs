//! The arguments of a call as people see them: exact numbers, and no secrets.

use std::borrow::Cow;

use outlive_protocol::StoredCall;
use outlive_wire::{OrderedMap, RawJson};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use crate::server::ShownTool;

/// Number of characters above which a page folds a value.
const FOLD: usize = 1_000;

/// Maximum depth in which a schema is searched for secrets.
const MAX_SCHEMA_DEPTH: usize = 16;

/// An argument of a call, as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShownArgument {
    /// Name of the argument.
    pub name: String,
    /// JSON text of the value, exactly as the client sent it; empty for a secret.
    pub json: String,
    /// Number of characters of the value.
    pub characters: usize,
    /// Whether the value is a secret, which no interface shows.
    pub is_hidden: bool,
    /// Whether the value is so long that a page folds it.
    pub is_folded: bool,
}

impl ShownArgument {
    /// Creates an argument that is shown.
    pub fn new(name: impl Into<String>, json: impl Into<String>) -> Self {
        let (name, json) = (name.into(), json.into());
        let characters = json.chars().count();
        Self { name, json, characters, is_hidden: false, is_folded: characters > FOLD }
    }

    fn hidden(name: String, value: &RawValue) -> Self {
        let characters = match serde_json::from_str::<String>(value.get()) {
            Ok(text) => text.chars().count(),
            Err(_) => value.get().chars().count(),
        };
        Self { name, json: String::new(), characters, is_hidden: true, is_folded: false }
    }

    /// Returns the value as text: its JSON, or the size of a secret.
    pub fn text(&self) -> Cow<'_, str> {
        match self.is_hidden {
            true => Cow::Owned(hidden_text(self.characters)),
            false => Cow::Borrowed(&self.json),
        }
    }
}

/// Returns the arguments of a stored call. `tool` marks secrets.
pub(super) fn shown(tool: Option<&ShownTool>, call: &RawValue) -> Vec<ShownArgument> {
    let Some(arguments) = raw(call) else { return Vec::new() };
    let Ok(members) = serde_json::from_str::<OrderedMap<RawJson>>(arguments.get()) else {
        return vec![ShownArgument::new("arguments", arguments.get())];
    };
    let secrets = Secrets::new(tool);
    let shown = members.0.into_iter().map(|(name, value)| match secrets.contain(&name) {
        true => ShownArgument::hidden(name, &value),
        false => ShownArgument::new(name, value.get()),
    });
    shown.collect()
}

/// Returns the words of the command that a stored call runs, without secrets.
pub(super) fn command_words(tool: &ShownTool, call: &RawValue) -> Option<Vec<String>> {
    let words = tool.command_words.as_ref()?;
    let arguments = raw(call).or_else(|| to_raw_value(&serde_json::Map::new()).ok())?;
    let mut members: OrderedMap<RawJson> = serde_json::from_str(arguments.get()).ok()?;
    let secrets = Secrets::new(Some(tool));
    for (name, value) in &mut members.0 {
        if secrets.contain(name) {
            let size = ShownArgument::hidden(String::new(), value).characters;
            *value = to_raw_value(&hidden_text(size)).ok()?;
        }
    }
    words(&to_raw_value(&members).ok()?)
}

/// Returns the arguments of a stored call, exactly as the client sent them.
pub(super) fn raw(call: &RawValue) -> Option<RawJson> {
    serde_json::from_str::<StoredCall>(call.get()).ok()?.arguments()
}

/// Returns the name and version of the client that made a stored call.
pub(super) fn client(call: &RawValue) -> Option<String> {
    let info = serde_json::from_str::<StoredCall>(call.get()).ok()?.client_info()?;
    Some(format!("{} {}", info.name, info.version))
}

/// Returns the text in place of a secret.
pub(super) fn hidden_text(characters: usize) -> String {
    format!("hidden, {characters} characters")
}

/// The secret arguments of a tool, which its JSON Schema marks with `writeOnly` or with the format
/// `password`.
struct Secrets(Value);

impl Secrets {
    fn new(tool: Option<&ShownTool>) -> Self {
        let schema = tool.and_then(|tool| serde_json::from_str(tool.input_schema.get()).ok());
        Self(schema.unwrap_or_default())
    }

    /// Returns whether an argument is secret or contains a secret.
    fn contain(&self, name: &str) -> bool {
        self.0["properties"].get(name).is_some_and(|schema| self.is_secret(schema, 0))
    }

    fn is_secret(&self, schema: &Value, depth: usize) -> bool {
        if depth > MAX_SCHEMA_DEPTH {
            return false;
        }
        match schema {
            Value::Object(members) => {
                schema["writeOnly"] == true
                    || schema["format"] == "password"
                    || self.referred(schema).is_some_and(|it| self.is_secret(it, depth + 1))
                    || members.values().any(|member| self.is_secret(member, depth + 1))
            }
            Value::Array(items) => items.iter().any(|item| self.is_secret(item, depth + 1)),
            _ => false,
        }
    }

    fn referred(&self, schema: &Value) -> Option<&Value> {
        self.0.pointer(schema["$ref"].as_str()?.strip_prefix('#')?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::value::RawValue;

    use super::{FOLD, command_words, shown};
    use crate::server::ShownTool;

    fn call(arguments: &str) -> Box<RawValue> {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
        );
        let call = format!(r#"{{"version":"2026-07-28","message":{message}}}"#);
        RawValue::from_string(call).unwrap()
    }

    fn tool(schema: &str) -> ShownTool {
        ShownTool {
            description: None,
            input_schema: Arc::from(RawValue::from_string(schema.to_owned()).unwrap()),
            command_words: Some(Arc::new(|arguments: &RawValue| {
                Some(vec!["run".to_owned(), arguments.get().to_owned()])
            })),
            definition: None,
            allows_links: false,
        }
    }

    #[test]
    fn numbers_and_duplicate_members_are_shown_exactly() {
        let shown = shown(None, &call(r#"{"a":12345678901234567890123,"a":1.50e400,"b":"x"}"#));
        let texts: Vec<_> = shown.iter().map(|it| (it.name.as_str(), it.text())).collect();
        let expected = [("a", "12345678901234567890123"), ("a", "1.50e400"), ("b", "\"x\"")];
        assert!(texts.iter().zip(expected).all(|(one, other)| (one.0, &*one.1) == other));
        assert_eq!(shown.len(), 3);
    }

    #[test]
    fn long_value_is_folded_with_its_size() {
        let long = "x".repeat(FOLD);
        let shown = shown(None, &call(&format!(r#"{{"a":"{long}","b":1}}"#)));
        assert!(shown[0].is_folded && shown[0].characters == FOLD + 2 && !shown[1].is_folded);
    }

    #[test]
    fn secret_argument_shows_its_size_and_no_character() {
        let schema = r##"{"properties":{"a":{"type":"string","writeOnly":true},
            "b":{"type":"string","format":"password"},"c":{"type":"string"},
            "d":{"$ref":"#/$defs/login"},"e":{"type":"object","properties":{"x":{"writeOnly":true}}}},
            "$defs":{"login":{"properties":{"password":{"format":"password"}}}}}"##;
        let arguments = r#"{"a":"päss","b":"abc\u00e9","c":"plain","d":{"x":1},"e":{"x":2}}"#;
        let shown = shown(Some(&tool(schema)), &call(arguments));
        let texts: Vec<_> = shown.iter().map(|it| it.text().into_owned()).collect();
        let expected = [
            "hidden, 4 characters",
            "hidden, 4 characters",
            "\"plain\"",
            "hidden, 7 characters",
            "hidden, 7 characters",
        ];
        assert_eq!(texts, expected);
        let words = command_words(&tool(schema), &call(r#"{"a":"päss","c":1.50}"#)).unwrap();
        assert_eq!(words, ["run", r#"{"a":"hidden, 4 characters","c":1.50}"#]);
    }

    #[test]
    fn schema_that_refers_to_itself_is_searched_to_a_limit() {
        let schema = r##"{"properties":{"a":{"$ref":"#/properties/a"}}}"##;
        assert!(!shown(Some(&tool(schema)), &call(r#"{"a":"x"}"#))[0].is_hidden);
    }
}
