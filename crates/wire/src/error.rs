//! Error objects of responses, and the error codes of the specification.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Error codes of the specification. Outlive sends no other code in `-32768..=-32000`.
pub mod code {
    /// The message is not valid JSON.
    pub const PARSE: i32 = -32700;
    /// The JSON is not a JSON-RPC message.
    pub const INVALID_REQUEST: i32 = -32600;
    /// The method does not exist, or the server does not have its capability.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The parameters are invalid for the method.
    pub const INVALID_PARAMS: i32 = -32602;
    /// The server failed.
    pub const INTERNAL: i32 = -32603;
    /// The resource does not exist; legacy versions only.
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// The user must visit a URL first; 2025-11-25 only.
    pub const URL_ELICITATION_REQUIRED: i32 = -32042;
    /// A mirrored header is missing, malformed or different from the body; 2026-07-28.
    pub const HEADER_MISMATCH: i32 = -32020;
    /// The client did not declare a capability that the request requires; 2026-07-28.
    pub const MISSING_CAPABILITY: i32 = -32021;
    /// The server does not support the protocol version of the request; 2026-07-28.
    pub const UNSUPPORTED_VERSION: i32 = -32022;
}

/// An error object of a response.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErrorObject {
    /// Error code; see [`code`].
    pub code: i32,
    /// A short message for people.
    pub message: String,
    /// Details for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
}
