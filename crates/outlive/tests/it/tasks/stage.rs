//! Replicas over one store with a manual clock, and tools with gates, for the tests of races and
//! crashes.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive::{
    Form,
    server::{
        ContentBlock, Durable, Principal, Result, SealKeys, Server, ServerBuilder, State, Tool,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{MemoryStore, Store, TaskRecord},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::world::{Counts, builder, get, holds, modern, start};
use crate::support::{
    fail_points::{FailPoints, Op},
    gate::Gate,
    pipe::{Pipe, with_meta},
};

/// Lease duration, on the store's clock, which only the test advances.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// TTL of a task.
pub(super) const TTL: Duration = Duration::from_secs(3600);

/// Maximum TTL of a task that waits for input.
pub(super) const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3600);

/// The legacy version with tasks.
pub(super) const LEGACY: &str = "2025-11-25";

/// Executed effects by idempotency key, as an external system would see them.
#[derive(Clone, Default)]
pub(super) struct Effects(Arc<Mutex<BTreeMap<String, u32>>>);

impl Effects {
    fn add(&self, key: String) {
        *self.0.lock().unwrap().entry(key).or_default() += 1;
    }

    /// Number of distinct keys, and number of executions.
    pub(super) fn count(&self) -> (usize, u32) {
        let done = self.0.lock().unwrap();
        (done.len(), done.values().sum())
    }
}

/// State that outlives a replica.
#[derive(Clone)]
pub(super) struct Stage<S = MemoryStore> {
    pub(super) store: Arc<S>,
    pub(super) counts: Counts,
    pub(super) effects: Effects,
    /// The gate of the tools `gated`, `patient`, `hurried`, `moves_on`, `emits` and `order`.
    pub(super) gate: Gate,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self::over(MemoryStore::new())
    }
}

impl<S: Store> Stage<S> {
    pub(super) fn over(store: S) -> Self {
        let store = Arc::new(store);
        let (counts, effects, gate) = (Counts::default(), Effects::default(), Gate::default());
        Self { store, counts, effects, gate }
    }

    /// The same state with another store.
    pub(super) fn with<T: Store>(&self, store: T) -> Stage<T> {
        let store = Arc::new(store);
        let (counts, effects) = (self.counts.clone(), self.effects.clone());
        Stage { store, counts, effects, gate: self.gate.clone() }
    }

    /// A replica of the server, and its own fail points over the store.
    pub(super) fn replica(&self) -> (Server, Arc<FailPoints>) {
        let points = FailPoints::over(Arc::clone(&self.store) as _);
        (self.builder(&points, |config| config).build().unwrap(), points)
    }

    /// Like [`Stage::replica`], with a changed configuration.
    pub(super) fn builder(
        &self,
        points: &Arc<FailPoints>,
        change: impl FnOnce(TaskConfig) -> TaskConfig,
    ) -> ServerBuilder {
        let config = TaskConfig::new(Arc::clone(points) as _).ttl(TTL).max_ttl(MAX_TTL);
        let config = change(config.engine(|engine| {
            engine.lease_duration = LEASE;
            engine.poll_interval = Duration::from_millis(500);
            engine.park_after = Duration::from_millis(50);
            engine.sweep_interval = Duration::ZERO;
        }));
        let always = |tool: Tool| tool.task(TaskPolicy::Always);
        builder(config, &self.counts)
            .state(self.gate.clone())
            .state(self.effects.clone())
            .seal_keys(SealKeys::new([5; 32]))
            .tool(always(Tool::new("gated", gated).idempotent()))
            .tool(Tool::new("patient", gated).task(TaskPolicy::Auto { after: TTL }))
            .tool(always(Tool::new("both", both)))
            .tool(always(Tool::new("hurried", hurried)))
            .tool(always(Tool::new("moves_on", moves_on)))
            .tool(always(Tool::new("twice", twice)))
            .tool(always(Tool::new("emits", emits)))
            .tool(always(Tool::new("order", order)))
            .tool(always(Tool::new("pay", pay).uses_step_once()))
    }

