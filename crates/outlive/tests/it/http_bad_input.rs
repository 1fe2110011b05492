//! Invalid input over HTTP, with the expected status and error code of each case.

mod bytes; // bodies that are not messages, in every era
mod legacy; // rejections of the legacy versions
mod modern; // rejections of 2026-07-28
mod order; // order of the checks for requests with two defects
mod panics; // handlers that panic
mod sizes; // messages that are too large or too deep, and too many headers

use serde_json::Value;

use crate::support::http::Response;

/// Asserts that the response is this error, and returns the error.
#[track_caller]
fn refused(response: &Response, status: u16, code: i64, id: impl Into<Value>) -> Value {
    let body = response.json();
    let id: Value = id.into();
    assert_eq!(response.status(), status, "status of {body}");
    assert_eq!(body["jsonrpc"], "2.0");
    assert_eq!(body["error"]["code"], code, "code of {body}");
    match id {
        // If the request ID cannot be read, the response has no `id`.
        Value::Null => assert!(body.get("id").is_none(), "an id in {body}"),
        id => assert_eq!(body["id"], id, "id of {body}"),
    }
    assert!(body.get("result").is_none(), "{body}");
    let message = body["error"]["message"].as_str().expect("an error has a message");
    assert!(!message.is_empty() && !message.ends_with('.'), "{message}");
    body["error"].clone()
}

/// Like [`refused`], and asserts that the message contains `words`.
#[track_caller]
fn refused_with(
    response: &Response,
    status: u16,
    code: i64,
    id: impl Into<Value>,
    words: &str,
) -> Value {
    let error = refused(response, status, code, id);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(words), "`{words}` is not in `{message}`");
    error
}
