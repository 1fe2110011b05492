//! What is owed after tasks that were cancelled or have expired, and that it is not lost.

use std::time::Duration;

use serde_json::json;

use super::{
    Bench, LEASE, OWNER, RETENTION, TTL, ask, done, entry, promises, recorded, task, worker,
};
use crate::store::{
    Cancelled, Cleaning, Created, Lease, NewTask, Phase, StoreError, TaskId, TaskOutcome, Then,
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

impl Bench {
    /// Makes a task with a clean-up that runs from the beginning.
    async fn start_owing(&self, id: &str, by: &str) -> Lease {
        let new = NewTask { worker: Some((worker(by), LEASE)), clean_up: true, ..task(id) };
        match self.store.create(new).await.expect("a task is made") {
            Created::New { lease: Some(lease), .. } => lease,
            other => panic!("a lease was expected: {other:?}"),
        }
    }

    /// Makes one that is parked, and cancels it.
    async fn cancel_parked(&self, id: &str) {
        let lease = self.start_owing(id, "v").await;
        self.park(&lease, ask(&[("k", "n")])).await;
        self.cancel(id, false, Cancelled::Ended).await;
    }

    async fn cancel(&self, id: &str, at_once: bool, expected: Cancelled) {
        let cancelled = self.store.cancel(OWNER, &TaskId::new(id), at_once, RETENTION).await;
        assert_eq!(cancelled.expect("a cancel"), Some(expected));
    }
}

async fn a_parked_task_that_is_cancelled_is_owed_a_clean_up(bench: Bench) {
    let lease = bench.start_owing("a", "v").await;
    bench.write(&lease, entry("built", json!("image"))).await;
    bench.park(&lease, ask(&[("k", "n")])).await;
    assert!(bench.claim("w").await.is_empty());
    bench.cancel("a", false, Cancelled::Ended).await;
    assert_eq!(bench.store.next_due(&[]).await.expect("a look"), Some(Duration::ZERO));
    let claimed = bench.claim_one("w").await;
    assert!(matches!(claimed.ended, Some(TaskOutcome::Cancelled)), "{claimed:?}");
    assert_eq!(claimed.request.get(), task("a").request.get());
    assert_eq!(recorded(&claimed.journal, "built").as_deref(), Some(r#""image""#));
    assert_eq!((claimed.crashes, claimed.begun), (0, true));
    bench.store.clean_up(&claimed.lease, Cleaning::Done).await.expect("it is done");
    bench.advance(LEASE * 2);
    assert!(bench.claim("w").await.is_empty(), "once is enough");
    assert_eq!(bench.store.next_due(&[]).await.expect("a look"), None);
}

async fn a_task_that_ends_its_run_cancelled_is_owed_a_clean_up(bench: Bench) {
    let lease = bench.start_owing("a", "v").await;
    bench.cancel("a", false, Cancelled::Requested).await;
    assert!(bench.claim("w").await.is_empty(), "it runs");
    bench.end(&lease, TaskOutcome::Cancelled).await;
    let claimed = bench.claim_one("w").await;
    assert!(matches!(claimed.ended, Some(TaskOutcome::Cancelled)));
    assert!(claimed.lease.epoch > lease.epoch);
}

async fn what_others_end_is_cleaned_up_after_its_run_is_gone(bench: Bench) {
    let lease = bench.start_owing("a", "v").await;
    bench.cancel("a", true, Cancelled::Ended).await;
    assert!(bench.claim("w").await.is_empty(), "its run may not have heard of it");
    let held = bench.store.renew(&lease.worker, LEASE).await.expect("a renewal");
    assert_eq!(held, [], "but it is to hear of it");
    let refused = bench.store.clean_up(&lease, Cleaning::Done).await;
    assert_eq!(refused, Err(StoreError::Lost), "nobody has done it");
    bench.store.clean_up(&lease, Cleaning::Due).await.expect("the run is gone");
    let claimed = bench.claim_one("w").await;
    assert!(matches!(claimed.ended, Some(TaskOutcome::Cancelled)));
    let refused = bench.store.clean_up(&lease, Cleaning::Due).await;
    assert_eq!(refused, Err(StoreError::Lost), "somebody is at it");
}

async fn what_others_end_is_cleaned_up_after_when_its_lease_is_over(bench: Bench) {
    bench.start_owing("a", "v").await;
    bench.cancel("a", true, Cancelled::Ended).await;
    bench.advance(LEASE - Duration::from_secs(5));
    assert!(bench.claim("w").await.is_empty());
    bench.advance(Duration::from_secs(6));
    assert!(matches!(bench.claim_one("w").await.ended, Some(TaskOutcome::Cancelled)));
}

async fn a_task_that_expires_is_owed_a_clean_up(bench: Bench) {
    // Longer than it may exist without an answer: what is asked has more time.
    let lease = bench.start_owing("a", "v").await;
    bench.park(&lease, entry("k", json!(1))).await;
    bench.advance(TTL + Duration::from_secs(1));
    let swept = bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert_eq!(swept.expired, [(OWNER.to_owned(), TaskId::new("a"))]);
    assert!(matches!(bench.claim_one("w").await.ended, Some(TaskOutcome::Expired)));
}

async fn what_was_not_begun_or_has_come_to_its_end_owes_nothing(bench: Bench) {
    bench.store.create(NewTask { clean_up: true, ..task("a") }).await.expect("a task is made");
    bench.cancel("a", false, Cancelled::Ended).await;
    let lease = bench.start_owing("b", "v").await;
    bench.end(&lease, done()).await;
    bench.advance(LEASE * 2);
    assert!(bench.claim("w").await.is_empty());
    assert_eq!(bench.store.clean_up(&lease, Cleaning::Due).await, Err(StoreError::Lost));
}

async fn a_task_without_a_clean_up_owes_none(bench: Bench) {
    let lease = bench.start("a", "v").await;
    bench.cancel("a", true, Cancelled::Ended).await;
    assert_eq!(bench.store.clean_up(&lease, Cleaning::Due).await, Err(StoreError::Lost));
    bench.advance(LEASE * 2);
    assert!(bench.claim("w").await.is_empty());
}

async fn a_clean_up_whose_worker_is_lost_is_done_by_another(bench: Bench) {
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
    assert_eq!(second.crashes, 1);
    assert_eq!(bench.store.clean_up(&first, Cleaning::Done).await, Err(StoreError::Lost));
    bench.store.clean_up(&second.lease, Cleaning::Done).await.expect("it is done");
}

async fn a_clean_up_that_is_given_back_is_no_crash(bench: Bench) {
    bench.cancel_parked("a").await;
    let lease = bench.claim_one("v").await.lease;
    bench.store.release(&lease.worker).await.expect("a release");
    assert_eq!(bench.view("a").await.phase, Phase::Ended);
    let again = bench.claim_one("w").await;
    assert_eq!(again.crashes, 0);
    bench.store.clean_up(&again.lease, Cleaning::Due).await.expect("it is given back");
    assert_eq!(bench.claim_one("v").await.crashes, 0);
}

async fn whoever_has_lost_a_clean_up_ends_it_for_nobody(bench: Bench) {
    bench.cancel_parked("a").await;
    let lease = bench.claim_one("v").await.lease;
    for other in [
        Lease { epoch: lease.epoch - 1, ..lease.clone() },
        Lease { worker: worker("w"), ..lease.clone() },
    ] {
        for now in [Cleaning::Due, Cleaning::Done] {
            assert_eq!(bench.store.clean_up(&other, now).await, Err(StoreError::Lost));
        }
    }
    bench.store.clean_up(&lease, Cleaning::Done).await.expect("it is done");
}

async fn while_it_is_cleaned_up_after_a_task_stays_as_it_has_ended(bench: Bench) {
    bench.cancel_parked("a").await;
    let ended = bench.view("a").await;
    let lease = bench.claim_one("v").await.lease;
    for then in [
        Then::GoOn,
        Then::Park { due: Some(0), seen: 0 },
        Then::End { outcome: done(), retention: RETENTION },
    ] {
        let written = bench.store.write(&lease, &entry("k", json!(1)), &then).await;
        assert_eq!(written, Err(StoreError::Lost));
    }
    assert_eq!(bench.answer("a", &[("n", json!(1))]).await, Some(0));
    bench.cancel("a", true, Cancelled::Before).await;
    let census = bench.store.census().await.expect("a look");
    assert_eq!((census.running, census.queued, census.ended), (0, 0, 1));
    bench.store.clean_up(&lease, Cleaning::Done).await.expect("it is done");
    let now = bench.view("a").await;
    assert!(matches!(now.outcome, Some(TaskOutcome::Cancelled)));
    assert_eq!((now.phase, now.updated, now.ttl), (Phase::Ended, ended.updated, ended.ttl));
}

async fn what_is_owed_a_clean_up_is_not_forgotten(bench: Bench) {
    bench.cancel_parked("a").await;
    bench.advance(RETENTION.max(TTL) * 2);
    let swept = bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert_eq!(swept.purged, 0);
    let lease = bench.claim_one("w").await.lease;
    assert_eq!(bench.store.sweep(100, RETENTION).await.expect("a sweep").purged, 0);
    bench.store.clean_up(&lease, Cleaning::Done).await.expect("it is done");
    assert_eq!(bench.store.sweep(100, RETENTION).await.expect("a sweep").purged, 1);
    assert!(bench.is_gone("a").await);
}
