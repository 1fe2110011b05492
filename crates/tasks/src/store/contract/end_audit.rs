//! Checks of the audit event that the end of a task appends.

use std::{sync::Arc, time::Duration};

use outlive_wire::ErrorObject;
use serde_json::json;

use super::{
    bench::{
        ContractBench, OWNER, RETENTION, TTL, ask, done, entry, promises, question, raw, task,
    },
    bridge::{ABANDON, bridged},
    quarantine::HOLD,
};
use crate::store::{
    AuditEvent, AuditRecord, CancelOutcome, Changes, Charge, CleanupState, Departure, EndAudit,
    Lease, NewTask, OutcomeKind, StoreError, TaskId, TaskOutcome, Transition,
};

promises![
    commit_that_ends_task_appends_one_end_event,
    large_result_appends_one_end_event,
    cancelled_task_appends_one_end_event,
    swept_task_appends_one_end_event,
    cleanup_appends_no_second_end_event,
    repeated_creation_appends_no_second_end_event,
    concurrent_commit_and_cancellation_append_one_end_event,
    end_without_end_audit_appends_no_event,
    rejected_commit_appends_no_end_event,
    end_event_has_time_and_number_of_its_commit,
    end_event_is_deleted_after_its_retention,
];

const SECOND: Duration = Duration::from_secs(1);

/// Retention of end events, which is longer than a quarantine.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// Returns the task of the end event, which differs from the task ID.
fn shown(id: &str) -> String {
    format!("sha256:{id} ü")
}

/// Adds an end event to a task.
pub(super) fn audited(new: NewTask) -> NewTask {
    let shown = shown(new.id.as_str());
    new.end_audit(Some(EndAudit::new(shown, WEEK)))
}

fn end(outcome: TaskOutcome) -> Transition {
    Transition::End { outcome, retention: RETENTION }
}

impl ContractBench {
    async fn create_audited(&self, new: NewTask) {
        let created = self.store.create(audited(new)).await.expect("create succeeds");
        assert!(created.is_new(), "{created:?}");
    }

    /// Creates a task with an end event that worker `v` runs.
    async fn start_audited(&self, id: &str) -> Lease {
        self.bridge_started(audited(task(id))).await
    }

    async fn cancel_task(&self, id: &str, at_once: bool) -> Option<CancelOutcome> {
        let cancelled = self.store.cancel(OWNER, &TaskId::new(id), at_once, RETENTION).await;
        cancelled.expect("cancel succeeds")
    }

    async fn sweep_audited(&self) {
        self.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    }

    /// Returns all events of the audit log.
    async fn log(&self) -> Vec<AuditRecord> {
        self.store.read(None, 0, 100).await.expect("read succeeds")
    }

    /// Asserts that the audit log has one event of a task: its end.
    async fn has_ended(&self, id: &str, outcome: OutcomeKind) {
        let events = self.store.read(Some(&shown(id)), 0, 100).await.expect("read succeeds");
        let events: Vec<_> = events.into_iter().map(|record| record.event).collect();
        let ended = AuditEvent::new(shown(id), OWNER, "ended").reason(Some(outcome.to_string()));
        assert_eq!(events, [ended], "{id}");
    }
}

async fn commit_that_ends_task_appends_one_end_event(bench: ContractBench) {
    let tool_error = TaskOutcome::Result(raw(&json!({"content": [], "isError": true})));
    let error = ErrorObject { code: -7, message: "no".into(), data: None };
    let outcomes = [
        (done(), OutcomeKind::Completed),
        (tool_error, OutcomeKind::Failed),
        (TaskOutcome::Error(error), OutcomeKind::Failed),
        (TaskOutcome::Cancelled, OutcomeKind::Cancelled),
        (TaskOutcome::Expired, OutcomeKind::Expired),
    ];
    let tagged = Changes { tags: vec!["order=1".to_owned()], ..Changes::default() };
    // A store may have a statement for each kind of changes.
    let changes = [Changes::default(), entry("k", json!(1)), ask(&[("k", "n")]), tagged];
    for (number, (outcome, kind)) in outcomes.into_iter().enumerate() {
        for (part, changes) in changes.iter().enumerate() {
            let id = format!("{number}-{part}");
            let lease = bench.start_audited(&id).await;
            let committed = bench.store.commit(&lease, changes, &end(outcome.clone())).await;
            committed.expect("commit succeeds");
            bench.has_ended(&id, kind).await;
        }
    }
}

