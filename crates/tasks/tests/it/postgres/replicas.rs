//! Several stores on one database, like those of several processes.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use outlive_tasks::store::{
    Bridge, BridgeStore, CancelOutcome, Changes, Departure, InputSource, NewTask, PostgresStore,
    StoreError, StoreMonitor, TaskId, TaskOutcome, TaskStore, Transition, WorkQueue, WorkerId,
};
use serde_json::json;
use tokio::task::JoinSet;

use super::{LEASE, OWNER, Schema, asked, entry, raw, start, task, until, url};

#[tokio::test]
async fn concurrent_claims_return_each_task_once() {
    const TASKS: usize = 200;
    let schema = Schema::new();
    let stores = Arc::new([schema.connect().await, schema.connect().await]);
    for count in 0..TASKS {
        stores[count % 2].create(task(&format!("{count}"))).await.unwrap();
    }
    let mut claims = JoinSet::new();
    for number in 0..4 {
        let stores = Arc::clone(&stores);
        claims.spawn(async move {
            let worker = WorkerId::new(format!("w{number}"));
            let mut mine = Vec::new();
            loop {
                let claimed =
                    stores[number % 2].claim(&worker, LEASE, &3_usize.into()).await.unwrap();
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(claimed.into_iter().map(|claimed| claimed.lease.task));
            }
        });
    }
    let mut all = Vec::new();
    while let Some(claimed) = claims.join_next().await {
        all.extend(claimed.unwrap());
    }
    all.sort();
    let total = all.len();
    all.dedup();
    assert_eq!((all.len(), total), (TASKS, TASKS));
}

