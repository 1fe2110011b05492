//! Checks of the end, the expiry and the deletion of tasks.

use std::time::Duration;

use outlive_wire::ErrorObject;
use serde_json::json;

use super::bench::{ContractBench, LEASE, OWNER, RETENTION, TTL, ask, done, entry, promises, raw};
use crate::store::{
    CancelOutcome, Changes, Phase, StoreError, SweepReport, TaskId, TaskOutcome, Transition,
};

promises![
    outcome_is_read_unchanged,
    changes_committed_with_outcome_are_stored,
    ended_task_never_changes,
    end_withdraws_open_input_requests,
    cancel_without_worker_ends_task_immediately,
    cancel_running_task_requests_stop,
    cancel_at_once_ends_running_task,
    second_cancel_changes_nothing,
    reclaimed_task_reports_requested_cancellation,
    task_does_not_expire_before_its_ttl,
    task_expires_after_its_ttl,
    late_result_stays_readable_for_retention,
    sweep_deletes_ended_task_and_its_data_after_retention,
    task_without_ttl_is_never_deleted,
    partial_sweep_reports_more,
];

async fn cancel(bench: &ContractBench, id: &str, at_once: bool) -> Option<CancelOutcome> {
    let cancelled = bench.store.cancel(OWNER, &TaskId::new(id), at_once, RETENTION).await;
    cancelled.expect("cancel succeeds")
}

async fn sweep(bench: &ContractBench) -> SweepReport {
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds")
}

