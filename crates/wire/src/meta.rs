//! `_meta`: what a message says beside its subject.
//!
//! The keys that the specification reserves are spelled here and nowhere else.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic#meta>

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::{LoggingLevel, Str};

/// The `_meta` object of a message, with every key it came with.
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
    /// The revision a request speaks; 2026-07-28, required.
    pub const PROTOCOL_VERSION: &'static str = "io.modelcontextprotocol/protocolVersion";
    /// What the client can do; 2026-07-28, required.
    pub const CLIENT_CAPABILITIES: &'static str = "io.modelcontextprotocol/clientCapabilities";
    /// Who the client is; 2026-07-28.
    pub const CLIENT_INFO: &'static str = "io.modelcontextprotocol/clientInfo";
    /// Who the server is, in results; 2026-07-28.
    pub const SERVER_INFO: &'static str = "io.modelcontextprotocol/serverInfo";
    /// The least level of log notifications that a request wants; 2026-07-28.
    pub const LOG_LEVEL: &'static str = "io.modelcontextprotocol/logLevel";
    /// The id of the listen request whose stream carries a notification; 2026-07-28.
    pub const SUBSCRIPTION_ID: &'static str = "io.modelcontextprotocol/subscriptionId";
    /// The task that a message belongs to; 2025-11-25.
    pub const RELATED_TASK: &'static str = "io.modelcontextprotocol/related-task";
    /// Asks for progress notifications that carry this token.
    pub const PROGRESS_TOKEN: &'static str = "progressToken";
    /// W3C trace context.
    pub const TRACEPARENT: &'static str = "traceparent";
    /// W3C trace context, vendor part.
    pub const TRACESTATE: &'static str = "tracestate";
    /// W3C baggage.
    pub const BAGGAGE: &'static str = "baggage";

    /// Adds or replaces an entry.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.insert(key.into(), value.into());
        self
    }

    /// Says whether a server or client may use a key for its own purposes.
    ///
    /// A key is an optional prefix of dot-separated labels and a slash, then a name. Reserved is
    /// what any revision reserves: those before 2026-07-28 drew the line elsewhere.
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

/// Why a key may not be used in `_meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetaKeyError {
    /// A label of the prefix is malformed.
    Prefix,
    /// The name is malformed.
    Name,
    /// The prefix belongs to the protocol.
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

/// The `_meta` of a request, borrowed: what the protocol itself needs, and nothing parsed further.
///
/// All members are optional here, as legacy requests have none; the modern era demands its two.
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

/// The grammar allows the empty name, so that `com.example/` is a key.
fn is_name(name: &str) -> bool {
    name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// 2026-07-28 reserves by the second label, 2025-06-18 by any label that another one follows.
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
