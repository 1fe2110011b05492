//! Turns a legacy request into a [`Call`], with what its session remembers.

use std::sync::{Arc, OnceLock};

use outlive_wire::Method;
use serde::Deserialize;

use super::Legacy;
use crate::{
    Arrival, Call, Fault, Holding, Port, Session,
    call::{ParamSpans, Span},
    era::{Era, Request},
};

impl Legacy {
    /// Checks a request and makes a call of it. `custom` tells whether the application handles a
    /// method that the specification does not name.
    pub(crate) fn decode(
        &'static self,
        request: &Request<'_>,
        arrival: Arrival<'_>,
        session: Arc<Session>,
        custom: impl FnOnce(&str) -> bool,
    ) -> Result<Arc<Call>, Fault> {
        let method = Method::parse(&request.method);
        let custom_method = match method {
            Some(method) if self.has(method) => None,
            _ if custom(&request.method) => Some(Box::from(&*request.method)),
            _ => return Err(Fault::UnknownMethod { name: (*request.method).to_owned() }),
        };
        let message = request.message;
        Ok(Arc::new(Call {
            era: self,
            id: Span::of(message, request.id.get()),
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
            params: OnceLock::new(),
            port: Port::default(),
            attachment: OnceLock::new(),
            message: message.clone(),
        }))
    }
}

/// Whether the client wants a task, and for how long.
pub(super) fn holding(call: &Call) -> Result<Holding, Fault> {
    #[derive(Deserialize)]
    struct Wish {
        ttl: Option<u64>,
    }
    let Some(task) = call.task() else { return Ok(Holding::Silent) };
    match serde_json::from_str::<Wish>(task) {
        Ok(Wish { ttl }) if task.starts_with('{') => Ok(Holding::Wants { ttl }),
        _ => Err(Fault::invalid_params(
            "`params.task` must be an object, and its `ttl` a whole number of milliseconds",
        )),
    }
}
