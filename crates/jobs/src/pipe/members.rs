//! Members of a message that decide where it goes. Supervisors read nothing else of a message.

use std::fmt;

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{self, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// Members of a JSON-RPC message that decide where it goes. IDs are JSON text: numbers, or strings
/// with their quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has no other messages")]
pub enum Members {
    /// A request, which waits for a response with its ID.
    Request {
        /// ID of the request.
        id: String,
    },
    /// The response to a request.
    Response {
        /// ID of the request.
        id: String,
    },
    /// A notification.
    Notification {
        /// Progress token, if the notification has one.
        progress_token: Option<String>,
        /// ID of the request that the notification is about, such as a cancelled one.
        request_id: Option<String>,
    },
}

impl Members {
    /// Reads a message. Returns `None` if it is not a JSON-RPC message.
    pub fn read(message: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Top<'a> {
            #[serde(borrow, default)]
            id: Option<&'a RawValue>,
            #[serde(borrow, default)]
            method: Option<&'a RawValue>,
            #[serde(borrow, default)]
            params: Option<&'a RawValue>,
        }
        // A struct would also decode from an array.
        if message.trim_ascii_start().first() != Some(&b'{') {
            return None;
        }
        let top: Top<'_> = serde_json::from_slice(message).ok()?;
        match (top.id, top.method) {
            (Some(id), Some(_)) => Some(Self::Request { id: id_text(id.get())? }),
            (Some(id), None) => Some(Self::Response { id: id_text(id.get())? }),
            (None, Some(_)) => Some(Self::notification(top.params)),
            (None, None) => None,
        }
    }

    fn notification(params: Option<&RawValue>) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            progress_token: Option<&'a RawValue>,
            #[serde(borrow)]
            request_id: Option<&'a RawValue>,
        }
        let params = params.map(RawValue::get).filter(|params| params.starts_with('{'));
        let params: Params<'_> =
            params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
        let text = |id: Option<&RawValue>| id.and_then(|id| id_text(id.get()));
        Self::Notification {
            progress_token: text(params.progress_token),
            request_id: text(params.request_id),
        }
    }
}

/// Returns the JSON text of an ID in the form of [`Members`], or `None` if it is not an ID.
pub fn id_text(id: &str) -> Option<String> {
    match serde_json::from_str::<Value>(id).ok()? {
        id @ (Value::String(_) | Value::Number(_)) => Some(id.to_string()),
        _ => None,
    }
}

/// Splits a batch into its messages, which servers of one protocol version send. Returns `None` if
/// the line is not a batch, or has too many messages.
pub(super) fn split(line: &Bytes) -> Option<Vec<Bytes>> {
    if line.first() != Some(&b'[') {
        return None;
    }
    let Batch(parts) = serde_json::from_slice(line).ok()?;
    Some(parts.into_iter().map(|part| line.slice_ref(part.get().as_bytes())).collect())
}

/// Maximum number of messages of a batch.
const MAX_BATCH: usize = 1_024;

/// Messages of a batch.
struct Batch<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Batch<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Batch<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an array of at most {MAX_BATCH} messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Batch<'de>, A::Error> {
                let mut read = Vec::new();
                while let Some(part) = parts.next_element()? {
                    if read.len() == MAX_BATCH {
                        return Err(de::Error::invalid_length(read.len() + 1, &self));
                    }
                    read.push(part);
                }
                Ok(Batch(read))
            }
        }
        deserializer.deserialize_seq(Parts)
    }
}

#[cfg(test)]
mod tests {
    use super::{Members, id_text, split};

    #[track_caller]
    #[allow(clippy::needless_pass_by_value, reason = "the calls are shorter")]
    fn check(message: &str, expected: Option<Members>) {
        assert_eq!(Members::read(message.as_bytes()), expected, "{message}");
    }

    #[test]
    fn members_of_each_kind_of_message_are_read() {
        let id = || "7".to_owned();
        check(r#"{"id":7,"method":"a","params":{}}"#, Some(Members::Request { id: id() }));
        check(r#" {"result":{"id":1},"id":7}"#, Some(Members::Response { id: id() }));
        let text = Members::Response { id: r#""a\"b""#.to_owned() };
        check(r#"{"id":"a\u0022b","error":{}}"#, Some(text));
        let progress = r#"{"method":"p","params":{"progressToken":7,"progress":1}}"#;
        let token = Some(id());
        let expected = Members::Notification { progress_token: token, request_id: None };
        check(progress, Some(expected));
        let cancelled = r#"{"method":"c","params":{"requestId":7}}"#;
        let expected = Members::Notification { progress_token: None, request_id: Some(id()) };
        check(cancelled, Some(expected));
        let plain = Members::Notification { progress_token: None, request_id: None };
        check(r#"{"method":"n","params":[1,2]}"#, Some(plain.clone()));
        check(r#"{"method":"n"}"#, Some(plain));
    }

    #[test]
    fn line_that_is_not_message_has_no_members() {
        for line in ["", "hello", "[]", "[7,\"a\"]", "{}", r#"{"id":null}"#, r#"{"id":{}}"#, "7"] {
            check(line, None);
        }
    }

    #[test]
    fn batch_is_split_into_messages() {
        let parts = split(&r#"[{"id":1}, {"id":2}]"#.into()).unwrap();
        assert_eq!(parts, [r#"{"id":1}"#, r#"{"id":2}"#]);
        let long = format!("[1{}]", ",1".repeat(super::MAX_BATCH));
        for line in [r#"{"id":1}"#, "[1", &long] {
            assert_eq!(split(&line.to_owned().into()), None);
        }
    }

    #[test]
    fn equal_ids_have_equal_texts() {
        assert_eq!(id_text(r#""a""#), id_text(r#""\u0061""#));
        assert_ne!(id_text("7"), id_text(r#""7""#));
        assert_eq!(id_text("null"), None);
    }
}
