//! Checks of the numbers of tasks and of the age of due tasks.

use std::time::Duration;

use serde_json::json;

use super::bench::{ContractBench, LEASE, OWNER, RETENTION, TTL, ask, done, promises, worker};
use crate::store::{Changes, StoreStats, TaskId, Transition};

promises![
    stats_of_empty_store_are_zero,
    stats_count_tasks_by_phase,
    stats_follow_task_through_all_phases,
    stats_report_age_of_oldest_due_task,
];

impl ContractBench {
    async fn census(&self) -> StoreStats {
        self.store.stats().await.expect("stats succeed")
    }

    /// Returns the numbers of queued, running, parked and ended tasks.
    async fn counts(&self) -> [u64; 4] {
        let StoreStats { queued, running, parked, ended, .. } = self.census().await;
        [queued, running, parked, ended]
    }
}

async fn stats_of_empty_store_are_zero(bench: ContractBench) {
    assert_eq!(bench.census().await, StoreStats::default());
}

async fn stats_count_tasks_by_phase(bench: ContractBench) {
    for id in ["a", "b", "c"] {
        bench.queue(id).await;
    }
    for id in ["d", "e"] {
        bench.start(id, "v").await;
    }
    let lease = bench.start("f", "v").await;
    bench.park(&lease, ask(&[("k", "n")])).await;
    let lease = bench.start("g", "v").await;
    bench.end(&lease, done()).await;
    assert_eq!(bench.counts().await, [3, 2, 1, 1]);
    // Repeated and rejected operations do not count.
    bench.store.create(super::bench::task("a")).await.expect("create succeeds");
    assert!(bench.store.commit(&lease, &Changes::default(), &Transition::Continue).await.is_err());
    assert_eq!(bench.counts().await, [3, 2, 1, 1]);
}

async fn stats_follow_task_through_all_phases(bench: ContractBench) {
    bench.queue("a").await;
    let lease = bench.claim_one("v").await.lease;
    assert_eq!(bench.counts().await, [0, 1, 0, 0]);
    bench.store.release(&lease.worker).await.expect("release succeeds");
    assert_eq!(bench.counts().await, [1, 0, 0, 0]);
    let lease = bench.claim_one("v").await.lease;
    bench.write(&lease, ask(&[("k", "n")])).await;
    bench.answer("a", &[("n", json!(1))]).await;
    assert_eq!(bench.counts().await, [0, 1, 0, 0]);
    bench.park(&lease, Changes::default()).await;
    assert_eq!(
        bench.counts().await,
        [1, 0, 0, 0],
        "the task has a response that no worker has seen"
    );
    let lease = bench.claim_one("v").await.lease;
    let then = Transition::Park { due_at: None, responses_seen: 1 };
    bench.store.commit(&lease, &ask(&[("k2", "n2")]), &then).await.expect("commit succeeds");
    assert_eq!(bench.counts().await, [0, 0, 1, 0]);
    bench.answer("a", &[("n2", json!(1))]).await;
    assert_eq!(bench.counts().await, [1, 0, 0, 0]);
    bench.claim_one("v").await;
    bench.advance(LEASE * 2);
    bench.claim_one("w").await;
    assert_eq!(bench.counts().await, [0, 1, 0, 0], "another worker runs the task");
    let cancelled = bench.store.cancel(OWNER, &TaskId::new("a"), true, RETENTION).await;
    cancelled.expect("cancel succeeds");
    assert_eq!(bench.counts().await, [0, 0, 0, 1]);
    bench.queue("b").await;
    bench.advance(TTL + Duration::from_secs(1));
    bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert_eq!(bench.counts().await, [0, 0, 0, 2]);
    bench.advance(RETENTION + TTL);
    for _ in 0..2 {
        bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    }
    assert_eq!(bench.census().await, StoreStats::default());
}

async fn stats_report_age_of_oldest_due_task(bench: ContractBench) {
    bench.queue("a").await;
    bench.advance(Duration::from_secs(100));
    bench.queue("b").await;
    let waiting = bench.census().await.oldest_due.expect("a task is due");
    assert!(waiting >= Duration::from_secs(100), "{waiting:?}");
    assert!(waiting < Duration::from_secs(130), "{waiting:?}");
    bench.store.claim(&worker("w"), LEASE, &1_usize.into()).await.expect("claim succeeds");
    let waiting = bench.census().await.oldest_due.expect("a task is due");
    assert!(waiting < Duration::from_secs(30), "{waiting:?}");
    bench.store.claim(&worker("w"), LEASE, &1_usize.into()).await.expect("claim succeeds");
    assert_eq!(bench.census().await.oldest_due, None, "a running task is not due");
    bench.advance(LEASE + Duration::from_secs(10));
    assert!(bench.census().await.oldest_due.is_some(), "an expired lease makes a task due");
}
