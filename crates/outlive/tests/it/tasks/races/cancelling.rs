//! Cancellation of a task concurrently with other operations.

use std::{sync::atomic::Ordering, time::Duration};

use outlive::store::Phase;
use serde_json::json;

use super::super::{
    stage::{
        Stage, acknowledged, answer, legacy, legacy_status, parked, send, start_legacy,
        until_asked, update,
    },
    world::{get, modern, start, until},
};
use crate::support::{
    fail_points::{FailPoints, Op, after, before},
    pipe::{Pipe, error, result, text},
};

//
#[tokio::test(start_paused = true)]
async fn legacy_task_cancelled_before_end_stays_cancelled() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = legacy(&server).await;
    let id = start_legacy(&mut pipe, "gated").await;
    let ending = points.hold(before(Op::End));
    stage.gate.open(1);
    ending.arrived().await;
    let cancelled = pipe.result("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(cancelled["status"], "cancelled");
    ending.open(1);
    parked().await;
    assert_eq!(legacy_status(&mut pipe, &id).await, "cancelled", "the result came too late");
    assert_eq!(pipe.error("tasks/result", json!({"taskId": id})).await["code"], -32603);
}

//
#[tokio::test(start_paused = true)]
async fn legacy_task_ended_before_cancel_stays_completed() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = legacy(&server).await;
    let id = start_legacy(&mut pipe, "gated").await;
    let cancelling = points.hold(before(Op::Cancel));
    let cancel = pipe.send("tasks/cancel", json!({"taskId": id})).await;
    cancelling.arrived().await;
    stage.gate.open(1);
    let mut other = legacy(&server).await;
    assert_eq!(text(&other.result("tasks/result", json!({"taskId": id})).await), "done");
    cancelling.open(1);
    assert_eq!(error(&pipe.answer(cancel).await)["code"], -32602);
    assert_eq!(legacy_status(&mut pipe, &id).await, "completed");
}

//
#[tokio::test(start_paused = true)]
async fn result_in_flight_at_modern_cancel_counts() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "gated", json!({})).await;
    let ending = points.hold(before(Op::End));
    stage.gate.open(1);
    ending.arrived().await;
    acknowledged(&modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await);
    assert_eq!(get(&mut pipe, &id).await["status"], "working");
    ending.open(1);
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&done["result"]), "done");
    acknowledged(&modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await);
    assert_eq!(get(&mut pipe, &id).await["status"], "completed");
}

//
#[tokio::test(start_paused = true)]
async fn result_after_forced_stop_is_discarded() {
    let stage = Stage::new();
    let (server, _) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "gated", json!({})).await;
    stage.gate.arrived().await;
    acknowledged(&modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await);
    assert_eq!(get(&mut pipe, &id).await["status"], "working", "the grace period is not over");
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(get(&mut pipe, &id).await["status"], "working");
    stage.gate.abandoned().await;
    stage.gate.open(1);
    assert_eq!(until(&mut pipe, &id, "cancelled").await["status"], "cancelled");
}

//
#[tokio::test(start_paused = true)]
async fn queued_or_parked_task_is_cancelled_immediately() {
    let stage = Stage::new();
    // A queued task.
    let points = FailPoints::over(std::sync::Arc::clone(&stage.store) as _);
    let idle = stage.builder(&points, |config| config.engine(|engine| engine.max_running = 0));
    let mut pipe = Pipe::open(&idle.build().unwrap());
    let queued = start(&mut pipe, "deploy", json!({})).await;
    acknowledged(&modern(&mut pipe, "tasks/cancel", json!({"taskId": queued})).await);
    assert_eq!(get(&mut pipe, &queued).await["status"], "cancelled");
    // A task that waits for input.
    let (server, _) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let asking = start(&mut pipe, "both", json!({})).await;
    until_asked(&mut pipe, &asking, &["a", "b"]).await;
    parked().await;
    acknowledged(&modern(&mut pipe, "tasks/cancel", json!({"taskId": asking})).await);
    let cancelled = get(&mut pipe, &asking).await;
    assert_eq!(cancelled["status"], "cancelled");
    assert!(cancelled.get("inputRequests").is_none(), "{cancelled}");
    parked().await;
    assert_eq!(stage.counts.runs.load(Ordering::Relaxed), 0, "no handler ran");
}

//
#[tokio::test(start_paused = true)]
async fn second_concurrent_legacy_cancel_is_rejected() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut one, mut two) = (legacy(&server).await, legacy(&server).await);
    let id = start_legacy(&mut one, "gated").await;
    let gates = [points.hold(before(Op::Cancel)), points.hold(before(Op::Cancel).nth(2))];
    let first = one.send("tasks/cancel", json!({"taskId": id})).await;
    gates[0].arrived().await;
    let second = two.send("tasks/cancel", json!({"taskId": id})).await;
    gates[1].arrived().await;
    // The second request reaches the store first.
    gates[1].open(1);
    assert_eq!(result(&two.answer(second).await)["status"], "cancelled");
    gates[0].open(1);
    assert_eq!(error(&one.answer(first).await)["code"], -32602);
    assert_eq!(legacy_status(&mut one, &id).await, "cancelled");
}

