//! Isolation of two principals: a foreign session looks like an unknown session.

use outlive::server::http::{HttpConfig, StaticTokens};
use serde_json::json;

use crate::support::http::{HttpFixture, Request, Session};

const ANNA: &str = "annas-token-0123456789";
const BERT: &str = "berts-token-0123456789";

async fn two_callers() -> HttpFixture {
    let tokens = StaticTokens::new().with("anna", ANNA).with("bert", BERT);
    HttpFixture::with(HttpConfig::new().authenticator(tokens)).await
}

/// One request for every way to use a session.
fn uses(session: &Session) -> Vec<Request> {
    vec![
        session.request("ping").id(1),
        session.call("echo", json!({"text": "x"})).id(1),
        session.notification("notifications/cancelled", json!({"requestId": 1})),
        session.get(),
        session.resume("0-0"),
        session.resume("not an id"),
        session.delete(),
        // A version other than that of the session must not reveal that the session exists.
        session.request("ping").id(1).header("mcp-protocol-version", "2025-06-18"),
        session.get().header("mcp-protocol-version", "2025-06-18"),
        session.delete().header("mcp-protocol-version", "banana"),
        session.batch([json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})]),
    ]
}

#[tokio::test]
async fn foreign_session_responds_like_unknown_session() {
    // HTTP25-31, SEC-03: byte for byte, and the attempts leave the session unchanged.
    let server = two_callers().await;
    let annas = server.session_as("2025-11-25", Some(ANNA)).await;
    let batching = server.session_as("2025-03-26", Some(ANNA)).await;
    let call = annas.call("wait", json!({"key": "w"})).id(1);
    let mut connection = server.begin(&call).await;
    server.world.started("w").await;

    for known in [&annas, &batching] {
        let foreign = known.with_token(BERT);
        let unknown = foreign.with_id("0123456789abcdef0123456789abcdef");
        for (theirs, nobodys) in uses(&foreign).iter().zip(uses(&unknown)) {
            let (theirs, nobodys) = (server.send(theirs).await, server.send(&nobodys).await);
            assert_eq!(theirs.without_date(), nobodys.without_date());
            assert!([400, 404].contains(&theirs.status()), "{theirs:?}");
        }
    }

    assert!(!server.world.is_cancelled("w"));
    server.world.release("w");
    assert_eq!(connection.response(&call).await.text(), "waited w");
    assert_eq!(server.send(annas.call("whoami", json!({}))).await.text(), "anna");
}

#[tokio::test]
async fn session_id_without_token_is_401() {
    // HTTP25-31, HTTP26-15: every request is authenticated, regardless of earlier requests on the
    // connection.
    let server = two_callers().await;
    let annas = server.session_as("2025-11-25", Some(ANNA)).await;
    let mut connection = server.connect().await;
    assert_eq!(connection.send(&annas.call("whoami", json!({}))).await.text(), "anna");
    for request in uses(&annas) {
        let response = connection.send(&request.without_header("authorization")).await;
        assert_eq!(response.status(), 401);
        assert_eq!(response.header("www-authenticate"), Some("Bearer"));
    }
    let modern = Request::call("whoami", json!({}));
    assert_eq!(connection.send(&modern.clone().bearer(BERT)).await.text(), "bert");
    assert_eq!(connection.send(&modern).await.status(), 401);
    assert_eq!(connection.send(&annas.call("whoami", json!({}))).await.text(), "anna");
}

#[tokio::test]
async fn event_id_of_another_session_is_rejected_like_unknown_id() {
    // HTTP25-16: neither for another principal nor in another session of the same principal.
    let server = two_callers().await;
    let annas = server.session_as("2025-11-25", Some(ANNA)).await;
    let second = server.session_as("2025-11-25", Some(ANNA)).await;
    let berts = server.session_as("2025-11-25", Some(BERT)).await;
    let secret = annas.call("echo", json!({"text": "annas secret"})).accept("text/event-stream");
    let events = server.send(secret).await.events().to_vec();
    for event in &events {
        let id = event.id.as_deref().unwrap();
        let made_up = format!("{}!", &id[..id.len() - 1]);
        for session in [&second, &berts] {
            let theirs = server.send(session.resume(id)).await;
            let nobodys = server.send(session.resume(&made_up)).await;
            assert_eq!(theirs.without_date(), nobodys.without_date());
            assert_eq!(theirs.status(), 400);
        }
        // In its own session the event ID still works.
        assert_eq!(server.send(annas.resume(id)).await.status(), 200);
    }
    let messages = server.send(annas.resume(events[0].id.as_deref().unwrap())).await.messages();
    assert_eq!(messages[0]["result"]["content"][0]["text"], "annas secret");
}

#[tokio::test]
async fn event_ids_reveal_nothing() {
    // HTTP25-15: event IDs of all sessions and streams have the same length and never repeat.
    let server = two_callers().await;
    let mut ids = std::collections::HashSet::new();
    for token in [ANNA, BERT] {
        let session = server.session_as("2025-11-25", Some(token)).await;
        let call = session.call("echo", json!({"text": "x"})).accept("text/event-stream");
        let events = server.send(call).await.events().to_vec();
        let first = events[0].id.as_deref().unwrap();
        // The replayed events have new, equally valid IDs.
        let again = server.send(session.resume(first)).await.events().to_vec();
        assert_eq!(again.len(), events.len() - 1);
        for event in events.iter().chain(&again) {
            let id = event.id.clone().unwrap();
            assert_eq!(id.len(), first.len());
            assert!(ids.insert(id), "an event ID occurs twice");
        }
    }
}

#[tokio::test]
async fn calls_of_two_principals_with_same_request_id_are_independent() {
    let server = two_callers().await;
    let annas = server.session_as("2025-11-25", Some(ANNA)).await;
    let berts = server.session_as("2025-11-25", Some(BERT)).await;
    let first = annas.call("wait", json!({"key": "a"})).id(1);
    let second = berts.call("wait", json!({"key": "b"})).id(1);
    let (mut a, mut b) = (server.begin(&first).await, server.begin(&second).await);
    server.world.started("a").await;
    server.world.started("b").await;
    let cancel = berts.notification("notifications/cancelled", json!({"requestId": 1}));
    assert_eq!(server.send(cancel).await.status(), 202);
    server.world.cancelled("b").await;
    assert_eq!(b.response(&second).await.status(), 202);
    assert!(!server.world.is_cancelled("a"));
    server.world.release("a");
    assert_eq!(a.response(&first).await.text(), "waited a");
}
