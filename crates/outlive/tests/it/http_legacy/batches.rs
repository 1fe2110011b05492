//! Batches, which only 2025-03-26 allows.

use outlive::server::http::HttpConfig;
use serde_json::{Value, json};

use crate::support::http::{HttpFixture, Request, Session};

fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    let id: Value = id.into();
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

fn note(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method})
}

async fn server() -> (HttpFixture, Session) {
    let server = HttpFixture::start().await;
    let session = server.session("2025-03-26").await;
    (server, session)
}

/// Returns the texts of tool results with their request IDs, sorted.
fn texts(answers: &[Value]) -> Vec<(String, String)> {
    let text = |answer: &Value| {
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
        (answer["id"].to_string(), text)
    };
    let mut texts: Vec<_> = answers.iter().map(text).collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn batch_without_waiting_calls_returns_array() {
    // RPC-27, HTTP25-05
    let (server, session) = server().await;
    let batch = session.batch([
        call(1, "echo", json!({"text": "one"})),
        note("notifications/initialized"),
        call("two", "echo", json!({"text": "two"})),
        json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 9, "result": {}}),
    ]);
    let response = server.send(&batch).await;
    assert_eq!(response.status(), 200);
    let answers = response.json();
    let answers = answers.as_array().expect("an array");
    assert_eq!(answers.len(), 3);
    assert_eq!(
        texts(&answers[..2]),
        [("\"two\"".into(), "two".into()), ("1".into(), "one".into())]
    );
    assert_eq!(answers[2], json!({"jsonrpc": "2.0", "id": 3, "result": {}}));
}

#[tokio::test]
async fn batch_with_waiting_call_returns_stream() {
    // HTTP25-05: one response per request.
    let (server, session) = server().await;
    let mut counting = call(2, "count", json!({"key": "c", "to": 1}));
    counting["params"]["_meta"] = json!({"progressToken": "p"});
    let batch = session.batch([
        call(1, "echo", json!({"text": "at once"})),
        counting,
        call(3, "wait", json!({"key": "w"})),
        json!({"jsonrpc": "2.0", "id": 4, "method": "nope"}),
    ]);
    let mut stream = server.open(&batch).await;
    let mut first = [stream.message().await, stream.message().await, stream.message().await];
    first.sort_by_key(|message| message["id"].as_u64());
    assert_eq!(first[0]["params"]["progressToken"], "p");
    assert_eq!(first[1]["result"]["content"][0]["text"], "at once");
    assert_eq!((&first[2]["id"], &first[2]["error"]["code"]), (&json!(4), &json!(-32601)));
    server.world.release("w");
    assert_eq!(texts(&[stream.message().await]), [("3".into(), "waited w".into())]);
    server.world.release("c");
    assert_eq!(texts(&[stream.message().await]), [("2".into(), "counted 1".into())]);
    stream.ended().await;
}

#[tokio::test]
async fn batch_response_has_accepted_media_type() {
    let (server, session) = server().await;
    let calls = || [call(1, "echo", json!({"text": "a"})), call(2, "wait", json!({"key": "w"}))];
    let json_only = session.batch(calls()).accept("application/json");
    let mut connection = server.begin(&json_only).await;
    server.world.started("w").await;
    server.world.release("w");
    let answers = connection.response(&json_only).await.json();
    let expected = [("1".into(), "a".into()), ("2".into(), "waited w".into())];
    assert_eq!(texts(answers.as_array().unwrap()), expected);

    let at_once = session
        .batch([call(1, "echo", json!({"text": "a"})), call(2, "echo", json!({"text": "b"}))]);
    let response = server.send(at_once.accept("text/event-stream")).await;
    assert_eq!(texts(&response.messages()), [("1".into(), "a".into()), ("2".into(), "b".into())]);
}

#[tokio::test]
async fn batch_without_requests_is_accepted_with_202() {
    // HTTP25-04
    let (server, session) = server().await;
    for accept in ["application/json, text/event-stream", "application/json", "text/event-stream"] {
        let batch = session.batch([
            note("notifications/initialized"),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
            json!({"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": "m"}}),
        ]);
        let response = server.send(batch.accept(accept)).await;
        assert_eq!((response.status(), response.body.len()), (202, 0));
    }
}