async fn large_result_appends_one_end_event(bench: ContractBench) {
    let text = "ä".repeat(80_000);
    let result = raw(&json!({"content": [{"type": "text", "text": text}], "isError": true}));
    let mut outcome = TaskOutcome::Result(result);
    let result_parts = outcome.take_parts();
    assert!(!result_parts.is_empty(), "the result has parts");
    let lease = bench.start_audited("a").await;
    let changes = Changes { result_parts, ..Changes::default() };
    bench.store.commit(&lease, &changes, &end(outcome)).await.expect("commit succeeds");
    bench.has_ended("a", OutcomeKind::Failed).await;
}

async fn cancelled_task_appends_one_end_event(bench: ContractBench) {
    bench.create_audited(task("queued")).await;
    bench.create_audited(task("parked").input_requests(vec![question("k", "n")])).await;
    let lease = bench.start_audited("quarantined").await;
    bench.stop(&lease, Changes::default()).await;
    assert!(bench.log().await.is_empty(), "no task has ended");
    for id in ["queued", "parked", "quarantined"] {
        assert_eq!(bench.cancel_task(id, false).await, Some(CancelOutcome::Cancelled), "{id}");
        bench.has_ended(id, OutcomeKind::Cancelled).await;
    }
    let lease = bench.start_audited("running").await;
    assert_eq!(bench.cancel_task("running", false).await, Some(CancelOutcome::Requested));
    assert_eq!(bench.log().await.len(), 3, "the worker is requested to stop");
    assert_eq!(bench.cancel_task("running", true).await, Some(CancelOutcome::Cancelled));
    assert_eq!(bench.cancel_task("running", true).await, Some(CancelOutcome::AlreadyEnded));
    let late = bench.store.commit(&lease, &Changes::default(), &end(done())).await;
    assert_eq!(late, Err(StoreError::LeaseLost));
    bench.has_ended("running", OutcomeKind::Cancelled).await;
}

async fn swept_task_appends_one_end_event(bench: ContractBench) {
    bench.create_audited(bridged("abandoned")).await;
    bench.leave("abandoned", "v", Departure::Lost).await;
    bench.create_audited(task("queued")).await;
    bench.start_audited("running").await;
    let lease = bench.start_audited("quarantined").await;
    bench.stop(&lease, Changes::default()).await;
    bench.sweep_audited().await;
    assert!(bench.log().await.is_empty(), "no task has ended");
    for span in [ABANDON, TTL, HOLD] {
        bench.advance(span + SECOND);
        bench.sweep_audited().await;
    }
    bench.has_ended("abandoned", OutcomeKind::Cancelled).await;
    bench.has_ended("queued", OutcomeKind::Expired).await;
    bench.has_ended("running", OutcomeKind::Expired).await;
    bench.has_ended("quarantined", OutcomeKind::Failed).await;
    // The sweep deletes the tasks.
    bench.advance(HOLD);
    bench.sweep_audited().await;
    assert!(bench.is_gone("quarantined").await);
    assert_eq!(bench.log().await.len(), 4, "the deletion appends no event");
}

async fn cleanup_appends_no_second_end_event(bench: ContractBench) {
    let lease = bench.bridge_started(audited(task("a")).clean_up(true)).await;
    bench.end(&lease, TaskOutcome::Cancelled).await;
    let claimed = bench.claim_one("w").await;
    assert!(claimed.ended.is_some(), "the cleanup is due");
    let cleaned_up = bench.store.finish_cleanup(&claimed.lease, CleanupState::Done).await;
    cleaned_up.expect("operation succeeds");
    bench.has_ended("a", OutcomeKind::Cancelled).await;
}

