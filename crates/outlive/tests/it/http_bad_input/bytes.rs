//! Bodies that are not messages. The server rejects them before it knows the era, so each case is
//! sent in every era.

use serde_json::{Value, json};

use super::refused;
use crate::support::http::{HttpFixture, MODERN, Request, Session};

const PARSE: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;

/// Sends each body in every era, expects the same error, and checks that the server still responds.
async fn check(rows: &[(&[u8], i64, Value)]) {
    let server = HttpFixture::start().await;
    for version in [MODERN, "2025-11-25", "2025-06-18", "2025-03-26"] {
        let session = match version {
            MODERN => None,
            version => Some(server.session(version).await),
        };
        let mut connection = server.connect().await;
        for (body, code, id) in rows {
            // In 2025-03-26 an array may be a batch; `batches.rs` tests those.
            if version == "2025-03-26" && body.trim_ascii_start().starts_with(b"[") {
                continue;
            }
            let response = connection.send(&door(session.as_ref()).raw(body)).await;
            refused(&response, 400, *code, id.clone());
        }
        let sane = match &session {
            None => Request::call("echo", json!({"text": "still here"})),
            Some(session) => session.call("echo", json!({"text": "still here"})),
        };
        assert_eq!(connection.send(&sane).await.text(), "still here", "{version}");
    }
}

/// A valid POST except for its body.
fn door(session: Option<&Session>) -> Request {
    match session {
        None => Request::modern("tools/list"),
        Some(session) => session.request("tools/list"),
    }
}

#[tokio::test]
async fn body_that_is_not_json_is_parse_error_without_id() {
    // RPC-06, RPC-15: the request ID cannot be read, so the response has none.
    check(&[
        (b"", PARSE, Value::Null),
        (b" ", PARSE, Value::Null),
        (b"{", PARSE, Value::Null),
        (b"not json", PARSE, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"", PARSE, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}}", PARSE, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,}", PARSE, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":01,\"method\":\"tools/list\"}", PARSE, Value::Null),
        (b"{'jsonrpc':'2.0'}", PARSE, Value::Null),
        (b"NaN", PARSE, Value::Null),
    ])
    .await;
}

#[tokio::test]
async fn body_that_is_not_utf8_is_parse_error() {
    // RPC-01
    check(&[
        (b"\xff\xfe{\"jsonrpc\":\"2.0\"}", PARSE, Value::Null),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"x\":\"\xc3\"}",
            PARSE,
            Value::Null,
        ),
        // A lone surrogate, as some encoders write it.
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xed\xa0\x80\"}", PARSE, Value::Null),
    ])
    .await;
}

#[tokio::test]
async fn json_body_that_is_not_an_object_is_invalid_request() {
    check(&[
        (b"null", INVALID_REQUEST, Value::Null),
        (b"true", INVALID_REQUEST, Value::Null),
        (b"17", INVALID_REQUEST, Value::Null),
        (b"\"tools/list\"", INVALID_REQUEST, Value::Null),
        (b"{}", INVALID_REQUEST, Value::Null),
    ])
    .await;
}

#[tokio::test]
async fn array_body_in_version_without_batches_is_invalid_request() {
    // RPC-29, HTTP26-04
    check(&[
        (b"[]", INVALID_REQUEST, Value::Null),
        (b" \n[1]", INVALID_REQUEST, Value::Null),
        (
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}]",
            INVALID_REQUEST,
            Value::Null,
        ),
    ])
    .await;
}

#[tokio::test]
async fn invalid_envelope_is_invalid_request_with_its_id() {
    check(&[
        (b"{\"id\":1,\"method\":\"tools/list\"}", INVALID_REQUEST, json!(1)),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"tools/list\"}", INVALID_REQUEST, json!(1)),
        (b"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"tools/list\"}", INVALID_REQUEST, json!(1)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"a\"}", INVALID_REQUEST, json!("a")),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":5}", INVALID_REQUEST, json!("a")),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":3}",
            INVALID_REQUEST,
            json!(1),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":null}",
            INVALID_REQUEST,
            json!(1),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[]}",
            INVALID_PARAMS,
            json!(1),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"result\":{}}",
            INVALID_REQUEST,
            json!(1),
        ),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", INVALID_REQUEST, json!(1)),
        (b"{\"jsonrpc\":\"2.0\",\"result\":{}}", INVALID_REQUEST, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"x\"}", INVALID_REQUEST, Value::Null),
    ])
    .await;
}

