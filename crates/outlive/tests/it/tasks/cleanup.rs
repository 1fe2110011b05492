//! Cleanup hooks after cancelled and expired tasks.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive::{
    server::{
        Args, Cx, Durable, Error, Principal, Result, Server, State, Tool,
        durable::Cleanup,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{AuditLog, MemoryStore},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    stage::{
        MAX_TTL, Process, Stage, acknowledged, legacy, legacy_status, order, parked, start_legacy,
        until_asked,
    },
    world::{get, modern, start, until},
};
use crate::support::{
    fail_points::{FailPoints, Op, before},
    gate::Gate,
    pipe::{Pipe, text},
};

/// A record of cleanup runs, and a gate for them.
#[derive(Clone, Default)]
struct Tidied {
    said: Arc<Mutex<Vec<String>>>,
    gate: Gate,
}

impl Tidied {
    fn say(&self, what: String) {
        self.said.lock().unwrap().push(what);
    }

    fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// Waits for `many` records.
    async fn until(&self, many: usize) -> Vec<String> {
        for _ in 0..500 {
            if self.said().len() >= many {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.said()
    }
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    item: Option<String>,
}

/// Records everything that a cleanup can know.
async fn unreserve(task: Cleanup, Args(item): Args<Item>, tidied: State<Tidied>) -> Result<()> {
    let reserved = task.get::<()>("reserve")?.is_some();
    let paid = task.get::<()>("pay")?.is_some();
    let item = item.item.unwrap_or_default();
    tidied.say(format!("{:?} {item} reserved {reserved} paid {paid}", task.reason()));
    Ok(())
}

/// Records how many runs were dropped before.
async fn counts(tidied: State<Tidied>, stage: State<Gate>) {
    tidied.say(format!("after {}", stage.count_abandoned()));
}

/// Waits at the gate.
async fn slow(tidied: State<Tidied>) {
    tidied.say("began".to_owned());
    tidied.gate.pass().await;
    tidied.say("done".to_owned());
}

async fn fails(tidied: State<Tidied>) -> Result<()> {
    tidied.say("failing".to_owned());
    Err(Error::new("the depot is closed"))
}

async fn panics(tidied: State<Tidied>) {
    tidied.say("panicking".to_owned());
    panic!("on purpose")
}

async fn passes(gate: State<Gate>) -> &'static str {
    gate.pass().await;
    "done"
}

async fn polite(cx: Cx) -> &'static str {
    cx.cancelled().await;
    "stopped in time"
}

async fn order_item(
    cx: Durable,
    Args(_): Args<Item>,
    effects: State<super::stage::Effects>,
) -> Result<String> {
    order(cx, effects).await
}

/// A replica whose tools have cleanup hooks.
fn replica(stage: &Stage, tidied: &Tidied) -> (Server, Arc<FailPoints>) {
    replica_with(stage, tidied, |config| config)
}

fn replica_with(
    stage: &Stage,
    tidied: &Tidied,
    change: impl FnOnce(TaskConfig) -> TaskConfig,
) -> (Server, Arc<FailPoints>) {
    let points = FailPoints::over(Arc::clone(&stage.store) as _);
    let always = |name: &str| Tool::new(name, passes).task(TaskPolicy::Always).idempotent();
    let server = stage
        .builder(&points, change)
        .state(tidied.clone())
        .tool(Tool::new("buy", order_item).task(TaskPolicy::Always).cleanup(unreserve))
        .tool(always("counts").cleanup(counts))
        .tool(always("slow").cleanup(slow))
        .tool(always("fails").cleanup(fails))
        .tool(always("panics").cleanup(panics))
        .tool(Tool::new("stops", polite).task(TaskPolicy::Always).cleanup(counts));
    (server.build().unwrap(), points)
}

async fn cancel(pipe: &mut Pipe, id: &str) {
    acknowledged(&modern(pipe, "tasks/cancel", json!({"taskId": id})).await);
}

/// Waits until the grace period of a cancelled task is over.
async fn grace() {
    tokio::time::sleep(Duration::from_secs(31)).await;
}

/// Returns the audit events of a task, without reads.
pub(super) async fn events(store: &MemoryStore, id: &str) -> Vec<String> {
    // The engine writes audit events in batches.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let events = store.read(Some(id), 0, 100).await.unwrap();
    let what = events.into_iter().map(|audit| audit.event.action);
    what.filter(|what| what != "retrieved").collect()
}

