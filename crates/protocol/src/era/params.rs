//! A request as it came, with the members of `params` that more than one method has.

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

/// A request as it came. Parts of it are JSON as it stands in the message.
#[derive(Debug)]
pub struct Request<'a> {
    pub(crate) message: &'a ByteString,
    pub(crate) id: &'a str,
    pub(crate) method: Str<'a>,
    params: Option<&'a str>,
    pub(crate) head: Params<'a>,
}

impl<'a> Request<'a> {
    /// Reads a request with the usual members, nested no deeper than this, and nothing else: `None`
    /// says no more than that it is no such message. The [`Envelope`] tells the others apart and
    /// says what is wrong; this is for the calls that a server answers all day, and reads their
    /// text once instead of twice.
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

    /// Makes a request of what the envelope says.
    pub(crate) fn of(
        message: &'a ByteString,
        id: &'a RawValue,
        method: Str<'a>,
        params: Option<&'a RawValue>,
    ) -> Result<Self, ProtocolError> {
        let head = Params::read(params)?;
        Ok(Self { message, id: id.get(), method, params: params.map(RawValue::get), head })
    }

    /// Reads a request that was taken before.
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

    /// The parameters as JSON text: an object, `{}` where the message has none.
    pub(crate) fn params(&self) -> &'a str {
        self.params.unwrap_or("{}")
    }

    /// Where the parameters stand in the message, if it has any.
    pub(crate) fn params_span(&self) -> Option<Span> {
        self.params.map(|params| Span::of(self.message, params))
    }
}

/// Takes a member that may be there once. Two readers could each believe another one.
fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// Declares members of a JSON object once: a field for the text of each, and how the scanner finds it.
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
            /// Reads the value of a member; skips it if its name is not declared.
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
    /// The members of `params` that are read before the method has decided its type. They stay raw:
    /// a method of the application's own may use the same names for something else.
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
    /// The keys of `_meta` that the specification reserves for requests, and ours.
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
    /// Reads the shared members of usual parameters.
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

    /// Reads the shared members. Key order and unknown members do not matter.
    pub(crate) fn read(params: Option<&'a RawValue>) -> Result<Self, ProtocolError> {
        let Some(params) = params else { return Ok(Self::default()) };
        // serde would take an array for a struct.
        if !params.get().starts_with('{') {
            return Err(ProtocolError::invalid_params("`params` must be an object"));
        }
        serde_json::from_str(params.get())
            .map_err(|error| ProtocolError::invalid_params(format!("`params`: {error}")))
    }

    /// The version that the request names in its `_meta`, if it is a string.
    pub(crate) fn version(&self) -> Option<&'a str> {
        self.meta.as_ref().and_then(|meta| meta.version).and_then(plain_string)
    }

    /// Whether `_meta` has a key that only modern requests have.
    pub(crate) fn looks_modern(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.version.is_some() || meta.capabilities.is_some())
    }

    /// Where everything stands in the message.
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

/// The text of a JSON string without escapes. The strings asked for never need any.
pub(crate) fn plain_string(json: &str) -> Option<&str> {
    json.strip_prefix('"')?.strip_suffix('"')
}

/// Judged by its bytes, as the envelope judges ids: no number is parsed.
fn is_string_or_integer(json: &str) -> bool {
    json.starts_with('"')
        || json.strip_prefix('-').unwrap_or(json).bytes().all(|byte| byte.is_ascii_digit())
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
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de str>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(|raw| Some(raw.get()))
}

#[cfg(test)]
mod tests {
    use bytestring::ByteString;
    use outlive_wire::{Envelope, Message};

    use super::Request;

    const LEVELS: usize = 8;

    /// All that a request says.
    fn shown(request: &Request<'_>) -> String {
        let Request { id, method, head, .. } = request;
        format!("{} {id} {} {head:?}", &**method, request.params())
    }

    /// What the envelope makes of a message.
    fn by_envelope(message: &ByteString) -> Option<String> {
        let Message::Request { id, method, params } =
            serde_json::from_str::<Envelope<'_>>(message).ok()?.classify().ok()?
        else {
            return None;
        };
        Request::of(message, id, method, params).ok().as_ref().map(shown)
    }

    /// Whatever is read in one pass is read as the envelope reads it.
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
    fn usual_requests_are_read_in_one_pass_in_any_order() {
        for usual in USUAL {
            check(usual, true);
        }
    }

    /// A byte more, a byte less, another byte: most of that is no request any more.
    #[test]
    fn what_is_slightly_wrong_is_not_taken() {
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
        assert!(taken > 1_000, "most letters of a string may be others: {taken}");
    }

    #[test]
    fn what_is_nested_too_deep_is_not_taken() {
        let nested = |levels: usize| {
            // Two of them are the message and its parameters.
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
    fn everything_else_is_left_to_the_envelope() {
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
