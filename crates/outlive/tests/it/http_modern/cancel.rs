//! Cancellation of modern calls by disconnect.

use std::time::Duration;

use outlive::server::http::HttpConfig;
use serde_json::json;

use crate::support::http::{HttpFixture, Request};

#[tokio::test]
async fn closing_stream_cancels_only_its_call() {
    // HTTP26-28, HTTP26-32, C-01
    let server = HttpFixture::start().await;
    let count = |key: &str| {
        Request::call("count", json!({"key": key, "to": 2})).meta("progressToken", json!(1)).id(1)
    };
    let mut left = server.open(count("left")).await;
    let mut kept = server.open(count("kept")).await;
    left.message().await;
    kept.message().await;
    left.cut();
    server.world.cancelled("left").await;
    server.world.release("kept");
    server.world.release("kept");
    assert_eq!(kept.message().await["method"], "notifications/progress");
    assert_eq!(kept.message().await["result"]["content"][0]["text"], "counted 2");
    kept.ended().await;
}

#[tokio::test]
async fn disconnect_cancels_pending_call() {
    // HTTP26-31
    let server = HttpFixture::start().await;
    let connection = server.begin(Request::call("wait", json!({"key": "w"}))).await;
    server.world.started("w").await;
    drop(connection);
    server.world.cancelled("w").await;
}

#[tokio::test]
async fn half_closed_connection_cancels_call() {
    // HTTP26-31
    let server = HttpFixture::start().await;
    let mut connection = server.begin(Request::call("wait", json!({"key": "w"}))).await;
    server.world.started("w").await;
    connection.half_close().await;
    server.world.cancelled("w").await;
}

#[tokio::test]
async fn closing_silent_stream_cancels_its_call() {
    let server = HttpFixture::with(HttpConfig::new().stream_after(Duration::ZERO)).await;
    let stream = server.open(Request::call("wait", json!({"key": "w"}))).await;
    server.world.started("w").await;
    stream.cut();
    server.world.cancelled("w").await;
}

#[tokio::test]
async fn cancel_notification_over_modern_http_has_no_effect() {
    // HTTP26-10, HTTP26-30: over HTTP the server cannot tell which request the ID refers to.
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let call = Request::call("wait", json!({"key": "w"})).id(77);
    let mut connection = server.begin(&call).await;
    server.world.started("w").await;
    let cancel =
        Request::modern_notification("notifications/cancelled").params(json!({"requestId": 77}));
    for request in [cancel.clone(), cancel.header("mcp-session-id", &session.id)] {
        assert_eq!(server.send(&request).await.status(), 202);
    }
    assert!(!server.world.is_cancelled("w"));
    server.world.release("w");
    assert_eq!(connection.response(&call).await.text(), "waited w");
}
