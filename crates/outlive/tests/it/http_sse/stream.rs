//! The SSE stream is the session: its first event names the POST path, and losing the stream ends
//! the session.

use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use outlive::server::{
    Tool,
    http::{HttpConfig, StaticTokens},
};
use serde_json::{Value, json};

use crate::support::http::{HttpFixture, MODERN, Piece, Request, Response};

const ANNA: &str = "annas-token-0123456789";
const BERT: &str = "berts-token-0123456789";

#[tokio::test]
async fn first_sse_event_names_post_path() {
    // SSE24-02, SSE24-03, SSE24-08
    let server = HttpFixture::start().await;
    let mut targets = Vec::new();
    for _ in 0..5 {
        let pair = server.pair().await;
        assert_eq!(pair.stream.header("content-type"), Some("text/event-stream"));
        assert_eq!(pair.stream.header("x-accel-buffering"), Some("no"));
        let id = pair.target.strip_prefix("/messages?session=").expect("a path of this server");
        assert!(id.len() >= 32 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        assert!(!targets.contains(&pair.target), "{id} twice");
        targets.push(pair.target);
    }
}

#[tokio::test]
async fn sse_stream_carries_handshake_and_call_responses() {
    // SSE24-05, SSE24-11, VER-18
    let server = HttpFixture::start().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut pair = server.pair_ready(version).await;
        let answer = pair
            .ask(&server, "a", "tools/call", json!({"name": "echo", "arguments": {"text": "x"}}))
            .await;
        assert_eq!(
            answer,
            json!({"jsonrpc": "2.0", "id": "a", "result": {"content": [{"type": "text", "text": "x"}]}})
        );
        let sum = pair
            .ask(&server, 1, "tools/call", json!({"name": "sum", "arguments": {"a": 1, "b": 2}}))
            .await;
        assert_eq!(
            sum["result"].get("structuredContent").is_some(),
            version >= "2025-06-18",
            "{version}"
        );
        assert_eq!(pair.ask(&server, 2, "ping", json!({})).await["result"], json!({}));
        assert!(pair.ask(&server, 3, "tools/list", json!({})).await["result"]["tools"].is_array());
    }
}

#[tokio::test]
async fn sse_responses_are_sent_as_calls_end() {
    let server = HttpFixture::start().await;
    let mut pair = server.pair_ready("2024-11-05").await;
    for key in ["a", "b"] {
        pair.begin(&server, key, "tools/call", json!({"name": "wait", "arguments": {"key": key}}))
            .await;
    }
    let count = json!({"name": "count", "arguments": {"key": "c", "to": 1}, "_meta": {"progressToken": "p"}});
    let progress = pair.ask(&server, "c", "tools/call", count).await;
    assert_eq!(progress["method"], "notifications/progress");
    // `message` was added in the next version, so it is missing here.
    assert_eq!(progress["params"], json!({"progressToken": "p", "progress": 1, "total": 1}));
    for key in ["c", "b", "a"] {
        server.world.release(key);
        assert_eq!(pair.message().await["id"], key);
    }
}

#[tokio::test]
async fn sse_cancel_notification_cancels_call() {
    let server = HttpFixture::start().await;
    let mut pair = server.pair_ready("2024-11-05").await;
    pair.begin(&server, 1, "tools/call", json!({"name": "wait", "arguments": {"key": "a"}})).await;
    server.world.started("a").await;
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    pair.post(&server, cancelled).await;
    server.world.cancelled("a").await;
    assert_eq!(
        pair.ask(&server, 2, "ping", json!({})).await["id"],
        2,
        "the cancelled call gets no response"
    );
}

