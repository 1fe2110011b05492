//! Resumption of the GET stream.

use outlive::server::{SealKeys, Tool, http::HttpConfig};
use outlive_protocol::{Principal, Seal};
use serde_json::json;

use crate::support::http::HttpFixture;

const TOOLS: &str = "notifications/tools/list_changed";
const UPDATED: &str = "notifications/resources/updated";

#[tokio::test]
async fn resumed_get_stream_replays_missed_then_new_changes() {
    // HTTP25-14
    let server = HttpFixture::start().await;
    for version in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let session = server.session(version).await;
        let subscribe = session.request("resources/subscribe").params(json!({"uri": "mem://a"}));
        assert_eq!(server.send(subscribe).await.result(), json!({}));
        let mut stream = server.open(session.get()).await;
        server.server.resource_updated("mem://a");
        let (seen, first) = stream.said().await;
        assert_eq!(first["method"], UPDATED);
        // The test resumes before this event, as if it had been lost.
        server.server.add_tool(Tool::new(format!("t{version}"), async || "")).unwrap();
        assert_eq!(stream.message().await["method"], TOOLS);
        stream.cut();
        server.server.resource_updated("mem://a");

        let mut resumed = server.open(session.resume(&seen.id.unwrap())).await;
        assert_eq!(resumed.message().await["method"], TOOLS, "{version}");
        assert_eq!(resumed.message().await["method"], UPDATED, "{version}");
        server.server.resource_updated("mem://a");
        assert_eq!(resumed.message().await["method"], UPDATED, "{version}");
    }
}

#[tokio::test]
async fn malformed_last_event_id_is_400() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let long = "A".repeat(2_000);
    for id in ["banana", "1", "0-0", "1-2-3", "AAAA", "A===", "a b", &long, ""] {
        let response = server.send(session.resume(id)).await;
        let answer = response.json();
        assert_eq!((response.status(), &answer["error"]["code"]), (400, &json!(-32600)), "{id}");
        assert_eq!(answer.get("id"), None);
    }
}

#[tokio::test]
async fn last_event_id_of_evicted_stream_opens_new_stream() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let echo = || session.call("echo", json!({"text": "x"})).accept("text/event-stream");
    let id = server.send(echo()).await.events()[0].id.clone().unwrap();
    // While the server stores the stream, resuming it replays the response.
    assert_eq!(server.send(session.resume(&id)).await.messages().len(), 1);
    for _ in 0..100 {
        server.send(echo()).await;
    }
    let mut stream = server.open(session.resume(&id)).await;
    server.server.remove_tool("echo");
    assert_eq!(stream.message().await["method"], TOOLS);
}

#[tokio::test]
async fn last_event_id_beyond_newest_event_opens_new_stream() {
    // A client cannot forge such an ID without the seal keys. Even a validly sealed one is
    // harmless.
    let keys = SealKeys::new([9; 32]);
    let server = HttpFixture::build(HttpConfig::new(), |server| server.seal_keys(keys)).await;
    let session = server.session("2025-11-25").await;
    let id = |stream: u64, event: u64| {
        let content = [stream.to_le_bytes(), event.to_le_bytes()].concat();
        let context = ["event", &session.id, Principal::ANONYMOUS.key()];
        Seal::new([9; 32]).seal(&content, &context).unwrap()
    };
    let stream = server.open(session.get()).await;
    for (number, event) in [(0, 7), (0, u64::MAX - 1), (0, u64::MAX), (12_345, 6), (u64::MAX, 0)] {
        let mut future = server.open(session.resume(&id(number, event))).await;
        server.server.add_tool(Tool::new(format!("t{number}-{event}"), async || "")).unwrap();
        assert_eq!(future.message().await["method"], TOOLS, "{number} {event}");
    }
    stream.ended().await;
}

#[tokio::test]
async fn session_of_2024_11_05_ignores_last_event_id() {
    let server = HttpFixture::start().await;
    let session = server.session("2024-11-05").await;
    let mut stream = server.open(session.resume("0-0")).await;
    server.server.remove_tool("echo");
    let (event, message) = stream.said().await;
    assert_eq!((message["method"].as_str(), event.id), (Some(TOOLS), None));
}
