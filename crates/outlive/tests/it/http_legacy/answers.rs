//! JSON and stream responses of legacy versions, and cancellation.

use std::time::Duration;

use outlive::server::http::HttpConfig;
use serde_json::{Value, json};

use crate::support::http::{HttpFixture, Request};

#[tokio::test]
async fn legacy_call_with_progress_is_stream_with_event_ids() {
    // HTTP25-05, HTTP25-07, HTTP25-10, HTTP25-11, HTTP25-15
    let server = HttpFixture::start().await;
    for (version, primed) in [("2025-11-25", true), ("2025-06-18", false), ("2025-03-26", false)] {
        let session = server.session(version).await;
        let call = session
            .call("count", json!({"key": "c", "to": 2}))
            .meta("progressToken", json!(1))
            .id(4);
        let mut stream = server.open(call).await;
        assert_eq!(stream.header("x-accel-buffering"), Some("no"));
        let mut ids = Vec::new();
        if primed {
            // Clients of earlier versions may try to parse an empty event as JSON.
            let first = stream.event().await.unwrap();
            assert_eq!((first.data.as_str(), first.retry), ("", None), "{version}");
            ids.push(first.id.expect("an event ID to resume from"));
        }
        for step in 1..=2 {
            let event = stream.event().await.unwrap();
            let message: Value = serde_json::from_str(&event.data).expect("no empty event");
            assert_eq!(message["params"]["progress"], step, "{version}");
            ids.push(event.id.expect("an event ID"));
            server.world.release("c");
        }
        let (event, last) = stream.said().await;
        ids.push(event.id.expect("an event ID"));
        assert_eq!(last["id"], 4);
        assert_eq!(last["result"], json!({"content": [{"type": "text", "text": "counted 2"}]}));
        stream.ended().await;
        let unique: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{ids:?}");
    }
}

#[tokio::test]
async fn event_ids_are_unique_across_streams_of_a_session() {
    // HTTP25-15
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let mut ids = std::collections::HashSet::new();
    for _ in 0..5 {
        let call = session.call("echo", json!({"text": "x"})).accept("text/event-stream");
        for event in server.send(call).await.events() {
            let id = event.id.clone().expect("an event ID");
            assert!(ids.insert(id.clone()), "{id} twice");
        }
    }
    assert!(ids.len() >= 10, "{ids:?}");
}

#[tokio::test]
async fn session_of_2024_11_05_has_streams_without_event_ids() {
    // C-19
    let server = HttpFixture::start().await;
    let session = server.session("2024-11-05").await;
    let call = session.call("leave", json!({"key": "l"})).accept("text/event-stream");
    let waiting = server.begin(&call);
    let mut connection = waiting.await;
    server.world.started("l").await;
    server.world.release("l");
    let response = connection.response(&call).await;
    assert!(response.events().iter().all(|event| event.id.is_none() && event.retry.is_none()));
    assert_eq!(response.messages()[0]["result"]["content"][0]["text"], "left and came back");
}

#[tokio::test]
async fn log_messages_follow_level_of_their_session() {
    // LOG-06, C-13
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let other = server.session("2025-11-25").await;
    let set = session.request("logging/setLevel").params(json!({"level": "alert"}));
    assert_eq!(server.send(set).await.result(), json!({}));
    for (session, lines) in [(&session, 2), (&other, 7)] {
        let mut stream = server.open(session.call("log", json!({"key": "l"}))).await;
        server.world.release("l");
        for _ in 0..lines {
            assert_eq!(stream.message().await["method"], "notifications/message");
        }
        assert_eq!(stream.message().await["result"]["content"][0]["text"], "logged");
        stream.ended().await;
    }
}

#[tokio::test]
async fn legacy_disconnect_does_not_cancel_call() {
    // HTTP25-08, C-01, CANC-08: whether or not the response is already a stream.
    let server = HttpFixture::start().await;
    for version in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let session = server.session(version).await;
        let connection = server.begin(session.call("wait", json!({"key": "w"}))).await;
        server.world.started("w").await;
        drop(connection);
        let call =
            session.call("count", json!({"key": "c", "to": 1})).meta("progressToken", json!(1));
        let mut stream = server.open(call).await;
        stream.message().await;
        stream.cut();
        // Two more round trips, so that the server has noticed the disconnect.
        for _ in 0..2 {
            assert_eq!(server.send(session.request("ping")).await.result(), json!({}));
        }
        for key in ["w", "c"] {
            assert!(!server.world.is_cancelled(key), "{version}");
            server.world.release(key);
            server.world.finished(key).await;
        }
    }
}

