//! Events sent while no client was connected are replayed once and in order.

use std::time::Duration;

use outlive::server::http::HttpConfig;
use serde_json::{Value, json};

use crate::support::http::{HttpFixture, Request, Session};

fn count(session: &Session, key: &str, to: u32) -> Request {
    session.call("count", json!({"key": key, "to": to})).meta("progressToken", json!(key))
}

/// Returns the progress values of a resumed stream. Asserts that its last message is the result.
async fn rest(server: &HttpFixture, resume: Request) -> Vec<Value> {
    let messages = server.send(resume).await.messages();
    let (last, steps) = messages.split_last().expect("a result");
    assert!(last.get("result").is_some(), "{last}");
    steps.iter().map(|step| step["params"]["progress"].clone()).collect()
}

#[tokio::test]
async fn resumed_stream_replays_missed_events_once_then_new_ones() {
    // HTTP25-14, HTTP25-15, HTTP25-16
    let server = HttpFixture::start().await;
    for version in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let session = server.session(version).await;
        let mut stream = server.open(count(&session, "c", 6).id("the call")).await;
        let (event, first) = stream.said().await;
        assert_eq!(first["params"]["progress"], 1);
        server.world.stepped("c").await;
        stream.cut();
        // Steps 2 and 3 happen while no client is connected.
        for _ in 2..=3 {
            server.world.release("c");
            server.world.stepped("c").await;
        }
        let mut resumed = server.open(session.resume(event.id.as_deref().unwrap())).await;
        for step in 2..=6 {
            let (event, message) = resumed.said().await;
            assert_eq!(message["params"]["progress"], step, "{version}");
            assert!(event.id.is_some());
            if step >= 3 {
                server.world.release("c");
            }
        }
        let last = resumed.message().await;
        assert_eq!(last["id"], "the call");
        assert_eq!(last["result"]["content"][0]["text"], "counted 6");
        resumed.ended().await;
        for _ in 4..=6 {
            server.world.stepped("c").await;
        }
    }
}

#[tokio::test]
async fn call_finished_without_connection_returns_result_on_resume() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(count(&session, "c", 2).id(8)).await;
    let (event, _) = stream.said().await;
    stream.cut();
    server.world.release("c");
    server.world.release("c");
    server.world.finished("c").await;
    let id = event.id.unwrap();
    // Resuming again replays again: the client names its position, and nothing is consumed.
    for _ in 0..2 {
        let response = server.send(session.resume(&id)).await;
        let messages = response.messages();
        let last = messages.last().unwrap();
        assert_eq!(
            (&last["id"], &last["result"]["content"][0]["text"]),
            (&json!(8), &json!("counted 2"))
        );
        let ids: Vec<_> = response.events().iter().map(|event| event.id.clone().unwrap()).collect();
        // A client that has every event gets none, and the stream ends.
        let nothing = server.send(session.resume(ids.last().unwrap())).await;
        assert!(nothing.events().is_empty(), "{nothing:?}");
    }
}

#[tokio::test]
async fn silent_call_is_resumable_from_empty_first_event() {
    // HTTP25-10: the empty first event makes this possible.
    let server = HttpFixture::with(HttpConfig::new().stream_after(Duration::ZERO)).await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(session.call("wait", json!({"key": "w"})).id(5)).await;
    let first = stream.event().await.unwrap();
    stream.cut();
    server.world.release("w");
    server.world.finished("w").await;
    let messages = server.send(session.resume(&first.id.unwrap())).await.messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(
        (&messages[0]["id"], &messages[0]["result"]["content"][0]["text"]),
        (&json!(5), &json!("waited w"))
    );
}

#[tokio::test]
async fn stream_is_resumable_from_any_event() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(count(&session, "c", 4)).await;
    let mut ids = vec![stream.event().await.unwrap().id.unwrap()];
    for _ in 1..=4 {
        ids.push(stream.said().await.0.id.unwrap());
        server.world.release("c");
    }
    stream.message().await;
    for (seen, id) in ids.iter().enumerate() {
        let expected: Vec<Value> = (seen + 1..=4).map(|step| json!(step)).collect();
        assert_eq!(rest(&server, session.resume(id)).await, expected);
    }
}

#[tokio::test]
async fn stream_cut_after_every_event_loses_nothing() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(count(&session, "c", 20)).await;
    for step in 1..=20 {
        let (event, message) = stream.said().await;
        assert_eq!(message["params"]["progress"], step);
        stream.cut();
        server.world.release("c");
        stream = server.open(session.resume(&event.id.unwrap())).await;
    }
    assert_eq!(stream.message().await["result"]["content"][0]["text"], "counted 20");
    stream.ended().await;
}

#[tokio::test]
async fn resumed_stream_contains_only_its_own_events() {
    // HTTP25-16
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut a = server.open(count(&session, "a", 2)).await;
    let mut b = server.open(count(&session, "b", 2)).await;
    let changes = server.open(session.get()).await;
    let (from_a, from_b) = (a.said().await.0.id.unwrap(), b.said().await.0.id.unwrap());
    a.cut();
    b.cut();
    changes.cut();
    for key in ["a", "b"] {
        server.world.release(key);
        server.world.release(key);
        server.world.finished(key).await;
    }
    server.server.remove_tool("echo");
    for (key, id) in [("a", from_a), ("b", from_b)] {
        let messages = server.send(session.resume(&id)).await.messages();
        let (last, steps) = messages.split_last().unwrap();
        assert!(steps.iter().all(|step| step["params"]["progressToken"] == key), "{messages:?}");
        assert!(last.get("result").is_some());
    }
}

#[tokio::test]
async fn resumed_batch_stream_delivers_every_response() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-03-26").await;
    let call = |id: u32, key: &str| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "count", "arguments": {"key": key, "to": 1}, "_meta": {"progressToken": key}}})
    };
    let mut stream = server.open(session.batch([call(1, "a"), call(2, "b")])).await;
    stream.message().await;
    let (event, _) = stream.said().await;
    stream.cut();
    let mut resumed = server.open(session.resume(&event.id.unwrap())).await;
    server.world.release("a");
    assert_eq!(resumed.message().await["id"], 1);
    // One call has ended; the stream stays open for the other.
    server.world.release("b");
    assert_eq!(resumed.message().await["id"], 2);
    resumed.ended().await;
}

#[tokio::test]
async fn call_of_resumed_stream_can_be_cancelled() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(count(&session, "c", 2).id(1)).await;
    let (event, _) = stream.said().await;
    stream.cut();
    let resumed = server.open(session.resume(&event.id.unwrap())).await;
    let cancel = session.notification("notifications/cancelled", json!({"requestId": 1}));
    assert_eq!(server.send(cancel).await.status(), 202);
    server.world.cancelled("c").await;
    resumed.ended().await;
}

#[tokio::test]
async fn panic_without_connection_is_reported_on_resume() {
    let server = HttpFixture::with(HttpConfig::new().stream_after(Duration::ZERO)).await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(session.call("panic_later", json!({"key": "p"})).id(3)).await;
    let first = stream.event().await.unwrap();
    stream.cut();
    server.world.release("p");
    server.world.cancelled("p").await;
    let messages = server.send(session.resume(&first.id.unwrap())).await.messages();
    assert_eq!((&messages[0]["id"], &messages[0]["error"]["code"]), (&json!(3), &json!(-32603)));
}
