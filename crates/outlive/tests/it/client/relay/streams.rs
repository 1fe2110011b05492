//! Response streams of legacy servers that are resumed: after silence, and by another client.

use std::time::Duration;

use outlive::{
    client::relay::{RelayEvent, RelayExchange, RelayOutcome, RelayRequest, StreamPoint},
    wire::Version,
};
use serde_json::{Value, json};

use super::super::{
    kit::builder,
    script::{Bytes, HttpScript, Seen, empty, events, initialized, with_status},
};

/// Returns an event of a stream.
fn event(id: u32, message: &Value) -> String {
    format!("id: {id}\ndata: {message}\n\n")
}

fn progress(request: &Value, done: u32) -> Value {
    let params = json!({"progressToken": request, "progress": done});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
}

fn result(request: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request, "result": {"content": []}})
}

/// Returns a stream that stays open after its events.
fn open(events: &str) -> Bytes {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n{events}"
    )
}

/// Returns the response to everything but the call and the resumption of its stream.
fn handshake(seen: &Seen) -> Bytes {
    match (seen.verb.as_str(), seen.method()) {
        ("POST", "initialize") => {
            let body =
                json!({"jsonrpc": "2.0", "id": seen.id(), "result": initialized("2025-11-25")});
            with_status(200, "mcp-session-id: the-session\r\n", &body)
        }
        ("POST", _) | ("DELETE", _) => empty(202),
        _ => empty(405),
    }
}

async fn next(exchange: &mut RelayExchange) -> RelayEvent {
    let next = tokio::time::timeout(Duration::from_secs(20), exchange.next());
    next.await.expect("the exchange continues").unwrap()
}

#[tokio::test]
async fn silent_stream_is_resumed_again_until_it_has_the_result() {
    let call = json!(2);
    let script = HttpScript::new(move |seen, _| {
        let call = call.clone();
        async move {
            match (seen.method(), seen.header("last-event-id")) {
                ("tools/call", _) => events(&event(1, &progress(&call, 1))),
                // The missed event, and nothing more.
                (_, Some("1")) => open(&event(2, &progress(&call, 2))),
                (_, Some("2")) => events(&event(3, &result(&call))),
                _ => handshake(&seen),
            }
        }
    })
    .await;
    let builder = builder().protocol_version(Version::V2025_11_25);
    let client = builder.connect(script.url.as_str()).await.unwrap();
    let request = RelayRequest::new("tools/call").params(&[r#""name":"t""#]).progress(true);
    let mut exchange = client.relay(&request).await.unwrap();
    assert_eq!(exchange.id(), 2);
    for expected in [1.0, 2.0] {
        let RelayEvent::Progress(progress) = next(&mut exchange).await else { panic!() };
        assert_eq!(progress.progress, expected);
    }
    let RelayEvent::Outcome(RelayOutcome::Complete(_)) = next(&mut exchange).await else {
        panic!()
    };
    assert_eq!(script.all("tools/call").len(), 1);
}

#[tokio::test]
async fn detached_request_is_continued_by_another_client_at_its_point() {
    let script = HttpScript::new(move |seen, _| async move {
        let call = json!(2);
        match (seen.method(), seen.header("last-event-id")) {
            ("tools/call", _) => open(&event(1, &progress(&call, 1))),
            (_, Some("1")) => events(&event(2, &result(&call))),
            _ => handshake(&seen),
        }
    })
    .await;
    let connect = || {
        let builder = builder().protocol_version(Version::V2025_11_25);
        builder.connect(script.url.as_str())
    };
    let first = connect().await.unwrap();
    let request = RelayRequest::new("tools/call").params(&[r#""name":"t""#]).progress(true);
    let mut exchange = first.relay(&request).await.unwrap();
    let position = exchange.position();
    assert!(position.point().is_none(), "no event has arrived");
    assert!(matches!(next(&mut exchange).await, RelayEvent::Progress(_)));
    let stored = serde_json::to_string(&position.point().unwrap()).unwrap();
    exchange.detach();
    first.close_and_leave_session().await;
    drop(first);

    let second = connect().await.unwrap();
    let point: StreamPoint = serde_json::from_str(&stored).unwrap();
    let mut exchange = second.resume_at(&point, &RelayRequest::new("tools/call")).await.unwrap();
    assert!(matches!(next(&mut exchange).await, RelayEvent::Outcome(RelayOutcome::Complete(_))));
    second.cancel_at(&point, "no longer needed").await.unwrap();
    let seen = script.seen.lock().unwrap().clone();
    let resumed = seen.iter().find(|seen| seen.header("last-event-id").is_some()).unwrap();
    assert_eq!(resumed.header("mcp-session-id"), Some("the-session"));
    assert!(seen.iter().all(|seen| seen.verb != "DELETE"), "the session was left");
    let cancelled: Vec<&Seen> =
        seen.iter().filter(|seen| seen.method() == "notifications/cancelled").collect();
    assert_eq!(cancelled.len(), 1, "detaching cancels nothing");
    assert_eq!(cancelled[0].body["params"]["requestId"], 2);
    assert_eq!(seen.iter().filter(|seen| seen.method() == "tools/call").count(), 1);
}

#[tokio::test]
async fn forgotten_session_ends_a_resumed_request_that_may_have_executed() {
    let script = HttpScript::new(|seen, _| async move {
        match seen.header("last-event-id") {
            Some(_) => empty(404),
            None => handshake(&seen),
        }
    })
    .await;
    let builder = builder().protocol_version(Version::V2025_11_25);
    let client = builder.connect(script.url.as_str()).await.unwrap();
    let stored = r#"{"version":"2025-11-25","session":"gone","request":7,"event":"1"}"#;
    let point: StreamPoint = serde_json::from_str(stored).unwrap();
    let mut exchange = client.resume_at(&point, &RelayRequest::new("tools/call")).await.unwrap();
    let error = exchange.next().await.unwrap_err();
    assert!(error.may_have_executed(), "{error}");
    let modern = r#"{"version":"2026-07-28","request":7,"event":"1"}"#;
    let point: StreamPoint = serde_json::from_str(modern).unwrap();
    let refused = client.resume_at(&point, &RelayRequest::new("tools/call")).await;
    assert!(refused.unwrap_err().to_string().contains("no streams that can be resumed"));
}
