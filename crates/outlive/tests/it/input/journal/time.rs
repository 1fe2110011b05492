//! Timers and timeouts count from their first start, across rounds and replays.

use std::time::Duration;

use outlive::server::{Durable, Result, Server, Tool, durable::DurableError};
use serde_json::{Value, json};
use tokio::time::{Instant, advance};

use crate::{
    input::dialogue::{Approval, Talk, WIRES, accept, builder, keys, text_of},
    support::pipe::MODERN,
};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Sleeps eight seconds and elicits at the same time.
async fn meanwhile(cx: Durable) -> Result<String> {
    let (slept, approval) =
        tokio::join!(cx.sleep("soak", seconds(8)), cx.elicit::<Approval>("go", "Go?"));
    slept?;
    Ok(approval?.yes.to_string())
}

/// Sleeps, then elicits.
async fn before(cx: Durable) -> Result<String> {
    cx.sleep("soak", seconds(8)).await?;
    Ok(cx.elicit::<Approval>("go", "Go?").await?.yes.to_string())
}

/// Elicits with a timeout of ten seconds.
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

/// Makes every kind of input request with a timeout.
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

/// Returns the result of a future and its duration in seconds.
async fn timed<T>(work: impl Future<Output = T>) -> (T, u64) {
    let begun = Instant::now();
    let done = work.await;
    (done, begun.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn timer_includes_time_between_rounds() {
    for (away, rest) in [(0, 8), (3, 5), (8, 0), (600, 0)] {
        let mut talk = Talk::open(&server(), MODERN).await;
        let (first, waited) = timed(talk.begin("meanwhile")).await;
        assert_eq!(waited, 0, "a timer does not prevent suspension");
        advance(seconds(away)).await;
        let (last, waited) = timed(talk.back("meanwhile", &first, json!({"go": yes()}))).await;
        assert_eq!((text_of(&last), waited), ("true", rest), "after {away} seconds");
    }
}

#[tokio::test(start_paused = true)]
async fn expired_timer_does_not_wait_on_replay() {
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

#[tokio::test(start_paused = true)]
async fn input_response_after_timeout_is_ignored_and_timeout_recorded() {
    let mut talk = Talk::open(&server(), MODERN).await;
    let first = talk.begin("briefly").await;
    assert_eq!(keys(&first), ["go"]);
    advance(seconds(11)).await;
    let late = talk.back("briefly", &first, json!({"go": yes()})).await;
    assert_eq!(keys(&late), ["sure"]);
    // A later response does not change the recorded timeout.
    let last = talk.back("briefly", &late, json!({"go": yes(), "sure": yes()})).await;
    assert_eq!(text_of(&last), "go timed out true");
    // The same round again does not change it either.
    let again = talk.back("briefly", &first, json!({"go": yes()})).await;
    assert_eq!(keys(&again), ["sure"]);
}

#[tokio::test(start_paused = true)]
async fn input_response_before_timeout_is_recorded() {
    let mut talk = Talk::open(&server(), MODERN).await;
    let first = talk.begin("briefly").await;
    advance(seconds(9)).await;
    let in_time = talk.back("briefly", &first, json!({"go": yes()})).await;
    assert_eq!(keys(&in_time), ["sure"]);
    advance(seconds(60)).await;
    let last = talk.back("briefly", &in_time, json!({"sure": yes()})).await;
    assert_eq!(text_of(&last), "answered true true");
}

// Another round does not restart the timeout.
#[tokio::test(start_paused = true)]
async fn input_timeout_counts_from_first_request() {
    let mut talk = Talk::open(&server(), MODERN).await;
    let mut round = talk.begin("briefly").await;
    for _ in 0..2 {
        advance(seconds(4)).await;
        round = talk.back("briefly", &round, json!({})).await;
        assert_eq!(keys(&round), ["go"]);
    }
    // An invalid response does not restart it either.
    let misfit = json!({"go": accept(json!({"yes": 1}))});
    round = talk.back("briefly", &round, misfit).await;
    assert_eq!(keys(&round), ["go#2"]);
    advance(seconds(3)).await;
    round = talk.back("briefly", &round, json!({})).await;
    let sure = crate::input::dialogue::questions(&round);
    assert_eq!(sure["sure"]["params"]["message"], "go timed out, sure?");
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_input_request_supports_timeout() {
    let mut talk = Talk::open(&server(), MODERN).await;
    let first = talk.begin("all_kinds").await;
    assert_eq!(keys(&first), ["url", "roots", "sample"]);
    advance(seconds(11)).await;
    let last = talk.back("all_kinds", &first, json!({})).await;
    let late = |key: &str| format!("input request `{key}` timed out");
    assert_eq!(text_of(&last), [late("url"), late("roots"), late("sample")].join(", "));
}
