//! A parsed request, with the members of `params` that several methods share.

use std::{borrow::Cow, fmt, marker::PhantomData};

use bytestring::ByteString;
use outlive_wire::{Envelope, Message, Str};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

use super::request_scanner::Scan;
use crate::{
    ProtocolError,
    call::{ParamSpans, Span},
};

/// A parsed request. Its parts are JSON text, borrowed from the message.
#[derive(Debug)]
pub struct Request<'a> {
    pub(crate) message: &'a ByteString,
    pub(crate) id: &'a str,
    pub(crate) method: Str<'a>,
    params: Option<&'a str>,
    pub(crate) head: Params<'a>,
}

impl<'a> Request<'a> {
    /// Parses a typical request in one pass: only the usual members, nested at most `levels` deep.
    ///
    /// Returns `None` for any other message, valid or not. The slower [`Envelope`] then
    /// distinguishes them and reports errors.
    pub(crate) fn read(message: &'a ByteString, levels: usize) -> Option<Self> {
        let (mut jsonrpc, mut id, mut method, mut params) = (None, None, None, None);
        let mut head = Params::default();
        let mut scan = Scan::new(message, levels);
        scan.object(|scan, name| match name {
            "jsonrpc" => once(&mut jsonrpc, scan.plain_string()?),
            "id" => once(&mut id, scan.value()?),
            "method" => once(&mut method, scan.plain_string()?),
            "params" => {
                let text = scan.spanning(|scan| head.scan(scan))?;
                once(&mut params, text)
            }
            _ => None,
        })?;
        scan.end()?;
        let id = id.filter(|id| is_string_or_integer(id))?;
        let method = Str(Cow::Borrowed(method?));
        (jsonrpc? == "2.0").then_some(Self { message, id, method, params, head })
    }

    /// Creates a request from the parts of an [`Envelope`].
    pub(crate) fn of(
        message: &'a ByteString,
        id: &'a RawValue,
        method: Str<'a>,
        params: Option<&'a RawValue>,
    ) -> Result<Self, ProtocolError> {
        let head = Params::read(params)?;
        Ok(Self { message, id: id.get(), method, params: params.map(RawValue::get), head })
    }

    /// Parses a request that was accepted before, without a nesting limit.
    pub(crate) fn again(message: &'a ByteString) -> Option<Self> {
        Self::read(message, usize::MAX).or_else(|| {
            let envelope: Envelope<'_> = serde_json::from_str(message).ok()?;
            match envelope.classify().ok()? {
                Message::Request { id, method, params } => {
                    Self::of(message, id, method, params).ok()
                }
                _ => None,
            }
        })
    }

    /// Returns `params` as JSON text: an object, `{}` if the message has none.
    pub(crate) fn params(&self) -> &'a str {
        self.params.unwrap_or("{}")
    }

    /// Returns the position of `params` in the message.
    pub(crate) fn params_span(&self) -> Option<Span> {
        self.params.map(|params| Span::of(self.message, params))
    }
}

