//! Checks of the TTL of a task while input requests are open, and afterwards.

use std::time::Duration;

use serde_json::json;

use super::bench::{
    ContractBench, MAX_TTL, RETENTION, TTL, ask, done, names, outside, promises, task, worker,
};
use crate::store::{Changes, CreateOutcome, Lease, NewTask, Phase, TaskOutcome, TaskRecord};

promises![
    parking_a_waiting_task_keeps_its_last_update,
    open_input_request_extends_ttl,
    open_external_event_extends_ttl,
    response_restarts_the_ttl,
    withdrawal_restarts_the_ttl,
    ttl_stays_extended_until_last_request_closes,
    each_input_request_extends_ttl,
    extended_ttl_never_exceeds_maximum,
    ttl_above_maximum_stays_unchanged,
    task_without_ttl_stays_unlimited_with_open_request,
    task_with_unanswered_request_expires_at_maximum,
    task_ending_with_open_request_stays_readable,
];

/// Tolerance for the real time that passes during a check.
const SLACK: Duration = Duration::from_secs(30);

const MINUTE: Duration = Duration::from_secs(60);

#[track_caller]
fn has(view: &TaskRecord, ttl: Duration) {
    let (least, most) = (ttl.as_millis() as u64, (ttl + SLACK).as_millis() as u64);
    let seen = view.ttl.expect("task has a TTL");
    assert!(seen >= least && seen <= most, "TTL {seen} is not {least}: {view:?}");
}

async fn parking_a_waiting_task_keeps_its_last_update(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    let asked = bench.view("a").await.updated_at;
    bench.advance(Duration::from_secs(10));
    bench.park(&lease, Changes::default()).await;
    let parked = bench.view("a").await;
    assert_eq!((parked.phase, parked.updated_at), (Phase::Parked, asked));
    bench.answer("a", &[("n", json!(1))]).await;
    assert!(bench.view("a").await.updated_at > asked, "a response is a change");
}

async fn start(bench: &ContractBench, new: NewTask) -> Lease {
    // A long lease, so that it does not affect the check.
    let new = NewTask { worker: Some((worker("v"), MAX_TTL * 10)), ..new };
    match bench.store.create(new).await.expect("create succeeds") {
        CreateOutcome::Created { lease: Some(lease), .. } => lease,
        other => panic!("expected a lease: {other:?}"),
    }
}

async fn is_expired(bench: &ContractBench, id: &str) -> bool {
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    matches!(bench.view(id).await.outcome, Some(TaskOutcome::Expired))
}

async fn open_input_request_extends_ttl(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    has(&bench.view("a").await, TTL);
    bench.park(&lease, ask(&[("k", "n")])).await;
    has(&bench.view("a").await, MAX_TTL);
    bench.advance(MAX_TTL - MINUTE);
    assert!(!is_expired(&bench, "a").await);
    assert_eq!(names(&bench.view("a").await), ["n"]);
}

async fn open_external_event_extends_ttl(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.park(&lease, outside("k", "job")).await;
    has(&bench.view("a").await, MAX_TTL);
    bench.advance(TTL + MINUTE);
    assert!(!is_expired(&bench, "a").await);
    assert_eq!(bench.answer_outside("a", &[("job", json!(1))]).await, Some(1));
    has(&bench.view("a").await, TTL + MINUTE + TTL);
}

async fn response_restarts_the_ttl(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.park(&lease, ask(&[("k", "n")])).await;
    bench.advance(TTL * 2);
    bench.answer("a", &[("n", json!(1))]).await;
    has(&bench.view("a").await, TTL * 3);
    bench.advance(TTL - MINUTE);
    assert!(!is_expired(&bench, "a").await, "the task does not expire before its visible TTL");
    bench.advance(MINUTE + SLACK);
    assert!(is_expired(&bench, "a").await);
}

async fn withdrawal_restarts_the_ttl(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    bench.advance(TTL * 2);
    let withdrawn = vec!["n".to_owned()];
    bench.write(&lease, Changes { withdrawn, ..Changes::default() }).await;
    has(&bench.view("a").await, TTL * 3);
    bench.advance(TTL - MINUTE);
    assert!(!is_expired(&bench, "a").await);
}

async fn ttl_stays_extended_until_last_request_closes(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.write(&lease, ask(&[("k1", "n1"), ("k2", "n2")])).await;
    bench.write(&lease, outside("k3", "job")).await;
    bench.advance(MINUTE);
    bench.answer("a", &[("n1", json!(1))]).await;
    has(&bench.view("a").await, MAX_TTL);
    bench.answer("a", &[("n2", json!(1))]).await;
    has(&bench.view("a").await, MAX_TTL);
    bench.answer_outside("a", &[("job", json!(1))]).await;
    has(&bench.view("a").await, MINUTE + TTL);
}

async fn each_input_request_extends_ttl(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    for round in 1..=3 {
        let name = format!("n{round}");
        bench.write(&lease, ask(&[(&name, &name)])).await;
        has(&bench.view("a").await, MAX_TTL);
        bench.advance(TTL);
        bench.answer("a", &[(&name, json!(1))]).await;
        has(&bench.view("a").await, TTL * (round + 1));
    }
    // A request that replaces another in the same commit does not end the extension.
    bench.write(&lease, ask(&[("k4", "n4")])).await;
    let withdrawn = vec!["n4".to_owned()];
    bench.write(&lease, Changes { withdrawn, ..ask(&[("k5", "n5")]) }).await;
    has(&bench.view("a").await, MAX_TTL);
}

async fn extended_ttl_never_exceeds_maximum(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    bench.advance(MAX_TTL - MINUTE);
    bench.answer("a", &[("n", json!(1))]).await;
    has(&bench.view("a").await, MAX_TTL);
    bench.write(&lease, ask(&[("k2", "n2")])).await;
    has(&bench.view("a").await, MAX_TTL);
}

async fn ttl_above_maximum_stays_unchanged(bench: ContractBench) {
    let lease = start(&bench, NewTask { ttl: Some(MAX_TTL * 3), ..task("a") }).await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    has(&bench.view("a").await, MAX_TTL * 3);
    bench.advance(MAX_TTL * 2);
    bench.answer("a", &[("n", json!(1))]).await;
    has(&bench.view("a").await, MAX_TTL * 3);
}

async fn task_without_ttl_stays_unlimited_with_open_request(bench: ContractBench) {
    let lease = start(&bench, NewTask { ttl: None, ..task("a") }).await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    assert_eq!(bench.view("a").await.ttl, None);
    bench.answer("a", &[("n", json!(1))]).await;
    assert_eq!(bench.view("a").await.ttl, None);
    bench.advance(MAX_TTL * 5);
    assert!(!is_expired(&bench, "a").await);
}

async fn task_with_unanswered_request_expires_at_maximum(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.park(&lease, ask(&[("k", "n")])).await;
    bench.advance(MAX_TTL + Duration::from_secs(1));
    assert!(is_expired(&bench, "a").await);
    assert!(bench.view("a").await.input_requests.is_empty());
}

async fn task_ending_with_open_request_stays_readable(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    bench.advance(MAX_TTL - MINUTE);
    bench.end(&lease, done()).await;
    let least = (MAX_TTL - MINUTE + RETENTION).as_millis() as u64;
    let view = bench.view("a").await;
    assert!(view.ttl.is_some_and(|ttl| ttl >= least), "the TTL covers the retention: {view:?}");
    bench.advance(RETENTION - Duration::from_secs(5));
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert!(!bench.is_gone("a").await);
}
