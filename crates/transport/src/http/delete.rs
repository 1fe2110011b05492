//! DELETE: a legacy client ends its session.

use std::sync::Arc;

use http::{Response, StatusCode};
use outlive_protocol::era;

use super::{Body, post::Head, reply, service::Shared};

/// Takes one DELETE.
pub(super) async fn delete(shared: &Arc<Shared>, head: Head) -> Response<Body> {
    let headers = &head.parts.headers;
    if !shared.keeps_sessions() || era::headers_look_modern(headers) {
        return reply::method_not_allowed(shared.methods());
    }
    let entry = match shared.required_session(&head).await {
        Ok(entry) => entry,
        Err(response) => return *response,
    };
    match Box::pin(shared.close_session(&entry)).await {
        Ok(()) => reply::empty(StatusCode::NO_CONTENT),
        Err(response) => *response,
    }
}
