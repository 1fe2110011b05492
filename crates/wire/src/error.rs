//! The error member of a response, and every code the specification gives a meaning.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// The codes that the specification defines. Nothing else in `-32768..=-32000` is ever sent.
pub mod code {
    /// The bytes are not JSON.
    pub const PARSE: i32 = -32700;
    /// The JSON is not a JSON-RPC message.
    pub const INVALID_REQUEST: i32 = -32600;
    /// No such method, or its capability is not offered.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: i32 = -32602;
    /// Something broke on this side.
    pub const INTERNAL: i32 = -32603;
    /// No such resource; legacy revisions only.
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// The client must visit a URL first; 2025-11-25 only.
    pub const URL_ELICITATION_REQUIRED: i32 = -32042;
    /// A mirrored header differs from the body, is missing or malformed; 2026-07-28.
    pub const HEADER_MISMATCH: i32 = -32020;
    /// The client did not declare a capability that the request needs; 2026-07-28.
    pub const MISSING_CAPABILITY: i32 = -32021;
    /// The request names a revision that is not served; 2026-07-28.
    pub const UNSUPPORTED_VERSION: i32 = -32022;
}

/// Why a request was refused or failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErrorObject {
    /// What kind of failure; see [`code`].
    pub code: i32,
    /// One concise sentence for people.
    pub message: String,
    /// Details for programs, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
}
