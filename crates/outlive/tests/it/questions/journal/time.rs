//! Timers and deadlines count from when they were first set, whatever runs again.

use std::time::Duration;

use outlive::server::{Durable, Result, Server, Tool, durable::DurableError};
use serde_json::{Value, json};
use tokio::time::{Instant, advance};

use crate::{
    questions::dialogue::{Approval, Talk, WIRES, accept, builder, keys, text_of},
    support::pipe::MODERN,
};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Waits ten seconds, and asks meanwhile.
async fn meanwhile(cx: Durable) -> Result<String> {
    let (slept, approval) =
        tokio::join!(cx.sleep("soak", seconds(8)), cx.elicit::<Approval>("go", "Go?"));
    slept?;
    Ok(approval?.yes.to_string())
}

/// Waits, and asks then.
async fn before(cx: Durable) -> Result<String> {
    cx.sleep("soak", seconds(8)).await?;
    Ok(cx.elicit::<Approval>("go", "Go?").await?.yes.to_string())
}

/// Asks, for ten seconds.
async fn briefly(cx: Durable) -> Result<String> {
    let asked = cx.elicit::<Approval>("go", "Go?").timeout(seconds(10)).await;
    let said = match asked {
        Ok(approval) => format!("answered {}", approval.yes),
        Err(error) => match error.durable_error() {
            Some(DurableError::TimedOut { key }) => format!("{key} timed out"),
            _ => return Err(error),
        },
    };
    let sure: Approval = cx.elicit("sure", format!("{said}, sure?")).await?;
    Ok(format!("{said} {}", sure.yes))
}

/// All kinds of questions have a deadline.
async fn all_kinds(cx: Durable) -> Result<String> {
    let (url, roots, sample) = tokio::join!(
        cx.elicit_url("url", "?", "https://example.com").timeout(seconds(10)),
        cx.roots("roots").timeout(seconds(10)),
        cx.sample("sample", Default::default()).timeout(seconds(10)),
    );
    let late = [url.unwrap_err(), roots.unwrap_err(), sample.unwrap_err()];
    Ok(late.map(|error| error.to_string()).join(", "))
}

fn server() -> Server {
    let tools = [
        Tool::new("meanwhile", meanwhile),
        Tool::new("before", before),
        Tool::new("briefly", briefly),
        Tool::new("all_kinds", all_kinds),
    ];
    builder(tools).build().unwrap()
}

fn yes() -> Value {
    accept(json!({"yes": true}))
}

/// How long something takes, in seconds.
async fn timed<T>(work: impl Future<Output = T>) -> (T, u64) {
    let begun = Instant::now();
    let done = work.await;
    (done, begun.elapsed().as_secs())
}

// design 1.1, rule 8
#[tokio::test(start_paused = true)]
async fn the_time_between_rounds_counts() {
    for (away, rest) in [(0, 8), (3, 5), (8, 0), (600, 0)] {
        let mut talk = Talk::open(&server(), MODERN).await;
        let (first, waited) = timed(talk.begin("meanwhile")).await;
        assert_eq!(waited, 0, "a timer does not keep a call from being sent away");
        advance(seconds(away)).await;
        let (last, waited) = timed(talk.back("meanwhile", &first, json!({"go": yes()}))).await;
        assert_eq!((text_of(&last), waited), ("true", rest), "after {away} seconds");
    }
}

// design 1.1, rule 8
#[tokio::test(start_paused = true)]
async fn a_timer_that_is_over_is_not_waited_for_again() {
    for version in WIRES {
        let mut talk = Talk::open(&server(), version).await;
        let (played, waited) = timed(talk.call("before", |_| yes())).await;
        assert_eq!((played.text(), waited), ("true", 8), "{version}");
    }
    let mut talk = Talk::open(&server(), MODERN).await;
    let (first, waited) = timed(talk.begin("before")).await;
    assert_eq!(waited, 8);
    let (_, waited) = timed(talk.back("before", &first, json!({"go": yes()}))).await;
    assert_eq!(waited, 0);
}

// design 1.1, rule 8
#[tokio::test(start_paused = true)]
async fn an_answer_after_the_deadline_comes_too_late_and_that_stays_so() {
    let mut talk = Talk::open(&server(), MODERN).await;
    let first = talk.begin("briefly").await;
    assert_eq!(keys(&first), ["go"]);
    advance(seconds(11)).await;
    let late = talk.back("briefly", &first, json!({"go": yes()})).await;
    assert_eq!(keys(&late), ["sure"]);
    // Another try brings no other answer, and the record is not rewritten.
    let last = talk.back("briefly", &late, json!({"go": yes(), "sure": yes()})).await;
    assert_eq!(text_of(&last), "go timed out true");
    // Nor does the same round again.
    let again = talk.back("briefly", &first, json!({"go": yes()})).await;
    assert_eq!(keys(&again), ["sure"]);
}

// design 1.1, rule 8
#[tokio::test(start_paused = true)]
async fn an_answer_before_the_deadline_is_in_time_and_that_stays_so() {
    let mut talk = Talk::open(&server(), MODERN).await;
    let first = talk.begin("briefly").await;
    advance(seconds(9)).await;
    let in_time = talk.back("briefly", &first, json!({"go": yes()})).await;
    assert_eq!(keys(&in_time), ["sure"]);
    advance(seconds(60)).await;
    let last = talk.back("briefly", &in_time, json!({"sure": yes()})).await;
    assert_eq!(text_of(&last), "answered true true");
}

// design 1.1, rule 8: coming back does not begin the time anew
#[tokio::test(start_paused = true)]
async fn a_deadline_counts_from_when_the_question_was_first_asked() {
    let mut talk = Talk::open(&server(), MODERN).await;
    let mut round = talk.begin("briefly").await;
    for _ in 0..2 {
        advance(seconds(4)).await;
        round = talk.back("briefly", &round, json!({})).await;
        assert_eq!(keys(&round), ["go"]);
    }
    // Neither does an answer that does not fit.
    let misfit = json!({"go": accept(json!({"yes": 1}))});
    round = talk.back("briefly", &round, misfit).await;
    assert_eq!(keys(&round), ["go#2"]);
    advance(seconds(3)).await;
    round = talk.back("briefly", &round, json!({})).await;
    let sure = crate::questions::dialogue::questions(&round);
    assert_eq!(sure["sure"]["params"]["message"], "go timed out, sure?");
}

// design 1.1, rule 8
#[tokio::test(start_paused = true)]
async fn every_kind_of_question_can_have_a_deadline() {
    let mut talk = Talk::open(&server(), MODERN).await;
    let first = talk.begin("all_kinds").await;
    assert_eq!(keys(&first), ["url", "roots", "sample"]);
    advance(seconds(11)).await;
    let last = talk.back("all_kinds", &first, json!({})).await;
    let late = |key: &str| format!("input request `{key}` timed out");
    assert_eq!(text_of(&last), [late("url"), late("roots"), late("sample")].join(", "));
}
