//! A request as it came, with the members of `params` that more than one method has.

use std::{fmt, marker::PhantomData};

use bytestring::ByteString;
use outlive_wire::{Envelope, Message, Str};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

use crate::{
    Fault,
    call::{ParamSpans, Span},
};

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) message: &'a ByteString,
    pub(crate) id: &'a RawValue,
    pub(crate) method: Str<'a>,
    pub(crate) head: Params<'a>,
}

impl<'a> Request<'a> {
    /// Reads a request with the usual members, and nothing else: `None` says no more than that it
    /// is no such message. The [`Envelope`] tells the others apart and says what is wrong; this is
    /// for the calls that a server answers all day, and reads their text once instead of twice.
    pub(crate) fn read(message: &'a ByteString) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Usual<'a> {
            #[serde(borrow)]
            jsonrpc: Str<'a>,
            #[serde(borrow)]
            id: &'a RawValue,
            #[serde(borrow)]
            method: Str<'a>,
            #[serde(borrow, default, deserialize_with = "only_object")]
            params: Params<'a>,
        }
        let Usual { jsonrpc, id, method, params: head } = serde_json::from_str(message).ok()?;
        let envelope = Envelope {
            jsonrpc: Some(jsonrpc),
            id: Some(id),
            method: Some(method),
            params: None,
            result: None,
            error: None,
        };
        match envelope.classify() {
            Ok(Message::Request { id, method, .. }) => Some(Self { message, id, method, head }),
            _ => None,
        }
    }

    /// The parameters as JSON text: an object, `{}` where the message has none.
    pub(crate) fn params(&self) -> &'a str {
        params_of(self.message).unwrap_or("{}")
    }
}

/// The parameters of a request, looked up in its bytes.
pub(crate) fn params_of(message: &str) -> Option<&str> {
    let envelope: Envelope<'_> = serde_json::from_str(message).ok()?;
    envelope.params.map(RawValue::get)
}

/// The members of `params` that are read before the method has decided its type. They stay raw:
/// a method of the application's own may use the same names for something else.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Params<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "inputResponses")]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "requestState")]
    request_state: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "taskId")]
    task_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    task: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta", deserialize_with = "object")]
    pub(crate) meta: Option<MetaKeys<'a>>,
}

/// The keys of `_meta` that the specification reserves for requests, and ours.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct MetaKeys<'a> {
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        rename = "io.modelcontextprotocol/protocolVersion"
    )]
    pub(crate) version: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        rename = "io.modelcontextprotocol/clientCapabilities"
    )]
    pub(crate) capabilities: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        rename = "io.modelcontextprotocol/clientInfo"
    )]
    pub(crate) info: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        rename = "io.modelcontextprotocol/logLevel"
    )]
    pub(crate) log_level: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present", rename = "progressToken")]
    pub(crate) progress_token: Option<&'a RawValue>,
    /// Our own: under which key the caller wants this done once only.
    #[serde(borrow, default, deserialize_with = "present", rename = "dev.outlive/idempotencyKey")]
    pub(crate) idempotency_key: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    /// Reads the shared members. Key order and unknown members do not matter.
    pub(crate) fn read(params: Option<&'a RawValue>) -> Result<Self, Fault> {
        let Some(params) = params else { return Ok(Self::default()) };
        // serde would take an array for a struct.
        if !params.get().starts_with('{') {
            return Err(Fault::invalid_params("`params` must be an object"));
        }
        serde_json::from_str(params.get())
            .map_err(|error| Fault::invalid_params(format!("`params`: {error}")))
    }

    /// The version that the request names in its `_meta`, if it is a string.
    pub(crate) fn version(&self) -> Option<&'a str> {
        self.meta.as_ref().and_then(|meta| meta.version).and_then(plain_string)
    }

    /// Whether `_meta` has a key that only modern requests have.
    pub(crate) fn looks_modern(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.version.is_some() || meta.capabilities.is_some())
    }

    /// `params.name` or `params.uri` as it stands in the message.
    pub(crate) fn name(&self) -> Option<&'a RawValue> {
        self.name
    }

    /// `params.uri` as it stands in the message.
    pub(crate) fn uri(&self) -> Option<&'a RawValue> {
        self.uri
    }

    /// `params.taskId` as it stands in the message.
    pub(crate) fn task_id(&self) -> Option<&'a RawValue> {
        self.task_id
    }

    /// Where everything stands in the message.
    pub(crate) fn spans(&self, message: &str) -> Result<ParamSpans, Fault> {
        let span = |raw: Option<&RawValue>| raw.map(|raw| Span::of(message, raw.get()));
        let meta = self.meta.as_ref();
        let progress_token = meta.and_then(|meta| meta.progress_token);
        if progress_token.is_some_and(|token| !is_token(token.get())) {
            return Err(Fault::invalid_params(
                "`_meta.progressToken` must be a string or an integer",
            ));
        }
        Ok(ParamSpans {
            name: span(self.name),
            uri: span(self.uri),
            arguments: span(self.arguments),
            input_responses: span(self.input_responses),
            request_state: span(self.request_state),
            task_id: span(self.task_id),
            task: span(self.task),
            progress_token: span(progress_token),
            idempotency_key: span(meta.and_then(|meta| meta.idempotency_key)),
            client_info: span(meta.and_then(|meta| meta.info)),
            client_capabilities: span(meta.and_then(|meta| meta.capabilities)),
        })
    }
}

