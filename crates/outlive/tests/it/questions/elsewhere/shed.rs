//! Sending a client away, to come back to another replica.

use std::time::Duration;

use outlive::server::{Durable, Result, SealKeys, Server, State, Tool, http::HttpConfig};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    questions::dialogue::{
        Approval, Notes, Talk, accept, builder, keys, questions, state_of, text_of, texts_of,
    },
    support::{
        http::{HttpFixture, Request},
        pipe::{LEGACY, MODERN},
    },
};

/// Who does the work.
#[derive(Clone)]
struct Replica(&'static str);

/// Builds here, and pushes from wherever it is then.
async fn deploy(cx: Durable, replica: State<Replica>, notes: State<Notes>) -> Result<String> {
    cx.emit(format!("begun on {}", replica.0)).await?;
    let built: String = cx
        .step("build", async || {
            notes.note("build");
            Ok(replica.0.to_owned())
        })
        .await?;
    cx.yield_to_replica().await?;
    Ok(format!("built on {built}, pushed from {}", replica.0))
}

/// Would rather be elsewhere, always.
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

/// Has something to ask as well.
async fn asking(cx: Durable) -> Result<String> {
    let (approval, shed) =
        tokio::join!(cx.elicit::<Approval>("sure", "Sure?"), cx.yield_to_replica());
    shed?;
    Ok(approval?.yes.to_string())
}

/// Is still at work when it sheds.
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

/// Comes back with nothing but the state.
async fn back(talk: &mut Talk, tool: &str, before: &Value) -> Value {
    talk.once("tools/call", json!({"name": tool, "requestState": state_of(before)})).await
}

/// Sent away with a state and nothing to answer.
#[track_caller]
fn is_shed(answer: &Value) {
    assert_eq!(questions(answer).len(), 0, "{answer}");
    assert_eq!(answer["result"].get("inputRequests"), None, "{answer}");
}

// M-03, M-08, M-10, M-40
#[tokio::test(start_paused = true)]
async fn a_call_that_is_shed_goes_on_where_the_client_takes_it() {
    let notes = Notes::default();
    let mut first = Talk::open(&replica("one", &notes, Some(1)), MODERN).await;
    let shed = first.begin("deploy").await;
    is_shed(&shed);
    let mut second = Talk::open(&replica("two", &notes, Some(1)), MODERN).await;
    let answer = back(&mut second, "deploy", &shed).await;
    assert_eq!(texts_of(&answer), ["begun on one", "built on one, pushed from two"]);
    assert_eq!(notes.take(), ["build"], "what was done is not done again");
    // The same state again goes the same way, on any replica.
    let answer = back(&mut first, "deploy", &shed).await;
    assert_eq!(text_of(&answer), "built on one, pushed from one");
}

// M-41
#[tokio::test(start_paused = true)]
async fn a_call_is_shed_only_so_often() {
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
async fn a_client_can_be_asked_to_wait_before_it_comes_back() {
    let mut talk = Talk::open(&replica("one", &Notes::default(), None), MODERN).await;
    let mut answer = talk.begin("later").await;
    for millis in [1_500, 1_500, 1_500] {
        is_shed(&answer);
        assert_eq!(answer["result"]["_meta"]["dev.outlive/retryAfterMs"], millis);
        answer = back(&mut talk, "later", &answer).await;
    }
    assert_eq!(text_of(&answer), "done");
    // Without a wish nothing is said.
    let answer = talk.begin("deploy").await;
    assert_eq!(answer["result"]["_meta"].get("dev.outlive/retryAfterMs"), None);
}

// M-41
#[tokio::test]
async fn over_http_a_client_that_is_to_wait_hears_so_in_a_header_as_well() {
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
    assert_eq!(answer.result()["resultType"], "input_required", "three times by default");
}

// M-40, MT-10: there is no such thing before 2026-07-28
#[tokio::test(start_paused = true)]
async fn on_older_revisions_nothing_is_shed() {
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
        assert_eq!(begun.elapsed(), Duration::ZERO, "nobody waits");
    }
}

// M-40: a question goes out with it
#[tokio::test(start_paused = true)]
async fn a_question_beside_it_goes_out_with_it() {
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

// M-40, design 1.1, rule 7
#[tokio::test(start_paused = true)]
async fn a_step_that_is_at_work_is_waited_for() {
    let notes = Notes::default();
    let mut talk = Talk::open(&replica("one", &notes, Some(1)), MODERN).await;
    let begun = Instant::now();
    let shed = talk.begin("working").await;
    is_shed(&shed);
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
    assert_eq!(text_of(&back(&mut talk, "working", &shed).await), "1");
    assert_eq!(notes.take(), ["build"]);
}

// coming back as one was told to is not in vain
#[tokio::test(start_paused = true)]
async fn clients_that_come_back_as_they_were_told_are_not_slowed_down() {
    let mut talk = Talk::open(&replica("one", &Notes::default(), None), MODERN).await;
    for _ in 0..40 {
        let mut answer = talk.begin("unwilling").await;
        for _ in 0..3 {
            answer = back(&mut talk, "unwilling", &answer).await;
        }
        assert_eq!(text_of(&answer), "did it after all");
    }
}
