//! How tasks end, and that they stay so.

use std::time::Duration;

use outlive_wire::ErrorObject;
use serde_json::json;

use super::{Bench, LEASE, OWNER, RETENTION, TTL, ask, done, entry, promises, raw};
use crate::store::{Cancelled, Changes, Phase, StoreError, Swept, TaskId, TaskOutcome, Then};

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

async fn cancel(bench: &Bench, id: &str, at_once: bool) -> Option<Cancelled> {
    let cancelled = bench.store.cancel(OWNER, &TaskId::new(id), at_once, RETENTION).await;
    cancelled.expect("a cancel")
}

async fn sweep(bench: &Bench) -> Swept {
    bench.store.sweep(100, RETENTION).await.expect("a sweep")
}

async fn an_outcome_is_seen_as_it_was_written(bench: Bench) {
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

async fn what_is_written_with_the_outcome_is_there(bench: Bench) {
    let lease = bench.start("a", "v").await;
    let changes = Changes { message: Some("all done".to_owned()), ..entry("k", json!(1)) };
    let then = Then::End { outcome: done(), retention: RETENTION };
    bench.store.write(&lease, &changes, &then).await.expect("a write");
    let view = bench.view("a").await;
    assert_eq!((view.phase, view.message.as_deref()), (Phase::Ended, Some("all done")));
}

async fn what_has_ended_never_changes(bench: Bench) {
    let lease = bench.start("a", "v").await;
    bench.end(&lease, done()).await;
    let ended = bench.view("a").await;
    for then in [
        Then::GoOn,
        Then::Park { due: None, seen: 0 },
        Then::End { outcome: TaskOutcome::Cancelled, retention: LEASE },
    ] {
        assert!(bench.store.write(&lease, &entry("k", json!(1)), &then).await.is_err());
    }
    assert_eq!(cancel(&bench, "a", true).await, Some(Cancelled::Before));
    assert_eq!(bench.answer("a", &[("n", json!(1))]).await, Some(0));
    bench.advance(LEASE * 2);
    assert!(bench.claim("w").await.is_empty());
    bench.store.release(&lease.worker).await.expect("a release");
    sweep(&bench).await;
    let now = bench.view("a").await;
    assert!(matches!(now.outcome, Some(TaskOutcome::Result(_))));
    assert_eq!((now.phase, now.updated), (Phase::Ended, ended.updated));
}

async fn the_end_withdraws_open_questions(bench: Bench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, ask(&[("k", "n")])).await;
    bench.end(&lease, done()).await;
    assert!(bench.view("a").await.questions.is_empty());
}

async fn a_task_without_a_worker_is_cancelled_at_once(bench: Bench) {
    bench.queue("queued").await;
    assert_eq!(cancel(&bench, "queued", false).await, Some(Cancelled::Ended));
    let lease = bench.start("parked", "v").await;
    bench.park(&lease, ask(&[("k", "n")])).await;
    assert_eq!(cancel(&bench, "parked", false).await, Some(Cancelled::Ended));
    for id in ["queued", "parked"] {
        assert!(matches!(bench.view(id).await.outcome, Some(TaskOutcome::Cancelled)));
    }
    assert!(bench.claim("w").await.is_empty());
}

async fn a_running_task_is_asked_to_stop(bench: Bench) {
    let lease = bench.start("a", "v").await;
    assert!(!bench.store.heard(&lease).await.expect("a look").cancel_requested);
    assert_eq!(cancel(&bench, "a", false).await, Some(Cancelled::Requested));
    assert!(bench.store.heard(&lease).await.expect("a look").cancel_requested);
    let view = bench.view("a").await;
    assert!(view.cancel_requested.is_some() && view.outcome.is_none());
    bench.write(&lease, entry("k", json!(1))).await;
    bench.end(&lease, done()).await;
    assert!(matches!(bench.view("a").await.outcome, Some(TaskOutcome::Result(_))), "it was faster");
}

async fn a_running_task_can_be_cancelled_at_once(bench: Bench) {
    let lease = bench.start("a", "v").await;
    assert_eq!(cancel(&bench, "a", true).await, Some(Cancelled::Ended));
    let then = Then::End { outcome: done(), retention: RETENTION };
    assert!(bench.store.write(&lease, &Changes::default(), &then).await.is_err());
    assert_eq!(bench.store.heard(&lease).await.err(), Some(StoreError::Lost));
    assert!(matches!(bench.view("a").await.outcome, Some(TaskOutcome::Cancelled)));
}

