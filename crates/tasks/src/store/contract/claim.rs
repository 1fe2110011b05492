//! Who runs a task, and who does not any more.

use std::time::Duration;

use serde_json::json;

use super::bench::{ContractBench, LEASE, done, entry, promises, task, worker};
use crate::store::{Changes, Claim, NewTask, Phase, StoreError, TaskId, Transition};

promises![
    who_claims_knows_whether_a_worker_was_lost,
    what_is_queued_is_claimed_once,
    a_claim_takes_no_more_than_asked_for,
    what_runs_is_not_claimed_while_its_lease_lasts,
    a_renewed_lease_lasts,
    a_worker_that_does_not_renew_loses_its_tasks,
    a_former_owner_writes_nothing,
    the_same_worker_with_an_older_epoch_writes_nothing,
    a_released_task_goes_on_elsewhere_at_once_and_that_is_no_crash,
    crashes_are_counted_until_something_is_recorded,
    what_will_be_due_is_known,
    a_principal_at_its_limit_is_passed_over,
    a_claim_takes_no_more_of_a_principal_than_there_is_room_for,
    a_task_that_is_wanted_is_claimed_before_it_is_due,
];

async fn queue_of(bench: &ContractBench, principal: &str, id: &str) {
    let new = NewTask { principal: principal.to_owned(), ..task(id) };
    assert!(bench.store.create(new).await.expect("a task is made").is_new());
}

/// What a claim brings, in order.
async fn brought(bench: &ContractBench, claim: &Claim) -> Vec<String> {
    let claimed = bench.store.claim(&worker("w"), LEASE, claim).await.expect("a claim");
    claimed.iter().map(|claimed| claimed.lease.task.as_str().to_owned()).collect()
}

async fn a_principal_at_its_limit_is_passed_over(bench: ContractBench) {
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
    let next = bench.store.next_due(&full).await.expect("a time").expect("bob's lease ends");
    assert!(next > LEASE / 2, "{next:?}");
    assert_eq!(bench.store.next_due(&[]).await, Ok(Some(Duration::ZERO)));
}

