//! What is owed after tasks that were cancelled or have expired, and that it is not lost.

use std::time::Duration;

use serde_json::json;

use super::bench::{
    ContractBench, LEASE, OWNER, RETENTION, TTL, ask, done, entry, promises, recorded, task, worker,
};
use crate::store::{
    CancelOutcome, CleanupState, CreateOutcome, Lease, NewTask, Phase, StoreError, TaskId,
    TaskOutcome, Transition,
};

promises![
    a_parked_task_that_is_cancelled_is_owed_a_clean_up,
    a_task_that_ends_its_run_cancelled_is_owed_a_clean_up,
    what_others_end_is_cleaned_up_after_its_run_is_gone,
    what_others_end_is_cleaned_up_after_when_its_lease_is_over,
    a_task_that_expires_is_owed_a_clean_up,
    what_was_not_begun_or_has_come_to_its_end_owes_nothing,
    a_task_without_a_clean_up_owes_none,
    a_clean_up_whose_worker_is_lost_is_done_by_another,
    a_clean_up_that_is_given_back_is_no_crash,
    whoever_has_lost_a_clean_up_ends_it_for_nobody,
    while_it_is_cleaned_up_after_a_task_stays_as_it_has_ended,
    what_is_owed_a_clean_up_is_not_forgotten,
];

impl ContractBench {
    /// Makes a task with a clean-up that runs from the beginning.
    async fn start_owing(&self, id: &str, by: &str) -> Lease {
        let new = NewTask { worker: Some((worker(by), LEASE)), clean_up: true, ..task(id) };
        match self.store.create(new).await.expect("a task is made") {
            CreateOutcome::Created { lease: Some(lease), .. } => lease,
            other => panic!("a lease was expected: {other:?}"),
        }
    }

    /// Makes one that is parked, and cancels it.
    async fn cancel_parked(&self, id: &str) {
        let lease = self.start_owing(id, "v").await;
        self.park(&lease, ask(&[("k", "n")])).await;
        self.cancel(id, false, CancelOutcome::Cancelled).await;
    }

    async fn cancel(&self, id: &str, at_once: bool, expected: CancelOutcome) {
        let cancelled = self.store.cancel(OWNER, &TaskId::new(id), at_once, RETENTION).await;
        assert_eq!(cancelled.expect("a cancel"), Some(expected));
    }
}

