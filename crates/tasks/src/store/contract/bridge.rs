//! Checks of bridged calls: joins, departures, delivery and eviction.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use super::bench::{
    ContractBench, LEASE, OWNER, RETENTION, TTL, done, promises, raw, task, worker,
};
use crate::store::{
    Attended, Bridge, Changes, CreateOutcome, Departure, Joined, Lease, NewTask, Phase, TaskId,
    TaskOutcome, Transition,
};

promises![
    bridged_task_is_listed_after_first_pending_result,
    attended_run_is_not_joined,
    lost_run_is_joined_by_one_call,
    concurrent_joins_attend_one_run,
    oldest_unattended_run_is_joined_first,
    ended_run_is_joined_until_delivery,
    cancelled_or_expired_run_is_not_joined,
    run_of_other_principal_or_scope_or_fingerprint_is_not_joined,
    run_after_round_is_joined_after_return_timeout,
    join_tells_when_run_after_round_can_be_joined,
    attend_returns_known_task_of_principal,
    pending_results_are_counted,
    run_is_attended_until_last_call_leaves,
    departure_of_former_worker_keeps_run_attended,
    delivered_task_is_deleted_after_shorter_retention,
    delivery_never_extends_retention,
    delivery_of_foreign_or_unknown_task_changes_nothing,
    open_calls_are_undelivered_tasks_of_scope,
    evict_deletes_first_delivered_tasks_until_bytes_are_free,
    evict_keeps_undelivered_and_foreign_tasks,
    evict_keeps_task_with_pending_cleanup,
    evict_deletes_limited_number_of_tasks,
    deleted_task_is_not_joined,
];

pub(super) const SCOPE: &str = "session";
pub(super) const ABANDON: Duration = Duration::from_secs(60);
const EVE: &str = "name:eve";
const SECOND: Duration = Duration::from_secs(1);

/// Returns a task that a call of worker `v` waits for.
pub(super) fn bridged(id: &str) -> NewTask {
    let bridge = Bridge::new(Some(SCOPE.to_owned()), "f", worker("v"), ABANDON);
    NewTask { bridge: Some(bridge), ..task(id) }
}

impl ContractBench {
    /// Creates a task that a call of worker `v` waits for.
    pub(super) async fn bridge(&self, id: &str) {
        let created = self.store.create(bridged(id)).await.expect("create succeeds");
        assert!(created.is_new(), "{created:?}");
    }

    /// Creates such a task with a lease of worker `v`.
    pub(super) async fn bridge_started(&self, new: NewTask) -> Lease {
        let new = NewTask { worker: Some((worker("v"), LEASE)), ..new };
        match self.store.create(new).await.expect("create succeeds") {
            CreateOutcome::Created { lease: Some(lease), .. } => lease,
            other => panic!("expected a lease: {other:?}"),
        }
    }

    /// Creates such a task, and ends it.
    async fn bridge_ended(&self, id: &str) {
        let lease = self.bridge_started(bridged(id)).await;
        self.end(&lease, done()).await;
    }

    pub(super) async fn leave(&self, id: &str, by: &str, how: Departure) {
        let left = self.store.leave(OWNER, &TaskId::new(id), &worker(by), how).await;
        left.expect("operation succeeds");
    }

    pub(super) async fn attend(&self, id: &str, by: &str) -> Option<Attended> {
        let attended = self.store.attend(OWNER, &TaskId::new(id), &worker(by)).await;
        attended.expect("operation succeeds")
    }

    async fn join_as(&self, principal: &str, scope: &str, fingerprint: &str) -> Option<String> {
        let joined = self.store.join(principal, scope, fingerprint, &worker("w")).await;
        joined.expect("join succeeds").run().map(|joined| joined.task.as_str().to_owned())
    }

    /// Joins a run for a call of worker `w`. Returns the ID of its task.
    pub(super) async fn join(&self) -> Option<String> {
        self.join_as(OWNER, SCOPE, "f").await
    }

