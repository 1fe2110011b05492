//! Error responses: the parts that both eras share.

use outlive_wire::{RawJson, code};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::ProtocolError;

/// Error code for rate and quota limits. Outside the range that JSON-RPC reserves.
pub(super) const BUSY: i32 = 429;

/// Returns the error code and data that both eras use for an error.
pub(super) fn common(fault: &ProtocolError) -> (i32, Option<RawJson>) {
    let code = match fault {
        ProtocolError::Parse(_) => code::PARSE,
        ProtocolError::InvalidRequest(_)
        | ProtocolError::UnknownSession
        | ProtocolError::MissingScopes { .. } => code::INVALID_REQUEST,
        ProtocolError::MethodNotFound { .. } => code::METHOD_NOT_FOUND,
        ProtocolError::InvalidParams(_)
        | ProtocolError::UnknownTool { .. }
        | ProtocolError::UnknownResource { .. }
        | ProtocolError::UnknownPrompt { .. }
        | ProtocolError::InvalidRequestState
        | ProtocolError::HeaderMismatch(_)
        | ProtocolError::MissingCapability { .. }
        | ProtocolError::UnsupportedProtocolVersion { .. } => code::INVALID_PARAMS,
        ProtocolError::RateLimited { .. } | ProtocolError::OverLimit { .. } => BUSY,
        ProtocolError::Custom(error) => error.code,
        ProtocolError::Internal | ProtocolError::Unavailable { .. } => code::INTERNAL,
    };
    (code, common_data(fault))
}

fn common_data(fault: &ProtocolError) -> Option<RawJson> {
    #[derive(Serialize)]
    struct Uri<'a> {
        uri: &'a str,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Retry {
        retry_after_ms: u64,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Over<'a> {
        limit: &'a str,
        retry_after_ms: u64,
    }
    #[derive(Serialize)]
    struct Reason {
        reason: &'static str,
    }
    #[derive(Serialize)]
    struct Needed {
        reason: &'static str,
        scope: String,
    }
    match fault {
        ProtocolError::MissingScopes { required: needed } => {
            to_raw_value(&Needed { reason: "insufficient_scope", scope: needed.to_string() }).ok()
        }
        ProtocolError::InvalidRequestState => {
            to_raw_value(&Reason { reason: "request_state_invalid" }).ok()
        }
        ProtocolError::UnknownResource { uri } => to_raw_value(&Uri { uri }).ok(),
        ProtocolError::RateLimited { retry_after } | ProtocolError::Unavailable { retry_after } => {
            to_raw_value(&Retry { retry_after_ms: retry_after.as_millis().max(1) as u64 }).ok()
        }
        ProtocolError::OverLimit { limit, retry_after } => {
            let retry_after_ms = retry_after.as_millis().max(1) as u64;
            to_raw_value(&Over { limit, retry_after_ms }).ok()
        }
        ProtocolError::Custom(error) => error.data.clone(),
        _ => None,
    }
}

/// Writes an error response.
pub(super) fn write(
    id: Option<&str>,
    code: i32,
    fault: &ProtocolError,
    data: Option<RawJson>,
    out: &mut Vec<u8>,
) {
    #[derive(Serialize)]
    struct Error {
        code: i32,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<RawJson>,
    }
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.extend_from_slice(br#""id":"#);
        out.extend_from_slice(id.as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(br#""error":"#);
    put(&Error { code, message: fault.to_string(), data }, out);
    out.push(b'}');
}

/// Writes the error response to a message whose era is unknown. Returns the HTTP status.
pub(crate) fn encode_unread(id: Option<&str>, fault: &ProtocolError, out: &mut Vec<u8>) -> u16 {
    let (code, data) = common(fault);
    write(id, code, fault, data, out);
    400
}

/// Serializes into a buffer. Cannot fail: the wire types have string keys and no fallible fields.
pub(super) fn put(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("wire types serialize into memory");
}
