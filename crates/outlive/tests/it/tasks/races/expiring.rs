//! Expiry of a task concurrently with other operations.
//!
//! The test itself sweeps, as any replica would.

use std::{sync::atomic::Ordering, time::Duration};

use outlive::store::{MemoryStore, SweepReport, WorkQueue};
use serde_json::json;

use super::super::{
    stage::{
        MAX_TTL, Stage, TTL, acknowledged, answer, asked, legacy, legacy_status, parked, send,
        start_legacy, until_asked, update,
    },
    world::{get, modern, start, until},
};
use crate::support::{
    fail_points::{Op, after, before},
    pipe::{Pipe, error, result, text},
};

/// The default retention.
const RETENTION: Duration = Duration::from_secs(3600);

async fn sweep(store: &MemoryStore) -> SweepReport {
    store.sweep(100, RETENTION).await.unwrap()
}

//
#[tokio::test(start_paused = true)]
async fn result_after_expiry_is_discarded() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut pipe, mut older) = (Pipe::open(&server), legacy(&server).await);
    let id = start(&mut pipe, "gated", json!({})).await;
    let other = start_legacy(&mut older, "gated").await;
    let endings = [points.hold(before(Op::End)), points.hold(before(Op::End).nth(2))];
    stage.gate.open(2);
    endings[0].arrived().await;
    endings[1].arrived().await;
    stage.store.advance_clock(TTL);
    assert_eq!(sweep(&stage.store).await.expired.len(), 2);
    endings.iter().for_each(|ending| ending.open(1));
    parked().await;
    let expired = get(&mut pipe, &id).await;
    assert_eq!((&expired["status"], &expired["error"]["code"]), (&json!("failed"), &json!(-32603)));
    assert_eq!(legacy_status(&mut older, &other).await, "failed");
    assert!(older.ask("tasks/result", json!({"taskId": other})).await.get("error").is_some());
}

//
#[tokio::test(start_paused = true)]
async fn result_before_sweep_counts_and_stays_for_retention() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut pipe, mut older) = (Pipe::open(&server), legacy(&server).await);
    let id = start(&mut pipe, "gated", json!({})).await;
    let other = start_legacy(&mut older, "gated").await;
    stage.gate.arrived().await;
    stage.gate.arrived().await;
    // No sweep runs here before the results are stored, although the TTL is over.
    let claims = points.hold(before(Op::Claim));
    claims.arrived().await;
    stage.store.advance_clock(TTL * 2);
    stage.gate.open(2);
    let done = until(&mut pipe, &id, "completed").await;
    let kept = u64::try_from((TTL * 2 + RETENTION).as_millis()).unwrap();
    assert!(done["ttlMs"].as_u64().unwrap() >= kept, "{done}");
    assert_eq!(sweep(&stage.store).await, SweepReport::default());
    assert_eq!(get(&mut pipe, &id).await, done);
    assert_eq!(text(&older.result("tasks/result", json!({"taskId": other})).await), "done");
    stage.store.advance_clock(RETENTION * 2);
    assert_eq!(sweep(&stage.store).await.purged, 2);
    let gone = error(&modern(&mut pipe, "tasks/get", json!({"taskId": id})).await);
    assert_eq!(gone["code"], -32602);
    assert_eq!(older.error("tasks/get", json!({"taskId": other})).await["code"], -32602);
}

//
#[tokio::test(start_paused = true)]
async fn input_response_after_expiry_is_acknowledged_and_ignored() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "deploy", json!({})).await;
    until_asked(&mut pipe, &id, &["approve"]).await;
    parked().await;
    let answering = points.hold(before(Op::Answer));
    let update = send(&mut pipe, "tasks/update", update(&id, &[("approve", true)])).await;
    answering.arrived().await;
    let runs = stage.counts.runs.load(Ordering::Relaxed);
    stage.store.advance_clock(TTL * 2);
    assert!(
        sweep(&stage.store).await.expired.is_empty(),
        "a task that waits for input has more time"
    );
    stage.store.advance_clock(MAX_TTL);
    assert_eq!(sweep(&stage.store).await.expired.len(), 1);
    answering.open(1);
    acknowledged(&pipe.answer(update).await);
    parked().await;
    let expired = get(&mut pipe, &id).await;
    assert_eq!(expired["status"], "failed");
    assert!(asked(&expired).is_empty());
    assert_eq!(stage.counts.runs.load(Ordering::Relaxed), runs, "the handler did not run");
}

//
#[tokio::test(start_paused = true)]
async fn answered_task_can_expire_before_claim() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "deploy", json!({})).await;
    until_asked(&mut pipe, &id, &["approve"]).await;
    parked().await;
    let claims = points.hold(before(Op::Claim));
    claims.arrived().await;
    stage.store.advance_clock(TTL * 2);
    answer(&mut pipe, &id, &[("approve", true)]).await;
    let answered = get(&mut pipe, &id).await;
    assert_eq!(answered["status"], "working");
    assert!(sweep(&stage.store).await.expired.is_empty(), "the TTL starts again");
    stage.store.advance_clock(TTL * 2);
    assert_eq!(sweep(&stage.store).await.expired.len(), 1);
    let runs = stage.counts.runs.load(Ordering::Relaxed);
    claims.open(1);
    parked().await;
    assert_eq!(get(&mut pipe, &id).await["status"], "failed");
    assert_eq!(stage.counts.runs.load(Ordering::Relaxed), runs, "an ended task does not run again");
}

//
#[tokio::test(start_paused = true)]
async fn read_during_deletion_returns_whole_task_or_unknown() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut one, mut two) = (Pipe::open(&server), Pipe::open(&server));
    let id = start(&mut one, "deploy", json!({})).await;
    until_asked(&mut one, &id, &["approve"]).await;
    answer(&mut one, &id, &[("approve", true)]).await;
    let done = until(&mut one, &id, "completed").await;
    let gates = [points.hold(before(Op::View)), points.hold(after(Op::View))];
    let late = send(&mut one, "tasks/get", json!({"taskId": id})).await;
    gates[0].arrived().await;
    let early = send(&mut two, "tasks/get", json!({"taskId": id})).await;
    gates[1].arrived().await;
    stage.store.advance_clock(TTL + RETENTION * 2);
    assert_eq!(sweep(&stage.store).await.purged, 1);
    gates.iter().for_each(|gate| gate.open(1));
    assert_eq!(error(&one.answer(late).await)["code"], -32602);
    assert_eq!(result(&two.answer(early).await), done);
}
