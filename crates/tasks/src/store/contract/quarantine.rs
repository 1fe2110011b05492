//! Checks of quarantined tasks.

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
    quarantined_task_is_not_claimed,
    quarantined_task_has_no_outcome_for_principal,
    quarantine_commit_is_atomic,
    response_to_quarantined_task_is_stored_without_waking_it,
    quarantined_task_ends_with_its_outcome_after_ttl,
    response_does_not_shorten_quarantine,
    quarantined_task_without_ttl_never_ends,
    quarantined_task_can_be_cancelled,
    cancelled_task_is_queued_instead_of_quarantined,
    stats_count_quarantined_tasks,
    quarantined_task_counts_in_quota,
];

/// Duration of the quarantine, which is longer than the TTL.
pub(super) const HOLD: Duration = Duration::from_secs(24 * 3600);

/// Returns the outcome of quarantined tasks.
pub(super) fn failed() -> TaskOutcome {
    let message = "its worker crashed 5 times in a row".to_owned();
    TaskOutcome::Error(ErrorObject { code: code::INTERNAL, message, data: None })
}

impl ContractBench {
    pub(super) async fn stop(&self, lease: &Lease, changes: Changes) {
        let then = Transition::Quarantine { outcome: failed(), ttl: HOLD };
        self.store.commit(lease, &changes, &then).await.expect("commit succeeds");
    }

    /// Creates a quarantined task.
    pub(super) async fn make_kept(&self, id: &str) -> Lease {
        let lease = self.start(id, "w").await;
        self.stop(&lease, Changes::default()).await;
        lease
    }
}

pub(super) fn message(text: &str) -> Changes {
    Changes { status_message: Some(text.to_owned()), ..Changes::default() }
}

async fn quarantined_task_is_not_claimed(bench: ContractBench) {
    let lease = bench.make_kept("t").await;
    assert!(bench.claim("other").await.is_empty());
    bench.advance(LEASE * 3);
    assert!(bench.claim("other").await.is_empty(), "a quarantined task has no lease");
    assert_eq!(bench.store.next_due(&[]).await.expect("read succeeds"), None);
    let written = bench.store.commit(&lease, &entry("k", json!(1)), &Transition::Continue).await;
    assert_eq!(written, Err(StoreError::LeaseLost), "the worker has lost the lease");
    assert!(bench.store.renew(&worker("w"), LEASE).await.expect("renewal succeeds").is_empty());
}

async fn quarantined_task_has_no_outcome_for_principal(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    bench.stop(&lease, message("kept")).await;
    let view = bench.view("t").await;
    assert_eq!((view.phase, view.status_message.as_deref()), (Phase::Quarantined, Some("kept")));
    assert!(view.outcome.is_none(), "{:?}", view.outcome);
    let ttl = view.ttl.expect("task has a TTL");
    assert!(ttl >= HOLD.as_millis() as u64, "the TTL shows the quarantine: {ttl}");
}

async fn quarantine_commit_is_atomic(bench: ContractBench) {
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
    bench.store.commit(&lease, &changes, &keep()).await.expect("commit succeeds");
    let view = bench.view("t").await;
    assert_eq!((names(&view), view.status_message.as_deref()), (vec!["n"], Some("yes")));
}

async fn response_to_quarantined_task_is_stored_without_waking_it(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    bench.stop(&lease, ask(&[("k", "n")])).await;
    assert_eq!(bench.answer("t", &[("n", json!("yes"))]).await, Some(1));
    assert_eq!(
        bench.answer("t", &[("n", json!("no"))]).await,
        Some(0),
        "the first response counts"
    );
    let view = bench.view("t").await;
    assert_eq!((view.phase, names(&view).len()), (Phase::Quarantined, 0));
    assert!(bench.claim("other").await.is_empty());
}