// T2-70
#[tokio::test(start_paused = true)]
async fn cancelled_task_waiting_for_input_ends_immediately_and_runs_cleanup() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let (server, points) = replica(&stage, &tidied);
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "buy", json!({"item": "bread"})).await;
    until_asked(&mut pipe, &id, &["sure"]).await;
    parked().await;
    let claiming = points.hold(before(Op::Claim));
    claiming.arrived().await;
    cancel(&mut pipe, &id).await;
    let cancelled = get(&mut pipe, &id).await;
    assert_eq!(cancelled["status"], "cancelled", "before anything is cleaned up");
    assert!(tidied.said().is_empty());
    claiming.open(1);
    assert_eq!(tidied.until(1).await, ["Cancelled bread reserved true paid false"]);
    let events = events(&stage.store, &id).await;
    assert_eq!(events[events.len() - 2..], ["cancelled", "cleanup-done"]);
    assert_eq!(get(&mut pipe, &id).await, cancelled, "the cleanup is invisible to clients");
    parked().await;
    assert_eq!(tidied.said().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn run_not_stopping_within_grace_is_dropped_and_runs_cleanup() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let (server, _) = replica(&stage, &tidied);
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "counts", json!({})).await;
    stage.gate.arrived().await;
    cancel(&mut pipe, &id).await;
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert!(tidied.said().is_empty(), "the grace period is not over");
    grace().await;
    assert_eq!(get(&mut pipe, &id).await["status"], "cancelled");
    assert_eq!(tidied.until(1).await, ["after 1"]);
}

#[tokio::test(start_paused = true)]
async fn legacy_cancelled_run_is_dropped_before_cleanup() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let (server, _) = replica(&stage, &tidied);
    // An idle replica would run the cleanup immediately if it were due.
    let (other, _) = replica(&stage, &tidied);
    let mut idle = Pipe::open(&other);
    modern(&mut idle, "tasks/get", json!({"taskId": "unknown"})).await;
    let mut pipe = legacy(&server).await;
    let id = start_legacy(&mut pipe, "counts").await;
    stage.gate.arrived().await;
    let cancelled = pipe.result("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(tidied.until(1).await, ["after 1"]);
    assert_eq!(legacy_status(&mut pipe, &id).await, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn expired_task_runs_cleanup() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let (server, _) = replica(&stage, &tidied);
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "buy", json!({"item": "milk"})).await;
    until_asked(&mut pipe, &id, &["sure"]).await;
    parked().await;
    stage.store.advance_clock(MAX_TTL);
    until(&mut pipe, &id, "failed").await;
    assert_eq!(tidied.until(1).await, ["Expired milk reserved true paid false"]);
}

#[tokio::test(start_paused = true)]
async fn completed_or_unstarted_task_runs_no_cleanup() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let (server, _) = replica(&stage, &tidied);
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "stops", json!({})).await;
    parked().await;
    cancel(&mut pipe, &id).await;
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&done["result"]), "stopped in time");
    let idle = |config: TaskConfig| config.engine(|engine| engine.max_running = 0);
    let mut idle = Pipe::open(&replica_with(&Stage::new(), &tidied, idle).0);
    let queued = start(&mut idle, "counts", json!({})).await;
    cancel(&mut idle, &queued).await;
    grace().await;
    assert_eq!(tidied.said(), [""; 0]);
}

#[test]
fn cleanup_of_cancelled_task_runs_on_remaining_replica() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let first = Process::start();
    let id = first.run(async {
        let (server, points) = replica(&stage, &tidied);
        let mut pipe = Pipe::open(&server);
        let id = start(&mut pipe, "buy", json!({"item": "tea"})).await;
        until_asked(&mut pipe, &id, &["sure"]).await;
        parked().await;
        let claiming = points.hold(before(Op::Claim));
        claiming.arrived().await;
        cancel(&mut pipe, &id).await;
        id
    });
    first.kill(&stage.store);
    assert!(tidied.said().is_empty());
    Process::start().run(async {
        let mut pipe = Pipe::open(&replica(&stage, &tidied).0);
        assert_eq!(get(&mut pipe, &id).await["status"], "cancelled");
        assert_eq!(tidied.until(1).await, ["Cancelled tea reserved true paid false"]);
    });
}

#[test]
fn cleanup_after_crash_runs_when_lease_expires() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let first = Process::start();
    let id = first.run(async {
        let mut pipe = legacy(&replica(&stage, &tidied).0).await;
        let id = start_legacy(&mut pipe, "counts").await;
        stage.gate.arrived().await;
        id
    });
    // The caller cancels the task on another replica before the crash is noticed.
    drop(first);
    Process::start().run(async {
        let mut pipe = legacy(&replica(&stage, &tidied).0).await;
        let cancelled = pipe.result("tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(cancelled["status"], "cancelled");
        parked().await;
        assert!(tidied.said().is_empty(), "the run may be alive until its lease expires");
        stage.store.advance_clock(super::stage::LEASE);
        assert_eq!(tidied.until(1).await, ["after 1"]);
    });
}

