//! How many tasks there are, and how long they have been waiting.

use std::time::Duration;

use serde_json::json;

use super::bench::{ContractBench, LEASE, OWNER, RETENTION, TTL, ask, done, promises, worker};
use crate::store::{Changes, StoreStats, TaskId, Transition};

promises![
    a_census_of_nothing_is_nothing,
    a_census_counts_each_task_where_it_is,
    a_census_follows_a_task_to_its_end,
    a_census_knows_how_long_something_has_been_due,
];

impl ContractBench {
    async fn census(&self) -> StoreStats {
        self.store.stats().await.expect("a census")
    }

    /// Queued, running, parked, ended.
    async fn counts(&self) -> [u64; 4] {
        let StoreStats { queued, running, parked, ended, .. } = self.census().await;
        [queued, running, parked, ended]
    }
}

async fn a_census_of_nothing_is_nothing(bench: ContractBench) {
    assert_eq!(bench.census().await, StoreStats::default());
}

async fn a_census_counts_each_task_where_it_is(bench: ContractBench) {
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
    // What was made before, or refused, is not counted again.
    bench.store.create(super::bench::task("a")).await.expect("it was made before");
    assert!(bench.store.commit(&lease, &Changes::default(), &Transition::Continue).await.is_err());
    assert_eq!(bench.counts().await, [3, 2, 1, 1]);
}

async fn a_census_follows_a_task_to_its_end(bench: ContractBench) {
    bench.queue("a").await;
    let lease = bench.claim_one("v").await.lease;
    assert_eq!(bench.counts().await, [0, 1, 0, 0]);
    bench.store.release(&lease.worker).await.expect("a release");
    assert_eq!(bench.counts().await, [1, 0, 0, 0]);
    let lease = bench.claim_one("v").await.lease;
    bench.write(&lease, ask(&[("k", "n")])).await;
    bench.answer("a", &[("n", json!(1))]).await;
    assert_eq!(bench.counts().await, [0, 1, 0, 0]);
    bench.park(&lease, Changes::default()).await;
    assert_eq!(bench.counts().await, [1, 0, 0, 0], "there is an answer that nobody has seen");
    let lease = bench.claim_one("v").await.lease;
    let then = Transition::Park { due_at: None, responses_seen: 1 };
    bench.store.commit(&lease, &ask(&[("k2", "n2")]), &then).await.expect("a write");
    assert_eq!(bench.counts().await, [0, 0, 1, 0]);
    bench.answer("a", &[("n2", json!(1))]).await;
    assert_eq!(bench.counts().await, [1, 0, 0, 0]);
    bench.claim_one("v").await;
    bench.advance(LEASE * 2);
    bench.claim_one("w").await;
    assert_eq!(bench.counts().await, [0, 1, 0, 0], "with another worker");
    let cancelled = bench.store.cancel(OWNER, &TaskId::new("a"), true, RETENTION).await;
    cancelled.expect("a cancel");
    assert_eq!(bench.counts().await, [0, 0, 0, 1]);
    bench.queue("b").await;
    bench.advance(TTL + Duration::from_secs(1));
    bench.store.sweep(100, RETENTION).await.expect("a sweep");
    assert_eq!(bench.counts().await, [0, 0, 0, 2]);
    bench.advance(RETENTION + TTL);
    for _ in 0..2 {
        bench.store.sweep(100, RETENTION).await.expect("a sweep");
    }
    assert_eq!(bench.census().await, StoreStats::default());
}

async fn a_census_knows_how_long_something_has_been_due(bench: ContractBench) {
    bench.queue("a").await;
    bench.advance(Duration::from_secs(100));
    bench.queue("b").await;
    let waiting = bench.census().await.oldest_due.expect("two are due");
    assert!(waiting >= Duration::from_secs(100), "{waiting:?}");
    assert!(waiting < Duration::from_secs(130), "{waiting:?}");
    bench.store.claim(&worker("w"), LEASE, &1_usize.into()).await.expect("a claim");
    let waiting = bench.census().await.oldest_due.expect("one is due");
    assert!(waiting < Duration::from_secs(30), "{waiting:?}");
    bench.store.claim(&worker("w"), LEASE, &1_usize.into()).await.expect("a claim");
    assert_eq!(bench.census().await.oldest_due, None, "what runs does not wait");
    bench.advance(LEASE + Duration::from_secs(10));
    assert!(bench.census().await.oldest_due.is_some(), "but for a worker that is lost");
}