#[tokio::test]
async fn request_id_of_other_type_is_invalid_request() {
    // RPC-02: never null, never fractional.
    let bad = ["null", "1.5", "1.0", "1e3", "true", "{}", "[]", "[1]"];
    let bodies: Vec<Vec<u8>> = bad
        .iter()
        .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}").into())
        .collect();
    let rows: Vec<(&[u8], i64, Value)> =
        bodies.iter().map(|body| (body.as_slice(), INVALID_REQUEST, Value::Null)).collect();
    check(&rows).await;
}

#[tokio::test]
async fn request_id_is_echoed_with_type_and_all_digits() {
    // RPC-02: `1` differs from `"1"`, and numbers keep all digits.
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    for id in ["1", "\"1\"", "-7", "0", "\"\"", "\"ü \\u0022\"", "123456789012345678901234567890"]
    {
        for request in [Request::modern("tools/list"), session.request("tools/list")] {
            let body = String::from_utf8(request.clone().id("§").body_bytes()).unwrap();
            let response = server.send(request.raw(body.replace("\"§\"", id))).await;
            let answer = String::from_utf8(response.body.clone()).unwrap();
            assert_eq!(response.status(), 200, "{answer}");
            assert!(
                answer.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#)),
                "{answer}"
            );
        }
    }
}

#[tokio::test]
async fn key_order_and_unknown_members_are_ignored() {
    // RPC-12
    let server = HttpFixture::start().await;
    let request = Request::call("echo", json!({"text": "any order"}));
    let message: Value = serde_json::from_slice(&request.body_bytes()).unwrap();
    let body = format!(
        r#"{{ "extra": [1, {{}}], "params": {}, "method": "tools/call", "id": 5, "jsonrpc": "2.0" }}"#,
        message["params"]
    );
    let response = server.send(request.id(5).raw(body)).await;
    assert_eq!(response.text(), "any order");
    assert_eq!(response.json()["id"], 5);
}

#[tokio::test]
async fn content_type_other_than_json_is_415() {
    // HTTP26-06
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    for request in [Request::modern("tools/list"), session.request("tools/list")] {
        for bad in
            ["text/plain", "application/jsonx", "application/x-www-form-urlencoded", "", "json"]
        {
            let response = server.send(request.clone().header("content-type", bad)).await;
            refused(&response, 415, INVALID_REQUEST, Value::Null);
        }
        let response = server.send(request.clone().without_header("content-type")).await;
        refused(&response, 415, INVALID_REQUEST, Value::Null);
        for good in ["application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"]
        {
            let response = server.send(request.clone().header("content-type", good)).await;
            assert_eq!(response.status(), 200, "{good}");
        }
    }
}

#[tokio::test]
async fn accept_without_json_and_sse_is_rejected() {
    // HTTP26-06: rejected only if the client accepts neither media type.
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    for request in [Request::modern("tools/list"), session.request("tools/list")] {
        for bad in ["text/html", "image/*", "application/xml, text/plain"] {
            let response = server.send(request.clone().accept(bad)).await;
            refused(&response, 406, INVALID_REQUEST, Value::Null);
        }
        for good in
            ["*/*", "application/*", "text/html, application/json;q=0.5", "APPLICATION/JSON"]
        {
            let response = server.send(request.clone().accept(good)).await;
            assert_eq!(response.status(), 200, "{good}");
        }
        let response = server.send(request.clone().without_header("accept")).await;
        assert_eq!(response.status(), 200, "no Accept");
    }
}