async fn a_claim_takes_no_more_of_a_principal_than_there_is_room_for(bench: ContractBench) {
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

async fn a_task_that_is_wanted_is_claimed_before_it_is_due(bench: ContractBench) {
    let lease = bench.start("parked", "v").await;
    bench.park(&lease, super::bench::ask(&[("k", "n")])).await;
    let runs = bench.start("runs", "v").await;
    let ended = bench.start("ended", "v").await;
    bench.end(&ended, done()).await;
    bench.queue("due").await;
    let mut claim = Claim::new(0);
    let wanted = ["parked", "runs", "ended", "nobody's"];
    claim.wanted = wanted.into_iter().map(TaskId::new).collect();
    let claimed = bench.store.claim(&worker("w"), LEASE, &claim).await.expect("a claim");
    assert_eq!(claimed.len(), 1, "what runs, has ended or is not there is left alone");
    assert_eq!(claimed[0].lease.task.as_str(), "parked");
    assert!(claimed[0].started && !claimed[0].lost && claimed[0].crash_count == 0);
    bench.write(&runs, Changes::default()).await;
    claim.limit = 5;
    claim.wanted = vec![TaskId::new("due")];
    assert_eq!(brought(&bench, &claim).await, ["due"], "once, though it is due as well");
}

async fn what_is_queued_is_claimed_once(bench: ContractBench) {
    for id in ["a", "b", "c"] {
        bench.queue(id).await;
    }
    let (first, second) = (worker("v"), worker("w"));
    let (mine, yours) = (
        bench.store.claim(&first, LEASE, &100_usize.into()).await.expect("a claim"),
        bench.store.claim(&second, LEASE, &100_usize.into()).await.expect("a claim"),
    );
    assert_eq!(mine.len() + yours.len(), 3, "each task goes to one of the two");
    assert!(mine.iter().all(|claimed| !claimed.started && claimed.crash_count == 0));
    assert!(bench.claim("x").await.is_empty());
}

async fn a_claim_takes_no_more_than_asked_for(bench: ContractBench) {
    for id in ["a", "b", "c"] {
        bench.queue(id).await;
    }
    assert_eq!(
        bench.store.claim(&worker("w"), LEASE, &2_usize.into()).await.expect("a claim").len(),
        2
    );
    assert_eq!(bench.claim("w").await.len(), 1);
}

async fn what_runs_is_not_claimed_while_its_lease_lasts(bench: ContractBench) {
    bench.start("a", "v").await;
    bench.advance(LEASE - Duration::from_secs(5));
    assert!(bench.claim("w").await.is_empty());
}

async fn a_renewed_lease_lasts(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    for _ in 0..5 {
        bench.advance(LEASE / 2);
        let held = bench.store.renew(&worker("v"), LEASE).await.expect("a renewal");
        assert_eq!(held, std::slice::from_ref(&lease));
        assert!(bench.claim("w").await.is_empty());
    }
    bench.write(&lease, entry("k", json!(1))).await;
}

async fn a_worker_that_does_not_renew_loses_its_tasks(bench: ContractBench) {
    let lease = bench.start("a", "v").await;
    bench.advance(LEASE + Duration::from_secs(1));
    let claimed = bench.claim_one("w").await;
    assert!(claimed.lease.epoch > lease.epoch);
    assert!(claimed.started);
    assert_eq!(bench.store.renew(&worker("v"), LEASE).await, Ok(Vec::new()), "it holds nothing");
}

async fn a_former_owner_writes_nothing(bench: ContractBench) {
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

async fn the_same_worker_with_an_older_epoch_writes_nothing(bench: ContractBench) {
    let old = bench.start("a", "v").await;
    bench.advance(LEASE + Duration::from_secs(1));
    let new = bench.claim_one("v").await;
    let written = bench.store.commit(&old, &entry("k", json!(1)), &Transition::Continue).await;
    assert_eq!(written, Err(StoreError::LeaseLost));
    bench.write(&new.lease, entry("k", json!(2))).await;
}

async fn a_released_task_goes_on_elsewhere_at_once_and_that_is_no_crash(bench: ContractBench) {
    let old = bench.start("a", "v").await;
    bench.store.release(&worker("v")).await.expect("a release");
    let claimed = bench.claim_one("w").await;
    assert_eq!(claimed.crash_count, 0);
    assert!(claimed.started);
    let written = bench.store.commit(&old, &entry("k", json!(1)), &Transition::Continue).await;
    assert_eq!(written, Err(StoreError::LeaseLost));
}

async fn crashes_are_counted_until_something_is_recorded(bench: ContractBench) {
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
    assert_eq!(bench.claim_one("w").await.crash_count, 1, "counted anew");
}

async fn what_will_be_due_is_known(bench: ContractBench) {
    assert_eq!(bench.store.next_due(&[]).await, Ok(None));
    let lease = bench.start("a", "v").await;
    let due = bench.store.next_due(&[]).await.expect("a time").expect("the lease ends");
    assert!(due <= LEASE && due > LEASE - Duration::from_secs(10), "{due:?}");
    bench.queue("b").await;
    assert_eq!(bench.store.next_due(&[]).await, Ok(Some(Duration::ZERO)));
    let claimed = bench.claim_one("v").await;
    bench.end(&claimed.lease, done()).await;
    bench.park(&lease, super::bench::ask(&[("k", "n")])).await;
    assert_eq!(bench.store.next_due(&[]).await, Ok(None), "parked without a time, and over");
}

async fn who_claims_knows_whether_a_worker_was_lost(bench: ContractBench) {
    bench.queue("a").await;
    let first = bench.claim_one("v").await;
    assert!(!first.lost);
    bench.store.release(&first.lease.worker).await.expect("a release");
    let second = bench.claim_one("w").await;
    assert!(!second.lost, "it was given back");
    bench.advance(LEASE * 2);
    let third = bench.claim_one("v").await;
    assert!(third.lost);
    let then = Transition::Park { due_at: Some(0), responses_seen: 0 };
    bench.store.commit(&third.lease, &Changes::default(), &then).await.expect("a write");
    let fourth = bench.claim_one("w").await;
    assert_eq!((fourth.lost, fourth.crash_count), (false, 1), "that was before");
}
