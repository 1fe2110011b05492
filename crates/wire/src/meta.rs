//! The `_meta` object of messages.
//!
//! The keys that the specification reserves are defined here only.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic#meta>

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::{LoggingLevel, Str};

/// The `_meta` object of a message, with all its keys.
///
/// ```
/// use outlive_wire::Meta;
///
/// let meta = Meta::default().with("com.example/trace", "abc");
/// assert_eq!(serde_json::to_string(&meta).unwrap(), r#"{"com.example/trace":"abc"}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meta(pub Map<String, Value>);

impl Meta {
    /// Protocol version of the request; 2026-07-28, required.
    pub const PROTOCOL_VERSION: &'static str = "io.modelcontextprotocol/protocolVersion";
    /// Capabilities of the client; 2026-07-28, required.
    pub const CLIENT_CAPABILITIES: &'static str = "io.modelcontextprotocol/clientCapabilities";
    /// Name and version of the client; 2026-07-28.
    pub const CLIENT_INFO: &'static str = "io.modelcontextprotocol/clientInfo";
    /// Name and version of the server, in results; 2026-07-28.
    pub const SERVER_INFO: &'static str = "io.modelcontextprotocol/serverInfo";
    /// Lowest level of log notifications that a request wants; 2026-07-28.
    pub const LOG_LEVEL: &'static str = "io.modelcontextprotocol/logLevel";
    /// ID of the listen request whose stream carries a notification; 2026-07-28.
    pub const SUBSCRIPTION_ID: &'static str = "io.modelcontextprotocol/subscriptionId";
    /// Task that a message belongs to; 2025-11-25.
    pub const RELATED_TASK: &'static str = "io.modelcontextprotocol/related-task";
    /// Token of the progress notifications that a request wants.
    pub const PROGRESS_TOKEN: &'static str = "progressToken";
    /// W3C trace context.
    pub const TRACEPARENT: &'static str = "traceparent";
    /// Vendor-specific part of the W3C trace context.
    pub const TRACESTATE: &'static str = "tracestate";
    /// W3C baggage.
    pub const BAGGAGE: &'static str = "baggage";

    /// Adds or replaces an entry.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.insert(key.into(), value.into());
        self
    }

    /// Returns whether a server or client may define a key.
    ///
    /// A key is an optional prefix of dot-separated labels and a slash, then a name. A prefix is
    /// reserved if any protocol version reserves it; older versions have different rules.
    ///
    /// ```
    /// use outlive_wire::{Meta, MetaKeyError};
    ///
    /// assert_eq!(Meta::check_key("com.example.mcp/trace"), Ok(()));
    /// assert_eq!(Meta::check_key("dev.mcp/trace"), Err(MetaKeyError::Reserved));
    /// ```
    pub fn check_key(key: &str) -> Result<(), MetaKeyError> {
        let (prefix, name) = match key.split_once('/') {
            Some((prefix, name)) => (Some(prefix), name),
            None => (None, key),
        };
        if !prefix.is_none_or(|prefix| prefix.split('.').all(is_label)) {
            return Err(MetaKeyError::Prefix);
        }
        if !is_name(name) {
            return Err(MetaKeyError::Name);
        }
        if prefix.is_some_and(is_reserved) {
            return Err(MetaKeyError::Reserved);
        }
        Ok(())
    }
}

impl Deref for Meta {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Meta {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl From<Map<String, Value>> for Meta {
    fn from(map: Map<String, Value>) -> Self {
        Self(map)
    }
}

/// The reason why a key is not allowed in `_meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetaKeyError {
    /// A label of the prefix is invalid.
    Prefix,
    /// The name is invalid.
    Name,
    /// The prefix is reserved for MCP.
    Reserved,
}

impl fmt::Display for MetaKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prefix => {
                "each label of a prefix starts with a letter, ends with a letter or digit, \
                 and has only letters, digits and hyphens between"
            }
            Self::Name => {
                "a name starts and ends with a letter or digit, \
                 and has only letters, digits, `-`, `_` and `.` between"
            }
            Self::Reserved => {
                "the prefix is reserved for MCP; use your own domain, as in `com.example/`"
            }
        })
    }
}

impl std::error::Error for MetaKeyError {}

/// The reserved keys of a request's `_meta`, borrowed and mostly raw.
///
/// All members are optional, because legacy requests have none. The modern era requires the first
/// two.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct RequestMetaObject<'a> {
    /// See [`Meta::PROTOCOL_VERSION`].
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub protocol_version: Option<Str<'a>>,
    /// See [`Meta::CLIENT_CAPABILITIES`].
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Option<&'a RawValue>,
    /// See [`Meta::CLIENT_INFO`].
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    pub client_info: Option<&'a RawValue>,
    /// See [`Meta::LOG_LEVEL`].
    #[serde(default, rename = "io.modelcontextprotocol/logLevel")]
    pub log_level: Option<LoggingLevel>,
    /// See [`Meta::PROGRESS_TOKEN`].
    #[serde(borrow, default, rename = "progressToken")]
    pub progress_token: Option<&'a RawValue>,
}

fn is_label(label: &str) -> bool {
    label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label.ends_with(|c: char| c.is_ascii_alphanumeric())
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Returns whether a name is valid. The grammar allows an empty name, as in `com.example/`.
fn is_name(name: &str) -> bool {
    name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Returns whether a prefix is reserved: in 2026-07-28 by its second label, in 2025-06-18 by any
/// label except the last.
fn is_reserved(prefix: &str) -> bool {
    let ours = |label: &str| matches!(label, "modelcontextprotocol" | "mcp");
    let mut labels = prefix.split('.').enumerate().peekable();
    while let Some((place, label)) = labels.next() {
        if ours(label) && (place == 1 || labels.peek().is_some()) {
            return true;
        }
    }
    false
}
