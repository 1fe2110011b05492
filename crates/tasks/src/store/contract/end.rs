//! How tasks end, and that they stay so.

use std::time::Duration;

use outlive_wire::ErrorObject;
use serde_json::json;

use super::bench::{ContractBench, LEASE, OWNER, RETENTION, TTL, ask, done, entry, promises, raw};
use crate::store::{
    CancelOutcome, Changes, Phase, StoreError, SweepReport, TaskId, TaskOutcome, Transition,
};

promises![
    an_outcome_is_seen_as_it_was_written,
    what_is_written_with_the_outcome_is_there,
    what_has_ended_never_changes,
    the_end_withdraws_open_questions,
    a_task_without_a_worker_is_cancelled_at_once,
    a_running_task_is_asked_to_stop,
    a_running_task_can_be_cancelled_at_once,
    cancelling_twice_is_no_second_end,
    whoever_takes_over_a_cancelled_task_knows,
    no_task_expires_before_its_time,
    a_task_expires_when_its_time_is_over,
    a_result_that_came_late_can_still_be_read,
    what_is_over_for_long_enough_is_forgotten_with_all_it_had,
    a_task_without_a_ttl_stays,
    who_sweeps_a_part_is_told_that_there_is_more,
];

async fn cancel(bench: &ContractBench, id: &str, at_once: bool) -> Option<CancelOutcome> {
    let cancelled = bench.store.cancel(OWNER, &TaskId::new(id), at_once, RETENTION).await;
    cancelled.expect("a cancel")
}

async fn sweep(bench: &ContractBench) -> SweepReport {
    bench.store.sweep(100, RETENTION).await.expect("a sweep")
}