#[tokio::test]
async fn batch_messages_are_validated_individually() {
    let (server, session) = server().await;
    let batch = session.batch([
        json!(1),
        json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "nope"}),
        json!([{"jsonrpc": "2.0", "id": 3, "method": "ping"}]),
        json!({"jsonrpc": "1.0", "id": 4, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 5, "method": "ping"}),
        call(6, "panic", json!({})),
    ]);
    let response = server.send(&batch).await;
    assert_eq!(response.status(), 200);
    let codes: Vec<_> = response
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| (answer.get("id").cloned(), answer["error"]["code"].as_i64()))
        .collect();
    assert_eq!(
        codes,
        [
            (None, Some(-32600)),
            (None, Some(-32600)),
            (Some(json!(2)), Some(-32601)),
            (None, Some(-32600)),
            (Some(json!(4)), Some(-32600)),
            (Some(json!(5)), None),
            (Some(json!(6)), Some(-32603)),
        ]
    );
}

#[tokio::test]
async fn handshake_in_batch_is_rejected() {
    // RPC-28
    let (server, session) = server().await;
    let hello: Value =
        serde_json::from_slice(&Request::initialize("2025-03-26").id(1).body_bytes()).unwrap();
    let before = server.serving.service().session_count();
    let answers = server
        .send(session.batch([hello.clone(), call(2, "echo", json!({"text": "x"}))]))
        .await
        .json();
    assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!(1), &json!(-32600)));
    assert_eq!(answers[1]["result"]["content"][0]["text"], "x");
    // Without a session, no version allows the batch.
    let bare = Request::post("2025-03-26").json(json!([hello]));
    assert_eq!(server.send(&bare).await.status(), 400);
    assert_eq!(server.serving.service().session_count(), before, "no session was opened");
}

#[tokio::test]
async fn empty_or_too_long_batch_is_rejected() {
    // RPC-29
    let server = HttpFixture::build(HttpConfig::new(), |server| {
        server.limits(|limits| limits.max_batch = 3)
    })
    .await;
    let session = server.session("2025-03-26").await;
    let ping = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    for length in [0, 4, 50] {
        let response = server.send(session.batch((0..length).map(ping))).await;
        assert_eq!(
            (response.status(), &response.json()["error"]["code"]),
            (400, &json!(-32600)),
            "{length}"
        );
    }
    let response = server.send(session.batch((0..3).map(ping))).await;
    assert_eq!(response.json().as_array().unwrap().len(), 3);
    let broken = server.send(session.batch([]).raw("[{\"jsonrpc\":")).await;
    assert_eq!((broken.status(), &broken.json()["error"]["code"]), (400, &json!(-32700)));
}

#[tokio::test]
async fn batch_in_other_version_is_rejected() {
    // RPC-29, C-26
    let server = HttpFixture::start().await;
    for version in ["2025-11-25", "2025-06-18", "2024-11-05"] {
        let session = server.session(version).await;
        let response = server.send(session.batch([call(1, "echo", json!({"text": "x"}))])).await;
        let answer = response.json();
        assert_eq!(
            (response.status(), &answer["error"]["code"]),
            (400, &json!(-32600)),
            "{version}"
        );
        assert_eq!(answer.get("id"), None);
    }
}

#[tokio::test]
async fn call_in_batch_is_cancelled_alone() {
    let (server, session) = server().await;
    let batch =
        session.batch([call(1, "wait", json!({"key": "a"})), call(2, "wait", json!({"key": "b"}))]);
    let mut connection = server.begin(&batch).await;
    server.world.started("a").await;
    server.world.started("b").await;
    let cancel = session.notification("notifications/cancelled", json!({"requestId": 1}));
    assert_eq!(server.send(cancel).await.status(), 202);
    server.world.cancelled("a").await;
    server.world.release("b");
    let messages = connection.response(&batch).await.messages();
    assert_eq!(texts(&messages), [("2".into(), "waited b".into())]);
}

#[tokio::test]
async fn duplicate_request_id_in_batch_is_rejected_once() {
    // RPC-04
    let (server, session) = server().await;
    let batch =
        session.batch([call(1, "wait", json!({"key": "a"})), call(1, "wait", json!({"key": "b"}))]);
    let mut connection = server.begin(&batch).await;
    server.world.started("a").await;
    server.world.release("a");
    let messages = connection.response(&batch).await.messages();
    let mut kinds: Vec<_> =
        messages.iter().map(|message| message["error"]["code"].as_i64()).collect();
    kinds.sort();
    assert_eq!(kinds, [None, Some(-32600)], "{messages:?}");
}
