//! DELETE: a legacy client ends its session.

use std::sync::Arc;

use http::{Response, StatusCode};
use outlive_protocol::era;

use super::{Body, post::Head, reply, service::Shared};

/// Takes one DELETE.
pub(super) fn delete(shared: &Arc<Shared>, head: &Head) -> Response<Body> {
    let headers = &head.parts.headers;
    if !shared.keeps_sessions() || era::headers_look_modern(headers) {
        return reply::method_not_allowed(shared.methods());
    }
    match shared.required_session(headers, &head.principal) {
        Ok(entry) => {
            shared.end_session(&entry.id);
            reply::empty(StatusCode::NO_CONTENT)
        }
        Err(response) => *response,
    }
}
