//! Input requests over Streamable HTTP and HTTP+SSE: their streams, and the way of the responses.

use std::time::Duration;

use outlive::{
    server::{
        Durable, Result, Server, State, Tool,
        http::{HttpConfig, StaticTokens},
    },
    wire::{CreateMessageRequestParams, Role, SamplingMessage},
};
use serde_json::{Value, json};

use crate::{
    input::dialogue::{Approval, accept, everything, failure_of, refusal_of, text_of},
    support::{
        gate::Gate,
        http::{HttpFixture, Request, Session, Stream, within},
        pipe::LEGACY,
    },
};

const ANNA: &str = "annas-token-0123456789";
const BERT: &str = "berts-token-0123456789";

async fn form(cx: Durable) -> Result<String> {
    let approval: Approval = cx.elicit("sure", "Really?").await?;
    Ok(format!("form {}", approval.yes))
}

async fn sample(cx: Durable) -> Result<String> {
    let params = CreateMessageRequestParams {
        messages: vec![SamplingMessage::text(Role::User, "Hello?")],
        max_tokens: 10,
        ..Default::default()
    };
    Ok(cx.sample("sample", params).await?.model)
}

async fn roots(cx: Durable) -> Result<String> {
    Ok(format!("{} roots", cx.roots("roots").await?.len()))
}

/// Sends progress, waits at the gate, then elicits.
async fn gated(cx: Durable, gate: State<Gate>) -> Result<String> {
    cx.progress(1.0, None, "");
    gate.pass().await;
    form(cx).await
}

/// Waits at the gate while an input request is open.
async fn beside(cx: Durable, gate: State<Gate>) -> Result<String> {
    let (approval, ()) = tokio::join!(cx.elicit::<Approval>("sure", "Really?"), gate.pass());
    Ok(approval?.yes.to_string())
}

fn asking(gate: &Gate) -> Server {
    Server::builder("asks", "1")
        .state(gate.clone())
        .limits(|limits| limits.progress_interval = Duration::ZERO)
        .tool(Tool::new("form", form))
        .tool(Tool::new("sample", sample))
        .tool(Tool::new("roots", roots))
        .tool(Tool::new("gated", gated))
        .tool(Tool::new("beside", beside))
        .build()
        .unwrap()
}

async fn start(config: HttpConfig) -> (HttpFixture, Gate) {
    let gate = Gate::default();
    (HttpFixture::of(asking(&gate), config).await, gate)
}

/// Opens a session of a client that supports every input request.
async fn session(server: &HttpFixture, version: &str, token: Option<&str>) -> Session {
    let hello = Request::initialize(version).param("capabilities", everything());
    Session::open(server.address(), hello, token).await
}

/// Calls a tool and reads its input request.
async fn ask(server: &HttpFixture, session: &Session, tool: &str) -> (Stream, Value) {
    let mut stream = server.open(session.call(tool, json!({})).id("the call")).await;
    let asked = stream.message().await;
    assert!(asked["method"].is_string() && asked["id"].is_u64(), "not an input request: {asked}");
    (stream, asked)
}

/// Posts an input response and expects 202.
async fn reply(server: &HttpFixture, session: &Session, asked: &Value, answer: Value) {
    let response = server.send(session.reply(asked, answer)).await;
    assert_eq!((response.status(), response.body.len()), (202, 0), "{response:?}");
}

fn yes() -> Value {
    accept(json!({"yes": true}))
}

// HTTP25-04, HTTP25-06, HTTP25-07, MT-10, ELIC-23, SAMP-13
#[tokio::test]
async fn input_request_is_sent_on_stream_of_its_call() {
    let (server, _) = start(HttpConfig::new()).await;
    for version in ["2025-06-18", "2025-11-25"] {
        let session = session(&server, version, None).await;
        let (mut stream, asked) = ask(&server, &session, "form").await;
        assert_eq!(asked["method"], "elicitation/create");
        reply(&server, &session, &asked, yes()).await;
        let answer = stream.message().await;
        assert_eq!((&answer["id"], text_of(&answer)), (&json!("the call"), "form true"));
        stream.ended().await;
    }
}

// HTTP25-09: on that stream only
#[tokio::test]
async fn input_requests_of_two_calls_use_their_own_streams() {
    let (server, _) = start(HttpConfig::new()).await;
    let session = session(&server, "2025-11-25", None).await;
    let (mut first, asked_first) = ask(&server, &session, "form").await;
    let call = session.call("roots", json!({})).id("another call");
    let mut second = server.open(call).await;
    let asked_second = second.message().await;
    assert_eq!(asked_second["method"], "roots/list");
    assert_ne!(asked_first["id"], asked_second["id"], "request IDs are unique in the session");
    reply(&server, &session, &asked_second, json!({"roots": []})).await;
    assert_eq!(text_of(&second.message().await), "0 roots");
    second.ended().await;
    reply(&server, &session, &asked_first, yes()).await;
    assert_eq!(text_of(&first.message().await), "form true");
    first.ended().await;
}