/// Sets a member. Returns `None` for a duplicate, because JSON parsers disagree on which one
/// counts.
fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// Declares members of a JSON object: a field with the JSON text of each, and its parser.
macro_rules! members {
    (
        $(#[$doc:meta])*
        $name:ident { $($field:ident = $key:literal,)* }
        $({ $($other:tt)* })?
    ) => {
        $(#[$doc])*
        #[derive(Debug, Default, Deserialize)]
        pub(crate) struct $name<'a> {
            $(
                #[serde(borrow, default, deserialize_with = "present", rename = $key)]
                pub(crate) $field: Option<&'a str>,
            )*
            $($($other)*)?
        }

        impl<'a> $name<'a> {
            /// Reads the value of a member. Skips members that are not declared.
            fn member(&mut self, scan: &mut Scan<'a>, name: &str) -> Option<()> {
                let place = match name {
                    $($key => &mut self.$field,)*
                    _ => return scan.value().map(drop),
                };
                once(place, scan.value()?)
            }
        }
    };
}

members! {
    /// The members of `params` that are read before the type of the parameters is known. They stay
    /// raw, because custom methods may give the same names another meaning.
    Params {
        name = "name",
        uri = "uri",
        arguments = "arguments",
        input_responses = "inputResponses",
        request_state = "requestState",
        task_id = "taskId",
        task = "task",
    }
    {
        #[serde(borrow, default, rename = "_meta", deserialize_with = "object")]
        pub(crate) meta: Option<MetaKeys<'a>>,
    }
}

members! {
    /// The keys of `_meta` that MCP and Outlive define for requests.
    MetaKeys {
        version = "io.modelcontextprotocol/protocolVersion",
        capabilities = "io.modelcontextprotocol/clientCapabilities",
        info = "io.modelcontextprotocol/clientInfo",
        log_level = "io.modelcontextprotocol/logLevel",
        progress_token = "progressToken",
        idempotency_key = "dev.outlive/idempotencyKey",
    }
}

impl<'a> Params<'a> {
    /// Reads the shared members with the scanner.
    fn scan(&mut self, scan: &mut Scan<'a>) -> Option<()> {
        scan.object(|scan, name| match name {
            "_meta" => {
                let mut keys = MetaKeys::default();
                scan.object(|scan, name| keys.member(scan, name))?;
                once(&mut self.meta, keys)
            }
            _ => self.member(scan, name),
        })
    }

    /// Reads the shared members. Ignores unknown members.
    pub(crate) fn read(params: Option<&'a RawValue>) -> Result<Self, ProtocolError> {
        let Some(params) = params else { return Ok(Self::default()) };
        // Checked first, because serde also accepts an array for a struct.
        if !params.get().starts_with('{') {
            return Err(ProtocolError::invalid_params("`params` must be an object"));
        }
        serde_json::from_str(params.get())
            .map_err(|error| ProtocolError::invalid_params(format!("`params`: {error}")))
    }

    /// Returns the protocol version in `_meta`, if it is a string.
    pub(crate) fn version(&self) -> Option<&'a str> {
        self.meta.as_ref().and_then(|meta| meta.version).and_then(plain_string)
    }

    /// Returns whether `_meta` has a key that only modern requests have.
    pub(crate) fn looks_modern(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.version.is_some() || meta.capabilities.is_some())
    }

    /// Returns the positions of the members in the message.
    pub(crate) fn spans(&self, message: &str) -> Result<ParamSpans, ProtocolError> {
        let span = |part: Option<&str>| part.map(|part| Span::of(message, part));
        let meta = self.meta.as_ref();
        let progress_token = meta.and_then(|meta| meta.progress_token);
        if progress_token.is_some_and(|token| !is_string_or_integer(token)) {
            return Err(ProtocolError::invalid_params(
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

/// Returns the content of a JSON string. Does not decode escapes: the values that callers expect
/// have none.
pub(crate) fn plain_string(json: &str) -> Option<&str> {
    json.strip_prefix('"')?.strip_suffix('"')
}

/// Returns whether JSON text is a string or an integer. Checks bytes only and parses no number.
fn is_string_or_integer(json: &str) -> bool {
    json.starts_with('"')
        || json.strip_prefix('-').unwrap_or(json).bytes().all(|byte| byte.is_ascii_digit())
}

/// Deserializes `_meta`: an object, or `null` for `None`.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<MetaKeys<'de>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Object<'a>(#[serde(borrow, deserialize_with = "only_object")] MetaKeys<'a>);

    Ok(Option::<Object<'_>>::deserialize(deserializer)?.map(|Object(keys)| keys))
}

/// Deserializes an object. Derived code alone would also accept an array.
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

/// Distinguishes `null` from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de str>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(|raw| Some(raw.get()))
}

#[cfg(test)]
mod tests {
    use bytestring::ByteString;
    use outlive_wire::{Envelope, Message};

    use super::Request;

    const LEVELS: usize = 8;

    /// Formats every part of a request.
    fn shown(request: &Request<'_>) -> String {
        let Request { id, method, head, .. } = request;
        format!("{} {id} {} {head:?}", &**method, request.params())
    }

    /// Parses a message with the [`Envelope`].
    fn by_envelope(message: &ByteString) -> Option<String> {
        let Message::Request { id, method, params } =
            serde_json::from_str::<Envelope<'_>>(message).ok()?.classify().ok()?
        else {
            return None;
        };
        Request::of(message, id, method, params).ok().as_ref().map(shown)
    }

    /// Checks that the one-pass parser agrees with the [`Envelope`], and whether it accepts `text`.
    #[track_caller]
    fn check(text: &str, usual: bool) {
        let message = ByteString::from(text);
        let read = Request::read(&message, LEVELS);
        assert_eq!(read.is_some(), usual, "{text}");
        let again = Request::again(&message);
        assert_eq!(again.as_ref().map(shown), by_envelope(&message), "{text}");
        if let Some(request) = read {
            assert_eq!(Some(shown(&request)), by_envelope(&message), "{text}");
        }
    }

    const USUAL: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        r#" { "params" : { } , "method":"ping","id":"a\"\u00e9\/b","jsonrpc":"2.0"} "#,
        r#"{"jsonrpc":"2.0","id":-7,"method":"m","params":{"x":[{}],"name":null,"uri":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":3,"a":[]},"arguments":[]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"a":[-0.5e+7,true,false,null,"\n",{"b":[[],{}]}]}}}"#,
    ];

    #[test]
    fn usual_requests_are_parsed_in_one_pass_in_any_member_order() {
        for usual in USUAL {
            check(usual, true);
        }
    }

    /// Inserts, removes and replaces single bytes. Most of the resulting messages are invalid.
    #[test]
    fn one_pass_parser_on_corrupted_request_agrees_with_envelope() {
        let mut taken = 0;
        let mut check = |changed: &[u8]| {
            let Ok(text) = str::from_utf8(changed) else { return };
            let message = ByteString::from(text);
            if let Some(request) = Request::read(&message, LEVELS) {
                taken += 1;
                assert_eq!(Some(shown(&request)), by_envelope(&message), "{text}");
            }
        };
        for usual in USUAL {
            for at in 0..usual.len() {
                let (before, after) = usual.as_bytes().split_at(at);
                check(before);
                check(&[before, &after[1..]].concat());
                for byte in *b"\"\\{}[]:,.-+0eEutn \n\x01x" {
                    check(&[before, &[byte], after].concat());
                    check(&[before, &[byte], &after[1..]].concat());
                }
            }
        }
        assert!(taken > 1_000, "too few corrupted requests are still valid: {taken}");
    }

    #[test]
    fn one_pass_parser_rejects_nesting_above_limit() {
        let nested = |levels: usize| {
            // The message and its parameters are two of the levels.
            let arrays = "[".repeat(levels - 2) + &"]".repeat(levels - 2);
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"x":[],"y":{arrays}}}}}"#)
        };
        check(&nested(LEVELS), true);
        check(&nested(LEVELS + 1), false);
        for levels in [130, 131, 132] {
            let message = ByteString::from(nested(levels));
            assert_eq!(Request::read(&message, 1_000).is_some(), levels <= 130, "{levels}");
        }
    }

    #[test]
    fn one_pass_parser_rejects_unusual_requests() {
        for other in [
            r#"{"jsonrpc":"2.0","method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools\/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"m\u0065thod":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":null}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{},"_meta":{}}}"#,
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
