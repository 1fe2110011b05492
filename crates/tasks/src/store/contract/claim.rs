//! Checks of claims, leases and releases.

use std::time::Duration;

use serde_json::json;

use super::bench::{ContractBench, LEASE, done, entry, promises, task, worker};
use crate::store::{Changes, Claim, NewTask, Phase, StoreError, TaskId, Transition};

promises![
    claimed_task_reports_lost_worker,
    queued_task_is_claimed_by_one_worker,
    claim_returns_at_most_its_limit,
    running_task_is_not_claimed_during_its_lease,
    renewed_lease_stays_valid,
    worker_without_renewal_loses_its_tasks,
    former_worker_cannot_commit,
    same_worker_with_older_epoch_cannot_commit,
    released_task_is_claimable_without_counting_a_crash,
    crash_count_grows_until_an_entry_is_recorded,
    next_due_returns_time_of_next_due_task,
    claim_skips_principal_at_its_limit,
    claim_respects_limit_per_principal,
    wanted_task_is_claimed_before_it_is_due,
];

async fn queue_of(bench: &ContractBench, principal: &str, id: &str) {
    let new = NewTask { principal: principal.to_owned(), ..task(id) };
    assert!(bench.store.create(new).await.expect("create succeeds").is_new());
}

/// Returns the IDs of the claimed tasks, in order.
async fn brought(bench: &ContractBench, claim: &Claim) -> Vec<String> {
    let claimed = bench.store.claim(&worker("w"), LEASE, claim).await.expect("claim succeeds");
    claimed.iter().map(|claimed| claimed.lease.task.as_str().to_owned()).collect()
}

async fn claim_skips_principal_at_its_limit(bench: ContractBench) {
    for number in 0..20 {
        queue_of(&bench, "ann \"'ü", &format!("ann {number}")).await;
    }
    bench.advance(Duration::from_millis(10));
    queue_of(&bench, "bob", "bob").await;
    let mut claim = Claim::new(5);
    claim.max_per_principal = 3;
    claim.running.insert("ann \"'ü".to_owned(), 3);
    let full = claim.full();
    assert_eq!(bench.store.next_due(&full).await, Ok(Some(Duration::ZERO)));
    assert_eq!(brought(&bench, &claim).await, ["bob"]);
    let next =
        bench.store.next_due(&full).await.expect("next_due succeeds").expect("a task is due later");
    assert!(next > LEASE / 2, "{next:?}");
    assert_eq!(bench.store.next_due(&[]).await, Ok(Some(Duration::ZERO)));
}

async fn claim_respects_limit_per_principal(bench: ContractBench) {
    for number in 0..5 {
        queue_of(&bench, "ann", &format!("ann {number}")).await;
    }
    bench.advance(Duration::from_millis(10));
    for id in ["bob 1", "bob 2", "bob 3"] {
        queue_of(&bench, "bob", id).await;
    }
    let mut claim = Claim::new(100);
    claim.max_per_principal = 2;
    claim.running.insert("ann".to_owned(), 1);
    let brought = brought(&bench, &claim).await;
    let of = |name: &str| brought.iter().filter(|id| id.starts_with(name)).count();
    assert_eq!((of("ann"), of("bob")), (1, 2), "{brought:?}");
}

async fn wanted_task_is_claimed_before_it_is_due(bench: ContractBench) {
    let lease = bench.start("parked", "v").await;
    bench.park(&lease, super::bench::ask(&[("k", "n")])).await;
    let runs = bench.start("runs", "v").await;
    let ended = bench.start("ended", "v").await;
    bench.end(&ended, done()).await;
    bench.queue("due").await;
    let mut claim = Claim::new(0);
    let wanted = ["parked", "runs", "ended", "nobody's"];
    claim.wanted = wanted.into_iter().map(TaskId::new).collect();
    let claimed = bench.store.claim(&worker("w"), LEASE, &claim).await.expect("claim succeeds");
    assert_eq!(claimed.len(), 1, "running, ended and unknown tasks are not claimed");
    assert_eq!(claimed[0].lease.task.as_str(), "parked");
    assert!(claimed[0].started && !claimed[0].lost && claimed[0].crash_count == 0);
    bench.write(&runs, Changes::default()).await;
    claim.limit = 5;
    claim.wanted = vec![TaskId::new("due")];
    assert_eq!(
        brought(&bench, &claim).await,
        ["due"],
        "a wanted task that is also due is claimed once"
    );
}

async fn queued_task_is_claimed_by_one_worker(bench: ContractBench) {
    for id in ["a", "b", "c"] {
        bench.queue(id).await;
    }
    let (first, second) = (worker("v"), worker("w"));
    let (mine, yours) = (
        bench.store.claim(&first, LEASE, &100_usize.into()).await.expect("claim succeeds"),
        bench.store.claim(&second, LEASE, &100_usize.into()).await.expect("claim succeeds"),
    );
    assert_eq!(mine.len() + yours.len(), 3, "each task goes to one of the two workers");
    assert!(mine.iter().all(|claimed| !claimed.started && claimed.crash_count == 0));
    assert!(bench.claim("x").await.is_empty());
}

async fn claim_returns_at_most_its_limit(bench: ContractBench) {
    for id in ["a", "b", "c"] {
        bench.queue(id).await;
    }
    assert_eq!(
        bench
            .store
            .claim(&worker("w"), LEASE, &2_usize.into())
            .await
            .expect("claim succeeds")
            .len(),
        2
    );
    assert_eq!(bench.claim("w").await.len(), 1);
}

