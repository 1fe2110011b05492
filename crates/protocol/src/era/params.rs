//! A request as it came, with the members of `params` that more than one method has.

use std::fmt;

use bytes::Bytes;
use outlive_wire::Str;
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
    pub(crate) message: &'a Bytes,
    pub(crate) id: &'a RawValue,
    pub(crate) method: Str<'a>,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) head: Params<'a>,
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
    #[serde(borrow, default, rename = "_meta", deserialize_with = "object")]
    pub(crate) meta: Option<MetaKeys<'a>>,
}

/// The keys of `_meta` that the specification reserves for requests.
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

    /// Where everything stands in the message.
    pub(crate) fn spans(
        &self,
        message: &[u8],
        params: Option<&RawValue>,
    ) -> Result<ParamSpans, Fault> {
        let span = |raw: Option<&RawValue>| raw.map(|raw| Span::of(message, raw.get()));
        let meta = self.meta.as_ref();
        let progress_token = meta.and_then(|meta| meta.progress_token);
        if progress_token.is_some_and(|token| !is_token(token.get())) {
            return Err(Fault::invalid_params(
                "`_meta.progressToken` must be a string or an integer",
            ));
        }
        Ok(ParamSpans {
            params: span(params),
            name: span(self.name),
            uri: span(self.uri),
            arguments: span(self.arguments),
            progress_token: span(progress_token),
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

/// Reads `_meta`: an object, and `null` as none. Derived code alone would take an array, too.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<MetaKeys<'de>>, D::Error> {
    struct Object;

    impl<'de> Visitor<'de> for Object {
        type Value = Option<MetaKeys<'de>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            MetaKeys::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }

    deserializer.deserialize_any(Object)
}

/// Keeps `null` apart from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
