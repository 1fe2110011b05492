//! Closing the connection is how a call is cancelled.

use std::time::Duration;

use outlive::server::http::HttpConfig;
use serde_json::json;

use crate::support::http::{HttpFixture, Request};

#[tokio::test]
async fn closing_a_stream_cancels_its_call_and_no_other() {
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
async fn closing_the_connection_cancels_a_call_whose_answer_is_still_pending() {
    // HTTP26-31
    let server = HttpFixture::start().await;
    let connection = server.begin(Request::call("wait", json!({"key": "w"}))).await;
    server.world.started("w").await;
    drop(connection);
    server.world.cancelled("w").await;
}

#[tokio::test]
async fn a_connection_that_is_half_closed_counts_as_closed() {
    // HTTP26-31
    let server = HttpFixture::start().await;
    let mut connection = server.begin(Request::call("wait", json!({"key": "w"}))).await;
    server.world.started("w").await;
    connection.half_close().await;
    server.world.cancelled("w").await;
}

#[tokio::test]
async fn closing_a_stream_that_has_said_nothing_cancels_its_call() {
    let server = HttpFixture::with(HttpConfig::new().stream_after(Duration::ZERO)).await;
    let stream = server.open(Request::call("wait", json!({"key": "w"}))).await;
    server.world.started("w").await;
    stream.cut();
    server.world.cancelled("w").await;
}

#[tokio::test]
async fn a_cancelled_notification_cancels_nothing() {
    // HTTP26-10, HTTP26-30: on HTTP nobody can tell whose request it means.
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
