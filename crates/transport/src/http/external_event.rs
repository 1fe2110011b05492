//! POST endpoint for external events. The completion token in the path is the only credential.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use outlive_protocol::{CompletionOutcome, Principal};
use serde_json::value::RawValue;

use super::{
    body::Body,
    reply,
    request_body::{read, unread},
    state::HttpState,
};

/// Returns the completion token in `path`, if `path` is below the endpoint.
pub(super) fn token<'p>(state: &HttpState, path: &'p str) -> Option<&'p str> {
    let base = state.config.external_event_path.as_deref()?;
    let token = path.strip_prefix(base)?.strip_prefix('/')?;
    (!token.is_empty() && !token.contains('/')).then_some(token)
}

/// Handles a request with an external event.
pub(super) async fn take<B>(
    state: &Arc<HttpState>,
    method: &Method,
    token: &str,
    peer: Option<IpAddr>,
    body: B,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    if method != Method::POST {
        return reply::method_not_allowed("POST");
    }
    // Checked before the body is read: a client without a valid token must not make the server read
    // 4 MiB.
    if !state.endpoint.service().knows_token(token) {
        return unread(body, unknown()).await;
    }
    let reading = state.message_reading(&Principal::ANONYMOUS, peer);
    let body = match read(body, reading).await {
        Ok(body) => body,
        Err(response) => return *response,
    };
    let value: Box<RawValue> = match serde_json::from_slice(&body) {
        Ok(value) => value,
        Err(error) => {
            let message = format!("the body must be one JSON value: {error}");
            return reply::problem(StatusCode::BAD_REQUEST, &message);
        }
    };
    let service = Arc::clone(state.endpoint.service());
    match service.complete(token, value).await {
        CompletionOutcome::Taken => reply::empty(StatusCode::NO_CONTENT),
        CompletionOutcome::TooLate => reply::problem(
            StatusCode::CONFLICT,
            "the event has already been completed, or its task no longer waits for it",
        ),
        CompletionOutcome::Unavailable(why) => {
            let message = format!("the event could not be stored; retry later: {why}");
            reply::problem(StatusCode::SERVICE_UNAVAILABLE, &message)
        }
        _ => unknown(),
    }
}

fn unknown() -> Response<Body> {
    reply::problem(StatusCode::NOT_FOUND, "unknown completion token")
}