#[tokio::test]
async fn listener_is_notified_of_changes_by_other_replica() {
    let schema = Schema::new();
    let (mine, theirs) = (schema.connect().await, schema.connect().await);
    let heard: Arc<Mutex<Vec<TaskId>>> = Arc::default();
    let ears = Arc::clone(&heard);
    mine.subscribe(Arc::new(move |task, _| ears.lock().unwrap().push(task.clone())));
    let count = |id: &str| heard.lock().unwrap().iter().filter(|task| task.as_str() == id).count();
    theirs.create(task("queued")).await.unwrap();
    until("the queued task is notified", async || count("queued") == 1).await;
    let lease = start(&theirs, task("a")).await;
    let changes = Changes::default().input_requests(vec![asked("q")]);
    theirs
        .commit(&lease, &changes, &Transition::Park { due_at: None, responses_seen: 0 })
        .await
        .unwrap();
    until("the input request is notified", async || count("a") == 1).await;
    let answer = vec![("q".to_owned(), raw(&json!(1)))];
    theirs.respond(OWNER, &lease.task, InputSource::Client, answer, u64::MAX).await.unwrap();
    until("the response is notified", async || count("a") == 2).await;
    theirs.cancel(OWNER, &lease.task, true, LEASE).await.unwrap();
    until("the cancellation is notified", async || count("a") == 3).await;
    mine.create(task("mine")).await.unwrap();
    until("the own change is notified", async || count("mine") == 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(count("mine"), 1, "an own change is notified once");
}

#[test]
fn tasks_of_dead_process_are_reclaimed_before_lease_expiry() {
    let schema = Schema::new();
    // Dropping a runtime drops all its connections, like the end of a process.
    let doomed = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (dead, old) = doomed.block_on(async {
        let dead = schema.connect().await;
        let old = start(&dead, task("a")).await;
        dead.commit(&old, &entry("k"), &Transition::Continue).await.unwrap();
        (dead, old)
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let other = schema.connect().await;
        let worker = WorkerId::new("w");
        let lease = start(&other, task("b")).await;
        assert!(
            other.claim(&worker, LEASE, &10_usize.into()).await.unwrap().is_empty(),
            "the process is alive"
        );
        let died = Instant::now();
        doomed.shutdown_background();
        let mut claimed = Vec::new();
        while claimed.is_empty() {
            let due = other.next_due(&[]).await.unwrap().unwrap();
            tokio::time::sleep(due.min(Duration::from_millis(500))).await;
            claimed = other.claim(&worker, LEASE, &10_usize.into()).await.unwrap();
        }
        assert!(died.elapsed() < LEASE / 2, "{:?}", died.elapsed());
        let claimed = claimed.remove(0);
        assert_eq!((claimed.lease.task.as_str(), claimed.crash_count), ("a", 1));
        assert!(claimed.journal.entries.contains_key("k"));
        let written = other.commit(&old, &entry("late"), &Transition::Continue).await;
        assert_eq!(written, Err(StoreError::LeaseLost));
        // The surviving process keeps its leases.
        other.commit(&lease, &entry("k"), &Transition::Continue).await.unwrap();
        assert!(other.claim(&worker, LEASE, &10_usize.into()).await.unwrap().is_empty());
    });
    drop(dead);
}

#[tokio::test]
async fn tasks_of_dropped_store_are_reclaimed() {
    let schema = Schema::new();
    let (gone, other) = (schema.connect().await, schema.connect().await);
    start(&gone, task("a")).await;
    drop(gone);
    let claimed = async || {
        other.claim(&WorkerId::new("w"), LEASE, &10_usize.into()).await.unwrap().len() == 1
    };
    until("the task is claimed", claimed).await;
}

#[tokio::test]
async fn lost_liveness_connection_keeps_leases() {
    let schema = Schema::new();
    let (mine, other) = (schema.connect().await, schema.connect().await);
    let lease = start(&mine, task("a")).await;
    break_liveness_connections(&schema, 2).await;
    for _ in 0..4 {
        assert!(
            other.claim(&WorkerId::new("w"), LEASE, &10_usize.into()).await.unwrap().is_empty()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    mine.commit(&lease, &entry("k"), &Transition::Continue).await.unwrap();
    assert_eq!(mine.renew(&lease.worker, LEASE).await.unwrap(), [lease]);
    // Change notifications work again, too.
    let heard: Arc<Mutex<Vec<TaskId>>> = Arc::default();
    let ears = Arc::clone(&heard);
    mine.subscribe(Arc::new(move |task, _| ears.lock().unwrap().push(task.clone())));
    other.create(task("b")).await.unwrap();
    until("the change is notified", async || heard.lock().unwrap().contains(&TaskId::new("b")))
        .await;
}

#[tokio::test]
async fn replica_reconnecting_late_keeps_its_leases() {
    let schema = Schema::new();
    let (late, other) = (schema.connect().await, schema.connect().await);
    let lease = start(&late, task("late")).await;
    start(&late, task("dead")).await;
    let by_hand = schema.by_hand().await;
    break_liveness_connections(&schema, 2).await;
    // Two liveness locks that are free for long enough: one from before the outage, and one from
    // after it.
    let locks = "INSERT INTO replica (lock, since, lock_free_since) VALUES (1, 0, 0), (2, now_ms(0) + 1, 0);
        UPDATE task SET worker_lock = CASE id WHEN 'late' THEN 1 ELSE 2 END";
    by_hand.batch_execute(locks).await.unwrap();
    let is_claimed = async |name: &str| {
        let claimed = other.claim(&WorkerId::new("w"), LEASE, &10_usize.into()).await.unwrap();
        assert!(claimed.iter().all(|claimed| claimed.lease.task.as_str() == name), "{claimed:?}");
        !claimed.is_empty()
    };
    until("the task of the dead process is claimed", || is_claimed("dead")).await;
    late.commit(&lease, &entry("k"), &Transition::Continue).await.unwrap();
    // After the restart grace, a process that has not reconnected counts as dead.
    by_hand.batch_execute("UPDATE replica SET since = since - 2000 WHERE returned").await.unwrap();
    until("the task of the late process is claimed", || is_claimed("late")).await;
}

const ABANDON: Duration = Duration::from_secs(60);

/// Returns a task that a call of worker `v` waits for.
fn bridged(id: &str) -> NewTask {
    let bridge = Bridge::new(Some("s".to_owned()), "f", WorkerId::new("v"), ABANDON);
    task(id).bridge(Some(bridge))
}

/// Joins a run for a call of worker `w`.
async fn join(store: &PostgresStore) -> Option<TaskId> {
    let joined = store.join(OWNER, "s", "f", &WorkerId::new("w")).await.unwrap();
    joined.run().map(|joined| joined.task)
}

#[test]
fn run_of_dead_process_is_joined_without_a_claim() {
    let schema = Schema::new();
    // Dropping a runtime drops all its connections, like the end of a process.
    let doomed = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let dead = doomed.block_on(async {
        let dead = schema.connect().await;
        assert!(dead.create(bridged("a")).await.unwrap().is_new());
        dead
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let other = schema.connect().await;
        assert_eq!(join(&other).await, None, "the process is alive");
        doomed.shutdown_background();
        until("the run is joined", async || join(&other).await.is_some()).await;
        assert_eq!(join(&other).await, None, "one call joins");
        let seen = "SELECT count(*) FROM replica WHERE lock_free_since IS NOT NULL";
        let seen = schema.by_hand().await.query_one(seen, &[]).await.unwrap();
        assert_eq!(seen.get::<_, i64>(0), 0, "no claim has found the dead process");
    });
    drop(dead);
}

#[tokio::test]
async fn run_of_dropped_store_is_abandoned() {
    let schema = Schema::new();
    let (gone, other) = (schema.connect().await, schema.connect().await);
    assert!(gone.create(bridged("a")).await.unwrap().is_new());
    let known = bridged("known");
    assert!(gone.create(known).await.unwrap().is_new());
    let (task, worker) = (TaskId::new("known"), WorkerId::new("v"));
    gone.leave(OWNER, &task, &worker, Departure::PendingResult).await.unwrap();
    gone.attend(OWNER, &task, &worker).await.unwrap().unwrap();
    drop(gone);
    let by_hand = schema.by_hand().await;
    until("the dead process is found", async || {
        other.claim(&WorkerId::new("w"), LEASE, &0_usize.into()).await.unwrap();
        let attended = "SELECT count(*) FROM bridged_call WHERE attended_by IS NOT NULL";
        by_hand.query_one(attended, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    assert!(other.sweep(10, LEASE).await.unwrap().abandoned.is_empty(), "the timeout starts now");
    other.advance_clock(ABANDON + Duration::from_secs(1));
    let abandoned = (OWNER.to_owned(), TaskId::new("a"), CancelOutcome::Cancelled);
    assert_eq!(other.sweep(10, LEASE).await.unwrap().abandoned, [abandoned]);
    assert_eq!(join(&other).await, Some(task), "the client knows the other task");
    let replicas = by_hand.query_one("SELECT count(*) FROM replica", &[]).await.unwrap();
    assert_eq!(replicas.get::<_, i64>(0), 1, "the dead process is forgotten");
}

#[tokio::test]
async fn lost_liveness_connection_keeps_runs_attended() {
    let schema = Schema::new();
    let (mine, other) = (schema.connect().await, schema.connect().await);
    assert!(mine.create(bridged("a")).await.unwrap().is_new());
    break_liveness_connections(&schema, 2).await;
    for _ in 0..4 {
        assert_eq!(join(&other).await, None);
        other.claim(&WorkerId::new("w"), LEASE, &0_usize.into()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    mine.leave(OWNER, &TaskId::new("a"), &WorkerId::new("v"), Departure::Lost).await.unwrap();
    assert_eq!(join(&other).await, Some(TaskId::new("a")));
}

/// Operations of a call in one of many callers, which all compete for the same runs.
async fn bridge_and_leave(store: &PostgresStore, caller: usize, round: usize) {
    let task = TaskId::new(format!("{caller}-{round}"));
    let worker = WorkerId::new(format!("w{caller}"));
    let bridge = Bridge::new(Some("s".to_owned()), "f", worker.clone(), Duration::from_millis(1));
    let lease = start(store, super::task(task.as_str()).bridge(Some(bridge))).await;
    store.leave(OWNER, &task, &worker, Departure::Lost).await.unwrap();
    let joined = store.join(OWNER, "s", "f", &worker).await.unwrap();
    let ended = Transition::End { outcome: TaskOutcome::Cancelled, retention: LEASE };
    match round % 4 {
        0 => drop(store.sweep(100, LEASE).await.unwrap()),
        1 => drop(store.evict(OWNER, 10_000).await.unwrap()),
        2 => drop(store.claim(&worker, LEASE, &2_usize.into()).await.unwrap()),
        // Another caller may have cancelled the task.
        _ => match store.commit(&lease, &Changes::default(), &ended).await {
            Ok(()) | Err(StoreError::LeaseLost) => {}
            Err(error) => panic!("{error}"),
        },
    }
    if let Some(joined) = joined.run() {
        store.attend(OWNER, &joined.task, &worker).await.unwrap();
        store.cancel(OWNER, &joined.task, true, LEASE).await.unwrap();
        store.deliver(OWNER, &joined.task, Some(Duration::ZERO)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn competing_bridged_calls_never_fail() {
    let schema = Schema::new();
    let stores = [Arc::new(schema.connect().await), Arc::new(schema.connect().await)];
    let mut callers = JoinSet::new();
    for caller in 0..16 {
        let store = Arc::clone(&stores[caller % 2]);
        callers.spawn(async move {
            for round in 0..40 {
                bridge_and_leave(&store, caller, round).await;
            }
        });
    }
    while let Some(called) = callers.join_next().await {
        called.unwrap();
    }
    schema.is_counted_right().await;
}

/// Terminates the liveness connections, and waits until the processes have reconnected.
async fn break_liveness_connections(schema: &Schema, count: usize) {
    let by_hand = schema.by_hand().await;
    // All connections that hold a liveness lock of this schema.
    let cut = "SELECT array_agg(lock), count(pg_terminate_backend(pid)) FROM pg_locks
         JOIN replica ON lock = ((classid::bigint << 32) | objid::bigint)
         WHERE locktype = 'advisory' AND objsubid = 1";
    let cut = by_hand.query_one(cut, &[]).await.unwrap();
    let (before, number): (Vec<i64>, i64) = (cut.get(0), cut.get(1));
    assert_eq!((before.len(), number), (count, count as i64));
    let back = "SELECT count(*) FROM replica WHERE returned AND lock <> ALL ($1)";
    until("all processes have reconnected", async || {
        by_hand.query_one(back, &[&before]).await.unwrap().get::<_, i64>(0) == number
    })
    .await;
}

#[tokio::test]
async fn concurrent_connections_create_schema_once() {
    let schema = Schema::new();
    let mut stores = JoinSet::new();
    for number in 0..6 {
        let options = schema.options();
        stores.spawn(async move {
            let store = PostgresStore::connect_with(&url(), options).await.unwrap();
            let new = task(&format!("{number}")).principal(format!("{number}"));
            store.create(new).await.unwrap();
        });
    }
    while let Some(made) = stores.join_next().await {
        made.unwrap();
    }
    let census = schema.connect().await.stats().await.unwrap();
    assert_eq!(census.queued, 6);
}