#[tokio::test]
async fn sse_stream_carries_change_notifications() {
    // SUB-20, RES-10
    let server = HttpFixture::start().await;
    let mut pair = server.pair_ready("2024-11-05").await;
    let subscribed = pair.ask(&server, 1, "resources/subscribe", json!({"uri": "mem://a"})).await;
    assert_eq!(subscribed["result"], json!({}));
    server.server.resource_updated("mem://b");
    server.server.resource_updated("mem://a");
    assert_eq!(pair.message().await["params"], json!({"uri": "mem://a"}));
    server.server.add_tool(Tool::new("new", async || "new")).unwrap();
    assert_eq!(pair.message().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn sse_ignores_modern_meta() {
    // SSE24-10: this transport serves only legacy versions.
    let server = HttpFixture::start().await;
    let modern = Request::call("echo", json!({"text": "x"})).id(7);
    let message: serde_json::Value = serde_json::from_slice(&modern.body_bytes()).unwrap();
    let mut before = server.pair().await;
    before.post(&server, message.clone()).await;
    assert_eq!(before.message().await["error"]["code"], -32602, "there was no handshake");

    let mut pair = server.pair_ready("2024-11-05").await;
    pair.post(&server, message).await;
    let answer = pair.message().await;
    assert_eq!(
        answer["result"],
        json!({"content": [{"type": "text", "text": "x"}]}),
        "not a modern result"
    );
    // Modern methods and headers have no effect either.
    let discover = pair.ask(&server, 8, "server/discover", json!({})).await;
    assert_eq!(discover["error"]["code"], -32601);
    let with_headers = pair
        .request(json!({"jsonrpc": "2.0", "id": 9, "method": "ping"}))
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "tools/list");
    assert_eq!(server.send(with_headers).await.status(), 202);
    assert_eq!(pair.message().await, json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
}

#[tokio::test]
async fn closing_sse_stream_ends_session() {
    // SSE24-10
    let story = Arc::new(Mutex::new(Vec::new()));
    let (opened, closed) = (Arc::clone(&story), Arc::clone(&story));
    let server = HttpFixture::build(HttpConfig::new(), move |server| {
        server
            .on_session_open(move |_| opened.lock().unwrap().push("opened"))
            .on_session_close(move |_| closed.lock().unwrap().push("closed"))
    })
    .await;
    let pair = server.pair_ready("2024-11-05").await;
    pair.begin(&server, 1, "tools/call", json!({"name": "wait", "arguments": {"key": "a"}})).await;
    server.world.started("a").await;
    let late = pair.request(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
    pair.stream.cut();
    server.world.cancelled("a").await;
    assert_eq!(server.send(late).await.status(), 404);
    assert_eq!(*story.lock().unwrap(), ["opened", "closed"]);
}

#[tokio::test]
async fn quiet_sse_stream_sends_keep_alive_comments() {
    let server =
        HttpFixture::with(HttpConfig::new().keep_alive_interval(Duration::from_millis(5))).await;
    let mut pair = server.pair().await;
    for _ in 0..3 {
        assert_eq!(pair.stream.piece().await, Ok(Some(Piece::Comment)));
    }
}

#[tokio::test]
async fn sse_streams_are_isolated() {
    let server = HttpFixture::start().await;
    let mut a = server.pair_ready("2024-11-05").await;
    let mut b = server.pair_ready("2024-11-05").await;
    a.begin(&server, 1, "tools/call", json!({"name": "wait", "arguments": {"key": "a"}})).await;
    b.begin(&server, 1, "tools/call", json!({"name": "wait", "arguments": {"key": "b"}})).await;
    server.world.release("b");
    assert_eq!(b.message().await["result"]["content"][0]["text"], "waited b");
    server.world.release("a");
    assert_eq!(a.message().await["result"]["content"][0]["text"], "waited a");
}

#[tokio::test]
async fn non_reading_sse_client_does_not_block_others() {
    let server = HttpFixture::start().await;
    let slow = server.pair_ready("2024-11-05").await;
    let mut fast = server.pair_ready("2024-11-05").await;
    let shout =
        json!({"name": "shout", "arguments": {"key": "s", "lines": 50_000, "bytes": 1_000}});
    slow.begin(&server, 1, "tools/call", shout).await;
    server.world.started("s").await;
    for id in 0..100 {
        assert_eq!(fast.ask(&server, id, "ping", json!({})).await["id"], id);
    }
    let shouted = server.world.shouted.load(Ordering::Relaxed);
    assert!(shouted < 50_000, "{shouted} lines were logged without a reader");
    slow.stream.cut();
    server.world.cancelled("s").await;
}

#[tokio::test]
async fn sse_stream_over_session_limit_is_503() {
    // SEC-06
    let server = HttpFixture::with(HttpConfig::new().max_sessions(1)).await;
    let pair = server.pair().await;
    let get = Request::new("GET", "2024-11-05").target("/sse").accept("text/event-stream");
    assert_eq!(server.send(&get).await.status(), 503);
    assert!(pair.target.starts_with("/messages"));
}

/// Posts calls with large results until one is rejected, and never reads.
async fn post_unread(server: &HttpFixture, post: impl Fn(Value) -> Request) -> Response {
    let text = "x".repeat(1 << 20);
    // More than the buffers of two sockets hold.
    for id in 0..100 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": text}}});
        let response = server.send(post(call)).await;
        if response.status() != 202 {
            return response;
        }
    }
    panic!("100 MiB are queued for a non-reading client");
}

#[tokio::test]
async fn unread_sse_stream_ends_and_names_limit() {
    // SEC-06
    let server = HttpFixture::start().await;
    let mut other = server.pair_ready("2024-11-05").await;
    let slow = server.pair_ready("2024-11-05").await;
    let refused = post_unread(&server, |call| slow.request(call)).await;
    assert_eq!(refused.status(), 429);
    let error = refused.json()["error"]["message"].to_string();
    assert!(error.contains("`max_stream_bytes`"), "{error}");
    let late = slow.request(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    assert_eq!(server.send(late).await.status(), 404, "the session has ended");
    assert_eq!(other.ask(&server, 1, "ping", json!({})).await["id"], 1);
}

#[tokio::test]
async fn unread_sse_streams_of_one_caller_share_limit() {
    // SEC-06
    let tokens = StaticTokens::new().with("anna", ANNA).with("bert", BERT);
    let config = HttpConfig::new().authenticator(tokens).max_unread_bytes_per_caller(3 << 20);
    let server = HttpFixture::with(config).await;
    let slow = server.pair_as("2024-11-05", Some(ANNA)).await;
    slow.handshake(&server).await;
    let refused = post_unread(&server, |call| slow.request(call)).await;
    let error = refused.json()["error"]["message"].to_string();
    assert!(error.contains("`max_unread_bytes_per_caller`"), "{error}");
    let mut theirs = server.pair_as("2024-11-05", Some(BERT)).await;
    theirs.handshake(&server).await;
    theirs.message().await;
    let text = "x".repeat(2 << 20);
    let call = json!({"name": "echo", "arguments": {"text": text}});
    assert_eq!(theirs.ask(&server, 1, "tools/call", call).await["id"], 1);
}

#[tokio::test]
async fn sse_streams_are_limited_per_caller() {
    // SEC-06
    let tokens = StaticTokens::new().with("anna", ANNA).with("bert", BERT);
    let config = HttpConfig::new().authenticator(tokens).max_sessions_per_caller(1);
    let server = HttpFixture::with(config).await;
    let open = server.pair_as("2024-11-05", Some(ANNA)).await;
    let get = Request::new("GET", "2024-11-05").target("/sse").accept("text/event-stream");
    let refused = server.send(get.bearer(ANNA)).await;
    assert_eq!(refused.status(), 429);
    let error = refused.json()["error"]["message"].to_string();
    assert!(error.contains("`max_sessions_per_caller`"), "{error}");
    server.pair_as("2024-11-05", Some(BERT)).await;
    drop(open);
}

#[tokio::test]
async fn http_sse_can_be_disabled() {
    // SSE24-01
    let server = HttpFixture::with(HttpConfig::new().http_sse(false)).await;
    let get = Request::new("GET", "2024-11-05").accept("text/event-stream");
    assert_eq!(server.send(get.target("/sse")).await.status(), 404);
    let post =
        Request::post("2024-11-05").json(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    assert_eq!(server.send(post.target("/messages?session=x")).await.status(), 404);
    assert_eq!(server.send(Request::modern("tools/list")).await.status(), 200);
}
