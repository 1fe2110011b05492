//! `yield_to_replica`: a modern call ends with a request state, and the client continues on another
//! replica.

use std::time::Duration;

use outlive::server::{Durable, Result, SealKeys, Server, State, Tool, http::HttpConfig};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    input::dialogue::{
        Approval, Notes, Talk, accept, builder, keys, questions, state_of, text_of, texts_of,
    },
    support::{
        http::{HttpFixture, Request},
        pipe::{LEGACY, MODERN},
    },
};

/// Name of the replica that runs the handler.
#[derive(Clone)]
struct Replica(&'static str);

/// Builds on one replica and pushes from the next.
async fn deploy(cx: Durable, replica: State<Replica>, notes: State<Notes>) -> Result<String> {
    cx.emit(format!("started on {}", replica.0)).await?;
    let built: String = cx
        .step("build", async || {
            notes.note("build");
            Ok(replica.0.to_owned())
        })
        .await?;
    cx.yield_to_replica().await?;
    Ok(format!("built on {built}, pushed from {}", replica.0))
}

/// Yields at every opportunity.
async fn unwilling(cx: Durable, notes: State<Notes>) -> Result<String> {
    notes.note("run");
    for _ in 0..10 {
        cx.yield_to_replica().await?;
    }
    Ok("did it after all".into())
}

async fn later(cx: Durable) -> Result<String> {
    cx.yield_to_replica().retry_after(Duration::from_millis(1_500)).await?;
    cx.yield_to_replica().retry_after(Duration::from_micros(10)).await?;
    Ok("done".into())
}

/// Yields while an input request is open.
async fn asking(cx: Durable) -> Result<String> {
    let (approval, shed) =
        tokio::join!(cx.elicit::<Approval>("sure", "Sure?"), cx.yield_to_replica());
    shed?;
    Ok(approval?.yes.to_string())
}

/// Yields while a step runs.
async fn working(cx: Durable, notes: State<Notes>) -> Result<String> {
    let step = cx.step("build", async || {
        tokio::time::sleep(Duration::from_secs(5)).await;
        notes.note("build");
        Ok(1)
    });
    let (step, shed) = tokio::join!(step, cx.yield_to_replica());
    shed?;
    Ok(step?.to_string())
}

fn replica(name: &'static str, notes: &Notes, sheds: Option<u32>) -> Server {
    let tools = [
        Tool::new("deploy", deploy),
        Tool::new("unwilling", unwilling),
        Tool::new("later", later),
        Tool::new("asking", asking),
        Tool::new("working", working),
    ];
    let builder = builder(tools).seal_keys(SealKeys::new([7; 32])).state(Replica(name));
    let limit = |limits: &mut outlive::server::Limits| {
        if let Some(sheds) = sheds {
            limits.max_yields = sheds;
        }
    };
    builder.state(notes.clone()).limits(limit).build().unwrap()
}

/// Sends the next round with the request state only.
async fn back(talk: &mut Talk, tool: &str, before: &Value) -> Value {
    talk.once("tools/call", json!({"name": tool, "requestState": state_of(before)})).await
}

/// Asserts that the call ended with a request state and without input requests.
#[track_caller]
fn is_shed(answer: &Value) {
    assert_eq!(questions(answer).len(), 0, "{answer}");
    assert_eq!(answer["result"].get("inputRequests"), None, "{answer}");
}

// M-03, M-08, M-10, M-40
#[tokio::test(start_paused = true)]
async fn yielded_call_resumes_on_another_replica() {
    let notes = Notes::default();
    let mut first = Talk::open(&replica("one", &notes, Some(1)), MODERN).await;
    let shed = first.begin("deploy").await;
    is_shed(&shed);
    let mut second = Talk::open(&replica("two", &notes, Some(1)), MODERN).await;
    let answer = back(&mut second, "deploy", &shed).await;
    assert_eq!(texts_of(&answer), ["started on one", "built on one, pushed from two"]);
    assert_eq!(notes.take(), ["build"], "the step is not repeated");
    // The same request state works again, on any replica.
    let answer = back(&mut first, "deploy", &shed).await;
    assert_eq!(text_of(&answer), "built on one, pushed from one");
}

// M-41
#[tokio::test(start_paused = true)]
async fn call_yields_at_most_limit_times() {
    for (sheds, times) in [(None, 3), (Some(0), 0), (Some(5), 5)] {
        let notes = Notes::default();
        let mut talk = Talk::open(&replica("one", &notes, sheds), MODERN).await;
        let mut answer = talk.begin("unwilling").await;
        for _ in 0..times {
            is_shed(&answer);
            answer = back(&mut talk, "unwilling", &answer).await;
        }
        assert_eq!(text_of(&answer), "did it after all", "{sheds:?}");
        assert_eq!(notes.take().len(), times + 1);
    }
}

// M-41
#[tokio::test(start_paused = true)]
async fn yield_with_retry_after_returns_delay_in_meta() {
    let mut talk = Talk::open(&replica("one", &Notes::default(), None), MODERN).await;
    let mut answer = talk.begin("later").await;
    for millis in [1_500, 1_500, 1_500] {
        is_shed(&answer);
        assert_eq!(answer["result"]["_meta"]["dev.outlive/retryAfterMs"], millis);
        answer = back(&mut talk, "later", &answer).await;
    }
    assert_eq!(text_of(&answer), "done");
    // Without `retry_after` the response has no delay.
    let answer = talk.begin("deploy").await;
    assert_eq!(answer["result"]["_meta"].get("dev.outlive/retryAfterMs"), None);
}

// M-41
#[tokio::test]
async fn yield_with_retry_after_over_http_sets_header() {
    let server = replica("one", &Notes::default(), None);
    let server = HttpFixture::of(server, HttpConfig::new()).await;
    let response = server.send(Request::call("later", json!({}))).await;
    assert_eq!((response.status(), response.header("retry-after")), (200, Some("2")));
    let result = response.result();
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(result["_meta"]["dev.outlive/retryAfterMs"], 1_500);
    let response = server.send(Request::call("deploy", json!({}))).await;
    assert_eq!((response.status(), response.header("retry-after")), (200, None));
    let state = response.result()["requestState"].clone();
    let answer = server.send(Request::call("deploy", json!({})).param("requestState", state)).await;
    assert_eq!(
        answer.result()["resultType"],
        "input_required",
        "a call yields three times by default"
    );
}

// M-40, MT-10: legacy versions have no request state
#[tokio::test(start_paused = true)]
async fn yield_in_legacy_call_has_no_effect() {
    for version in LEGACY {
        let mut talk = Talk::open(&replica("one", &Notes::default(), None), version).await;
        let begun = Instant::now();
        for (tool, text) in [
            ("deploy", "built on one, pushed from one"),
            ("unwilling", "did it after all"),
            ("later", "done"),
        ] {
            assert_eq!(text_of(&talk.call_quietly(tool).await), text, "{version}");
        }
        assert_eq!(begun.elapsed(), Duration::ZERO, "the calls do not wait");
    }
}

// M-40: open input requests are part of the same response
#[tokio::test(start_paused = true)]
async fn yield_with_open_input_request_sends_both() {
    let mut talk = Talk::open(&replica("one", &Notes::default(), None), MODERN).await;
    let first = talk.begin("asking").await;
    assert_eq!(keys(&first), ["sure"]);
    let yes = json!({"sure": accept(json!({"yes": true}))});
    let mut answer = talk.back("asking", &first, yes).await;
    for _ in 0..3 {
        is_shed(&answer);
        answer = back(&mut talk, "asking", &answer).await;
    }
    assert_eq!(text_of(&answer), "true");
}

// M-40
#[tokio::test(start_paused = true)]
async fn yield_waits_for_running_step() {
    let notes = Notes::default();
    let mut talk = Talk::open(&replica("one", &notes, Some(1)), MODERN).await;
    let begun = Instant::now();
    let shed = talk.begin("working").await;
    is_shed(&shed);
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
    assert_eq!(text_of(&back(&mut talk, "working", &shed).await), "1");
    assert_eq!(notes.take(), ["build"]);
}

// rounds that the server requested do not count as invalid rounds
#[tokio::test(start_paused = true)]
async fn rounds_after_yield_are_not_rate_limited() {
    let mut talk = Talk::open(&replica("one", &Notes::default(), None), MODERN).await;
    for _ in 0..40 {
        let mut answer = talk.begin("unwilling").await;
        for _ in 0..3 {
            answer = back(&mut talk, "unwilling", &answer).await;
        }
        assert_eq!(text_of(&answer), "did it after all");
    }
}
