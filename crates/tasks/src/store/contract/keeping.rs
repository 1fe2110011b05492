//! Tasks that are stopped and kept for an operator: nobody goes on with them by themselves.

use std::time::Duration;

use outlive_wire::{ErrorObject, code};
use serde_json::json;

use super::bench::{
    ContractBench, LEASE, OWNER, RETENTION, TTL, ask, done, entry, names, promises, task, worker,
};
use crate::store::{
    CancelOutcome, Changes, Lease, NewTask, Phase, StoreError, TaskId, TaskOutcome, Transition,
};

promises![
    what_is_kept_is_claimed_by_nobody,
    what_is_kept_is_not_over_for_its_owner,
    keeping_writes_all_of_it_or_nothing,
    an_answer_to_what_is_kept_counts_and_wakes_nobody,
    what_is_kept_ends_as_it_says_when_its_time_is_over,
    an_answer_does_not_shorten_the_time_for_which_it_is_kept,
    what_is_kept_without_a_ttl_is_kept_for_ever,
    what_is_kept_can_be_cancelled,
    what_was_asked_to_stop_is_not_kept,
    what_is_kept_is_counted,
    what_is_kept_takes_its_place_among_those_of_its_owner,
];

/// For how long tasks are kept here: longer than they live otherwise.
pub(super) const HOLD: Duration = Duration::from_secs(24 * 3600);

/// How what is kept ends.
pub(super) fn failed() -> TaskOutcome {
    let message = "its worker was lost 5 times in a row".to_owned();
    TaskOutcome::Error(ErrorObject { code: code::INTERNAL, message, data: None })
}

impl ContractBench {
    pub(super) async fn stop(&self, lease: &Lease, changes: Changes) {
        let then = Transition::Quarantine { outcome: failed(), ttl: HOLD };
        self.store.commit(lease, &changes, &then).await.expect("a write");
    }

    /// Makes a task that is kept.
    pub(super) async fn make_kept(&self, id: &str) -> Lease {
        let lease = self.start(id, "w").await;
        self.stop(&lease, Changes::default()).await;
        lease
    }
}

pub(super) fn message(text: &str) -> Changes {
    Changes { status_message: Some(text.to_owned()), ..Changes::default() }
}

async fn what_is_kept_is_claimed_by_nobody(bench: ContractBench) {
    let lease = bench.make_kept("t").await;
    assert!(bench.claim("other").await.is_empty());
    bench.advance(LEASE * 3);
    assert!(bench.claim("other").await.is_empty(), "it has no lease that could be over");
    assert_eq!(bench.store.next_due(&[]).await.expect("a look"), None);
    let written = bench.store.commit(&lease, &entry("k", json!(1)), &Transition::Continue).await;
    assert_eq!(written, Err(StoreError::LeaseLost), "its worker has it no more");
    assert!(bench.store.renew(&worker("w"), LEASE).await.expect("a renewal").is_empty());
}

async fn what_is_kept_is_not_over_for_its_owner(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    bench.stop(&lease, message("kept")).await;
    let view = bench.view("t").await;
    assert_eq!((view.phase, view.status_message.as_deref()), (Phase::Quarantined, Some("kept")));
    assert!(view.outcome.is_none(), "{:?}", view.outcome);
    let ttl = view.ttl.expect("it has one");
    assert!(ttl >= HOLD.as_millis() as u64, "its owner can see for how long: {ttl}");
}

async fn keeping_writes_all_of_it_or_nothing(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    let old = Lease { epoch: lease.epoch + 1, ..lease.clone() };
    let keep = || Transition::Quarantine { outcome: failed(), ttl: HOLD };
    let refused = bench.store.commit(&old, &message("no"), &keep()).await;
    assert_eq!(refused, Err(StoreError::LeaseLost));
    assert_eq!(
        (bench.view("t").await.phase, bench.view("t").await.status_message),
        (Phase::Running, None)
    );
    let changes = Changes { status_message: Some("yes".to_owned()), ..ask(&[("k", "n")]) };
    bench.store.commit(&lease, &changes, &keep()).await.expect("a write");
    let view = bench.view("t").await;
    assert_eq!((names(&view), view.status_message.as_deref()), (vec!["n"], Some("yes")));
}

async fn an_answer_to_what_is_kept_counts_and_wakes_nobody(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    bench.stop(&lease, ask(&[("k", "n")])).await;
    assert_eq!(bench.answer("t", &[("n", json!("yes"))]).await, Some(1));
    assert_eq!(bench.answer("t", &[("n", json!("no"))]).await, Some(0), "the first counts");
    let view = bench.view("t").await;
    assert_eq!((view.phase, names(&view).len()), (Phase::Quarantined, 0));
    assert!(bench.claim("other").await.is_empty());
}

