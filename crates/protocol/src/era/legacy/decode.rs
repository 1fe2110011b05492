//! Turns a legacy request into a [`Call`], with what its session remembers.

use std::sync::{Arc, OnceLock};

use outlive_wire::Method;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::Legacy;
use crate::{
    Call, ClientTaskSupport, MessageContext, Outbox, ProtocolError, ResponseModes, Session,
    call::{ParamSpans, Span},
    era::{Era, Request},
};

impl Legacy {
    /// Checks a request and makes a call of it. `custom` tells whether the application handles a
    /// method that the specification does not name.
    pub(crate) fn decode(
        &'static self,
        request: &Request<'_>,
        arrival: MessageContext<'_>,
        session: Arc<Session>,
        custom: impl FnOnce(&str) -> bool,
    ) -> Result<Arc<Call>, ProtocolError> {
        let method = Method::parse(&request.method);
        let custom_method = match method {
            Some(method) if self.has(method) => None,
            _ if custom(&request.method) => Some(Box::from(&*request.method)),
            _ => return Err(ProtocolError::MethodNotFound { name: (*request.method).to_owned() }),
        };
        let message = request.message;
        Ok(Arc::new(Call {
            era: self,
            id: Span::of(message, request.id),
            method: method.filter(|_| custom_method.is_none()),
            custom_method,
            parts: ParamSpans {
                // No earlier round exists here: a client that sends these means something else.
                input_responses: None,
                request_state: None,
                ..request.head.spans(message)?
            },
            log_level: None,
            principal: arrival.principal,
            session: Some(session),
            peer: arrival.peer,
            http: arrival.http,
            params: request.params_span(),
            port: Outbox::default(),
            attachment: OnceLock::new(),
            watch: OnceLock::new(),
            message: message.clone(),
        }))
    }
}

/// Whether the client wants a task, and for how long.
pub(super) fn holding(call: &Call) -> Result<ClientTaskSupport, ProtocolError> {
    #[derive(Deserialize)]
    struct Wish {
        ttl: Option<u64>,
    }
    let Some(task) = call.task() else { return Ok(ClientTaskSupport::NotRequested) };
    match serde_json::from_str::<Wish>(task) {
        Ok(Wish { ttl }) if task.starts_with('{') => Ok(ClientTaskSupport::Requests { ttl }),
        _ => Err(ProtocolError::invalid_params(
            "`params.task` must be an object, and its `ttl` a whole number of milliseconds",
        )),
    }
}

/// In which ways the client wants to be answered. Names that we do not know are no reason to refuse
/// those that we do.
pub(super) fn response_modes(call: &Call) -> Result<Option<ResponseModes>, ProtocolError> {
    #[derive(Deserialize)]
    struct Wish<'a> {
        #[serde(borrow, default, rename = "responseModes", deserialize_with = "present")]
        modes: Option<&'a RawValue>,
    }
    let wish = call.task().and_then(|task| serde_json::from_str::<Wish<'_>>(task).ok());
    let Some(modes) = wish.and_then(|wish| wish.modes) else { return Ok(None) };
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

/// After which block the client wants the rest. Blocks are numbered from 1.
pub(super) fn last_seq_nr(call: &Call) -> Result<Option<u64>, ProtocolError> {
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
            "`params.lastSeqNr` must be a whole number from 1 on",
        )),
    }
}

/// One that is greater than any number we have is as good as the greatest.
fn whole_number(text: &str) -> Option<u64> {
    let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Keeps `null` apart from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