    async fn deliver(&self, id: &str, retention: Option<Duration>) {
        let delivered = self.store.deliver(OWNER, &TaskId::new(id), retention).await;
        delivered.expect("operation succeeds");
    }

    async fn evict(&self, bytes: u64) -> u64 {
        self.store.evict(OWNER, bytes).await.expect("operation succeeds")
    }

    async fn sweep_calls(&self) {
        self.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    }

    async fn stored(&self) -> u64 {
        self.store.stored_bytes(OWNER).await.expect("read succeeds")
    }
}

fn is(id: &str) -> Option<String> {
    Some(id.to_owned())
}

async fn bridged_task_is_listed_after_first_pending_result(bench: ContractBench) {
    bench.queue("ordinary").await;
    bench.advance(SECOND);
    bench.bridge("a").await;
    let listed = async || {
        let listed = bench.store.list(OWNER, "modern", None, 10).await.expect("list succeeds");
        listed.into_iter().map(|view| view.id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert!(bench.view("ordinary").await.acknowledged);
    assert!(!bench.view("a").await.acknowledged, "the task is readable by ID");
    assert_eq!(listed().await, ["ordinary"]);
    bench.leave("a", "v", Departure::Lost).await;
    assert!(!bench.view("a").await.acknowledged);
    bench.attend("a", "v").await;
    bench.leave("a", "v", Departure::PendingResult).await;
    assert!(bench.view("a").await.acknowledged);
    assert_eq!(listed().await, ["ordinary", "a"]);
}

async fn attended_run_is_not_joined(bench: ContractBench) {
    assert_eq!(bench.join().await, None);
    bench.bridge("a").await;
    assert_eq!(bench.join().await, None, "the creating call waits");
    bench.advance(LEASE * 2);
    assert_eq!(bench.join().await, None, "attendance does not expire with a lease");
    bench.leave("a", "v", Departure::PendingResult).await;
    bench.attend("a", "x").await.expect("the task exists");
    assert_eq!(bench.join().await, None, "another call waits");
}

async fn lost_run_is_joined_by_one_call(bench: ContractBench) {
    bench.bridge("a").await;
    bench.leave("a", "v", Departure::Lost).await;
    let joined = bench.store.join(OWNER, SCOPE, "f", &worker("w")).await.expect("join succeeds");
    let created_at = bench.view("a").await.created_at;
    assert_eq!(joined, Joined::Run(Attended::new(TaskId::new("a"), created_at, 0)));
    assert_eq!(bench.join().await, None);
}

async fn concurrent_joins_attend_one_run(bench: ContractBench) {
    for id in ["a", "b"] {
        bench.bridge(id).await;
        bench.leave(id, "v", Departure::Lost).await;
    }
    let mut joins = JoinSet::new();
    for number in 0..16 {
        let store = std::sync::Arc::clone(&bench.store);
        joins.spawn(async move {
            let worker = worker(&format!("w{number}"));
            store.join(OWNER, SCOPE, "f", &worker).await.expect("join succeeds").run()
        });
    }
    let mut joined: Vec<_> = joins.join_all().await.into_iter().flatten().collect();
    joined.sort_by(|one, other| one.task.cmp(&other.task));
    let tasks: Vec<&str> = joined.iter().map(|joined| joined.task.as_str()).collect();
    assert_eq!(tasks, ["a", "b"], "each run is joined once");
}

async fn oldest_unattended_run_is_joined_first(bench: ContractBench) {
    for id in ["c", "a", "b"] {
        bench.bridge(id).await;
        bench.advance(SECOND);
    }
    for id in ["b", "a"] {
        bench.leave(id, "v", Departure::Lost).await;
    }
    assert_eq!(bench.join().await, is("a"), "the older run is attended");
    assert_eq!(bench.join().await, is("b"));
    bench.leave("c", "v", Departure::Lost).await;
    bench.leave("a", "w", Departure::Lost).await;
    assert_eq!(bench.join().await, is("c"));
    assert_eq!(bench.join().await, is("a"));
}

async fn ended_run_is_joined_until_delivery(bench: ContractBench) {
    bench.bridge_ended("a").await;
    assert_eq!(bench.join().await, None, "the call that reads the outcome waits");
    bench.leave("a", "v", Departure::Lost).await;
    assert_eq!(bench.join().await, is("a"));
    assert!(matches!(bench.view("a").await.outcome, Some(TaskOutcome::Result(_))));
    bench.deliver("a", None).await;
    bench.leave("a", "w", Departure::Lost).await;
    assert_eq!(bench.join().await, None);
    bench.attend("a", "w").await.expect("a delivered task is readable");
    bench.leave("a", "w", Departure::Lost).await;
    assert_eq!(bench.join().await, None);
}

async fn cancelled_or_expired_run_is_not_joined(bench: ContractBench) {
    for id in ["cancelled", "expired"] {
        bench.bridge(id).await;
        bench.leave(id, "v", Departure::PendingResult).await;
    }
    bench.bridge_started(bridged("stopping")).await;
    bench.leave("stopping", "v", Departure::PendingResult).await;
    for (id, at_once) in [("cancelled", true), ("stopping", false)] {
        let cancelled = bench.store.cancel(OWNER, &TaskId::new(id), at_once, RETENTION).await;
        cancelled.expect("cancel succeeds").expect("the task exists");
    }
    bench.advance(TTL + SECOND);
    let swept = bench.store.sweep(100, RETENTION).await.expect("sweep succeeds");
    assert!(swept.expired.contains(&(OWNER.to_owned(), TaskId::new("expired"))));
    assert_eq!(bench.join().await, None);
}

async fn run_of_other_principal_or_scope_or_fingerprint_is_not_joined(bench: ContractBench) {
    bench.bridge("a").await;
    bench.leave("a", "v", Departure::Lost).await;
    let alone = Bridge::new(None, "f", worker("v"), ABANDON);
    let alone = NewTask { bridge: Some(alone), ..task("alone") };
    bench.store.create(alone).await.expect("create succeeds");
    bench.leave("alone", "v", Departure::Lost).await;
    assert_eq!(bench.join_as(EVE, SCOPE, "f").await, None);
    assert_eq!(bench.join_as(OWNER, "other", "f").await, None);
    assert_eq!(bench.join_as(OWNER, "", "f").await, None, "a run without a scope is not joined");
    assert_eq!(bench.join_as(OWNER, SCOPE, "other").await, None);
    assert_eq!(bench.join().await, is("a"));
    assert_eq!(bench.join().await, None);
}

async fn run_after_round_is_joined_after_return_timeout(bench: ContractBench) {
    bench.bridge("a").await;
    let round = Departure::Round { return_timeout: 10 * SECOND };
    bench.leave("a", "v", round).await;
    assert_eq!(bench.join().await, None, "the client returns");
    bench.advance(5 * SECOND);
    bench.attend("a", "w").await.expect("the client has returned");
    bench.leave("a", "w", round).await;
    bench.advance(6 * SECOND);
    assert_eq!(bench.join().await, None, "the timeout starts with each round");
    bench.advance(5 * SECOND);
    assert_eq!(bench.join().await, is("a"));
    bench.leave("a", "w", Departure::Lost).await;
    assert_eq!(bench.join().await, is("a"), "a lost call does not return");
}

async fn join_tells_when_run_after_round_can_be_joined(bench: ContractBench) {
    let join = async || {
        let joined = bench.store.join(OWNER, SCOPE, "f", &worker("w")).await;
        joined.expect("join succeeds")
    };
    assert_eq!(join().await, Joined::Nothing);
    for (id, seconds) in [("a", 30), ("b", 20), ("attended", 10)] {
        bench.bridge(id).await;
        bench.leave(id, "v", Departure::Round { return_timeout: seconds * SECOND }).await;
    }
    bench.attend("attended", "v").await.expect("the task exists");
    // The clock of a store runs on between two operations.
    let within = |joined, most: Duration| match joined {
        Joined::Returning(wait) => wait <= most && wait > most - 5 * SECOND,
        Joined::Run(_) | Joined::Nothing => false,
    };
    assert!(within(join().await, 20 * SECOND), "the first run that can be joined counts");
    bench.advance(10 * SECOND);
    assert!(within(join().await, 10 * SECOND));
    bench.leave("a", "v", Departure::PendingResult).await;
    assert!(within(join().await, 10 * SECOND), "a late departure changes nothing");
    bench.attend("a", "v").await.expect("the task exists");
    bench.leave("a", "v", Departure::Lost).await;
    assert!(matches!(join().await, Joined::Run(run) if run.task.as_str() == "a"));
    bench.deliver("b", None).await;
    assert_eq!(join().await, Joined::Nothing, "a delivered run is not joined");
}

async fn attend_returns_known_task_of_principal(bench: ContractBench) {
    bench.queue("ordinary").await;
    bench.bridge("a").await;
    let created_at = bench.view("a").await.created_at;
    assert_eq!(bench.attend("a", "v").await, Some(Attended::new(TaskId::new("a"), created_at, 0)));
    assert_eq!(bench.attend("ordinary", "v").await, None, "the task has no bridge");
    assert_eq!(bench.attend("unknown", "v").await, None);
    let foreign = bench.store.attend(EVE, &TaskId::new("a"), &worker("w")).await;
    assert_eq!(foreign, Ok(None));
    for (principal, id) in [(EVE, "a"), (OWNER, "unknown"), (OWNER, "ordinary")] {
        for how in [Departure::PendingResult, Departure::Lost] {
            let left = bench.store.leave(principal, &TaskId::new(id), &worker("v"), how).await;
            assert_eq!(left, Ok(()), "{principal} {id}");
        }
    }
    assert!(!bench.view("a").await.acknowledged, "other principals change nothing");
    assert_eq!(bench.join().await, None);
}

async fn pending_results_are_counted(bench: ContractBench) {
    bench.bridge("a").await;
    for count in 1..=3 {
        bench.leave("a", "v", Departure::PendingResult).await;
        let attended = bench.attend("a", "v").await.expect("the task exists");
        assert_eq!(attended.pending_results, count);
    }
    bench.leave("a", "v", Departure::Lost).await;
    let joined = bench.store.join(OWNER, SCOPE, "f", &worker("w")).await.expect("join succeeds");
    assert_eq!(joined.run().map(|joined| joined.pending_results), Some(3));
}

async fn run_is_attended_until_last_call_leaves(bench: ContractBench) {
    bench.bridge("a").await;
    // The client returns before the departure of its last round is recorded.
    bench.attend("a", "v").await.expect("the task exists");
    bench.leave("a", "v", Departure::Round { return_timeout: SECOND }).await;
    bench.advance(2 * SECOND);
    assert_eq!(bench.join().await, None);
    bench.leave("a", "v", Departure::Lost).await;
    assert_eq!(bench.join().await, is("a"));
}

async fn departure_of_former_worker_keeps_run_attended(bench: ContractBench) {
    bench.bridge("a").await;
    bench.attend("a", "w").await.expect("the task exists");
    bench.leave("a", "v", Departure::Lost).await;
    assert_eq!(bench.join().await, None);
    bench.leave("a", "v", Departure::PendingResult).await;
    assert_eq!(bench.join().await, None);
    assert!(bench.view("a").await.acknowledged, "the client has received the pending result");
    bench.leave("a", "w", Departure::Lost).await;
    bench.leave("a", "w", Departure::Lost).await;
    assert_eq!(bench.join().await, is("a"));
}

async fn delivered_task_is_deleted_after_shorter_retention(bench: ContractBench) {
    for id in ["short", "normal"] {
        bench.bridge_ended(id).await;
    }
    let forever = bench.bridge_started(NewTask { ttl: None, ..bridged("forever") }).await;
    bench.end(&forever, done()).await;
    bench.deliver("short", Some(10 * SECOND)).await;
    bench.deliver("normal", None).await;
    bench.deliver("forever", Some(10 * SECOND)).await;
    bench.advance(5 * SECOND);
    bench.deliver("short", Some(10 * SECOND)).await;
    bench.sweep_calls().await;
    assert!(!bench.is_gone("short").await);
    bench.advance(6 * SECOND);
    bench.sweep_calls().await;
    assert!(bench.is_gone("short").await, "a repeated delivery does not extend the retention");
    assert!(bench.is_gone("forever").await, "the delivery limits a task without a TTL, too");
    assert!(!bench.is_gone("normal").await);
}

async fn delivery_never_extends_retention(bench: ContractBench) {
    bench.bridge_ended("a").await;
    let before = bench.view("a").await;
    bench.deliver("a", Some(10 * (TTL + RETENTION))).await;
    let after = bench.view("a").await;
    assert_eq!((after.ttl, after.updated_at), (before.ttl, before.updated_at));
    bench.bridge("open").await;
    bench.deliver("open", Some(SECOND)).await;
    bench.advance(2 * SECOND);
    bench.sweep_calls().await;
    assert_eq!(bench.view("open").await.phase, Phase::Queued, "the task has not ended");
}

async fn delivery_of_foreign_or_unknown_task_changes_nothing(bench: ContractBench) {
    bench.bridge_ended("a").await;
    let lease = bench.start("ordinary", "v").await;
    bench.end(&lease, done()).await;
    bench.leave("a", "v", Departure::Lost).await;
    bench.deliver("unknown", Some(SECOND)).await;
    bench.deliver("ordinary", Some(SECOND)).await;
    let foreign = bench.store.deliver(EVE, &TaskId::new("a"), Some(SECOND)).await;
    assert_eq!(foreign, Ok(()));
    bench.advance(2 * SECOND);
    bench.sweep_calls().await;
    assert!(!bench.is_gone("ordinary").await, "the task has no bridge");
    assert_eq!(bench.join().await, is("a"));
}

async fn open_calls_are_undelivered_tasks_of_scope(bench: ContractBench) {
    for id in ["b", "delivered", "c", "a"] {
        bench.bridge_ended(id).await;
        bench.advance(SECOND);
    }
    bench.bridge("open").await;
    bench.deliver("delivered", None).await;
    let other = Bridge::new(Some("other".to_owned()), "f", worker("v"), ABANDON);
    for (id, bridge) in
        [("other", Some(other.clone())), ("alone", Some(Bridge { scope: None, ..other }))]
    {
        bench.store.create(NewTask { bridge, ..task(id) }).await.expect("create succeeds");
    }
    let open = async |principal: &str, scope: &str, limit: usize| {
        let open = bench.store.open_calls(principal, scope, limit).await.expect("read succeeds");
        open.into_iter().map(|call| call.task.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(open(OWNER, SCOPE, 10).await, ["open", "a", "c", "b"], "newest first");
    assert_eq!(open(OWNER, SCOPE, 2).await, ["open", "a"]);
    assert_eq!(open(OWNER, "other", 10).await, ["other"]);
    assert!(open(OWNER, "", 10).await.is_empty() && open(EVE, SCOPE, 10).await.is_empty());
    let newest = bench.store.open_calls(OWNER, SCOPE, 1).await.expect("read succeeds").remove(0);
    let view = bench.view("open").await;
    assert_eq!((newest.tool, newest.created_at), (view.tool, view.created_at));
}

async fn evict_deletes_first_delivered_tasks_until_bytes_are_free(bench: ContractBench) {
    for id in ["a", "b", "c"] {
        let lease = bench.bridge_started(bridged(id)).await;
        bench.end(&lease, TaskOutcome::Result(raw(&json!("x".repeat(10_000))))).await;
    }
    for id in ["b", "a", "c"] {
        bench.deliver(id, None).await;
        bench.advance(SECOND);
    }
    let before = bench.stored().await;
    assert_eq!(bench.evict(0).await, 0);
    let freed = bench.evict(5_000).await;
    assert!((10_000..20_000).contains(&freed), "{freed}");
    assert_eq!(bench.stored().await, before - freed);
    assert!(bench.is_gone("b").await, "the task was delivered first");
    assert!(!bench.is_gone("a").await && !bench.is_gone("c").await);
    let rest = bench.evict(u64::MAX).await;
    assert_eq!((rest, bench.stored().await), (before - freed, 0));
    assert_eq!(bench.evict(1).await, 0);
    bench.sweep_calls().await;
    let stats = bench.store.stats().await.expect("stats succeed");
    assert_eq!((stats.ended, stats.bytes), (0, 0));
}

async fn evict_keeps_undelivered_and_foreign_tasks(bench: ContractBench) {
    bench.bridge_ended("undelivered").await;
    bench.bridge("open").await;
    bench.deliver("open", None).await;
    let lease = bench.start("ordinary", "v").await;
    bench.end(&lease, done()).await;
    let foreign = NewTask { principal: EVE.to_owned(), ..bridged("foreign") };
    let lease = bench.bridge_started(foreign).await;
    bench.end(&lease, done()).await;
    let delivered = bench.store.deliver(EVE, &lease.task, None).await;
    delivered.expect("operation succeeds");
    assert_eq!(bench.evict(u64::MAX).await, 0);
    assert!(bench.store.evict(EVE, 1).await.is_ok_and(|freed| freed > 0));
    let view = bench.store.get(EVE, &lease.task).await.expect("read succeeds");
    assert!(view.is_none());
}

async fn evict_keeps_task_with_pending_cleanup(bench: ContractBench) {
    let lease = bench.bridge_started(NewTask { clean_up: true, ..bridged("a") }).await;
    bench.end(&lease, TaskOutcome::Cancelled).await;
    bench.deliver("a", None).await;
    assert_eq!(bench.evict(u64::MAX).await, 0);
    let claimed = bench.claim_one("w").await;
    let done = crate::store::CleanupState::Done;
    bench.store.finish_cleanup(&claimed.lease, done).await.expect("operation succeeds");
    assert!(bench.evict(u64::MAX).await > 0);
}

async fn evict_deletes_limited_number_of_tasks(bench: ContractBench) {
    const MORE: usize = 130;
    for number in 0..MORE {
        let id = number.to_string();
        bench.bridge_ended(&id).await;
        bench.deliver(&id, None).await;
    }
    let all = bench.stored().await;
    let first = bench.evict(u64::MAX).await;
    assert!(0 < first && first < all, "{first} of {all}");
    assert_eq!((bench.evict(u64::MAX).await, bench.stored().await), (all - first, 0));
}

async fn deleted_task_is_not_joined(bench: ContractBench) {
    bench.bridge_ended("a").await;
    bench.leave("a", "v", Departure::Lost).await;
    bench.advance(RETENTION + TTL + SECOND);
    bench.sweep_calls().await;
    assert!(bench.is_gone("a").await);
    assert_eq!(bench.join().await, None);
    assert_eq!(bench.attend("a", "v").await, None);
    assert!(bench.store.open_calls(OWNER, SCOPE, 10).await.is_ok_and(|open| open.is_empty()));
    // A new task with the same ID has its own call.
    let lease = bench.bridge_started(bridged("a")).await;
    bench.store.commit(&lease, &Changes::default(), &Transition::Continue).await.expect("commit");
    assert_eq!(bench.join().await, None);
}