//
#[tokio::test(start_paused = true)]
async fn concurrent_modern_cancels_are_both_acknowledged() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut one, mut two) = (Pipe::open(&server), Pipe::open(&server));
    for tool in ["gated", "both"] {
        let id = start(&mut one, tool, json!({})).await;
        parked().await;
        let gates = [points.hold(before(Op::Cancel)), points.hold(before(Op::Cancel).nth(2))];
        let first = send(&mut one, "tasks/cancel", json!({"taskId": id})).await;
        gates[0].arrived().await;
        let second = send(&mut two, "tasks/cancel", json!({"taskId": id})).await;
        gates[1].arrived().await;
        gates[1].open(1);
        acknowledged(&two.answer(second).await);
        gates[0].open(1);
        acknowledged(&one.answer(first).await);
        // A task that does not stop is dropped after thirty seconds.
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert_eq!(get(&mut one, &id).await["status"], "cancelled", "{tool}");
    }
}

//
#[tokio::test(start_paused = true)]
async fn input_response_after_cancel_is_acknowledged_and_ignored() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut one, mut two) = (Pipe::open(&server), Pipe::open(&server));
    let id = start(&mut one, "deploy", json!({})).await;
    until_asked(&mut one, &id, &["approve"]).await;
    parked().await;
    let runs = stage.counts.runs.load(Ordering::Relaxed);
    let answering = points.hold(before(Op::Answer));
    let update = send(&mut one, "tasks/update", update(&id, &[("approve", true)])).await;
    answering.arrived().await;
    acknowledged(&modern(&mut two, "tasks/cancel", json!({"taskId": id})).await);
    answering.open(1);
    acknowledged(&one.answer(update).await);
    parked().await;
    assert_eq!(get(&mut one, &id).await["status"], "cancelled");
    assert_eq!(stage.counts.runs.load(Ordering::Relaxed), runs, "the handler did not run");
}

//
#[tokio::test(start_paused = true)]
async fn input_response_before_cancel_reaches_handler() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut one, mut two) = (Pipe::open(&server), Pipe::open(&server));
    let id = start(&mut one, "deploy", json!({})).await;
    until_asked(&mut one, &id, &["approve"]).await;
    parked().await;
    let cancelling = points.hold(before(Op::Cancel));
    let cancel = send(&mut one, "tasks/cancel", json!({"taskId": id})).await;
    cancelling.arrived().await;
    answer(&mut two, &id, &[("approve", true)]).await;
    let done = until(&mut two, &id, "completed").await;
    cancelling.open(1);
    acknowledged(&one.answer(cancel).await);
    assert_eq!(get(&mut one, &id).await, done);
}

//
#[tokio::test(start_paused = true)]
async fn task_answered_and_cancelled_before_claim_is_cancelled() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "deploy", json!({})).await;
    until_asked(&mut pipe, &id, &["approve"]).await;
    parked().await;
    let runs = stage.counts.runs.load(Ordering::Relaxed);
    // No worker claims the task before both are stored.
    let claiming = points.hold(before(Op::Claim));
    claiming.arrived().await;
    answer(&mut pipe, &id, &[("approve", true)]).await;
    acknowledged(&modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await);
    assert_eq!(get(&mut pipe, &id).await["status"], "cancelled");
    claiming.open(1);
    parked().await;
    assert_eq!(stage.counts.runs.load(Ordering::Relaxed), runs, "the handler did not run again");
}

//
#[tokio::test(start_paused = true)]
async fn task_cancelled_while_parking_ends() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = Pipe::open(&server);
    // The cancellation comes while the task waits, before it is parked, and after.
    for place in [None, Some(before(Op::Park)), Some(after(Op::Park))] {
        let parking = place.map(|place| points.hold(place));
        let id = start(&mut pipe, "both", json!({})).await;
        until_asked(&mut pipe, &id, &["a", "b"]).await;
        if let Some(parking) = &parking {
            parking.arrived().await;
        }
        acknowledged(&modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await);
        if let Some(parking) = &parking {
            parking.open(1);
        }
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert_eq!(get(&mut pipe, &id).await["status"], "cancelled", "{place:?}");
    }
}

//
#[tokio::test(start_paused = true)]
async fn input_request_after_cancel_is_never_shown() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = legacy(&server).await;
    let asking = points.hold(before(Op::Ask));
    let id = start_legacy(&mut pipe, "both").await;
    asking.arrived().await;
    pipe.result("tasks/cancel", json!({"taskId": id})).await;
    asking.open(1);
    parked().await;
    assert_eq!(legacy_status(&mut pipe, &id).await, "cancelled");
    let view = stage.tasks().await.remove(0);
    assert!(view.input_requests.is_empty(), "{view:?}");
}

//
#[tokio::test(start_paused = true)]
async fn cancel_precedes_or_follows_atomic_end_with_last_segment() {
    for cancelled_first in [true, false] {
        let stage = Stage::new();
        let (server, points) = stage.replica();
        let (mut pipe, mut other) = (legacy(&server).await, legacy(&server).await);
        let id = start_legacy(&mut pipe, "emits").await;
        stage.gate.arrived().await;
        let place = if cancelled_first { before(Op::End) } else { after(Op::End) };
        let ending = points.hold(place);
        stage.gate.open(1);
        ending.arrived().await;
        let cancel = other.ask("tasks/cancel", json!({"taskId": id})).await;
        ending.open(1);
        let came = pipe.ask("tasks/result", json!({"taskId": id})).await;
        match cancelled_first {
            true => {
                assert_eq!(result(&cancel)["status"], "cancelled");
                assert_eq!(error(&came)["code"], -32603, "the end is not stored: {came}");
            }
            false => {
                assert_eq!(error(&cancel)["code"], -32602);
                let content = result(&came)["content"].clone();
                let texts: Vec<_> =
                    content.as_array().unwrap().iter().map(|block| block["text"].clone()).collect();
                assert_eq!(texts, ["one", "two", "three", "end"], "the content is complete");
            }
        }
        assert_eq!(stage.tasks().await[0].phase, Phase::Ended);
    }
}
