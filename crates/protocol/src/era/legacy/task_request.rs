//! Reads the task members of legacy requests: `params.task` of a call, `params.lastSeqNr` of
//! `tasks/result`.

use outlive_wire::Method;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{Call, ClientTaskSupport, ProtocolError, ResponseModes, TaskDialect, TaskRequest};

/// Reads the task members of a request.
pub(super) fn read(call: &Call) -> Result<TaskRequest, ProtocolError> {
    let support = match call.rules().tasks {
        TaskDialect::None => ClientTaskSupport::Unsupported,
        _ => support(call)?,
    };
    Ok(TaskRequest {
        support,
        response_modes: response_modes(call),
        after_seq: last_seq_nr(call),
        reads_segments: false,
    })
}

fn support(call: &Call) -> Result<ClientTaskSupport, ProtocolError> {
    #[derive(Deserialize)]
    struct Requested {
        ttl: Option<u64>,
    }
    let Some(task) = call.task() else { return Ok(ClientTaskSupport::NotRequested) };
    match serde_json::from_str::<Requested>(task) {
        Ok(Requested { ttl }) if task.starts_with('{') => Ok(ClientTaskSupport::Requests { ttl }),
        _ => Err(ProtocolError::invalid_params(
            "`params.task` must be an object, and its `ttl` an integer in milliseconds",
        )),
    }
}

/// Returns the response modes that the client accepts. Ignores unknown names.
fn response_modes(call: &Call) -> Result<Option<ResponseModes>, ProtocolError> {
    #[derive(Deserialize)]
    struct Requested<'a> {
        #[serde(borrow, default, rename = "responseModes", deserialize_with = "present")]
        modes: Option<&'a RawValue>,
    }
    let requested = call.task().and_then(|task| serde_json::from_str::<Requested<'_>>(task).ok());
    let Some(modes) = requested.and_then(|requested| requested.modes) else { return Ok(None) };
    let modes: Vec<String> = serde_json::from_str(modes.get()).map_err(|_| {
        ProtocolError::invalid_params("`params.task.responseModes` must be an array of strings")
    })?;
    let has = |name: &str| modes.iter().any(|mode| mode == name);
    Ok(Some(ResponseModes {
        immediate: has(ResponseModes::IMMEDIATE),
        streaming: has(ResponseModes::STREAMING),
        task: has(ResponseModes::TASK),
    }))
}

/// Returns the sequence number of the last segment that the client has. Segments are numbered from
/// 1.
fn last_seq_nr(call: &Call) -> Result<Option<u64>, ProtocolError> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, default, rename = "lastSeqNr", deserialize_with = "present")]
        last: Option<&'a RawValue>,
    }
    if call.method() != Some(Method::TasksResult) {
        return Ok(None);
    }
    let params: Params<'_> = serde_json::from_str(call.params())
        .map_err(|error| ProtocolError::invalid_params(format!("`params`: {error}")))?;
    let Some(last) = params.last else { return Ok(None) };
    match whole_number(last.get()) {
        Some(last @ 1..) => Ok(Some(last)),
        _ => Err(ProtocolError::invalid_params(
            "`params.lastSeqNr` must be an integer of at least 1",
        )),
    }
}

/// Parses a whole number. Saturates if the number exceeds `u64`.
fn whole_number(text: &str) -> Option<u64> {
    let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Distinguishes `null` from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
