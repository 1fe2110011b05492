//! GET: the stream with change notifications for a session.

use outlive::server::{Prompt, Resource, Tool};
use serde_json::json;

use crate::support::http::HttpFixture;

#[tokio::test]
async fn list_changes_are_notified_on_get_stream() {
    // HTTP25-01, HTTP25-20, SUB-20
    let server = HttpFixture::start().await;
    for version in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let session = server.session(version).await;
        let mut stream = server.open(session.get()).await;
        assert_eq!(stream.header("x-accel-buffering"), Some("no"));
        server.server.add_tool(Tool::new("new", async || "new")).unwrap();
        // There is no subscription ID before 2026-07-28.
        let (event, message) = stream.said().await;
        let changed = |what: &str| json!({"jsonrpc": "2.0", "method": format!("notifications/{what}/list_changed"), "params": {}});
        assert_eq!(message, changed("tools"));
        assert!(event.id.is_some());
        server.server.add_prompt(Prompt::new("new", async || "new")).unwrap();
        assert_eq!(stream.message().await, changed("prompts"));
        server.server.add_resource(Resource::new("mem://new", "new", async || "new")).unwrap();
        assert_eq!(stream.message().await, changed("resources"));
    }
}

#[tokio::test]
async fn get_stream_starts_with_resumable_event_id() {
    // HTTP25-10, HTTP25-11
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let first = server.open(session.get()).await.event().await.unwrap();
    assert!(first.id.is_some() && first.data.is_empty(), "{first:?}");
    let session = server.session("2025-06-18").await;
    let mut stream = server.open(session.get()).await;
    server.server.remove_tool("echo");
    assert!(!stream.event().await.unwrap().data.is_empty(), "no empty event before 2025-11-25");
}

#[tokio::test]
async fn resource_updates_are_notified_while_subscribed() {
    // RES-10
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(session.get()).await;
    let subscription = |verb: &str, uri: &str| {
        session.request(&format!("resources/{verb}")).params(json!({"uri": uri}))
    };
    assert_eq!(server.send(subscription("subscribe", "mem://a")).await.result(), json!({}));
    assert_eq!(server.send(subscription("subscribe", "mem://b")).await.result(), json!({}));
    server.server.resource_updated("mem://a");
    let updated = stream.message().await;
    assert_eq!(
        updated,
        json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "mem://a"}})
    );
    assert_eq!(server.send(subscription("unsubscribe", "mem://a")).await.result(), json!({}));
    server.server.resource_updated("mem://a");
    server.server.resource_updated("mem://b");
    assert_eq!(
        stream.message().await["params"]["uri"],
        "mem://b",
        "no notification after unsubscribing"
    );
}

#[tokio::test]
async fn change_without_open_stream_is_notified_on_next_stream() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut witness = server.open(server.session("2025-11-25").await.get()).await;
    server.server.remove_tool("echo");
    witness.message().await;
    let mut stream = server.open(session.get()).await;
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn change_is_notified_on_newest_stream_of_session() {
    // HTTP25-09, C-16: the newest stream of each session gets it.
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let older = server.open(session.get()).await;
    let mut newer = server.open(session.get()).await;
    let mut other = server.open(server.session("2025-11-25").await.get()).await;
    server.server.remove_tool("echo");
    assert_eq!(newer.message().await["method"], "notifications/tools/list_changed");
    assert_eq!(other.message().await["method"], "notifications/tools/list_changed");
    // The older stream ends without the notification.
    older.ended().await;
}

#[tokio::test]
async fn call_responses_are_not_sent_on_get_stream() {
    // HTTP25-21
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(session.get()).await;
    let call = session.call("count", json!({"key": "c", "to": 1})).meta("progressToken", json!(1));
    let mut answer = server.open(call).await;
    answer.message().await;
    server.world.release("c");
    assert!(answer.message().await.get("result").is_some());
    server.server.remove_tool("echo");
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
}