async fn outcome_is_read_unchanged(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let result = json!({"content": [{"type": "text", "text": "ü"}], "isError": true});
    bench.end(&lease, TaskOutcome::Result(raw(&result))).await;
    let view = bench.view("a").await;
    assert_eq!(view.phase, Phase::Ended);
    let Some(TaskOutcome::Result(seen)) = view.outcome else {
        panic!("expected a result: {view:?}")
    };
    assert_eq!(seen.get(), result.to_string());
    let lease = bench.start("b", "v").await;
    let error = ErrorObject { code: -7, message: "no".into(), data: Some(raw(&json!({"x": 1}))) };
    bench.end(&lease, TaskOutcome::Error(error)).await;
    let Some(TaskOutcome::Error(seen)) = bench.view("b").await.outcome else {
        panic!("expected an error")
    };
    assert_eq!((seen.code, seen.message.as_str()), (-7, "no"));
    assert_eq!(seen.data.map(|data| data.get().to_owned()).as_deref(), Some(r#"{"x":1}"#));
}

async fn changes_committed_with_outcome_are_stored(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let changes = Changes { status_message: Some("all done".to_owned()), ..entry("k", json!(1)) };
    let then = Transition::End { outcome: done(), retention: RETENTION };
    bench.store.commit(&lease, &changes, &then).await.expect("commit succeeds");
    let view = bench.view("a").await;
    assert_eq!((view.phase, view.status_message.as_deref()), (Phase::Ended, Some("all done")));
}

async fn ended_task_never_changes(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.end(&lease, done()).await;
    let ended = bench.view("a").await;
    for then in [
        Transition::Continue,
        Transition::Park { due_at: None, responses_seen: 0 },
        Transition::End { outcome: TaskOutcome::Cancelled, retention: LEASE },
    ] {
        assert!(bench.store.commit(&lease, &entry("k", json!(1)), &then).await.is_err());
    }
    assert_eq!(cancel(&bench, "a", true).await, Some(CancelOutcome::AlreadyEnded));
    assert_eq!(bench.answer("a", &[("n", json!(1))]).await, Some(0));
    bench.advance(LEASE * 2);
    assert!(bench.claim("w").await.is_empty());
    bench.store.release(&lease.worker).await.expect("release succeeds");
    sweep(&bench).await;
    let now = bench.view("a").await;
    assert!(matches!(now.outcome, Some(TaskOutcome::Result(_))));
    assert_eq!((now.phase, now.updated_at), (Phase::Ended, ended.updated_at));
}

async fn end_withdraws_open_input_requests(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    bench.end(&lease, done()).await;
    assert!(bench.view("a").await.input_requests.is_empty());
}

async fn cancel_without_worker_ends_task_immediately(bench: ContractBench) {
    bench.queue("queued").await;
    assert_eq!(cancel(&bench, "queued", false).await, Some(CancelOutcome::Cancelled));
    let lease = bench.start("parked", "v").await;
    bench.park(&lease, ask(&[("k", "n")])).await;
    assert_eq!(cancel(&bench, "parked", false).await, Some(CancelOutcome::Cancelled));
    for id in ["queued", "parked"] {
        assert!(matches!(bench.view(id).await.outcome, Some(TaskOutcome::Cancelled)));
    }
    assert!(bench.claim("w").await.is_empty());
}

async fn cancel_running_task_requests_stop(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    assert!(!bench.store.inbox(&lease).await.expect("read succeeds").cancel_requested);
    assert_eq!(cancel(&bench, "a", false).await, Some(CancelOutcome::Requested));
    assert!(bench.store.inbox(&lease).await.expect("read succeeds").cancel_requested);
    let view = bench.view("a").await;
    assert!(view.cancel_requested.is_some() && view.outcome.is_none());
    bench.write(&lease, entry("k", json!(1))).await;
    bench.end(&lease, done()).await;
    assert!(
        matches!(bench.view("a").await.outcome, Some(TaskOutcome::Result(_))),
        "the result was committed before the cancellation"
    );
}

async fn cancel_at_once_ends_running_task(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    assert_eq!(cancel(&bench, "a", true).await, Some(CancelOutcome::Cancelled));
    let then = Transition::End { outcome: done(), retention: RETENTION };
    assert!(bench.store.commit(&lease, &Changes::default(), &then).await.is_err());
    assert_eq!(bench.store.inbox(&lease).await.err(), Some(StoreError::LeaseLost));
    assert!(matches!(bench.view("a").await.outcome, Some(TaskOutcome::Cancelled)));
}

async fn second_cancel_changes_nothing(bench: ContractBench) {
    bench.queue("a").await;
    assert_eq!(cancel(&bench, "a", true).await, Some(CancelOutcome::Cancelled));
    let updated = bench.view("a").await.updated_at;
    assert_eq!(cancel(&bench, "a", true).await, Some(CancelOutcome::AlreadyEnded));
    assert_eq!(bench.view("a").await.updated_at, updated);
    assert_eq!(cancel(&bench, "nobody", true).await, None);
}

async fn reclaimed_task_reports_requested_cancellation(bench: ContractBench) {
    bench.start("a", "v").await;
    assert_eq!(cancel(&bench, "a", false).await, Some(CancelOutcome::Requested));
    bench.advance(LEASE * 2);
    assert!(bench.claim_one("w").await.cancel_requested);
}

async fn task_does_not_expire_before_its_ttl(bench: ContractBench) {
    bench.queue("a").await;
    bench.advance(TTL - Duration::from_secs(5));
    assert_eq!(sweep(&bench).await, SweepReport::default());
    assert_eq!(bench.view("a").await.phase, Phase::Queued);
}

async fn task_expires_after_its_ttl(bench: ContractBench) {
    bench.queue("a").await;
    let lease = bench.start("b", "v").await;
    bench.advance(TTL + Duration::from_secs(1));
    let mut swept = sweep(&bench).await;
    swept.expired.sort();
    let both = ["a", "b"].map(|id| (OWNER.to_owned(), TaskId::new(id)));
    assert_eq!(swept, SweepReport { expired: both.to_vec(), ..SweepReport::default() });
    for id in ["a", "b"] {
        assert!(matches!(bench.view(id).await.outcome, Some(TaskOutcome::Expired)));
    }
    assert!(bench.claim("w").await.is_empty());
    assert!(
        bench.store.commit(&lease, &entry("k", json!(1)), &Transition::Continue).await.is_err()
    );
}

async fn late_result_stays_readable_for_retention(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.advance(TTL + Duration::from_secs(1));
    // No sweep has run, so the commit wins over the expiry.
    bench.end(&lease, done()).await;
    bench.advance(RETENTION - Duration::from_secs(5));
    assert_eq!(sweep(&bench).await, SweepReport::default());
    let view = bench.view("a").await;
    assert!(matches!(view.outcome, Some(TaskOutcome::Result(_))));
    let least = (TTL + RETENTION).as_millis() as u64;
    assert!(view.ttl.is_some_and(|ttl| ttl >= least), "the TTL covers the retention: {view:?}");
}

async fn sweep_deletes_ended_task_and_its_data_after_retention(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, entry("k", json!(1))).await;
    bench.write(&lease, ask(&[("q", "q")])).await;
    bench.end(&lease, done()).await;
    bench.advance(RETENTION.max(TTL) + Duration::from_secs(1));
    assert_eq!(sweep(&bench).await, SweepReport { purged: 1, ..SweepReport::default() });
    assert!(bench.is_gone("a").await);
    assert_eq!(bench.answer("a", &[("q", json!(1))]).await, None);
    assert_eq!(cancel(&bench, "a", true).await, None);
    // A new task with the same ID has no data of the old one.
    bench.queue("a").await;
    let journal = bench.claim_one("w").await.journal;
    assert!(journal.entries.is_empty() && journal.input_requests.is_empty());
}

async fn task_without_ttl_is_never_deleted(bench: ContractBench) {
    let new = crate::store::NewTask { ttl: None, ..super::bench::task("a") };
    bench.store.create(new).await.expect("create succeeds");
    bench.advance(Duration::from_secs(365 * 24 * 3600));
    assert_eq!(sweep(&bench).await, SweepReport::default());
    assert_eq!(bench.view("a").await.ttl, None);
}

async fn partial_sweep_reports_more(bench: ContractBench) {
    for id in ["a", "b", "c"] {
        bench.queue(id).await;
    }
    bench.advance(TTL + Duration::from_secs(1));
    let mut expired = 0;
    while bench.store.sweep(2, RETENTION).await.is_ok_and(|swept| {
        expired += swept.expired.len();
        swept.more
    }) {}
    assert_eq!(expired, 3);
    bench.advance(RETENTION.max(TTL) + Duration::from_secs(1));
    let mut purged = 0;
    while bench.store.sweep(2, RETENTION).await.is_ok_and(|swept| {
        purged += swept.purged;
        swept.more
    }) {}
    assert_eq!(purged, 3);
}
