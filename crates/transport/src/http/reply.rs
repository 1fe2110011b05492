//! Complete responses: results, errors and responses of the transport itself.

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use outlive_protocol::ErrorReply;

use super::{AuthRejection, Body};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Returns a response with a JSON body.
pub(super) fn json(status: u16, body: Vec<u8>) -> Response<Body> {
    json_body(status, Bytes::from(body))
}

/// Returns a response with a JSON body, whose bytes may carry a charge.
pub(super) fn json_body(status: u16, body: Bytes) -> Response<Body> {
    json_response(status, Body::full(body))
}

/// Returns a response with a JSON body.
pub(super) fn json_response(status: u16, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// Returns the response to a rejected message.
pub(super) fn refusal(refusal: ErrorReply) -> Response<Body> {
    json(refusal.status, refusal.body)
}

/// Returns the response to an accepted notification.
pub(super) fn accepted() -> Response<Body> {
    empty(StatusCode::ACCEPTED)
}

pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Returns an error of the transport: a JSON-RPC error without an ID, because no message was read.
pub(super) fn problem(status: StatusCode, message: &str) -> Response<Body> {
    #[derive(serde::Serialize)]
    struct Problem<'a> {
        jsonrpc: &'static str,
        error: Error<'a>,
    }
    #[derive(serde::Serialize)]
    struct Error<'a> {
        code: i32,
        message: &'a str,
    }
    let problem = Problem {
        jsonrpc: "2.0",
        error: Error { code: outlive_wire::code::INVALID_REQUEST, message },
    };
    json(status.as_u16(), serde_json::to_vec(&problem).unwrap_or_default())
}

/// Returns an error for an exceeded limit. `what` tells the client what to do.
pub(super) fn over_limit(status: StatusCode, limit: &str, what: &str) -> Response<Body> {
    let mut response = problem(status, &format!("the limit `{limit}` is used up: {what}"));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Returns an error for a method that the path does not support.
pub(super) fn method_not_allowed(allowed: &'static str) -> Response<Body> {
    let mut response =
        problem(StatusCode::METHOD_NOT_ALLOWED, &format!("this path supports {allowed}"));
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Returns the response to a rejected authentication.
pub(super) fn denied(denied: &AuthRejection) -> Response<Body> {
    let mut response = problem(denied.status(), denied.message());
    for (name, value) in denied.headers() {
        response.headers_mut().append(name, value.clone());
    }
    response
}

/// Returns a public document. Web pages of any origin may read it: it contains no secrets, and
/// clients need it before they can authenticate.
pub(super) fn document(method: &Method, document: Bytes) -> Response<Body> {
    let mut response = match *method {
        Method::GET | Method::HEAD => {
            let mut response = Response::new(Body::full(document));
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, JSON);
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
            response
        }
        Method::OPTIONS => {
            let mut response = empty(StatusCode::NO_CONTENT);
            let headers = response.headers_mut();
            let any = HeaderValue::from_static("*");
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET"));
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, any);
            response
        }
        _ => method_not_allowed("GET"),
    };
    let any = HeaderValue::from_static("*");
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    response
}

/// Returns a response with an event stream.
pub(super) fn event_response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
