//! Checks of cleanups after cancelled or expired tasks.

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
    cancelled_parked_task_needs_cleanup,
    run_ending_as_cancelled_needs_cleanup,
    cleanup_of_cancelled_running_task_waits_for_end_of_run,
    cleanup_of_cancelled_running_task_is_due_when_lease_expires,
    expired_task_needs_cleanup,
    task_not_started_or_completed_needs_no_cleanup,
    cancelled_task_without_cleanup_needs_none,
    cleanup_of_lost_worker_is_claimed_by_another,
    released_cleanup_counts_no_crash,
    worker_without_cleanup_lease_cannot_finish_it,
    ended_task_does_not_change_during_cleanup,
    sweep_keeps_task_with_pending_cleanup,
];

impl ContractBench {
    /// Creates a task with a cleanup that a worker runs from its creation.
    async fn start_owing(&self, id: &str, by: &str) -> Lease {
        let new = NewTask { worker: Some((worker(by), LEASE)), clean_up: true, ..task(id) };
        match self.store.create(new).await.expect("create succeeds") {
            CreateOutcome::Created { lease: Some(lease), .. } => lease,
            other => panic!("expected a lease: {other:?}"),
        }
    }

    /// Creates a parked task with a cleanup, and cancels it.
    async fn cancel_parked(&self, id: &str) {
        let lease = self.start_owing(id, "v").await;
        self.park(&lease, ask(&[("k", "n")])).await;
        self.cancel(id, false, CancelOutcome::Cancelled).await;
    }

    async fn cancel(&self, id: &str, at_once: bool, expected: CancelOutcome) {
        let cancelled = self.store.cancel(OWNER, &TaskId::new(id), at_once, RETENTION).await;
        assert_eq!(cancelled.expect("cancel succeeds"), Some(expected));
    }
}