async fn running_task_is_not_claimed_during_its_lease(bench: ContractBench) {
    bench.start("a", "v").await;
    bench.advance(LEASE - Duration::from_secs(5));
    assert!(bench.claim("w").await.is_empty());
}

async fn renewed_lease_stays_valid(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    for _ in 0..5 {
        bench.advance(LEASE / 2);
        let held = bench.store.renew(&worker("v"), LEASE).await.expect("renewal succeeds");
        assert_eq!(held, std::slice::from_ref(&lease));
        assert!(bench.claim("w").await.is_empty());
    }
    bench.write(&lease, entry("k", json!(1))).await;
}

async fn worker_without_renewal_loses_its_tasks(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.advance(LEASE + Duration::from_secs(1));
    let claimed = bench.claim_one("w").await;
    assert!(claimed.lease.epoch > lease.epoch);
    assert!(claimed.started);
    assert_eq!(
        bench.store.renew(&worker("v"), LEASE).await,
        Ok(Vec::new()),
        "the worker has no lease"
    );
}

async fn former_worker_cannot_commit(bench: ContractBench) {
    let old = bench.start("a", "v").await;
    bench.write(&old, entry("before", json!(1))).await;
    bench.advance(LEASE + Duration::from_secs(1));
    let new = bench.claim_one("w").await;
    for then in [
        Transition::Continue,
        Transition::Park { due_at: None, responses_seen: 0 },
        Transition::End { outcome: done(), retention: LEASE },
    ] {
        let written = bench.store.commit(&old, &entry("after", json!(2)), &then).await;
        assert_eq!(written, Err(StoreError::LeaseLost));
    }
    assert_eq!(bench.store.inbox(&old).await.err(), Some(StoreError::LeaseLost));
    bench.write(&new.lease, Changes::default()).await;
    assert_eq!(bench.view("a").await.phase, Phase::Running);
    bench.advance(LEASE + Duration::from_secs(1));
    let journal = bench.claim_one("x").await.journal;
    assert!(journal.entries.contains_key("before") && !journal.entries.contains_key("after"));
}

async fn same_worker_with_older_epoch_cannot_commit(bench: ContractBench) {
    let old = bench.start("a", "v").await;
    bench.advance(LEASE + Duration::from_secs(1));
    let new = bench.claim_one("v").await;
    let written = bench.store.commit(&old, &entry("k", json!(1)), &Transition::Continue).await;
    assert_eq!(written, Err(StoreError::LeaseLost));
    bench.write(&new.lease, entry("k", json!(2))).await;
}

async fn released_task_is_claimable_without_counting_a_crash(bench: ContractBench) {
    let old = bench.start("a", "v").await;
    bench.store.release(&worker("v")).await.expect("release succeeds");
    let claimed = bench.claim_one("w").await;
    assert_eq!(claimed.crash_count, 0);
    assert!(claimed.started);
    let written = bench.store.commit(&old, &entry("k", json!(1)), &Transition::Continue).await;
    assert_eq!(written, Err(StoreError::LeaseLost));
}

async fn crash_count_grows_until_an_entry_is_recorded(bench: ContractBench) {
    bench.queue("a").await;
    let mut lease = bench.claim_one("w").await.lease;
    for crashes in 1..=3 {
        bench.advance(LEASE + Duration::from_secs(1));
        let claimed = bench.claim_one("w").await;
        assert_eq!(claimed.crash_count, crashes);
        lease = claimed.lease;
    }
    bench.write(&lease, entry("k", json!(1))).await;
    bench.advance(LEASE + Duration::from_secs(1));
    assert_eq!(bench.claim_one("w").await.crash_count, 1, "the count starts again");
}

async fn next_due_returns_time_of_next_due_task(bench: ContractBench) {
    assert_eq!(bench.store.next_due(&[]).await, Ok(None));
    let lease = bench.start("a", "v").await;
    let due =
        bench.store.next_due(&[]).await.expect("next_due succeeds").expect("a task is due later");
    assert!(due <= LEASE && due > LEASE - Duration::from_secs(10), "{due:?}");
    bench.queue("b").await;
    assert_eq!(bench.store.next_due(&[]).await, Ok(Some(Duration::ZERO)));
    let claimed = bench.claim_one("v").await;
    bench.end(&claimed.lease, done()).await;
    bench.park(&lease, super::bench::ask(&[("k", "n")])).await;
    assert_eq!(
        bench.store.next_due(&[]).await,
        Ok(None),
        "a task parked without a timer and an ended task are not due"
    );
}

async fn claimed_task_reports_lost_worker(bench: ContractBench) {
    bench.queue("a").await;
    let first = bench.claim_one("v").await;
    assert!(!first.lost);
    bench.store.release(&first.lease.worker).await.expect("release succeeds");
    let second = bench.claim_one("w").await;
    assert!(!second.lost, "the task was released");
    bench.advance(LEASE * 2);
    let third = bench.claim_one("v").await;
    assert!(third.lost);
    let then = Transition::Park { due_at: Some(0), responses_seen: 0 };
    bench.store.commit(&third.lease, &Changes::default(), &then).await.expect("commit succeeds");
    let fourth = bench.claim_one("w").await;
    assert_eq!(
        (fourth.lost, fourth.crash_count),
        (false, 1),
        "the crash happened before the parking"
    );
}