async fn what_is_kept_ends_as_it_says_when_its_time_is_over(bench: ContractBench) {
    bench.make_kept("t").await;
    bench.advance(HOLD - Duration::from_secs(30));
    bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert_eq!(bench.view("t").await.phase, Phase::Quarantined, "longer than its ttl");
    bench.advance(Duration::from_secs(31));
    let swept = bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert_eq!(swept.failed, [(OWNER.to_owned(), TaskId::new("t"))]);
    assert!(swept.expired.is_empty(), "a failure is not an expiry");
    let view = bench.view("t").await;
    assert_eq!(view.phase, Phase::Ended);
    let Some(TaskOutcome::Error(error)) = view.outcome else { panic!("{:?}", view.outcome) };
    assert!(error.message.contains("5 times"), "{error:?}");
    bench.advance(RETENTION + Duration::from_secs(1));
    bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert!(bench.is_gone("t").await);
}

async fn an_answer_does_not_shorten_the_time_for_which_it_is_kept(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    bench.stop(&lease, ask(&[("k", "n")])).await;
    bench.answer("t", &[("n", json!(1))]).await;
    bench.advance(HOLD - Duration::from_secs(30));
    bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert_eq!(bench.view("t").await.phase, Phase::Quarantined);
}

async fn what_is_kept_without_a_ttl_is_kept_for_ever(bench: ContractBench) {
    let new = NewTask { ttl: None, worker: Some((worker("w"), LEASE)), ..task("t") };
    bench.store.create(new).await.expect("a task is made");
    let lease = Lease { task: TaskId::new("t"), worker: worker("w"), epoch: 1 };
    bench.stop(&lease, Changes::default()).await;
    bench.advance(HOLD * 100);
    bench.store.sweep(100, RETENTION).await.expect("a sweep");
    let view = bench.view("t").await;
    assert_eq!((view.phase, view.ttl), (Phase::Quarantined, None));
}

async fn what_is_kept_can_be_cancelled(bench: ContractBench) {
    bench.make_kept("t").await;
    let cancelled = bench.store.cancel(OWNER, &TaskId::new("t"), false, RETENTION).await;
    assert_eq!(cancelled, Ok(Some(CancelOutcome::Cancelled)));
    let view = bench.view("t").await;
    assert!(matches!(view.outcome, Some(TaskOutcome::Cancelled)), "{:?}", view.outcome);
    bench.advance(HOLD * 2);
    bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert!(bench.is_gone("t").await, "and is forgotten like any other");
}

async fn what_was_asked_to_stop_is_not_kept(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    let asked = bench.store.cancel(OWNER, &lease.task, false, RETENTION).await;
    assert_eq!(asked, Ok(Some(CancelOutcome::Requested)));
    bench.stop(&lease, Changes::default()).await;
    assert_eq!(bench.view("t").await.phase, Phase::Queued);
    let claimed = bench.claim_one("other").await;
    assert!(claimed.cancel_requested, "somebody sees to it");
    bench.end(&claimed.lease, TaskOutcome::Cancelled).await;
}

async fn what_is_kept_is_counted(bench: ContractBench) {
    bench.make_kept("a").await;
    bench.make_kept("b").await;
    let census = bench.store.stats().await.expect("a census");
    assert_eq!((census.quarantined, census.running, census.parked), (2, 0, 0));
    assert_eq!(census.oldest_due, None, "nobody is late");
    bench.store.cancel(OWNER, &TaskId::new("a"), false, RETENTION).await.expect("a cancel");
    let census = bench.store.stats().await.expect("a census");
    assert_eq!((census.quarantined, census.ended), (1, 1));
}

async fn what_is_kept_takes_its_place_among_those_of_its_owner(bench: ContractBench) {
    bench.make_kept("a").await;
    let full = bench.store.create(NewTask { quota: 1, ..task("b") }).await.expect("an answer");
    assert!(!full.is_new(), "{full:?}");
    bench.advance(HOLD.max(TTL) + Duration::from_secs(1));
    bench.store.sweep(100, RETENTION).await.expect("a sweep");
    let room = bench.store.create(NewTask { quota: 1, ..task("b") }).await.expect("an answer");
    assert!(room.is_new(), "{room:?}");
    let lease = bench.claim_one("w").await.lease;
    bench.end(&lease, done()).await;
}