async fn cancelled_parked_task_needs_cleanup(bench: ContractBench) {
    let lease = bench.start_owing("a", "v").await;
    bench.write(&lease, entry("built", json!("image"))).await;
    bench.park(&lease, ask(&[("k", "n")])).await;
    assert!(bench.claim("w").await.is_empty());
    bench.cancel("a", false, CancelOutcome::Cancelled).await;
    assert_eq!(bench.store.next_due(&[]).await.expect("read succeeds"), Some(Duration::ZERO));
    let claimed = bench.claim_one("w").await;
    assert!(matches!(claimed.ended, Some(TaskOutcome::Cancelled)), "{claimed:?}");
    assert_eq!(claimed.request.get(), task("a").request.get());
    assert_eq!(recorded(&claimed.journal, "built").as_deref(), Some(r#""image""#));
    assert_eq!((claimed.crash_count, claimed.started), (0, true));
    bench
        .store
        .finish_cleanup(&claimed.lease, CleanupState::Done)
        .await
        .expect("finish_cleanup succeeds");
    bench.advance(LEASE * 2);
    assert!(bench.claim("w").await.is_empty(), "the cleanup runs once");
    assert_eq!(bench.store.next_due(&[]).await.expect("read succeeds"), None);
}

async fn run_ending_as_cancelled_needs_cleanup(bench: ContractBench) {
    let lease = bench.start_owing("a", "v").await;
    bench.cancel("a", false, CancelOutcome::Requested).await;
    assert!(bench.claim("w").await.is_empty(), "the run has not ended");
    bench.end(&lease, TaskOutcome::Cancelled).await;
    let claimed = bench.claim_one("w").await;
    assert!(matches!(claimed.ended, Some(TaskOutcome::Cancelled)));
    assert!(claimed.lease.epoch > lease.epoch);
}

async fn cleanup_of_cancelled_running_task_waits_for_end_of_run(bench: ContractBench) {
    let lease = bench.start_owing("a", "v").await;
    bench.cancel("a", true, CancelOutcome::Cancelled).await;
    assert!(bench.claim("w").await.is_empty(), "the run may not know about the cancellation");
    let held = bench.store.renew(&lease.worker, LEASE).await.expect("renewal succeeds");
    assert_eq!(held, [], "the lease is lost, so the worker stops the run");
    let refused = bench.store.finish_cleanup(&lease, CleanupState::Done).await;
    assert_eq!(refused, Err(StoreError::LeaseLost), "the cleanup has not run");
    bench.store.finish_cleanup(&lease, CleanupState::Due).await.expect("finish_cleanup succeeds");
    let claimed = bench.claim_one("w").await;
    assert!(matches!(claimed.ended, Some(TaskOutcome::Cancelled)));
    let refused = bench.store.finish_cleanup(&lease, CleanupState::Due).await;
    assert_eq!(refused, Err(StoreError::LeaseLost), "another worker has the cleanup");
}

async fn cleanup_of_cancelled_running_task_is_due_when_lease_expires(bench: ContractBench) {
    bench.start_owing("a", "v").await;
    bench.cancel("a", true, CancelOutcome::Cancelled).await;
    bench.advance(LEASE - Duration::from_secs(5));
    assert!(bench.claim("w").await.is_empty());
    bench.advance(Duration::from_secs(6));
    assert!(matches!(bench.claim_one("w").await.ended, Some(TaskOutcome::Cancelled)));
}

async fn expired_task_needs_cleanup(bench: ContractBench) {
    // Without an open input request, because that would extend the TTL.
    let lease = bench.start_owing("a", "v").await;
    bench.park(&lease, entry("k", json!(1))).await;
    bench.advance(TTL + Duration::from_secs(1));
    let swept = bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert_eq!(swept.expired, [(OWNER.to_owned(), TaskId::new("a"))]);
    assert!(matches!(bench.claim_one("w").await.ended, Some(TaskOutcome::Expired)));
}

async fn task_not_started_or_completed_needs_no_cleanup(bench: ContractBench) {
    bench.store.create(NewTask { clean_up: true, ..task("a") }).await.expect("create succeeds");
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

async fn cancelled_task_without_cleanup_needs_none(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.cancel("a", true, CancelOutcome::Cancelled).await;
    assert_eq!(
        bench.store.finish_cleanup(&lease, CleanupState::Due).await,
        Err(StoreError::LeaseLost)
    );
    bench.advance(LEASE * 2);
    assert!(bench.claim("w").await.is_empty());
}

async fn cleanup_of_lost_worker_is_claimed_by_another(bench: ContractBench) {
    bench.cancel_parked("a").await;
    let first = bench.claim_one("v").await.lease;
    assert!(bench.claim("w").await.is_empty(), "one worker at a time");
    bench.advance(LEASE - Duration::from_secs(5));
    let held = bench.store.renew(&first.worker, LEASE).await.expect("renewal succeeds");
    assert_eq!(held, std::slice::from_ref(&first));
    bench.advance(LEASE - Duration::from_secs(5));
    assert!(bench.claim("w").await.is_empty(), "the renewed lease is valid");
    bench.advance(Duration::from_secs(6));
    let second = bench.claim_one("w").await;
    assert_eq!(second.crash_count, 1);
    assert_eq!(
        bench.store.finish_cleanup(&first, CleanupState::Done).await,
        Err(StoreError::LeaseLost)
    );
    bench
        .store
        .finish_cleanup(&second.lease, CleanupState::Done)
        .await
        .expect("finish_cleanup succeeds");
}

async fn released_cleanup_counts_no_crash(bench: ContractBench) {
    bench.cancel_parked("a").await;
    let lease = bench.claim_one("v").await.lease;
    bench.store.release(&lease.worker).await.expect("release succeeds");
    assert_eq!(bench.view("a").await.phase, Phase::Ended);
    let again = bench.claim_one("w").await;
    assert_eq!(again.crash_count, 0);
    bench
        .store
        .finish_cleanup(&again.lease, CleanupState::Due)
        .await
        .expect("finish_cleanup succeeds");
    assert_eq!(bench.claim_one("v").await.crash_count, 0);
}

async fn worker_without_cleanup_lease_cannot_finish_it(bench: ContractBench) {
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
    bench.store.finish_cleanup(&lease, CleanupState::Done).await.expect("finish_cleanup succeeds");
}

async fn ended_task_does_not_change_during_cleanup(bench: ContractBench) {
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
    let census = bench.store.stats().await.expect("read succeeds");
    assert_eq!((census.running, census.queued, census.ended), (0, 0, 1));
    bench.store.finish_cleanup(&lease, CleanupState::Done).await.expect("finish_cleanup succeeds");
    let now = bench.view("a").await;
    assert!(matches!(now.outcome, Some(TaskOutcome::Cancelled)));
    assert_eq!((now.phase, now.updated_at, now.ttl), (Phase::Ended, ended.updated_at, ended.ttl));
}

async fn sweep_keeps_task_with_pending_cleanup(bench: ContractBench) {
    bench.cancel_parked("a").await;
    bench.advance(RETENTION.max(TTL) * 2);
    let swept = bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert_eq!(swept.purged, 0);
    let lease = bench.claim_one("w").await.lease;
    assert_eq!(bench.store.sweep(100, RETENTION).await.expect("sweep succeeds").purged, 0);
    bench.store.finish_cleanup(&lease, CleanupState::Done).await.expect("finish_cleanup succeeds");
    assert_eq!(bench.store.sweep(100, RETENTION).await.expect("sweep succeeds").purged, 1);
    assert!(bench.is_gone("a").await);
}