    /// Creates a task that no worker has claimed.
    pub(super) async fn queue(&self, tool: &str) -> String {
        let points = FailPoints::over(Arc::clone(&self.store) as _);
        let idle = |config: TaskConfig| config.engine(|engine| engine.max_running = 0);
        let server = self.builder(&points, idle).build().unwrap();
        start(&mut Pipe::open(&server), tool, json!({})).await
    }

    /// Creates a task that this replica runs. A claim can fail only if another replica created the
    /// task.
    pub(super) async fn run(&self, pipe: &mut Pipe, tool: &str, op: Op) -> String {
        match op {
            Op::Claim => {
                let id = self.queue(tool).await;
                get(pipe, &id).await;
                id
            }
            _ => start(pipe, tool, json!({})).await,
        }
    }

    /// Returns all tasks of the principal of the pipes.
    pub(super) async fn tasks(&self) -> Vec<TaskRecord> {
        let mut tasks = Vec::new();
        for origin in ["modern", "legacy"] {
            tasks.extend(self.store.list(Principal::LOCAL.key(), origin, None, 100).await.unwrap());
        }
        tasks
    }
}

/// Waits at the gate.
async fn gated(gate: State<Gate>) -> &'static str {
    gate.pass().await;
    "done"
}

#[derive(Deserialize, JsonSchema, Form)]
struct Sure {
    yes: bool,
}

/// Makes two input requests in parallel.
pub(super) async fn both(cx: Durable) -> Result<String> {
    let (a, b) = tokio::join!(cx.elicit::<Sure>("a", "First?"), cx.elicit::<Sure>("b", "Second?"));
    Ok(format!("{} {}", a?.yes, b?.yes))
}

/// Elicits, and returns without the response when the gate opens.
async fn hurried(cx: Durable, gate: State<Gate>) -> Result<String> {
    let mut question = std::pin::pin!(cx.elicit::<Sure>("sure", "Are you sure?"));
    tokio::select! {
        biased;
        sure = &mut question => Ok(format!("sure: {}", sure?.yes)),
        () = gate.pass() => Ok("without you".to_owned()),
    }
}

/// Elicits, stops waiting when the gate opens, and elicits something else.
async fn moves_on(cx: Durable, gate: State<Gate>) -> Result<String> {
    let first = async {
        tokio::select! {
            biased;
            sure = cx.elicit::<Sure>("first", "First?") => sure.map(|sure| Some(sure.yes)),
            () = gate.pass() => Ok(None),
        }
    };
    let first = first.await?;
    let second: Sure = cx.elicit("second", "Second?").await?;
    Ok(format!("{first:?} {}", second.yes))
}

/// Uses one key for two input requests.
async fn twice(cx: Durable) -> Result<String> {
    let (a, b) = tokio::join!(cx.elicit::<Sure>("k", "One?"), cx.elicit::<Sure>("k", "Two?"));
    Ok(format!("{} {}", a?.yes, b?.yes))
}

/// Emits before the gate and at the end.
async fn emits(cx: Durable, gate: State<Gate>) -> Result<String> {
    cx.emit(ContentBlock::text("one")).await?;
    cx.emit(ContentBlock::text("two")).await?;
    gate.pass().await;
    cx.emit(ContentBlock::text("three")).await?;
    Ok("end".to_owned())
}

/// Runs a step, elicits, runs another step, and emits in between.
pub(super) async fn order(cx: Durable, effects: State<Effects>) -> Result<String> {
    let act = async |key: &str| {
        cx.step(key, async || {
            effects.add(cx.idempotency_key(key));
            Ok(())
        })
        .await
    };
    act("reserve").await?;
    cx.emit(ContentBlock::text("reserved")).await?;
    let sure: Sure = cx.elicit("sure", "Pay?").await?;
    act("pay").await?;
    cx.emit(ContentBlock::text("paid")).await?;
    Ok(format!("ordered: {}", sure.yes))
}

