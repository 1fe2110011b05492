//! Turns a legacy request into a [`Call`], with what its session remembers.

use std::sync::{Arc, OnceLock};

use outlive_wire::Method;

use crate::{
    Call, MessageContext, Outbox, ProtocolError, VersionRules,
    call::{ParamSpans, Span},
    era::params::Request,
};

/// Checks a request and makes a call of it. `is_custom` tells whether the application handles a
/// method that the specification does not name.
pub(super) fn call(
    rules: &'static VersionRules,
    request: &Request<'_>,
    arrival: MessageContext<'_>,
    is_custom: &dyn Fn(&str) -> bool,
) -> Result<Arc<Call>, ProtocolError> {
    let method = Method::parse(&request.method);
    let custom_method = match method {
        Some(method) if rules.methods.contains(&method) => None,
        _ if is_custom(&request.method) => Some(Box::from(&*request.method)),
        _ => return Err(ProtocolError::MethodNotFound { name: (*request.method).to_owned() }),
    };
    let message = request.message;
    Ok(Arc::new(Call {
        rules,
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
        session: arrival.session,
        peer: arrival.peer,
        http: arrival.http,
        params: request.params_span(),
        port: Outbox::default(),
        watch: OnceLock::new(),
        message: message.clone(),
    }))
}
