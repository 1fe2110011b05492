//! One JSON-RPC message, borrowed from its bytes.
//!
//! The envelope is read without unions: which members are there decides what it is, and `params`,
//! `result` and `error` stay raw until the method has decided their type. Key order never matters.

use std::{borrow::Cow, ops::Deref};

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// JSON that is kept as its text.
pub type RawJson = Box<RawValue>;

/// A string that borrows from its JSON unless an escape forces a copy.
///
/// `Option<Cow<str>>` always owns under serde; this newtype does not.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Str<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// The members of a JSON-RPC message as they stand in the text.
///
/// A member that is present but `null` is `Some`: `"id": null` is not the same as no id.
#[derive(Clone, Debug, Deserialize)]
#[serde(expecting = "a JSON-RPC message")]
pub struct Envelope<'a> {
    /// Must be `"2.0"`.
    #[serde(borrow, default)]
    pub jsonrpc: Option<Str<'a>>,
    /// A string or an integer; see [`Envelope::classify`].
    #[serde(borrow, default, deserialize_with = "present")]
    pub id: Option<&'a RawValue>,
    /// What is asked or told.
    #[serde(borrow, default)]
    pub method: Option<Str<'a>>,
    /// Its parameters.
    #[serde(borrow, default, deserialize_with = "present")]
    pub params: Option<&'a RawValue>,
    /// The answer, in a response.
    #[serde(borrow, default, deserialize_with = "present")]
    pub result: Option<&'a RawValue>,
    /// The refusal, in a response.
    #[serde(borrow, default, deserialize_with = "present")]
    pub error: Option<&'a RawValue>,
}

/// What an [`Envelope`] turned out to be.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC 2.0 has these three and will have no other")]
pub enum Message<'a> {
    /// Wants an answer.
    Request {
        /// A JSON string or integer, verbatim, to be echoed verbatim.
        id: &'a RawValue,
        /// What is asked.
        method: Str<'a>,
        /// Its parameters.
        params: Option<&'a RawValue>,
    },
    /// Wants none.
    Notification {
        /// What is told.
        method: Str<'a>,
        /// Its parameters.
        params: Option<&'a RawValue>,
    },
    /// Answers a request of ours.
    Response {
        /// The id we gave; absent when the peer could not read it.
        id: Option<&'a RawValue>,
        /// `Ok` for a result, `Err` for an error object.
        outcome: Result<&'a RawValue, &'a RawValue>,
    },
}

impl<'a> Envelope<'a> {
    /// Decides what the message is, or says in a few words why it is none.
    ///
    /// The id of a refused message is still in [`Envelope::id`], so that the refusal can carry it.
    pub fn classify(self) -> Result<Message<'a>, &'static str> {
        if self.jsonrpc.as_deref() != Some("2.0") {
            return Err("`jsonrpc` must be \"2.0\"");
        }
        if self.params.is_some_and(|params| !matches!(params.get().as_bytes()[0], b'{' | b'[')) {
            return Err("`params` must be an object");
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => match self.id {
                None => Ok(Message::Notification { method, params: self.params }),
                Some(id) if is_id(id) => Ok(Message::Request { id, method, params: self.params }),
                Some(_) => Err("`id` must be a string or an integer"),
            },
            (Some(_), ..) => Err("a message has `method`, or `result`, or `error`"),
            (None, Some(result), None) => match self.id {
                Some(id) if is_id(id) => {
                    Ok(Message::Response { id: Some(id), outcome: Ok(result) })
                }
                _ => Err("a result needs the `id` of its request"),
            },
            (None, None, Some(error)) => match self.id {
                Some(id) if is_id(id) => {
                    Ok(Message::Response { id: Some(id), outcome: Err(error) })
                }
                Some(id) if id.get() != "null" => Err("`id` must be a string or an integer"),
                _ => Ok(Message::Response { id: None, outcome: Err(error) }),
            },
            (None, Some(_), Some(_)) => Err("a response has `result` or `error`, not both"),
            (None, None, None) => Err("`method` is missing"),
        }
    }

    /// The id, if it is one that a refusal may repeat.
    pub fn echo_id(&self) -> Option<&'a RawValue> {
        self.id.filter(|id| is_id(id))
    }
}

/// Whether raw JSON is a string or an integer, judged by its bytes: no number is parsed, so that
/// none loses digits on its way back.
fn is_id(raw: &RawValue) -> bool {
    match raw.get().as_bytes() {
        [b'"', ..] => true,
        [b'-' | b'0'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Keeps `null` apart from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