#[test]
fn cleanup_interrupted_by_crash_runs_again() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let first = Process::start();
    let id = first.run(async {
        let mut pipe = Pipe::open(&replica(&stage, &tidied).0);
        let id = start(&mut pipe, "slow", json!({})).await;
        stage.gate.arrived().await;
        cancel(&mut pipe, &id).await;
        grace().await;
        tidied.gate.arrived().await;
        id
    });
    first.kill(&stage.store);
    let second = Process::start();
    second.run(async {
        let (server, points) = replica(&stage, &tidied);
        let settling = points.hold(before(Op::CleanUp));
        let mut pipe = Pipe::open(&server);
        assert_eq!(get(&mut pipe, &id).await["status"], "cancelled");
        tidied.gate.arrived().await;
        tidied.gate.open(1);
        settling.arrived().await;
    });
    second.kill(&stage.store);
    // The end of the cleanup was not stored.
    Process::start().run(async {
        let mut pipe = Pipe::open(&replica(&stage, &tidied).0);
        tidied.gate.open(1);
        get(&mut pipe, &id).await;
        assert_eq!(tidied.until(5).await, ["began", "began", "done", "began", "done"]);
        parked().await;
        stage.store.advance_clock(super::stage::LEASE * 2);
        parked().await;
        assert_eq!(tidied.said().len(), 5, "the end of the cleanup is stored");
    });
}

#[test]
fn cleanup_over_crash_limit_fails() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let once = |config: TaskConfig| config.engine(|engine| engine.max_crashes = 1);
    let first = Process::start();
    let id = first.run(async {
        let mut pipe = Pipe::open(&replica_with(&stage, &tidied, once).0);
        let id = start(&mut pipe, "slow", json!({})).await;
        stage.gate.arrived().await;
        cancel(&mut pipe, &id).await;
        grace().await;
        tidied.gate.arrived().await;
        id
    });
    first.kill(&stage.store);
    Process::start().run(async {
        let mut pipe = Pipe::open(&replica_with(&stage, &tidied, once).0);
        assert_eq!(get(&mut pipe, &id).await["status"], "cancelled");
        parked().await;
        assert_eq!(tidied.said(), ["began"], "the cleanup does not start again");
        assert_eq!(events(&stage.store, &id).await.last().unwrap(), "cleanup-failed");
    });
}

#[tokio::test(start_paused = true)]
async fn failing_panicking_or_slow_cleanup_is_audited_and_not_repeated() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let (server, _) = replica(&stage, &tidied);
    let mut pipe = Pipe::open(&server);
    for (tool, said) in [("fails", "failing"), ("panics", "panicking"), ("slow", "began")] {
        let id = start(&mut pipe, tool, json!({})).await;
        stage.gate.arrived().await;
        cancel(&mut pipe, &id).await;
        grace().await;
        assert_eq!(tidied.until(1).await, [said]);
        // Longer than the cleanup timeout and the lease.
        tokio::time::sleep(Duration::from_secs(61)).await;
        stage.store.advance_clock(super::stage::LEASE * 2);
        parked().await;
        assert_eq!(get(&mut pipe, &id).await["status"], "cancelled");
        assert_eq!(events(&stage.store, &id).await.last().unwrap(), "cleanup-failed", "{tool}");
        assert_eq!(tidied.said(), [said], "the cleanup does not start again");
        tidied.said.lock().unwrap().clear();
    }
    assert_eq!(tidied.gate.count_abandoned(), 1, "a slow cleanup is dropped");
}

#[tokio::test(start_paused = true)]
async fn running_cleanup_renews_its_lease() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let (server, _) = replica(&stage, &tidied);
    let (_other, _) = replica(&stage, &tidied);
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "slow", json!({})).await;
    stage.gate.arrived().await;
    cancel(&mut pipe, &id).await;
    grace().await;
    tidied.gate.arrived().await;
    for _ in 0..4 {
        // Heartbeats come every third of a lease.
        tokio::time::sleep(super::stage::LEASE / 3).await;
        stage.store.advance_clock(super::stage::LEASE / 2);
    }
    assert_eq!(tidied.said(), ["began"]);
    tidied.gate.open(1);
    assert_eq!(tidied.until(2).await, ["began", "done"]);
    assert!(events(&stage.store, &id).await.contains(&"cleanup-done".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn drained_server_releases_its_cleanups() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let (server, _) = replica(&stage, &tidied);
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "slow", json!({})).await;
    stage.gate.arrived().await;
    cancel(&mut pipe, &id).await;
    grace().await;
    tidied.gate.arrived().await;
    server.drain(Duration::from_secs(1)).await;
    tidied.gate.abandoned().await;
    let mut pipe = Pipe::open(&replica(&stage, &tidied).0);
    tidied.gate.open(1);
    assert_eq!(get(&mut pipe, &id).await["status"], "cancelled");
    assert_eq!(tidied.until(3).await, ["began", "began", "done"], "without waiting for a lease");
}

#[test]
fn invalid_cleanup_handler_fails_build() {
    async fn durable(_: Durable) {}
    async fn nothing() {}
    async fn missing(_: State<Vec<Principal>>) {}
    let build = |tool: Tool| {
        let server = Server::builder("s", "1").tasks(TaskConfig::in_memory()).tool(tool).build();
        server.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let always = || Tool::new("t", polite).task(TaskPolicy::Always);
    assert!(build(always().cleanup(durable)).contains("`Cleanup`"));
    assert!(build(always().cleanup(missing)).contains("Principal"));
    assert!(build(Tool::new("t", polite).cleanup(nothing)).contains("`.task(…)`"));
    assert_eq!(build(always().cleanup(nothing)), "");
}
