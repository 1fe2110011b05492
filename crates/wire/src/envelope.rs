//! The envelope of a JSON-RPC message, borrowed from its bytes.
//!
//! The present members determine the kind of message. `params`, `result` and `error` stay raw until
//! the method is known. The order of members does not matter.

use std::{borrow::Cow, ops::Deref};

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// JSON kept as text.
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

/// The members of a JSON-RPC message as JSON text.
///
/// A member that is `null` is `Some`: `"id": null` differs from an absent ID.
#[derive(Clone, Debug, Deserialize)]
#[serde(expecting = "a JSON-RPC message")]
pub struct Envelope<'a> {
    /// Must be `"2.0"`.
    #[serde(borrow, default)]
    pub jsonrpc: Option<Str<'a>>,
    /// A string or an integer; see [`Envelope::classify`].
    #[serde(borrow, default, deserialize_with = "present")]
    pub id: Option<&'a RawValue>,
    /// Name of the method.
    #[serde(borrow, default)]
    pub method: Option<Str<'a>>,
    /// Parameters of the method.
    #[serde(borrow, default, deserialize_with = "present")]
    pub params: Option<&'a RawValue>,
    /// Result, in a response.
    #[serde(borrow, default, deserialize_with = "present")]
    pub result: Option<&'a RawValue>,
    /// Error object, in a response.
    #[serde(borrow, default, deserialize_with = "present")]
    pub error: Option<&'a RawValue>,
}

/// The kind of message in an [`Envelope`].
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC 2.0 is fixed")]
pub enum Message<'a> {
    /// A request.
    Request {
        /// Request ID: a JSON string or integer, which the response repeats unchanged.
        id: &'a RawValue,
        /// Name of the method.
        method: Str<'a>,
        /// Parameters of the method.
        params: Option<&'a RawValue>,
    },
    /// A notification.
    Notification {
        /// Name of the method.
        method: Str<'a>,
        /// Parameters of the method.
        params: Option<&'a RawValue>,
    },
    /// A response.
    Response {
        /// ID of the request; absent if the peer could not read it.
        id: Option<&'a RawValue>,
        /// `Ok` for a result, `Err` for an error object.
        outcome: Result<&'a RawValue, &'a RawValue>,
    },
}

impl<'a> Envelope<'a> {
    /// Determines the kind of message, or returns why the message is invalid.
    ///
    /// The error response to an invalid message can repeat its ID: see [`Envelope::echo_id`].
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
            (Some(_), ..) => Err("a message must have one of `method`, `result` and `error`"),
            (None, Some(result), None) => match self.id {
                Some(id) if is_id(id) => {
                    Ok(Message::Response { id: Some(id), outcome: Ok(result) })
                }
                _ => Err("a result must have the `id` of its request"),
            },
            (None, None, Some(error)) => match self.id {
                Some(id) if is_id(id) => {
                    Ok(Message::Response { id: Some(id), outcome: Err(error) })
                }
                Some(id) if id.get() != "null" => Err("`id` must be a string or an integer"),
                _ => Ok(Message::Response { id: None, outcome: Err(error) }),
            },
            (None, Some(_), Some(_)) => Err("a response must have `result` or `error`, not both"),
            (None, None, None) => Err("`method` is missing"),
        }
    }

    /// Returns the ID if an error response can repeat it.
    pub fn echo_id(&self) -> Option<&'a RawValue> {
        self.id.filter(|id| is_id(id))
    }
}

/// Returns whether raw JSON is a string or an integer. Checks bytes only: parsing a number could
/// lose digits.
fn is_id(raw: &RawValue) -> bool {
    match raw.get().as_bytes() {
        [b'"', ..] => true,
        [b'-' | b'0'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Distinguishes `null` from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