/// The same, but it waits at the gate after the input response.
pub(super) async fn slow_order(
    cx: Durable,
    effects: State<Effects>,
    gate: State<Gate>,
) -> Result<String> {
    let act = async |key: &str| {
        cx.step(key, async || {
            effects.add(cx.idempotency_key(key));
            Ok(())
        })
        .await
    };
    act("reserve").await?;
    let sure: Sure = cx.elicit("sure", "Pay?").await?;
    gate.pass().await;
    act("pay").await?;
    Ok(format!("ordered: {}", sure.yes))
}

/// Runs `step_once`.
async fn pay(cx: Durable, effects: State<Effects>) -> Result<String> {
    let paid = cx.step_once("pay", async || {
        effects.add(cx.idempotency_key("pay"));
        Ok(7)
    });
    match paid.await {
        Ok(receipt) => Ok(format!("receipt {receipt}")),
        Err(error) => Ok(format!("unknown: {error}")),
    }
}

/// A simulated process: a runtime with paused time that a test can drop in the middle of any
/// operation.
pub(super) struct Process(tokio::runtime::Runtime);

impl Process {
    pub(super) fn start() -> Self {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        Self(runtime.enable_all().start_paused(true).build().unwrap())
    }

    /// A process in real time, for stores with their own threads.
    pub(super) fn start_in_real_time() -> Self {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        Self(runtime.enable_all().build().unwrap())
    }

    pub(super) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.block_on(work)
    }

    /// Crashes the process and lets its leases expire.
    pub(super) fn kill(self, store: &MemoryStore) {
        drop(self);
        store.advance_clock(LEASE * 2);
    }
}

/// Sends a modern request of a client with task support, without waiting.
pub(super) async fn send(pipe: &mut Pipe, method: &str, mut params: Value) -> u64 {
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = holds();
    pipe.send_as_is(method, with_meta(params)).await
}

/// Parameters of `tasks/update` with these form responses.
pub(super) fn update(id: &str, answers: &[(&str, bool)]) -> Value {
    let mut params = json!({"taskId": id, "inputResponses": {}});
    for (name, yes) in answers {
        params["inputResponses"][name] = json!({"action": "accept", "content": {"yes": yes}});
    }
    params
}

/// Sends input responses and expects the acknowledgement.
pub(super) async fn answer(pipe: &mut Pipe, id: &str, answers: &[(&str, bool)]) {
    acknowledged(&modern(pipe, "tasks/update", update(id, answers)).await);
}

#[track_caller]
pub(super) fn acknowledged(answer: &Value) {
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert!(answer["result"].get("taskId").is_none(), "{answer}");
}

/// Returns the keys of the open input requests of a task.
pub(super) fn asked(task: &Value) -> Vec<String> {
    let requests = task.get("inputRequests").and_then(Value::as_object);
    requests.map(|requests| requests.keys().cloned().collect()).unwrap_or_default()
}

/// Polls until a task has these open input requests.
pub(super) async fn until_asked(pipe: &mut Pipe, id: &str, names: &[&str]) -> Value {
    for _ in 0..500 {
        let task = get(pipe, id).await;
        if asked(&task) == names {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} has no input requests {names:?}: {}", get(pipe, id).await);
}

/// Waits until an idle run is parked.
pub(super) async fn parked() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// A client of 2025-11-25 with elicitation.
pub(super) async fn legacy(server: &Server) -> Pipe {
    let mut pipe = Pipe::open(server);
    pipe.legacy_with(LEGACY, json!({"elicitation": {}})).await;
    pipe
}

/// Calls a tool as a task of 2025-11-25.
pub(super) async fn start_legacy(pipe: &mut Pipe, tool: &str) -> String {
    let created = pipe.result("tools/call", json!({"name": tool, "task": {}})).await;
    created["task"]["taskId"].as_str().unwrap().to_owned()
}

pub(super) async fn legacy_status(pipe: &mut Pipe, id: &str) -> String {
    let task = pipe.result("tasks/get", json!({"taskId": id})).await;
    task["status"].as_str().unwrap().to_owned()
}