async fn a_parked_task_that_is_cancelled_is_owed_a_clean_up(bench: ContractBench) {
    let lease = bench.start_owing("a", "v").await;
    bench.write(&lease, entry("built", json!("image"))).await;
    bench.park(&lease, ask(&[("k", "n")])).await;
    assert!(bench.claim("w").await.is_empty());
    bench.cancel("a", false, CancelOutcome::Cancelled).await;
    assert_eq!(bench.store.next_due(&[]).await.expect("a look"), Some(Duration::ZERO));
    let claimed = bench.claim_one("w").await;
    assert!(matches!(claimed.ended, Some(TaskOutcome::Cancelled)), "{claimed:?}");
    assert_eq!(claimed.request.get(), task("a").request.get());
    assert_eq!(recorded(&claimed.journal, "built").as_deref(), Some(r#""image""#));
    assert_eq!((claimed.crash_count, claimed.started), (0, true));
    bench.store.finish_cleanup(&claimed.lease, CleanupState::Done).await.expect("it is done");
    bench.advance(LEASE * 2);
    assert!(bench.claim("w").await.is_empty(), "once is enough");
    assert_eq!(bench.store.next_due(&[]).await.expect("a look"), None);
}

async fn a_task_that_ends_its_run_cancelled_is_owed_a_clean_up(bench: ContractBench) {
    let lease = bench.start_owing("a", "v").await;
    bench.cancel("a", false, CancelOutcome::Requested).await;
    assert!(bench.claim("w").await.is_empty(), "it runs");
    bench.end(&lease, TaskOutcome::Cancelled).await;
    let claimed = bench.claim_one("w").await;
    assert!(matches!(claimed.ended, Some(TaskOutcome::Cancelled)));
    assert!(claimed.lease.epoch > lease.epoch);
}

async fn what_others_end_is_cleaned_up_after_its_run_is_gone(bench: ContractBench) {
    let lease = bench.start_owing("a", "v").await;
    bench.cancel("a", true, CancelOutcome::Cancelled).await;
    assert!(bench.claim("w").await.is_empty(), "its run may not have heard of it");
    let held = bench.store.renew(&lease.worker, LEASE).await.expect("a renewal");
    assert_eq!(held, [], "but it is to hear of it");
    let refused = bench.store.finish_cleanup(&lease, CleanupState::Done).await;
    assert_eq!(refused, Err(StoreError::LeaseLost), "nobody has done it");
    bench.store.finish_cleanup(&lease, CleanupState::Due).await.expect("the run is gone");
    let claimed = bench.claim_one("w").await;
    assert!(matches!(claimed.ended, Some(TaskOutcome::Cancelled)));
    let refused = bench.store.finish_cleanup(&lease, CleanupState::Due).await;
    assert_eq!(refused, Err(StoreError::LeaseLost), "somebody is at it");
}

async fn what_others_end_is_cleaned_up_after_when_its_lease_is_over(bench: ContractBench) {
    bench.start_owing("a", "v").await;
    bench.cancel("a", true, CancelOutcome::Cancelled).await;
    bench.advance(LEASE - Duration::from_secs(5));
    assert!(bench.claim("w").await.is_empty());
    bench.advance(Duration::from_secs(6));
    assert!(matches!(bench.claim_one("w").await.ended, Some(TaskOutcome::Cancelled)));
}

async fn a_task_that_expires_is_owed_a_clean_up(bench: ContractBench) {
    // Longer than it may exist without an answer: what is asked has more time.
    let lease = bench.start_owing("a", "v").await;
    bench.park(&lease, entry("k", json!(1))).await;
    bench.advance(TTL + Duration::from_secs(1));
    let swept = bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert_eq!(swept.expired, [(OWNER.to_owned(), TaskId::new("a"))]);
    assert!(matches!(bench.claim_one("w").await.ended, Some(TaskOutcome::Expired)));
}

async fn what_was_not_begun_or_has_come_to_its_end_owes_nothing(bench: ContractBench) {
    bench.store.create(NewTask { clean_up: true, ..task("a") }).await.expect("a task is made");
    bench.cancel("a", false, CancelOutcome::Cancelled).await;
    let lease = bench.start_owing("b", "v").await;
    bench.end(&lease, done()).await;
    bench.advance(LEASE * 2);
    assert!(bench.claim("w").await.is_empty());
    assert_eq!(
        bench.store.finish_cleanup(&lease, CleanupState::Due).await,
        Err(StoreError::LeaseLost)
    );
}

async fn a_task_without_a_clean_up_owes_none(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.cancel("a", true, CancelOutcome::Cancelled).await;
    assert_eq!(
        bench.store.finish_cleanup(&lease, CleanupState::Due).await,
        Err(StoreError::LeaseLost)
    );
    bench.advance(LEASE * 2);
    assert!(bench.claim("w").await.is_empty());
}

async fn a_clean_up_whose_worker_is_lost_is_done_by_another(bench: ContractBench) {
    bench.cancel_parked("a").await;
    let first = bench.claim_one("v").await.lease;
    assert!(bench.claim("w").await.is_empty(), "one at a time");
    bench.advance(LEASE - Duration::from_secs(5));
    let held = bench.store.renew(&first.worker, LEASE).await.expect("a renewal");
    assert_eq!(held, std::slice::from_ref(&first));
    bench.advance(LEASE - Duration::from_secs(5));
    assert!(bench.claim("w").await.is_empty(), "it is still at it");
    bench.advance(Duration::from_secs(6));
    let second = bench.claim_one("w").await;
    assert_eq!(second.crash_count, 1);
    assert_eq!(
        bench.store.finish_cleanup(&first, CleanupState::Done).await,
        Err(StoreError::LeaseLost)
    );
    bench.store.finish_cleanup(&second.lease, CleanupState::Done).await.expect("it is done");
}

async fn a_clean_up_that_is_given_back_is_no_crash(bench: ContractBench) {
    bench.cancel_parked("a").await;
    let lease = bench.claim_one("v").await.lease;
    bench.store.release(&lease.worker).await.expect("a release");
    assert_eq!(bench.view("a").await.phase, Phase::Ended);
    let again = bench.claim_one("w").await;
    assert_eq!(again.crash_count, 0);
    bench.store.finish_cleanup(&again.lease, CleanupState::Due).await.expect("it is given back");
    assert_eq!(bench.claim_one("v").await.crash_count, 0);
}

async fn whoever_has_lost_a_clean_up_ends_it_for_nobody(bench: ContractBench) {
    bench.cancel_parked("a").await;
    let lease = bench.claim_one("v").await.lease;
    for other in [
        Lease { epoch: lease.epoch - 1, ..lease.clone() },
        Lease { worker: worker("w"), ..lease.clone() },
    ] {
        for now in [CleanupState::Due, CleanupState::Done] {
            assert_eq!(bench.store.finish_cleanup(&other, now).await, Err(StoreError::LeaseLost));
        }
    }
    bench.store.finish_cleanup(&lease, CleanupState::Done).await.expect("it is done");
}

async fn while_it_is_cleaned_up_after_a_task_stays_as_it_has_ended(bench: ContractBench) {
    bench.cancel_parked("a").await;
    let ended = bench.view("a").await;
    let lease = bench.claim_one("v").await.lease;
    for then in [
        Transition::Continue,
        Transition::Park { due_at: Some(0), responses_seen: 0 },
        Transition::End { outcome: done(), retention: RETENTION },
    ] {
        let written = bench.store.commit(&lease, &entry("k", json!(1)), &then).await;
        assert_eq!(written, Err(StoreError::LeaseLost));
    }
    assert_eq!(bench.answer("a", &[("n", json!(1))]).await, Some(0));
    bench.cancel("a", true, CancelOutcome::AlreadyEnded).await;
    let census = bench.store.stats().await.expect("a look");
    assert_eq!((census.running, census.queued, census.ended), (0, 0, 1));
    bench.store.finish_cleanup(&lease, CleanupState::Done).await.expect("it is done");
    let now = bench.view("a").await;
    assert!(matches!(now.outcome, Some(TaskOutcome::Cancelled)));
    assert_eq!((now.phase, now.updated_at, now.ttl), (Phase::Ended, ended.updated_at, ended.ttl));
}

async fn what_is_owed_a_clean_up_is_not_forgotten(bench: ContractBench) {
    bench.cancel_parked("a").await;
    bench.advance(RETENTION.max(TTL) * 2);
    let swept = bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert_eq!(swept.purged, 0);
    let lease = bench.claim_one("w").await.lease;
    assert_eq!(bench.store.sweep(100, RETENTION).await.expect("a sweep").purged, 0);
    bench.store.finish_cleanup(&lease, CleanupState::Done).await.expect("it is done");
    assert_eq!(bench.store.sweep(100, RETENTION).await.expect("a sweep").purged, 1);
    assert!(bench.is_gone("a").await);
}
