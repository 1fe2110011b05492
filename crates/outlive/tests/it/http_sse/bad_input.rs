//! The status reports an invalid POST; the stream reports an invalid message.

use outlive::server::http::{HttpConfig, StaticTokens};
use serde_json::{Value, json};

use crate::support::http::{HttpFixture, Request};

#[tokio::test]
async fn invalid_message_gets_error_on_sse_stream() {
    let server = HttpFixture::start().await;
    let mut pair = server.pair_ready("2024-11-05").await;
    let request = |id: u32, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            .to_string()
            .into_bytes()
    };
    let call = |tool: &str, arguments: Value| {
        request(1, "tools/call", json!({"name": tool, "arguments": arguments}))
    };
    let rows: Vec<(Vec<u8>, i64, Option<Value>)> = vec![
        (b"{".to_vec(), -32700, None),
        (b"\xff".to_vec(), -32700, None),
        (Vec::new(), -32700, None),
        (b"[]".to_vec(), -32600, None),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]".to_vec(), -32600, None),
        (b"7".to_vec(), -32600, None),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}".to_vec(), -32600, None),
        (b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}".to_vec(), -32600, Some(json!(1))),
        (request(1, "nope", json!({})), -32601, Some(json!(1))),
        (request(1, "subscriptions/listen", json!({})), -32601, Some(json!(1))),
        (request(1, "tools/list", json!([])), -32602, Some(json!(1))),
        (request(1, "tools/list", json!({"cursor": "banana"})), -32602, Some(json!(1))),
        (request(1, "prompts/get", json!({"name": "none"})), -32602, Some(json!(1))),
        (request(1, "logging/setLevel", json!({"level": "loud"})), -32602, Some(json!(1))),
        (request(1, "resources/read", json!({"uri": "mem://none"})), -32002, Some(json!(1))),
        (call("none", json!({})), -32602, Some(json!(1))),
        (call("sample", json!({})), -32602, Some(json!(1))),
        (call("panic", json!({})), -32603, Some(json!(1))),
    ];
    for (body, code, id) in rows {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let response = server.send(pair.request(json!({})).raw(&body)).await;
        assert_eq!(response.status(), 202, "{shown}");
        let answer = pair.message().await;
        assert_eq!(answer["error"]["code"], code, "{shown}");
        assert_eq!(answer.get("id"), id.as_ref(), "{shown}");
    }
    let unfit = pair.ask(&server, 2, "tools/call", json!({"name": "sum", "arguments": {}})).await;
    assert_eq!(unfit["result"]["isError"], true);
}

#[tokio::test]
async fn sse_batch_in_2025_03_26_returns_array() {
    // RPC-27
    let server = HttpFixture::start().await;
    let mut pair = server.pair_ready("2025-03-26").await;
    let ping = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    pair.post(&server, json!([ping(1), ping(2)])).await;
    let answers = pair.message().await;
    assert_eq!(
        answers,
        json!([
            {"jsonrpc": "2.0", "id": 1, "result": {}},
            {"jsonrpc": "2.0", "id": 2, "result": {}},
        ])
    );
}

#[tokio::test]
async fn sse_request_before_handshake_is_rejected_except_ping() {
    // VER-22, PING-01
    let server = HttpFixture::start().await;
    let mut pair = server.pair().await;
    assert_eq!(pair.ask(&server, 1, "ping", json!({})).await["result"], json!({}));
    let refused = pair.ask(&server, 2, "tools/list", json!({})).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32602)));
}

#[tokio::test]
async fn sse_post_to_unknown_session_is_404() {
    // SSE24-11
    let server = HttpFixture::start().await;
    let pair = server.pair().await;
    let ping = pair.request(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    for target in [
        "/messages",
        "/messages?",
        "/messages?session=",
        "/messages?session=x",
        "/messages?other=1",
    ] {
        assert_eq!(server.send(ping.clone().target(target)).await.status(), 404, "{target}");
    }
}

#[tokio::test]
async fn foreign_sse_session_responds_like_unknown_session() {
    let tokens = StaticTokens::new()
        .with("anna", "annas-token-0123456789")
        .with("bert", "berts-token-0123456789");
    let server = HttpFixture::with(HttpConfig::new().authenticator(tokens)).await;
    let mut annas = server.pair_as("2024-11-05", Some("annas-token-0123456789")).await;
    let ping = annas.request(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    let berts = ping.clone().bearer("berts-token-0123456789");
    let unknown = berts.clone().target("/messages?session=0123456789abcdef0123456789abcdef");
    for (change, status) in [
        ((|request| request) as fn(Request) -> Request, 404),
        (|request| request.raw("{"), 404),
        (|request| request.header("content-type", "text/plain"), 415),
    ] {
        let theirs = server.send(change(berts.clone())).await;
        assert_eq!(
            theirs.without_date(),
            server.send(change(unknown.clone())).await.without_date()
        );
        assert_eq!(theirs.status(), status);
    }
    let nobodys = server.send(ping.clone().without_header("authorization")).await;
    assert_eq!((nobodys.status(), nobodys.header("www-authenticate")), (401, Some("Bearer")));
    // None of the rejected requests reached the session.
    assert_eq!(server.send(ping).await.status(), 202);
    assert_eq!(annas.message().await["id"], 1);
}

#[tokio::test]
async fn invalid_sse_post_is_reported_by_status() {
    let server = HttpFixture::build(HttpConfig::new(), |server| {
        server.limits(|limits| limits.max_message_bytes = 500)
    })
    .await;
    let mut pair = server.pair().await;
    let ping = pair.request(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    let large =
        pair.request(json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "x": "x".repeat(500)}));
    let rows = [
        (ping.clone().header("content-type", "text/plain"), 415),
        (ping.clone().header("host", "evil.example"), 403),
        (ping.clone().header("origin", "https://evil.example"), 403),
        (large, 413),
    ];
    for (request, status) in rows {
        assert_eq!(server.send(&request).await.status(), status);
    }
    let get = Request::new("GET", "2024-11-05").target("/sse").accept("text/event-stream");
    for (request, status) in [
        (get.clone().accept("application/json"), 406),
        (get.clone().header("host", "evil.example"), 403),
        (get.header("origin", "https://evil.example"), 403),
    ] {
        // SSE24-06
        assert_eq!(server.send(&request).await.status(), status);
    }
    assert_eq!(server.send(&ping).await.status(), 202);
    assert_eq!(pair.message().await["id"], 1);
}

#[tokio::test]
async fn sse_paths_reject_other_verbs_with_405() {
    let server = HttpFixture::start().await;
    let post = Request::modern("tools/list").target("/sse");
    let get = Request::new("GET", "2024-11-05").target("/messages").accept("text/event-stream");
    for (request, allowed) in [(post, "GET"), (get, "POST")] {
        let response = server.send(&request).await;
        assert_eq!((response.status(), response.header("allow")), (405, Some(allowed)));
    }
}
