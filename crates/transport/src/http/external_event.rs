//! POST from outside: a job system says what came of something that a task waits for. The token in
//! the path is all it needs to show.

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

/// The token, if a path is that of a place where values are taken.
pub(super) fn token<'p>(state: &HttpState, path: &'p str) -> Option<&'p str> {
    let base = state.config.external_event_path.as_deref()?;
    let token = path.strip_prefix(base)?.strip_prefix('/')?;
    (!token.is_empty() && !token.contains('/')).then_some(token)
}

/// Takes a value.
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
    // Before the body is read: a caller without a valid token must not make the server read 4 MiB.
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
            "something was said before, or nobody waits for it any more",
        ),
        CompletionOutcome::Unavailable(why) => {
            let message = format!("it could not be stored; say it again later: {why}");
            reply::problem(StatusCode::SERVICE_UNAVAILABLE, &message)
        }
        _ => unknown(),
    }
}

fn unknown() -> Response<Body> {
    reply::problem(StatusCode::NOT_FOUND, "this token is none of this server's")
}
