//! A handler that panics returns -32603 for its call and does not affect other calls.

use std::time::Duration;

use outlive::server::http::HttpConfig;
use serde_json::json;

use super::{refused, refused_with};
use crate::support::http::{HttpFixture, Request};

#[tokio::test]
async fn panic_is_internal_error_without_details() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    for call in [Request::call("panic", json!({})), session.call("panic", json!({}))] {
        let mut connection = server.connect().await;
        let response = connection.send(&call.id(3)).await;
        let error = refused_with(&response, 200, -32603, 3, "internal error");
        assert!(error.get("data").is_none(), "{error}");
        // The connection stays usable.
        let next = connection.send(&Request::call("echo", json!({"text": "next"}))).await;
        assert_eq!(next.text(), "next");
    }
}

#[tokio::test]
async fn panic_does_not_affect_concurrent_calls() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut modern = server.begin(Request::call("wait", json!({"key": "m"}))).await;
    let mut legacy = server.begin(session.call("wait", json!({"key": "l"}))).await;
    server.world.started("m").await;
    server.world.started("l").await;

    let calls = [
        ("p", Request::call("panic_later", json!({"key": "p"}))),
        ("q", session.call("panic_later", json!({"key": "q"}))),
    ];
    for (key, call) in calls {
        let mut panics = server.begin(call.clone().id("boom")).await;
        server.world.started(key).await;
        server.world.release(key);
        refused(&panics.response(&call).await, 200, -32603, "boom");
    }

    server.world.release("m");
    server.world.release("l");
    assert_eq!(modern.response(&Request::call("wait", json!({}))).await.text(), "waited m");
    assert_eq!(legacy.response(&session.call("wait", json!({}))).await.text(), "waited l");
}

#[tokio::test]
async fn panic_in_stream_ends_it_with_error() {
    let server = HttpFixture::with(HttpConfig::new().stream_after(Duration::ZERO)).await;
    let session = server.session("2025-11-25").await;
    for call in [
        Request::call("panic_later", json!({"key": "s"})),
        session.call("panic_later", json!({"key": "s"})),
    ] {
        let mut stream = server.open(call.id(9)).await;
        server.world.started("s").await;
        server.world.release("s");
        let last = stream.message().await;
        assert_eq!(last["error"]["code"], -32603);
        assert_eq!(last["id"], 9);
        stream.ended().await;
    }
}