/// The text of a JSON string without escapes. The strings asked for never need any.
pub(crate) fn plain_string(raw: &RawValue) -> Option<&str> {
    raw.get().strip_prefix('"')?.strip_suffix('"')
}

fn is_token(raw: &str) -> bool {
    raw.starts_with('"')
        || raw.strip_prefix('-').unwrap_or(raw).bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads `_meta`: an object, and `null` as none.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<MetaKeys<'de>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Object<'a>(#[serde(borrow, deserialize_with = "only_object")] MetaKeys<'a>);

    Ok(Option::<Object<'_>>::deserialize(deserializer)?.map(|Object(keys)| keys))
}

/// Reads an object. Derived code alone would take an array, too.
fn only_object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Object<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_map(Object(PhantomData))
}

/// Keeps `null` apart from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use bytestring::ByteString;
    use outlive_wire::{Envelope, Message};
    use serde_json::value::RawValue;

    use super::{Params, Request};

    /// What the envelope makes of a message: method, id, parameters and their shared members.
    fn by_envelope(text: &str) -> Option<String> {
        let Message::Request { id, method, params } =
            serde_json::from_str::<Envelope<'_>>(text).ok()?.classify().ok()?
        else {
            return None;
        };
        let head = Params::read(params).ok()?;
        let params = params.map_or("{}", RawValue::get);
        Some(format!("{} {} {params} {head:?}", &*method, id.get()))
    }

    /// Whatever is read in one pass is read as the envelope reads it.
    #[track_caller]
    fn check(text: &str, usual: bool) {
        let message = ByteString::from(text);
        let read = Request::read(&message);
        assert_eq!(read.is_some(), usual, "{text}");
        if let Some(request) = read {
            let Request { id, method, head, .. } = &request;
            let seen = format!("{} {} {} {head:?}", &**method, id.get(), request.params());
            assert_eq!(Some(seen), by_envelope(text), "{text}");
        }
    }

    #[test]
    fn usual_requests_are_read_in_one_pass_in_any_order() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, true);
        check(r#" { "params" : { } , "method":"p\u0069ng","id":"a\"b","jsonrpc":"2.0"} "#, true);
        check(
            r#"{"jsonrpc":"2.0","id":-7,"method":"m","params":{"x":[{}],"name":null,"uri":1}}"#,
            true,
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":3,"a":[]},"arguments":[]}}"#,
            true,
        );
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":null}}"#, true);
    }

    #[test]
    fn everything_else_is_left_to_the_envelope() {
        for other in [
            r#"{"jsonrpc":"2.0","method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","mine":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":1,"name":2}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#,
            "",
        ] {
            check(other, false);
        }
    }
}
