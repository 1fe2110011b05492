//! A client that does not read stops only its own calls.

use std::sync::atomic::Ordering;

use outlive::server::{Tool, http::HttpConfig};
use serde_json::json;

use crate::support::http::{HttpFixture, Request};

/// More than all buffers between a handler and a non-reading client hold.
const LINES: usize = 100_000;
const BYTES: usize = 1_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn non_reading_client_stops_only_its_own_call() {
    let server = HttpFixture::start().await;
    let shout = Request::call("shout", json!({"key": "slow", "lines": LINES, "bytes": BYTES}))
        .reserved("logLevel", json!("error"));
    // The test never reads from this connection.
    let slow = server.begin(&shout).await;
    server.world.started("slow").await;

    let count =
        Request::call("count", json!({"key": "fast", "to": 300})).meta("progressToken", json!(1));
    let mut fast = server.open(count).await;
    for step in 1..=300 {
        assert_eq!(fast.message().await["params"]["progress"], step);
        server.world.release("fast");
    }
    assert_eq!(fast.message().await["result"]["content"][0]["text"], "counted 300");
    fast.ended().await;

    // The handler stops when the buffers are full, long before its last line.
    let shouted = || server.world.shouted.load(Ordering::Relaxed);
    let (mut seen, mut rounds_at_rest) = (shouted(), 0);
    while rounds_at_rest < 50 && seen < LINES {
        assert_eq!(server.send(Request::call("echo", json!({"text": "x"}))).await.text(), "x");
        rounds_at_rest = if shouted() == seen { rounds_at_rest + 1 } else { 0 };
        seen = shouted();
    }
    assert!(seen < LINES / 2, "{seen} lines of {BYTES} bytes were logged without a reader");
    drop(slow);
    server.world.cancelled("slow").await;
}

#[tokio::test]
async fn non_reading_subscriber_does_not_delay_others() {
    let config = HttpConfig::new();
    let server = HttpFixture::build(config, |server| {
        server.list_changed_debounce(std::time::Duration::ZERO)
    })
    .await;
    let listen = |id| {
        Request::modern("subscriptions/listen")
            .id(id)
            .param("notifications", json!({"toolsListChanged": true}))
    };
    let slow = server.begin(listen(1)).await;
    let mut fast = server.open(listen(2)).await;
    fast.message().await;
    for round in 0..200 {
        server.server.add_tool(Tool::new(format!("t{round}"), async || "")).unwrap();
        assert_eq!(fast.message().await["method"], "notifications/tools/list_changed");
    }
    drop(slow);
}
