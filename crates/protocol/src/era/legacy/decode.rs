//! Turns a legacy request into a [`Call`], with the data of its session.

use std::sync::{Arc, OnceLock};

use outlive_wire::Method;

use crate::{
    Call, MessageContext, Outbox, ProtocolError, VersionRules,
    call::{ParamSpans, Span},
    era::params::Request,
};

/// Validates a request and builds a call. `is_custom` returns whether the application handles a
/// custom method.
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
            // The legacy era has no rounds, so these two members have another meaning.
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
        rerun_of: None,
        message: message.clone(),
    }))
}