#[tokio::test]
async fn cancel_notification_cancels_only_its_call() {
    // CANC-05, C-02
    let server = HttpFixture::with(HttpConfig::new().stream_after(Duration::ZERO)).await;
    let session = server.session("2025-11-25").await;
    let stream = server.open(session.call("wait", json!({"key": "a"})).id(1)).await;
    let mut other = server.open(session.call("wait", json!({"key": "b"})).id("1")).await;
    let cancel = |id| {
        session
            .notification("notifications/cancelled", json!({"requestId": id, "reason": "enough"}))
    };
    assert_eq!(server.send(cancel(json!(1))).await.status(), 202);
    server.world.cancelled("a").await;
    // The cancelled call sends nothing more, not even an error.
    stream.ended().await;
    // Repeated cancellations, unknown IDs and IDs of another type have no effect.
    for id in [json!(1), json!(99), json!("x"), json!(null)] {
        assert_eq!(server.send(cancel(id)).await.status(), 202);
    }
    assert!(!server.world.is_cancelled("b"));
    server.world.release("b");
    assert_eq!(other.message().await["result"]["content"][0]["text"], "waited b");
    other.ended().await;
}

#[tokio::test]
async fn pending_call_is_cancelled_with_empty_202() {
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let call = session.call("wait", json!({"key": "a"})).id("p-1");
    let mut connection = server.begin(&call).await;
    server.world.started("a").await;
    let cancel = session.notification("notifications/cancelled", json!({"requestId": "p-1"}));
    assert_eq!(server.send(cancel).await.status(), 202);
    server.world.cancelled("a").await;
    let response = connection.response(&call).await;
    assert_eq!((response.status(), response.body.len()), (202, 0), "no response is sent");
    // The request ID is reusable.
    assert_eq!(server.send(session.call("echo", json!({"text": "x"})).id("p-1")).await.text(), "x");
}

#[tokio::test]
async fn session_cannot_cancel_calls_of_another_session() {
    // CANC-01
    let server = HttpFixture::start().await;
    let (mine, yours) = (server.session("2025-11-25").await, server.session("2025-11-25").await);
    let call = mine.call("wait", json!({"key": "a"})).id(1);
    let mut connection = server.begin(&call).await;
    server.world.started("a").await;
    let cancel = yours.notification("notifications/cancelled", json!({"requestId": 1}));
    assert_eq!(server.send(cancel).await.status(), 202);
    assert!(!server.world.is_cancelled("a"));
    // The request ID of one session is free in the other.
    assert_eq!(server.send(yours.call("echo", json!({"text": "x"})).id(1)).await.text(), "x");
    server.world.release("a");
    assert_eq!(connection.response(&call).await.text(), "waited a");
}

#[tokio::test]
async fn legacy_client_accepting_one_media_type_gets_it() {
    let server = HttpFixture::with(HttpConfig::new().stream_after(Duration::ZERO)).await;
    let session = server.session("2025-11-25").await;
    let call = session.call("count", json!({"key": "j", "to": 1})).meta("progressToken", json!(1));
    let json_only = call.clone().accept("application/json");
    let mut connection = server.begin(&json_only).await;
    server.world.started("j").await;
    server.world.release("j");
    assert_eq!(connection.response(&json_only).await.text(), "counted 1");
    let response =
        server.send(session.call("echo", json!({"text": "s"})).accept("text/event-stream")).await;
    assert_eq!(response.messages()[0]["result"]["content"][0]["text"], "s");
}

#[tokio::test]
async fn progress_token_of_other_type_is_invalid_params() {
    // PROG-01
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    for token in [json!(1.5), json!({}), json!([]), json!(true)] {
        let call = session.call("echo", json!({"text": "x"})).meta("progressToken", token).id(1);
        let answer = server.send(call).await;
        assert_eq!(answer.json()["error"]["code"], -32602);
    }
    let plain: Request =
        session.call("echo", json!({"text": "x"})).meta("progressToken", json!("t"));
    assert_eq!(server.send(plain).await.text(), "x");
}