async fn quarantined_task_ends_with_its_outcome_after_ttl(bench: ContractBench) {
    bench.make_kept("t").await;
    bench.advance(HOLD - Duration::from_secs(30));
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert_eq!(
        bench.view("t").await.phase,
        Phase::Quarantined,
        "the quarantine is longer than the TTL"
    );
    bench.advance(Duration::from_secs(31));
    let swept = bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert_eq!(swept.failed, [(OWNER.to_owned(), TaskId::new("t"))]);
    assert!(swept.expired.is_empty(), "a failed quarantine is not an expiry");
    let view = bench.view("t").await;
    assert_eq!(view.phase, Phase::Ended);
    let Some(TaskOutcome::Error(error)) = view.outcome else { panic!("{:?}", view.outcome) };
    assert!(error.message.contains("5 times"), "{error:?}");
    bench.advance(RETENTION + Duration::from_secs(1));
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert!(bench.is_gone("t").await);
}

async fn response_does_not_shorten_quarantine(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    bench.stop(&lease, ask(&[("k", "n")])).await;
    bench.answer("t", &[("n", json!(1))]).await;
    bench.advance(HOLD - Duration::from_secs(30));
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert_eq!(bench.view("t").await.phase, Phase::Quarantined);
}

async fn quarantined_task_without_ttl_never_ends(bench: ContractBench) {
    let new = NewTask { ttl: None, worker: Some((worker("w"), LEASE)), ..task("t") };
    bench.store.create(new).await.expect("create succeeds");
    let lease = Lease { task: TaskId::new("t"), worker: worker("w"), epoch: 1 };
    bench.stop(&lease, Changes::default()).await;
    bench.advance(HOLD * 100);
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    let view = bench.view("t").await;
    assert_eq!((view.phase, view.ttl), (Phase::Quarantined, None));
}

async fn quarantined_task_can_be_cancelled(bench: ContractBench) {
    bench.make_kept("t").await;
    let cancelled = bench.store.cancel(OWNER, &TaskId::new("t"), false, RETENTION).await;
    assert_eq!(cancelled, Ok(Some(CancelOutcome::Cancelled)));
    let view = bench.view("t").await;
    assert!(matches!(view.outcome, Some(TaskOutcome::Cancelled)), "{:?}", view.outcome);
    bench.advance(HOLD * 2);
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert!(bench.is_gone("t").await, "the task is deleted like any other");
}

async fn cancelled_task_is_queued_instead_of_quarantined(bench: ContractBench) {
    let lease = bench.start("t", "w").await;
    let asked = bench.store.cancel(OWNER, &lease.task, false, RETENTION).await;
    assert_eq!(asked, Ok(Some(CancelOutcome::Requested)));
    bench.stop(&lease, Changes::default()).await;
    assert_eq!(bench.view("t").await.phase, Phase::Queued);
    let claimed = bench.claim_one("other").await;
    assert!(claimed.cancel_requested, "the next worker sees the cancellation");
    bench.end(&claimed.lease, TaskOutcome::Cancelled).await;
}

async fn stats_count_quarantined_tasks(bench: ContractBench) {
    bench.make_kept("a").await;
    bench.make_kept("b").await;
    let census = bench.store.stats().await.expect("stats succeed");
    assert_eq!((census.quarantined, census.running, census.parked), (2, 0, 0));
    assert_eq!(census.oldest_due, None, "a quarantined task is not due");
    bench.store.cancel(OWNER, &TaskId::new("a"), false, RETENTION).await.expect("cancel succeeds");
    let census = bench.store.stats().await.expect("stats succeed");
    assert_eq!((census.quarantined, census.ended), (1, 1));
}

async fn quarantined_task_counts_in_quota(bench: ContractBench) {
    bench.make_kept("a").await;
    let full =
        bench.store.create(NewTask { quota: 1, ..task("b") }).await.expect("operation succeeds");
    assert!(!full.is_new(), "{full:?}");
    bench.advance(HOLD.max(TTL) + Duration::from_secs(1));
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    let room =
        bench.store.create(NewTask { quota: 1, ..task("b") }).await.expect("operation succeeds");
    assert!(room.is_new(), "{room:?}");
    let lease = bench.claim_one("w").await.lease;
    bench.end(&lease, done()).await;
}