//
#[tokio::test]
async fn input_response_of_another_session_or_principal_is_ignored() {
    let tokens = StaticTokens::new().with("anna", ANNA).with("bert", BERT);
    let (server, _) = start(HttpConfig::new().authenticator(tokens)).await;
    let annas = session(&server, "2025-11-25", Some(ANNA)).await;
    let (mut stream, asked) = ask(&server, &annas, "form").await;
    let no = || accept(json!({"yes": false}));
    // The request ID has no meaning in another session, whether of the same principal or not.
    for token in [ANNA, BERT] {
        let other = session(&server, "2025-11-25", Some(token)).await;
        reply(&server, &other, &asked, no()).await;
    }
    // The session of another principal responds like an unknown session.
    let stolen = server.send(annas.with_token(BERT).reply(&asked, no())).await;
    let unknown = server.send(annas.with_token(BERT).with_id("nobody").reply(&asked, no())).await;
    assert_eq!(stolen.status(), 404);
    assert_eq!(stolen.without_date(), unknown.without_date());
    reply(&server, &annas, &asked, yes()).await;
    assert_eq!(text_of(&stream.message().await), "form true");
}

// HTTP25-05, ELIC-21: the input request fails with a reason
#[tokio::test]
async fn input_request_to_client_not_accepting_sse_fails() {
    let (server, gate) = start(HttpConfig::new()).await;
    let session = session(&server, "2025-11-25", None).await;
    for tool in ["form", "sample", "roots", "gated"] {
        gate.open(1);
        let call = session.call(tool, json!({})).accept("application/json");
        let response = within(server.send(call)).await;
        assert_eq!(response.status(), 200, "{tool}");
        let answer = response.json();
        assert!(
            failure_of(&answer).contains("does not accept an event stream"),
            "{tool}: {answer}"
        );
    }
}

// HTTP25-05
#[tokio::test]
async fn input_request_in_batch_of_client_not_accepting_sse_fails() {
    let (server, _) = start(HttpConfig::new()).await;
    let session = session(&server, "2025-03-26", None).await;
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "roots"}});
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let batch = session.batch([call, ping]).accept("application/json");
    let answers = within(server.send(batch)).await.json();
    let asking = answers.as_array().and_then(|all| all.iter().find(|one| one["id"] == 1)).unwrap();
    assert!(failure_of(asking).contains("does not accept an event stream"), "{answers}");
}

// HTTP25-05, RPC-27
#[tokio::test]
async fn call_in_http_batch_can_request_input() {
    let (server, _) = start(HttpConfig::new()).await;
    let session = session(&server, "2025-03-26", None).await;
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "roots"}});
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let mut stream = server.open(session.batch([call, ping])).await;
    let (first, second) = (stream.message().await, stream.message().await);
    let (asked, pong) =
        if first["method"] == "roots/list" { (first, second) } else { (second, first) };
    assert_eq!((&asked["method"], &pong["id"]), (&json!("roots/list"), &json!(2)));
    // The response comes in a batch, with a notification.
    let root = json!({"uri": "file:///home"});
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [root]}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    assert_eq!(server.send(session.batch([answer, ready])).await.status(), 202);
    let answer = stream.message().await;
    assert_eq!((&answer["id"], text_of(&answer)), (&json!(1), "1 roots"));
    stream.ended().await;
}

// HTTP25-08, HTTP25-16
#[tokio::test]
async fn input_request_lost_with_stream_is_replayed_on_resume() {
    let (server, gate) = start(HttpConfig::new()).await;
    for version in ["2025-06-18", "2025-11-25"] {
        let session = session(&server, version, None).await;
        let call =
            session.call("gated", json!({})).id("the call").meta("progressToken", json!("p"));
        let mut stream = server.open(call).await;
        let (event, progress) = stream.said().await;
        assert_eq!(progress["method"], "notifications/progress");
        // The input request is sent while no stream is connected, and is replayed on each resume.
        gate.arrived().await;
        stream.cut();
        gate.open(1);
        let last = event.id.expect("an event ID to resume from");
        let mut asked = Value::Null;
        for _ in 0..3 {
            let mut resumed = server.open(session.resume(&last)).await;
            let again = resumed.message().await;
            assert_eq!(again["method"], "elicitation/create", "{version}");
            assert!(asked.is_null() || asked == again, "the same input request: {asked} {again}");
            asked = again;
            resumed.cut();
        }
        let mut resumed = server.open(session.resume(&last)).await;
        assert_eq!(resumed.message().await, asked);
        reply(&server, &session, &asked, yes()).await;
        let answer = resumed.message().await;
        assert_eq!((&answer["id"], text_of(&answer)), (&json!("the call"), "form true"));
        resumed.ended().await;
    }
}

