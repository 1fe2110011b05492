//! Messages that are too large or too deep, and too many headers: rejected early.

use std::time::Duration;

use outlive::server::http::HttpConfig;
use serde_json::{Value, json};

use super::{refused, refused_with};
use crate::support::http::{HttpFixture, Request};

const LIMIT: usize = 2_000;

async fn small() -> HttpFixture {
    HttpFixture::build(HttpConfig::new(), |server| {
        server.limits(|limits| limits.max_message_bytes = LIMIT)
    })
    .await
}

/// A call whose body has exactly `bytes` bytes.
fn of_size(request: Request, bytes: usize) -> Request {
    let padded =
        |text: usize| request.clone().param("arguments", json!({"text": "x".repeat(text)}));
    let empty = padded(0).body_bytes().len();
    let request = padded(bytes - empty);
    assert_eq!(request.body_bytes().len(), bytes);
    request
}

fn chunked(request: &Request) -> Vec<u8> {
    let mut bytes = request.clone().header("transfer-encoding", "chunked").head_bytes();
    for chunk in request.body_bytes().chunks(700) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[tokio::test]
async fn body_over_size_limit_is_413() {
    let server = small().await;
    let session = server.session("2025-11-25").await;
    for call in [Request::call("echo", json!({})), session.call("echo", json!({}))] {
        let over = of_size(call.clone(), LIMIT + 1);
        refused_with(&server.send(&over).await, 413, -32600, Value::Null, "2000 bytes");
        let at = of_size(call, LIMIT);
        assert_eq!(server.send(&at).await.status(), 200);
    }
}

#[tokio::test]
async fn content_length_over_limit_is_413_before_body() {
    let server = small().await;
    let over = of_size(Request::call("echo", json!({})), LIMIT + 1);
    let mut connection = server.connect().await;
    connection.write(&over.head_bytes()).await;
    refused(&connection.response(&over).await, 413, -32600, Value::Null);
}

#[tokio::test]
async fn chunked_body_over_limit_is_413() {
    let server = small().await;
    let call = Request::call("echo", json!({}));
    let at = of_size(call.clone(), LIMIT);
    let mut connection = server.connect().await;
    connection.write(&chunked(&at)).await;
    assert_eq!(connection.response(&at).await.status(), 200);
    let over = of_size(call, LIMIT + 1);
    connection.write(&chunked(&over)).await;
    refused(&connection.response(&over).await, 413, -32600, Value::Null);
}

#[tokio::test]
async fn message_nested_over_limit_is_rejected() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let nested = |levels: usize| -> Value { (0..levels).fold(json!(1), |inner, _| json!([inner])) };
    for list in [Request::modern("tools/list"), session.request("tools/list").params(json!({}))] {
        // The message and its `params` count as two levels.
        let at = list.clone().param("x", nested(98));
        assert_eq!(server.send(&at).await.status(), 200);
        let over = list.param("x", nested(99));
        refused_with(&server.send(&over).await, 400, -32600, Value::Null, "100 levels");
    }
    // Brackets inside strings do not nest.
    let brackets = Request::call("echo", json!({"text": "[{\"".repeat(500)}));
    assert_eq!(server.send(&brackets).await.status(), 200);
}

#[tokio::test]
async fn message_with_million_brackets_is_rejected() {
    let server = HttpFixture::start().await;
    let open = "[".repeat(1_000_000);
    for body in [
        open.clone(),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{{\"x\":{open}"),
    ] {
        let response = server.send(Request::modern("tools/list").raw(body)).await;
        refused(&response, 400, -32600, Value::Null);
    }
}

#[tokio::test]
async fn too_many_or_too_large_headers_are_431() {
    // HTTP26-48
    let server = HttpFixture::start().await;
    let request = Request::modern("tools/list");
    let many =
        (0..300).fold(request.clone(), |request, n| request.add_header(&format!("x-{n}"), "1"));
    assert_eq!(server.send(&many).await.status(), 431);
    let large = request.header("x-large", "x".repeat(1 << 20));
    let mut connection = server.connect().await;
    // The server may stop reading before the client has written everything.
    let _ = connection.try_write(&large.bytes()).await;
    assert_eq!(connection.response(&large).await.status(), 431);
}

#[tokio::test]
async fn truncated_body_is_not_executed() {
    let server = HttpFixture::start().await;
    let request = Request::call("wait", json!({"key": "never"}));
    let whole = request.bytes();
    let mut connection = server.connect().await;
    connection.write(&whole[..whole.len() - 5]).await;
    connection.half_close().await;
    if let Ok(response) = connection.try_response(&request).await {
        assert_eq!(response.status(), 400);
    }
    assert_eq!(server.send(Request::modern("tools/list")).await.status(), 200);
    assert!(!server.world.has_started("never"));
}

#[tokio::test]
async fn stalled_body_times_out_with_408() {
    // SEC-06
    let server =
        HttpFixture::with(HttpConfig::new().idle_timeout(Duration::from_millis(100))).await;
    let session = server.session("2025-11-25").await;
    for request in [Request::modern("tools/list"), session.request("tools/list")] {
        let whole = request.bytes();
        let mut connection = server.connect().await;
        connection.write(&whole[..whole.len() - 5]).await;
        refused(&connection.response(&request).await, 408, -32600, Value::Null);
        connection.closed().await;
    }
}