async fn an_outcome_is_seen_as_it_was_written(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let result = json!({"content": [{"type": "text", "text": "ü"}], "isError": true});
    bench.end(&lease, TaskOutcome::Result(raw(&result))).await;
    let view = bench.view("a").await;
    assert_eq!(view.phase, Phase::Ended);
    let Some(TaskOutcome::Result(seen)) = view.outcome else { panic!("a result: {view:?}") };
    assert_eq!(seen.get(), result.to_string());
    let lease = bench.start("b", "v").await;
    let error = ErrorObject { code: -7, message: "no".into(), data: Some(raw(&json!({"x": 1}))) };
    bench.end(&lease, TaskOutcome::Error(error)).await;
    let Some(TaskOutcome::Error(seen)) = bench.view("b").await.outcome else { panic!("an error") };
    assert_eq!((seen.code, seen.message.as_str()), (-7, "no"));
    assert_eq!(seen.data.map(|data| data.get().to_owned()).as_deref(), Some(r#"{"x":1}"#));
}

async fn what_is_written_with_the_outcome_is_there(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    let changes = Changes { status_message: Some("all done".to_owned()), ..entry("k", json!(1)) };
    let then = Transition::End { outcome: done(), retention: RETENTION };
    bench.store.commit(&lease, &changes, &then).await.expect("a write");
    let view = bench.view("a").await;
    assert_eq!((view.phase, view.status_message.as_deref()), (Phase::Ended, Some("all done")));
}

async fn what_has_ended_never_changes(bench: ContractBench) {
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
    bench.store.release(&lease.worker).await.expect("a release");
    sweep(&bench).await;
    let now = bench.view("a").await;
    assert!(matches!(now.outcome, Some(TaskOutcome::Result(_))));
    assert_eq!((now.phase, now.updated_at), (Phase::Ended, ended.updated_at));
}

async fn the_end_withdraws_open_questions(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    bench.end(&lease, done()).await;
    assert!(bench.view("a").await.input_requests.is_empty());
}

async fn a_task_without_a_worker_is_cancelled_at_once(bench: ContractBench) {
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

async fn a_running_task_is_asked_to_stop(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    assert!(!bench.store.inbox(&lease).await.expect("a look").cancel_requested);
    assert_eq!(cancel(&bench, "a", false).await, Some(CancelOutcome::Requested));
    assert!(bench.store.inbox(&lease).await.expect("a look").cancel_requested);
    let view = bench.view("a").await;
    assert!(view.cancel_requested.is_some() && view.outcome.is_none());
    bench.write(&lease, entry("k", json!(1))).await;
    bench.end(&lease, done()).await;
    assert!(matches!(bench.view("a").await.outcome, Some(TaskOutcome::Result(_))), "it was faster");
}

async fn a_running_task_can_be_cancelled_at_once(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    assert_eq!(cancel(&bench, "a", true).await, Some(CancelOutcome::Cancelled));
    let then = Transition::End { outcome: done(), retention: RETENTION };
    assert!(bench.store.commit(&lease, &Changes::default(), &then).await.is_err());
    assert_eq!(bench.store.inbox(&lease).await.err(), Some(StoreError::LeaseLost));
    assert!(matches!(bench.view("a").await.outcome, Some(TaskOutcome::Cancelled)));
}

async fn cancelling_twice_is_no_second_end(bench: ContractBench) {
    bench.queue("a").await;
    assert_eq!(cancel(&bench, "a", true).await, Some(CancelOutcome::Cancelled));
    let updated = bench.view("a").await.updated_at;
    assert_eq!(cancel(&bench, "a", true).await, Some(CancelOutcome::AlreadyEnded));
    assert_eq!(bench.view("a").await.updated_at, updated);
    assert_eq!(cancel(&bench, "nobody", true).await, None);
}

async fn whoever_takes_over_a_cancelled_task_knows(bench: ContractBench) {
    bench.start("a", "v").await;
    assert_eq!(cancel(&bench, "a", false).await, Some(CancelOutcome::Requested));
    bench.advance(LEASE * 2);
    assert!(bench.claim_one("w").await.cancel_requested);
}

async fn no_task_expires_before_its_time(bench: ContractBench) {
    bench.queue("a").await;
    bench.advance(TTL - Duration::from_secs(5));
    assert_eq!(sweep(&bench).await, SweepReport::default());
    assert_eq!(bench.view("a").await.phase, Phase::Queued);
}

async fn a_task_expires_when_its_time_is_over(bench: ContractBench) {
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

async fn a_result_that_came_late_can_still_be_read(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.advance(TTL + Duration::from_secs(1));
    // Nobody has swept yet: whoever commits first has won.
    bench.end(&lease, done()).await;
    bench.advance(RETENTION - Duration::from_secs(5));
    assert_eq!(sweep(&bench).await, SweepReport::default());
    let view = bench.view("a").await;
    assert!(matches!(view.outcome, Some(TaskOutcome::Result(_))));
    let least = (TTL + RETENTION).as_millis() as u64;
    assert!(view.ttl.is_some_and(|ttl| ttl >= least), "and its ttl says so: {view:?}");
}

async fn what_is_over_for_long_enough_is_forgotten_with_all_it_had(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, entry("k", json!(1))).await;
    bench.write(&lease, ask(&[("q", "q")])).await;
    bench.end(&lease, done()).await;
    bench.advance(RETENTION.max(TTL) + Duration::from_secs(1));
    assert_eq!(sweep(&bench).await, SweepReport { purged: 1, ..SweepReport::default() });
    assert!(bench.is_gone("a").await);
    assert_eq!(bench.answer("a", &[("q", json!(1))]).await, None);
    assert_eq!(cancel(&bench, "a", true).await, None);
    // A new task of the same name has nothing of the old one.
    bench.queue("a").await;
    let journal = bench.claim_one("w").await.journal;
    assert!(journal.entries.is_empty() && journal.input_requests.is_empty());
}

async fn a_task_without_a_ttl_stays(bench: ContractBench) {
    let new = crate::store::NewTask { ttl: None, ..super::bench::task("a") };
    bench.store.create(new).await.expect("a task is made");
    bench.advance(Duration::from_secs(365 * 24 * 3600));
    assert_eq!(sweep(&bench).await, SweepReport::default());
    assert_eq!(bench.view("a").await.ttl, None);
}

async fn who_sweeps_a_part_is_told_that_there_is_more(bench: ContractBench) {
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
