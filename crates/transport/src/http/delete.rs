//! DELETE: ends the session of a legacy client.

use std::sync::Arc;

use http::{Response, StatusCode};
use outlive_protocol::era;

use super::{body::Body, head::Head, reply, state::HttpState};

/// Handles a DELETE request.
pub(super) async fn delete(state: &Arc<HttpState>, head: Head) -> Response<Body> {
    let headers = &head.parts.headers;
    if !state.keeps_sessions() || era::headers_look_modern(headers) {
        return reply::method_not_allowed(state.methods());
    }
    let entry = match state.required_session(&head).await {
        Ok(entry) => entry,
        Err(response) => return *response,
    };
    match Box::pin(state.close_session(&entry)).await {
        Ok(()) => reply::empty(StatusCode::NO_CONTENT),
        Err(response) => *response,
    }
}