async fn cancelling_twice_is_no_second_end(bench: Bench) {
    bench.queue("a").await;
    assert_eq!(cancel(&bench, "a", true).await, Some(Cancelled::Ended));
    let updated = bench.view("a").await.updated;
    assert_eq!(cancel(&bench, "a", true).await, Some(Cancelled::Before));
    assert_eq!(bench.view("a").await.updated, updated);
    assert_eq!(cancel(&bench, "nobody", true).await, None);
}

async fn whoever_takes_over_a_cancelled_task_knows(bench: Bench) {
    bench.start("a", "v").await;
    assert_eq!(cancel(&bench, "a", false).await, Some(Cancelled::Requested));
    bench.advance(LEASE * 2);
    assert!(bench.claim_one("w").await.cancel_requested);
}

async fn no_task_expires_before_its_time(bench: Bench) {
    bench.queue("a").await;
    bench.advance(TTL - Duration::from_secs(5));
    assert_eq!(sweep(&bench).await, Swept::default());
    assert_eq!(bench.view("a").await.phase, Phase::Queued);
}

async fn a_task_expires_when_its_time_is_over(bench: Bench) {
    bench.queue("a").await;
    let lease = bench.start("b", "v").await;
    bench.advance(TTL + Duration::from_secs(1));
    let mut swept = sweep(&bench).await;
    swept.expired.sort();
    let both = ["a", "b"].map(|id| (OWNER.to_owned(), TaskId::new(id)));
    assert_eq!(swept, Swept { expired: both.to_vec(), ..Swept::default() });
    for id in ["a", "b"] {
        assert!(matches!(bench.view(id).await.outcome, Some(TaskOutcome::Expired)));
    }
    assert!(bench.claim("w").await.is_empty());
    assert!(bench.store.write(&lease, &entry("k", json!(1)), &Then::GoOn).await.is_err());
}

async fn a_result_that_came_late_can_still_be_read(bench: Bench) {
    let lease = bench.start("a", "v").await;
    bench.advance(TTL + Duration::from_secs(1));
    // Nobody has swept yet: whoever commits first has won.
    bench.end(&lease, done()).await;
    bench.advance(RETENTION - Duration::from_secs(5));
    assert_eq!(sweep(&bench).await, Swept::default());
    let view = bench.view("a").await;
    assert!(matches!(view.outcome, Some(TaskOutcome::Result(_))));
    let least = (TTL + RETENTION).as_millis() as u64;
    assert!(view.ttl.is_some_and(|ttl| ttl >= least), "and its ttl says so: {view:?}");
}

async fn what_is_over_for_long_enough_is_forgotten_with_all_it_had(bench: Bench) {
    let lease = bench.start("a", "v").await;
    bench.write(&lease, entry("k", json!(1))).await;
    bench.write(&lease, ask(&[("q", "q")])).await;
    bench.end(&lease, done()).await;
    bench.advance(RETENTION.max(TTL) + Duration::from_secs(1));
    assert_eq!(sweep(&bench).await, Swept { purged: 1, ..Swept::default() });
    assert!(bench.is_gone("a").await);
    assert_eq!(bench.answer("a", &[("q", json!(1))]).await, None);
    assert_eq!(cancel(&bench, "a", true).await, None);
    // A new task of the same name has nothing of the old one.
    bench.queue("a").await;
    let journal = bench.claim_one("w").await.journal;
    assert!(journal.entries.is_empty() && journal.asked.is_empty());
}

async fn a_task_without_a_ttl_stays(bench: Bench) {
    let new = crate::store::NewTask { ttl: None, ..super::task("a") };
    bench.store.create(new).await.expect("a task is made");
    bench.advance(Duration::from_secs(365 * 24 * 3600));
    assert_eq!(sweep(&bench).await, Swept::default());
    assert_eq!(bench.view("a").await.ttl, None);
}

async fn who_sweeps_a_part_is_told_that_there_is_more(bench: Bench) {
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
