//! A call that is sent away: what becomes of its run, and how the client is told.

use std::{sync::Arc, time::Duration};

use outlive::server::{Durable, Json, Result, Server, State, Tool, http::HttpConfig};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    questions::dialogue::{
        Approval, Notes, Talk, WIRES, accept, builder, everything, keys, state_of, text_of,
        texts_of,
    },
    support::{
        gate::Gate,
        http::{HttpFixture, Request},
        pipe::MODERN,
    },
};

/// Ignores every error that it can.
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
    notes.note("goes on");
    Ok(format!("{answer:?}"))
}

/// Holds something while it asks.
async fn holding(cx: Durable, gate: State<Gate>) -> Result<String> {
    let (approval, ()) = tokio::join!(cx.elicit::<Approval>("sure", "Sure?"), gate.pass());
    Ok(approval?.yes.to_string())
}

/// Says something before it asks.
async fn chatty(cx: Durable) -> Result<String> {
    cx.progress(1.0, None, "");
    tokio::time::sleep(Duration::from_millis(1)).await;
    Ok(cx.elicit::<Approval>("sure", "Sure?").await?.yes.to_string())
}

/// Asks a second time when something that it has started says so.
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

/// Has promised what its result looks like.
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

// design 1.1, rule 7; M-19
#[tokio::test(start_paused = true)]
async fn a_question_never_resolves_in_the_run_that_asks_it() {
    let notes = Notes::default();
    let mut talk = Talk::open(&server(&notes, &Gate::default()), MODERN).await;
    let first = talk.begin("careless").await;
    assert_eq!(notes.take(), ["asks"], "nothing came of it, no answer and no error");
    let again = talk.back("careless", &first, json!({})).await;
    assert_eq!(notes.take(), ["asks"]);
    let last = talk.back("careless", &again, json!({"sure": yes()})).await;
    assert_eq!(text_of(&last), "Some(true)");
    assert_eq!(notes.take(), ["asks", "goes on"]);
}

// M-08
#[tokio::test(start_paused = true)]
async fn a_call_that_is_sent_away_holds_nothing() {
    let gate = Gate::default();
    let mut talk = Talk::open(&server(&Notes::default(), &gate), MODERN).await;
    for round in 1..=3 {
        state_of(&talk.begin("holding").await);
        gate.arrived().await;
        // Not later: when the client hears of it, the run is gone.
        assert_eq!(gate.count_abandoned(), round);
    }
}

// M-08: not even its place
#[tokio::test(start_paused = true)]
async fn a_call_that_is_sent_away_makes_room_for_others() {
    let mut talk = Talk::open(&server(&Notes::default(), &Gate::default()), MODERN).await;
    let first = talk.begin("one_at_a_time").await;
    let second = talk.begin("one_at_a_time").await;
    for round in [second, first] {
        let last = talk.back("one_at_a_time", &round, json!({"sure": yes()})).await;
        assert_eq!(text_of(&last), "Some(true)");
    }
}

// design 1.1, rule 7: one more turn of the scheduler
#[tokio::test(start_paused = true)]
async fn a_run_that_is_about_to_ask_more_is_waited_for() {
    let mut talk = Talk::open(&server(&Notes::default(), &Gate::default()), MODERN).await;
    let first = talk.begin("woken").await;
    assert_eq!(keys(&first), ["first", "second"]);
}

// M-03: what a tool promises of its result it does not promise of its questions
#[tokio::test(start_paused = true)]
async fn a_tool_with_an_output_schema_can_ask() {
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
async fn over_http_a_call_is_sent_away_with_one_body_or_at_the_end_of_its_stream() {
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
    // Nothing follows it.
    stream.ended().await;

    // The answer may come on any connection, with any id, and be answered either way.
    let back = able("chatty")
        .param("requestState", json!(state_of(&asked)))
        .param("inputResponses", json!({"sure": yes()}))
        .accept("application/json");
    let response = server.send(back).await;
    assert_eq!(response.text(), "true");
}