// HTTP25-08, HTTP25-16
#[tokio::test]
async fn input_response_without_open_stream_is_accepted() {
    let (server, _) = start(HttpConfig::new()).await;
    let session = session(&server, "2025-11-25", None).await;
    let mut stream = server.open(session.call("form", json!({})).id("the call")).await;
    let (event, asked) = stream.said().await;
    stream.cut();
    reply(&server, &session, &asked, yes()).await;
    // A client that resumes after the input request gets only the result.
    let mut resumed = server.open(session.resume(&event.id.expect("an event ID"))).await;
    assert_eq!(text_of(&resumed.message().await), "form true");
    resumed.ended().await;
}

// HTTP25-28, HTTP25-33
#[tokio::test]
async fn deleted_session_cancels_calls_waiting_for_input() {
    let (server, gate) = start(HttpConfig::new()).await;
    let session = session(&server, "2025-11-25", None).await;
    let (_stream, asked) = ask(&server, &session, "beside").await;
    gate.arrived().await;
    assert_eq!(server.send(session.delete()).await.status(), 204);
    gate.abandoned().await;
    assert_eq!(server.send(session.reply(&asked, yes())).await.status(), 404);
}

// CANC-03, CANC-05
#[tokio::test]
async fn cancelled_http_call_drops_its_input_request() {
    let (server, gate) = start(HttpConfig::new()).await;
    let session = session(&server, "2025-11-25", None).await;
    let (stream, asked) = ask(&server, &session, "beside").await;
    gate.arrived().await;
    let cancelled =
        session.notification("notifications/cancelled", json!({"requestId": "the call"}));
    assert_eq!(server.send(cancelled).await.status(), 202);
    gate.abandoned().await;
    stream.ended().await;
    // A response that crosses the cancellation has no effect.
    reply(&server, &session, &asked, yes()).await;
    let (mut stream, asked) = ask(&server, &session, "form").await;
    reply(&server, &session, &asked, yes()).await;
    assert_eq!(text_of(&stream.message().await), "form true");
}

// HTTP25-32, MT-10: input requests need a session
#[tokio::test]
async fn stateless_legacy_call_requesting_input_is_rejected() {
    let (server, _) = start(HttpConfig::new().sessions(false)).await;
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let hello = Request::initialize(version).param("capabilities", everything());
        assert_eq!(server.send(hello).await.status(), 200);
        for tool in ["form", "sample", "roots"] {
            for accept in ["application/json", "application/json, text/event-stream"] {
                let call = Request::sessionless(version, "tools/call").accept(accept);
                let call = call.params(json!({"name": tool}));
                let response = within(server.send(call)).await;
                let answer = response.json();
                let (code, message) = refusal_of(&answer);
                assert_eq!(code, -32602, "{version} {tool}");
                assert!(message.contains("must declare"), "{version} {tool}: {message}");
            }
        }
    }
}

// SSE24-05, ELIC-24
#[tokio::test]
async fn http_sse_input_requests_use_session_stream() {
    let (server, _) = start(HttpConfig::new()).await;
    for version in LEGACY {
        let mut pair = server.pair_as(version, None).await;
        let hello = json!({
            "protocolVersion": version,
            "capabilities": everything(),
            "clientInfo": {"name": "old", "version": "1"},
        });
        pair.ask(&server, 0, "initialize", hello).await;
        pair.post(&server, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let model = json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "parrot"});
        let rows = [
            ("sample", "sampling/createMessage", model, "parrot"),
            ("roots", "roots/list", json!({"roots": []}), "0 roots"),
            ("form", "elicitation/create", yes(), "form true"),
        ];
        for (tool, method, answer, expected) in rows {
            let first = pair.ask(&server, tool, "tools/call", json!({"name": tool})).await;
            if tool == "form" && version < "2025-06-18" {
                // These versions have no elicitation, even if the client declares it.
                assert_eq!((&first["id"], refusal_of(&first).0), (&json!(tool), -32602));
                continue;
            }
            assert_eq!(first["method"], method, "{version}");
            pair.post(&server, json!({"jsonrpc": "2.0", "id": first["id"], "result": answer}))
                .await;
            let answer = pair.message().await;
            assert_eq!((&answer["id"], text_of(&answer)), (&json!(tool), expected), "{version}");
        }
    }
}
