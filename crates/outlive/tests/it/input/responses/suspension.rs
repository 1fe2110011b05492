//! Suspended calls: the run is dropped, and the client gets `input_required`.

use std::{sync::Arc, time::Duration};

use outlive::server::{Durable, Json, Result, Server, State, Tool, http::HttpConfig};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    input::dialogue::{
        Approval, Notes, Talk, WIRES, accept, builder, everything, keys, state_of, text_of,
        texts_of,
    },
    support::{
        gate::Gate,
        http::{HttpFixture, Request},
        pipe::MODERN,
    },
};

/// Ignores every error.
async fn careless(cx: Durable, notes: State<Notes>) -> Result<String> {
    notes.note("asks");
    let mut answer = None;
    for _ in 0..3 {
        if let Ok(approval) = cx.elicit::<Approval>("sure", "Sure?").await {
            answer = Some(approval.yes);
            break;
        }
        notes.note("swallowed an error");
    }
    notes.note("continues");
    Ok(format!("{answer:?}"))
}

/// Holds a gate permit while it waits for input.
async fn holding(cx: Durable, gate: State<Gate>) -> Result<String> {
    let (approval, ()) = tokio::join!(cx.elicit::<Approval>("sure", "Sure?"), gate.pass());
    Ok(approval?.yes.to_string())
}

/// Sends progress before it elicits.
async fn chatty(cx: Durable) -> Result<String> {
    cx.progress(1.0, None, "");
    tokio::time::sleep(Duration::from_millis(1)).await;
    Ok(cx.elicit::<Approval>("sure", "Sure?").await?.yes.to_string())
}

/// Makes a second input request when a spawned task notifies it.
async fn woken(cx: Durable) -> Result<String> {
    let later = Arc::new(tokio::sync::Notify::new());
    let other = Arc::clone(&later);
    tokio::spawn(async move { other.notify_one() });
    let (first, second) = tokio::join!(cx.elicit::<Approval>("first", "First?"), async {
        later.notified().await;
        cx.elicit::<Approval>("second", "Second?").await
    });
    Ok(format!("{} {}", first?.yes, second?.yes))
}

#[derive(Serialize, JsonSchema)]
struct Report {
    approved: bool,
}

/// Declares an output schema.
async fn structured(cx: Durable) -> Result<Json<Report>> {
    cx.emit("working").await?;
    let approval: Approval = cx.elicit("sure", "Sure?").await?;
    Ok(Json(Report { approved: approval.yes }))
}

fn server(notes: &Notes, gate: &Gate) -> Server {
    let tools = [
        Tool::new("careless", careless),
        Tool::new("holding", holding),
        Tool::new("chatty", chatty),
        Tool::new("woken", woken),
        Tool::new("structured", structured),
        Tool::new("one_at_a_time", careless).max_concurrent(1),
    ];
    builder(tools)
        .state(notes.clone())
        .state(gate.clone())
        .limits(|limits| limits.progress_interval = Duration::ZERO)
        .build()
        .unwrap()
}

fn yes() -> Value {
    accept(json!({"yes": true}))
}

// The input future of a suspended run never resolves (M-19)
#[tokio::test(start_paused = true)]
async fn input_request_of_suspended_run_never_resolves() {
    let notes = Notes::default();
    let mut talk = Talk::open(&server(&notes, &Gate::default()), MODERN).await;
    let first = talk.begin("careless").await;
    assert_eq!(notes.take(), ["asks"], "the input request neither resolved nor failed");
    let again = talk.back("careless", &first, json!({})).await;
    assert_eq!(notes.take(), ["asks"]);
    let last = talk.back("careless", &again, json!({"sure": yes()})).await;
    assert_eq!(text_of(&last), "Some(true)");
    assert_eq!(notes.take(), ["asks", "continues"]);
}

// M-08
#[tokio::test(start_paused = true)]
async fn suspended_call_drops_its_run() {
    let gate = Gate::default();
    let mut talk = Talk::open(&server(&Notes::default(), &gate), MODERN).await;
    for round in 1..=3 {
        state_of(&talk.begin("holding").await);
        gate.arrived().await;
        // The run is dropped before the client gets the response.
        assert_eq!(gate.count_abandoned(), round);
    }
}

// M-08: a suspended call frees its concurrency slot
#[tokio::test(start_paused = true)]
async fn suspended_call_frees_its_concurrency_slot() {
    let mut talk = Talk::open(&server(&Notes::default(), &Gate::default()), MODERN).await;
    let first = talk.begin("one_at_a_time").await;
    let second = talk.begin("one_at_a_time").await;
    for round in [second, first] {
        let last = talk.back("one_at_a_time", &round, json!({"sure": yes()})).await;
        assert_eq!(text_of(&last), "Some(true)");
    }
}

// The engine waits for one more scheduler turn before it suspends a run.
#[tokio::test(start_paused = true)]
async fn run_about_to_make_another_input_request_is_not_suspended() {
    let mut talk = Talk::open(&server(&Notes::default(), &Gate::default()), MODERN).await;
    let first = talk.begin("woken").await;
    assert_eq!(keys(&first), ["first", "second"]);
}

// M-03: the output schema does not apply to `input_required`
#[tokio::test(start_paused = true)]
async fn tool_with_output_schema_can_request_input() {
    for version in WIRES {
        let mut talk = Talk::open(&server(&Notes::default(), &Gate::default()), version).await;
        let played = talk.call("structured", |_| yes()).await;
        let result = &played.answer["result"];
        assert_eq!(result["structuredContent"], json!({"approved": true}), "{version}");
        assert_eq!(texts_of(&played.answer), ["working", r#"{"approved":true}"#], "{version}");
    }
}

// M-03, M-07
#[tokio::test]
async fn suspended_http_call_returns_json_or_ends_stream() {
    let server = server(&Notes::default(), &Gate::default());
    let server = HttpFixture::of(server, HttpConfig::new()).await;
    let able =
        |tool: &str| Request::call(tool, json!({})).reserved("clientCapabilities", everything());
    let response = server.send(able("careless")).await;
    assert_eq!((response.status(), response.is_stream()), (200, false));
    assert_eq!(keys(&response.json()), ["sure"]);

    let call = able("chatty").meta("progressToken", json!("p")).id(7);
    let mut stream = server.open(&call).await;
    assert_eq!(stream.message().await["method"], "notifications/progress");
    let asked = stream.message().await;
    assert_eq!((&asked["id"], &keys(&asked)[..]), (&json!(7), &["sure".to_owned()][..]));
    // The stream ends after `input_required`.
    stream.ended().await;

    // The next round may use another connection, another ID and another media type.
    let back = able("chatty")
        .param("requestState", json!(state_of(&asked)))
        .param("inputResponses", json!({"sure": yes()}))
        .accept("application/json");
    let response = server.send(back).await;
    assert_eq!(response.text(), "true");
}
