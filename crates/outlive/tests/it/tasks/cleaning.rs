//! What is done after tasks that were cancelled or have expired.

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

/// What clean-ups have said, and where they stop if a test wants it.
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

    /// Waits for so many.
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

/// Says all it can know.
async fn unreserve(task: Cleanup, Args(item): Args<Item>, tidied: State<Tidied>) -> Result<()> {
    let reserved = task.get::<()>("reserve")?.is_some();
    let paid = task.get::<()>("pay")?.is_some();
    let item = item.item.unwrap_or_default();
    tidied.say(format!("{:?} {item} reserved {reserved} paid {paid}", task.reason()));
    Ok(())
}

/// Says how many runs have been dropped before it.
async fn counts(tidied: State<Tidied>, stage: State<Gate>) {
    tidied.say(format!("after {}", stage.count_abandoned()));
}

/// Stops at the gate.
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

/// A replica whose tools tidy up.
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

/// Lets a task that was asked to stop have its grace.
async fn grace() {
    tokio::time::sleep(Duration::from_secs(31)).await;
}

/// What has happened to a task, but for looks.
pub(super) async fn events(store: &MemoryStore, id: &str) -> Vec<String> {
    // They are gathered before they are written.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let events = store.read(Some(id), 0, 100).await.unwrap();
    let what = events.into_iter().map(|audit| audit.event.action);
    what.filter(|what| what != "retrieved").collect()
}

// T2-70
#[tokio::test(start_paused = true)]
async fn a_task_that_waited_for_an_answer_is_cancelled_at_once_and_cleaned_up_after() {
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
    assert_eq!(get(&mut pipe, &id).await, cancelled, "nobody sees anything of it");
    parked().await;
    assert_eq!(tidied.said().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_did_not_stop_in_its_grace_is_dropped_and_cleaned_up_after() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let (server, _) = replica(&stage, &tidied);
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "counts", json!({})).await;
    stage.gate.arrived().await;
    cancel(&mut pipe, &id).await;
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert!(tidied.said().is_empty(), "it has time to stop");
    grace().await;
    assert_eq!(get(&mut pipe, &id).await["status"], "cancelled");
    assert_eq!(tidied.until(1).await, ["after 1"]);
}

#[tokio::test(start_paused = true)]
async fn on_the_older_wire_the_run_is_gone_before_it_is_cleaned_up_after() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let (server, _) = replica(&stage, &tidied);
    // A replica that has nothing to do would clean up at once, if it were due.
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
async fn a_task_whose_time_is_over_is_cleaned_up_after() {
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
async fn who_comes_to_an_end_or_has_not_begun_leaves_nothing_behind() {
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
fn a_cancel_that_was_acknowledged_is_cleaned_up_after_by_whoever_is_left() {
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
fn what_was_running_where_its_process_was_lost_is_cleaned_up_after() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let first = Process::start();
    let id = first.run(async {
        let mut pipe = legacy(&replica(&stage, &tidied).0).await;
        let id = start_legacy(&mut pipe, "counts").await;
        stage.gate.arrived().await;
        id
    });
    // Its caller cancels it elsewhere, before anybody knows that its process is lost.
    drop(first);
    Process::start().run(async {
        let mut pipe = legacy(&replica(&stage, &tidied).0).await;
        let cancelled = pipe.result("tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(cancelled["status"], "cancelled");
        parked().await;
        assert!(tidied.said().is_empty(), "its run may be alive for as long as its lease");
        stage.store.advance_clock(super::stage::LEASE);
        assert_eq!(tidied.until(1).await, ["after 1"]);
    });
}

#[test]
fn a_clean_up_that_is_lost_half_way_is_done_again_by_another() {
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
    // Nobody knows that it was done.
    Process::start().run(async {
        let mut pipe = Pipe::open(&replica(&stage, &tidied).0);
        tidied.gate.open(1);
        get(&mut pipe, &id).await;
        assert_eq!(tidied.until(5).await, ["began", "began", "done", "began", "done"]);
        parked().await;
        stage.store.advance_clock(super::stage::LEASE * 2);
        parked().await;
        assert_eq!(tidied.said().len(), 5, "but now it is known");
    });
}

#[test]
fn a_clean_up_that_ends_its_workers_is_given_up() {
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
        assert_eq!(tidied.said(), ["began"], "it is not begun again");
        assert_eq!(events(&stage.store, &id).await.last().unwrap(), "cleanup-failed");
    });
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_that_fails_panics_or_takes_too_long_is_written_down_and_over() {
    let (stage, tidied) = (Stage::new(), Tidied::default());
    let (server, _) = replica(&stage, &tidied);
    let mut pipe = Pipe::open(&server);
    for (tool, said) in [("fails", "failing"), ("panics", "panicking"), ("slow", "began")] {
        let id = start(&mut pipe, tool, json!({})).await;
        stage.gate.arrived().await;
        cancel(&mut pipe, &id).await;
        grace().await;
        assert_eq!(tidied.until(1).await, [said]);
        // Longer than it may take, and than its lease.
        tokio::time::sleep(Duration::from_secs(61)).await;
        stage.store.advance_clock(super::stage::LEASE * 2);
        parked().await;
        assert_eq!(get(&mut pipe, &id).await["status"], "cancelled");
        assert_eq!(events(&stage.store, &id).await.last().unwrap(), "cleanup-failed", "{tool}");
        assert_eq!(tidied.said(), [said], "and it is not begun again");
        tidied.said.lock().unwrap().clear();
    }
    assert_eq!(tidied.gate.count_abandoned(), 1, "what takes too long is dropped");
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_is_kept_for_longer_than_its_lease_while_it_is_at_work() {
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
        // Renewals come every third of a lease.
        tokio::time::sleep(super::stage::LEASE / 3).await;
        stage.store.advance_clock(super::stage::LEASE / 2);
    }
    assert_eq!(tidied.said(), ["began"]);
    tidied.gate.open(1);
    assert_eq!(tidied.until(2).await, ["began", "done"]);
    assert!(events(&stage.store, &id).await.contains(&"cleanup-done".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_gives_its_clean_ups_to_others() {
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
fn a_clean_up_that_could_never_be_done_is_refused_when_the_server_is_built() {
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
