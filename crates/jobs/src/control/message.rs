//! Messages of a control channel.
//!
//! ```text
//! command> {"progress": 3, "total": 10, "message": "packing"}
//! command> {"input": "go", "message": "Release now?"}
//! command> {"input": "to", "message": "Where to?", "fields": {"region": {"type": "string", "enum": ["eu", "us"]}}}
//! command> {"input": "login", "message": "Log in first.", "url": "https://example.com/login"}
//! command> {"step": "build"}
//! command> {"done": "build", "value": "shop:1"}
//! outlive> {"response": "go", "action": "accept", "content": {"yes": true}}
//! outlive> {"go": "build"}
//! outlive> {"recorded": "build"}
//! outlive> {"rejected": "go", "kind": "duplicate_key", "message": "…"}
//! ```
//!
//! `input`, `step` and `done` are the key of the request, which the response repeats. A recorded step gets
//! `{"recorded": "build", "value": "shop:1"}` instead of `go`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum bytes of the key of an input request or a step.
const MAX_KEY: usize = 128;

/// A message of a command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Progress(Progress),
    Input(InputLine),
    Step(StepLine),
}

/// Progress of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Completed amount.
    pub progress: f64,
    /// Total amount, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// Description of the current activity.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// An input request of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputLine {
    /// Key that the response repeats.
    #[serde(rename = "input")]
    pub key: String,
    /// Text for the user.
    pub message: String,
    /// Form fields, as in JSON Schema. Without fields, the form is a yes/no confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Map<String, Value>>,
    /// Required fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<Vec<String>>,
    /// URL to open, instead of a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The start or the end of a step of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a step starts and ends")]
pub enum StepLine {
    /// The command is about to execute the step, unless it is recorded.
    Start {
        /// Key that the response repeats.
        key: String,
    },
    /// The command has executed the step.
    Done {
        /// Key that the response repeats.
        key: String,
        /// Value of the step.
        value: Value,
    },
}

impl StepLine {
    /// Returns the key.
    pub fn key(&self) -> &str {
        match self {
            Self::Start { key } | Self::Done { key, .. } => key,
        }
    }

    fn read(object: Map<String, Value>) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Start {
            step: String,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Done {
            done: String,
            #[serde(default)]
            value: Value,
        }
        if object.contains_key("step") {
            return read(object).map(|Start { step }| Self::Start { key: step });
        }
        read(object).map(|Done { done, value }| Self::Done { key: done, value })
    }
}

/// Reply to a message that is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Rejected {
    /// Key of the input request, if the message has one.
    #[serde(rename = "rejected")]
    pub(crate) key: Option<String>,
    pub(crate) kind: RejectedKind,
    pub(crate) message: String,
}

/// Reason why a message is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RejectedKind {
    /// The line is not a valid message.
    Invalid,
    /// An input request with this key is open.
    DuplicateKey,
    /// The message exceeds a limit.
    TooLarge,
    /// The tool does not allow input requests.
    NotInteractive,
    /// The tool does not allow steps.
    NoSteps,
    /// The request cannot be recorded.
    Unavailable,
}

impl Rejected {
    pub(crate) fn new(key: Option<&str>, kind: RejectedKind, message: String) -> Self {
        Self { key: key.map(str::to_owned), kind, message }
    }

    /// Returns the reply as a line for the command.
    pub(crate) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn invalid(key: Option<&str>, message: String) -> Self {
        Self::new(key, RejectedKind::Invalid, message)
    }
}

impl Message {
    /// Parses a line.
    pub(crate) fn read(line: &[u8]) -> Result<Self, Rejected> {
        let object = serde_json::from_slice(line).map_err(|error| {
            Rejected::invalid(
                None,
                format!("a control message must be one JSON object per line: {error}"),
            )
        })?;
        Self::from_object(object)
    }

    pub(super) fn from_object(object: Map<String, Value>) -> Result<Self, Rejected> {
        let keys = ["input", "step", "done"].iter().filter_map(|name| object.get(*name));
        let key = keys.filter_map(Value::as_str).next().map(str::to_owned);
        let invalid =
            |error: serde_json::Error| Rejected::invalid(key.as_deref(), error.to_string());
        if object.contains_key("input") {
            let input: InputLine = read(object).map_err(invalid)?;
            check_key(&input.key, "an input request")?;
            return Ok(Self::Input(input));
        }
        if object.contains_key("step") || object.contains_key("done") {
            let step = StepLine::read(object).map_err(invalid)?;
            check_key(step.key(), "a step")?;
            return Ok(Self::Step(step));
        }
        if object.contains_key("progress") {
            return read(object).map(Self::Progress).map_err(invalid);
        }
        let what = "a control message must have `input`, `progress`, `step` or `done`";
        Err(Rejected::invalid(None, what.to_owned()))
    }
}

fn check_key(key: &str, of: &str) -> Result<(), Rejected> {
    match (1..=MAX_KEY).contains(&key.len()) {
        true => Ok(()),
        false => {
            Err(Rejected::invalid(None, format!("the key of {of} must have 1 to {MAX_KEY} bytes")))
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(object: Map<String, Value>) -> serde_json::Result<T> {
    serde_json::from_value(Value::Object(object))
}

#[cfg(test)]
mod tests {
    use super::{Message, RejectedKind, StepLine};

    #[test]
    fn message_of_each_kind_is_read() {
        let Ok(Message::Progress(progress)) = Message::read(br#"{"progress": 1, "total": 4}"#)
        else {
            panic!("expected progress")
        };
        assert_eq!((progress.progress, progress.total), (1.0, Some(4.0)));
        let Ok(Message::Input(input)) = Message::read(br#"{"input": "go", "message": "Go?"}"#)
        else {
            panic!("expected an input request")
        };
        assert_eq!((input.key.as_str(), input.message.as_str()), ("go", "Go?"));
        let start = StepLine::Start { key: "build".to_owned() };
        assert_eq!(Message::read(br#"{"step": "build"}"#), Ok(Message::Step(start)));
        let done = |value| StepLine::Done { key: "build".to_owned(), value };
        for (line, value) in [
            (&br#"{"done": "build"}"#[..], serde_json::Value::Null),
            (br#"{"done": "build", "value": 7}"#, 7.into()),
        ] {
            assert_eq!(Message::read(line), Ok(Message::Step(done(value))));
        }
    }

    #[test]
    fn invalid_message_is_rejected_with_its_key() {
        let lines: [(&[u8], Option<&str>); 9] = [
            (b"hello", None),
            (b"[]", None),
            (b"{}", None),
            (br#"{"ask": "Go?"}"#, None),
            (br#"{"input": 3, "message": "Go?"}"#, None),
            (br#"{"input": "", "message": "Go?"}"#, None),
            (br#"{"input": "go", "message": "Go?", "feilds": {}}"#, Some("go")),
            (br#"{"step": "build", "once": true}"#, Some("build")),
            (br#"{"done": ""}"#, None),
        ];
        for (line, key) in lines {
            let rejected = Message::read(line).expect_err("the line is not a message");
            assert_eq!(rejected.kind, RejectedKind::Invalid);
            assert_eq!(rejected.key.as_deref(), key, "{rejected:?}");
        }
        assert!(Message::read(b"{\"input\": \"\xff\", \"message\": \"\"}").is_err());
    }
}
