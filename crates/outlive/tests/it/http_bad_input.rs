//! Every row of bad input over HTTP, with its status and code.

mod bytes; // what is no message, in every era
mod legacy; // what the revisions with a handshake refuse
mod modern; // what 2026-07-28 refuses
mod order; // two things wrong at once: which is told
mod panics; // handlers that panic
mod sizes; // too large, too deep, too many headers

use serde_json::Value;

use crate::support::http::Response;

/// The response must be this refusal. Returns the error for a closer look.
#[track_caller]
fn refused(response: &Response, status: u16, code: i64, id: impl Into<Value>) -> Value {
    let body = response.json();
    let id: Value = id.into();
    assert_eq!(response.status(), status, "status of {body}");
    assert_eq!(body["jsonrpc"], "2.0");
    assert_eq!(body["error"]["code"], code, "code of {body}");
    match id {
        // An id that could not be read is left out, not null.
        Value::Null => assert!(body.get("id").is_none(), "an id in {body}"),
        id => assert_eq!(body["id"], id, "id of {body}"),
    }
    assert!(body.get("result").is_none(), "{body}");
    let message = body["error"]["message"].as_str().expect("an error says something");
    assert!(!message.is_empty() && !message.ends_with('.'), "{message}");
    body["error"].clone()
}

/// As [`refused`], and the message must say this.
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
