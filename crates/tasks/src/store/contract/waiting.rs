//! How long a task may exist while it waits for an answer, and after it.

use std::time::Duration;

use serde_json::json;

use super::bench::{
    ContractBench, MAX_TTL, RETENTION, TTL, ask, done, names, outside, promises, task, worker,
};
use crate::store::{Changes, CreateOutcome, Lease, NewTask, Phase, TaskOutcome, TaskRecord};

promises![
    parking_a_waiting_task_keeps_its_last_update,
    an_open_question_gives_a_task_more_time,
    what_is_asked_outside_gives_a_task_more_time,
    an_answer_gives_a_task_its_time_once_again,
    a_withdrawal_gives_a_task_its_time_once_again,
    a_task_has_more_time_until_nothing_is_open,
    every_question_gives_a_task_more_time,
    no_question_gives_a_task_more_than_the_most,
    a_task_that_has_more_time_than_the_most_keeps_it,
    a_task_that_may_exist_for_ever_still_may_when_it_asks,
    a_task_whose_question_is_not_answered_expires_in_the_end,
    what_ends_while_it_asks_can_still_be_read,
];

/// A real clock goes on while a check runs, but not for as long.
const SLACK: Duration = Duration::from_secs(30);

const MINUTE: Duration = Duration::from_secs(60);

#[track_caller]
fn has(view: &TaskRecord, ttl: Duration) {
    let (least, most) = (ttl.as_millis() as u64, (ttl + SLACK).as_millis() as u64);
    let seen = view.ttl.expect("it has a ttl");
    assert!(seen >= least && seen <= most, "{seen} is not {least}: {view:?}");
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
    assert!(bench.view("a").await.updated_at > asked, "an answer is a change");
}

async fn start(bench: &ContractBench, new: NewTask) -> Lease {
    // Its lease is no part of this.
    let new = NewTask { worker: Some((worker("v"), MAX_TTL * 10)), ..new };
    match bench.store.create(new).await.expect("a task is made") {
        CreateOutcome::Created { lease: Some(lease), .. } => lease,
        other => panic!("a lease was expected: {other:?}"),
    }
}

async fn is_expired(bench: &ContractBench, id: &str) -> bool {
    bench.store.sweep(100, RETENTION).await.expect("a sweep");
    matches!(bench.view(id).await.outcome, Some(TaskOutcome::Expired))
}

async fn an_open_question_gives_a_task_more_time(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    has(&bench.view("a").await, TTL);
    bench.park(&lease, ask(&[("k", "n")])).await;
    has(&bench.view("a").await, MAX_TTL);
    bench.advance(MAX_TTL - MINUTE);
    assert!(!is_expired(&bench, "a").await);
    assert_eq!(names(&bench.view("a").await), ["n"]);
}

async fn what_is_asked_outside_gives_a_task_more_time(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.park(&lease, outside("k", "job")).await;
    has(&bench.view("a").await, MAX_TTL);
    bench.advance(TTL + MINUTE);
    assert!(!is_expired(&bench, "a").await);
    assert_eq!(bench.answer_outside("a", &[("job", json!(1))]).await, Some(1));
    has(&bench.view("a").await, TTL + MINUTE + TTL);
}

async fn an_answer_gives_a_task_its_time_once_again(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.park(&lease, ask(&[("k", "n")])).await;
    bench.advance(TTL * 2);
    bench.answer("a", &[("n", json!(1))]).await;
    has(&bench.view("a").await, TTL * 3);
    bench.advance(TTL - MINUTE);
    assert!(!is_expired(&bench, "a").await, "not before what was shown");
    bench.advance(MINUTE + SLACK);
    assert!(is_expired(&bench, "a").await);
}

async fn a_withdrawal_gives_a_task_its_time_once_again(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    bench.advance(TTL * 2);
    let withdrawn = vec!["n".to_owned()];
    bench.write(&lease, Changes { withdrawn, ..Changes::default() }).await;
    has(&bench.view("a").await, TTL * 3);
    bench.advance(TTL - MINUTE);
    assert!(!is_expired(&bench, "a").await);
}

async fn a_task_has_more_time_until_nothing_is_open(bench: ContractBench) {
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

async fn every_question_gives_a_task_more_time(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    for round in 1..=3 {
        let name = format!("n{round}");
        bench.write(&lease, ask(&[(&name, &name)])).await;
        has(&bench.view("a").await, MAX_TTL);
        bench.advance(TTL);
        bench.answer("a", &[(&name, json!(1))]).await;
        has(&bench.view("a").await, TTL * (round + 1));
    }
    // What takes the place of another one in the same write is no pause.
    bench.write(&lease, ask(&[("k4", "n4")])).await;
    let withdrawn = vec!["n4".to_owned()];
    bench.write(&lease, Changes { withdrawn, ..ask(&[("k5", "n5")]) }).await;
    has(&bench.view("a").await, MAX_TTL);
}

async fn no_question_gives_a_task_more_than_the_most(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    bench.advance(MAX_TTL - MINUTE);
    bench.answer("a", &[("n", json!(1))]).await;
    has(&bench.view("a").await, MAX_TTL);
    bench.write(&lease, ask(&[("k2", "n2")])).await;
    has(&bench.view("a").await, MAX_TTL);
}

async fn a_task_that_has_more_time_than_the_most_keeps_it(bench: ContractBench) {
    let lease = start(&bench, NewTask { ttl: Some(MAX_TTL * 3), ..task("a") }).await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    has(&bench.view("a").await, MAX_TTL * 3);
    bench.advance(MAX_TTL * 2);
    bench.answer("a", &[("n", json!(1))]).await;
    has(&bench.view("a").await, MAX_TTL * 3);
}

async fn a_task_that_may_exist_for_ever_still_may_when_it_asks(bench: ContractBench) {
    let lease = start(&bench, NewTask { ttl: None, ..task("a") }).await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    assert_eq!(bench.view("a").await.ttl, None);
    bench.answer("a", &[("n", json!(1))]).await;
    assert_eq!(bench.view("a").await.ttl, None);
    bench.advance(MAX_TTL * 5);
    assert!(!is_expired(&bench, "a").await);
}

async fn a_task_whose_question_is_not_answered_expires_in_the_end(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.park(&lease, ask(&[("k", "n")])).await;
    bench.advance(MAX_TTL + Duration::from_secs(1));
    assert!(is_expired(&bench, "a").await);
    assert!(bench.view("a").await.input_requests.is_empty());
}

async fn what_ends_while_it_asks_can_still_be_read(bench: ContractBench) {
    let lease = start(&bench, task("a")).await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    bench.advance(MAX_TTL - MINUTE);
    bench.end(&lease, done()).await;
    let least = (MAX_TTL - MINUTE + RETENTION).as_millis() as u64;
    let view = bench.view("a").await;
    assert!(view.ttl.is_some_and(|ttl| ttl >= least), "and its ttl says so: {view:?}");
    bench.advance(RETENTION - Duration::from_secs(5));
    bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert!(!bench.is_gone("a").await);
}