async fn repeated_creation_appends_no_second_end_event(bench: ContractBench) {
    bench.create_audited(task("a")).await;
    let again = bench.store.create(audited(task("a"))).await.expect("create succeeds");
    assert!(!again.is_new(), "{again:?}");
    let lease = bench.claim_one("w").await.lease;
    bench.end(&lease, done()).await;
    bench.has_ended("a", OutcomeKind::Completed).await;
}

async fn concurrent_commit_and_cancellation_append_one_end_event(bench: ContractBench) {
    for number in 0..20 {
        let id = number.to_string();
        let lease = bench.start_audited(&id).await;
        let (store, task) = (Arc::clone(&bench.store), lease.task.clone());
        let cancelling =
            tokio::spawn(async move { store.cancel(OWNER, &task, true, RETENTION).await });
        let committed = bench.store.commit(&lease, &Changes::default(), &end(done())).await;
        let cancelled = cancelling.await.expect("the cancellation returns");
        let (expected, outcome) = match committed {
            Ok(()) => (CancelOutcome::AlreadyEnded, OutcomeKind::Completed),
            Err(StoreError::LeaseLost) => (CancelOutcome::Cancelled, OutcomeKind::Cancelled),
            Err(error) => panic!("unexpected error {error}"),
        };
        assert_eq!(cancelled, Ok(Some(expected)));
        bench.has_ended(&id, outcome).await;
    }
}

async fn end_without_end_audit_appends_no_event(bench: ContractBench) {
    let lease = bench.start("ended", "v").await;
    bench.end(&lease, done()).await;
    bench.queue("cancelled").await;
    bench.cancel_task("cancelled", true).await;
    bench.queue("expired").await;
    bench.advance(TTL + SECOND);
    bench.sweep_audited().await;
    assert!(bench.log().await.is_empty());
}

async fn rejected_commit_appends_no_end_event(bench: ContractBench) {
    let lease = bench.start_audited("a").await;
    let other = Lease { epoch: lease.epoch + 1, ..lease.clone() };
    let lost = bench.store.commit(&other, &Changes::default(), &end(done())).await;
    assert_eq!(lost, Err(StoreError::LeaseLost));
    let large = TaskOutcome::Result(raw(&json!({"content": ["x".repeat(4_000)]})));
    let changes = Changes { charge: Some(Charge::new(OWNER, 0)), ..Changes::default() };
    let rejected = bench.store.commit(&lease, &changes, &end(large)).await;
    assert_eq!(rejected, Err(StoreError::BytesExceeded));
    assert!(bench.log().await.is_empty());
    bench.end(&lease, done()).await;
    bench.has_ended("a", OutcomeKind::Completed).await;
}

async fn end_event_has_time_and_number_of_its_commit(bench: ContractBench) {
    let append = async |action: &str| {
        let event = AuditEvent::new("t", OWNER, action);
        bench.store.append(vec![event], WEEK, 100).await.expect("append succeeds");
    };
    append("before").await;
    bench.advance(5 * SECOND);
    let lease = bench.start_audited("a").await;
    bench.end(&lease, done()).await;
    append("after").await;
    let log = bench.log().await;
    let actions: Vec<_> = log.iter().map(|record| record.event.action.as_str()).collect();
    assert_eq!(actions, ["before", "ended", "after"]);
    assert!(log.is_sorted_by(|one, next| one.number < next.number), "{log:?}");
    // A store may read its clock more than once in a commit.
    let latest = log[2].at.max(bench.view("a").await.updated_at);
    let times = log[0].at + 5_000..=latest;
    assert!(times.contains(&log[1].at), "{times:?}: {log:?}");
}

async fn end_event_is_deleted_after_its_retention(bench: ContractBench) {
    let lease = bench.start_audited("a").await;
    bench.end(&lease, done()).await;
    bench.advance(WEEK - 30 * SECOND);
    bench.sweep_audited().await;
    bench.has_ended("a", OutcomeKind::Completed).await;
    bench.advance(31 * SECOND);
    bench.sweep_audited().await;
    assert!(bench.log().await.is_empty());
}
