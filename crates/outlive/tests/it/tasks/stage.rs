//! Where races and crashes are played: replicas over one store whose time only the test moves, and
//! tools that stop where the test wants them.

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

/// How long a worker has a task. By the store's time, which stands still unless it is moved.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// How long a task exists.
pub(super) const TTL: Duration = Duration::from_secs(3600);

/// How long it may exist while something is asked.
pub(super) const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3600);

/// The revision of the older wire that has tasks.
pub(super) const LEGACY: &str = "2025-11-25";

/// What was done outside, by the key that the foreign system was given.
#[derive(Clone, Default)]
pub(super) struct Effects(Arc<Mutex<BTreeMap<String, u32>>>);

impl Effects {
    fn add(&self, key: String) {
        *self.0.lock().unwrap().entry(key).or_default() += 1;
    }

    /// How many different things were done, and how often altogether.
    pub(super) fn count(&self) -> (usize, u32) {
        let done = self.0.lock().unwrap();
        (done.len(), done.values().sum())
    }
}

/// Everything that outlives a replica.
#[derive(Clone)]
pub(super) struct Stage<S = MemoryStore> {
    pub(super) store: Arc<S>,
    pub(super) counts: Counts,
    pub(super) effects: Effects,
    /// Where the tools `gated`, `patient`, `hurried`, `moves_on`, `emits` and `order` stop.
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

    /// The same, with another store.
    pub(super) fn with<T: Store>(&self, store: T) -> Stage<T> {
        let store = Arc::new(store);
        let (counts, effects) = (self.counts.clone(), self.effects.clone());
        Stage { store, counts, effects, gate: self.gate.clone() }
    }

    /// A replica of the server, and the store as only this one sees it.
    pub(super) fn replica(&self) -> (Server, Arc<FailPoints>) {
        let points = FailPoints::over(Arc::clone(&self.store) as _);
        (self.builder(&points, |config| config).build().unwrap(), points)
    }

    /// As [`Stage::replica`], changed a little.
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

    /// Makes a task that nobody has taken yet.
    pub(super) async fn queue(&self, tool: &str) -> String {
        let points = FailPoints::over(Arc::clone(&self.store) as _);
        let idle = |config: TaskConfig| config.engine(|engine| engine.max_running = 0);
        let server = self.builder(&points, idle).build().unwrap();
        start(&mut Pipe::open(&server), tool, json!({})).await
    }

    /// Has a task made, and run by this replica: one that is to fail where a task is taken must
    /// not have made it.
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

    /// All tasks of who uses the pipes.
    pub(super) async fn tasks(&self) -> Vec<TaskRecord> {
        let mut tasks = Vec::new();
        for origin in ["modern", "legacy"] {
            tasks.extend(self.store.list(Principal::LOCAL.key(), origin, None, 100).await.unwrap());
        }
        tasks
    }
}

/// Goes through the gate.
async fn gated(gate: State<Gate>) -> &'static str {
    gate.pass().await;
    "done"
}

#[derive(Deserialize, JsonSchema, Form)]
struct Sure {
    yes: bool,
}

/// Asks two things at once.
pub(super) async fn both(cx: Durable) -> Result<String> {
    let (a, b) = tokio::join!(cx.elicit::<Sure>("a", "First?"), cx.elicit::<Sure>("b", "Second?"));
    Ok(format!("{} {}", a?.yes, b?.yes))
}

/// Asks, and ends without the answer when the gate is opened.
async fn hurried(cx: Durable, gate: State<Gate>) -> Result<String> {
    let mut question = std::pin::pin!(cx.elicit::<Sure>("sure", "Are you sure?"));
    tokio::select! {
        biased;
        sure = &mut question => Ok(format!("sure: {}", sure?.yes)),
        () = gate.pass() => Ok("without you".to_owned()),
    }
}

/// Asks, does not wait when the gate is opened, and asks something else.
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

/// Uses one key for two questions.
async fn twice(cx: Durable) -> Result<String> {
    let (a, b) = tokio::join!(cx.elicit::<Sure>("k", "One?"), cx.elicit::<Sure>("k", "Two?"));
    Ok(format!("{} {}", a?.yes, b?.yes))
}

/// Says something before the gate, and something when it ends.
async fn emits(cx: Durable, gate: State<Gate>) -> Result<String> {
    cx.emit(ContentBlock::text("one")).await?;
    cx.emit(ContentBlock::text("two")).await?;
    gate.pass().await;
    cx.emit(ContentBlock::text("three")).await?;
    Ok("end".to_owned())
}

/// Does something outside, asks, does something more, and says what it does.
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

/// The same, but it takes its time when it was answered.
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

/// Does something that must not be done twice.
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

/// A process, as far as a server can be one inside of another: time in it jumps when nothing can
/// happen, and it can be lost in the middle of whatever it does. What is dropped with it does not
/// run any more.
pub(super) struct Process(tokio::runtime::Runtime);

impl Process {
    pub(super) fn start() -> Self {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        Self(runtime.enable_all().start_paused(true).build().unwrap())
    }

    /// One whose time does not jump: a store with threads of its own would seem not to answer.
    pub(super) fn start_in_real_time() -> Self {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        Self(runtime.enable_all().build().unwrap())
    }

    pub(super) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.block_on(work)
    }

    /// It is lost; who it leaves behind learns of it by its leases.
    pub(super) fn kill(self, store: &MemoryStore) {
        drop(self);
        store.advance_clock(LEASE * 2);
    }
}

/// Sends a modern request of a client that holds tasks, and does not wait.
pub(super) async fn send(pipe: &mut Pipe, method: &str, mut params: Value) -> u64 {
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = holds();
    pipe.send_as_is(method, with_meta(params)).await
}

/// What an update says that agrees, or does not.
pub(super) fn update(id: &str, answers: &[(&str, bool)]) -> Value {
    let mut params = json!({"taskId": id, "inputResponses": {}});
    for (name, yes) in answers {
        params["inputResponses"][name] = json!({"action": "accept", "content": {"yes": yes}});
    }
    params
}

/// Answers, and wants it acknowledged.
pub(super) async fn answer(pipe: &mut Pipe, id: &str, answers: &[(&str, bool)]) {
    acknowledged(&modern(pipe, "tasks/update", update(id, answers)).await);
}

#[track_caller]
pub(super) fn acknowledged(answer: &Value) {
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert!(answer["result"].get("taskId").is_none(), "{answer}");
}

/// The names of what a task asks its client.
pub(super) fn asked(task: &Value) -> Vec<String> {
    let requests = task.get("inputRequests").and_then(Value::as_object);
    requests.map(|requests| requests.keys().cloned().collect()).unwrap_or_default()
}

/// Waits until a task asks this.
pub(super) async fn until_asked(pipe: &mut Pipe, id: &str, names: &[&str]) -> Value {
    for _ in 0..500 {
        let task = get(pipe, id).await;
        if asked(&task) == names {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} never asked {names:?}: {}", get(pipe, id).await);
}

/// Lets a run that waits for an answer be dropped from memory.
pub(super) async fn parked() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// A client of 2025-11-25 that can be asked.
pub(super) async fn legacy(server: &Server) -> Pipe {
    let mut pipe = Pipe::open(server);
    pipe.legacy_with(LEGACY, json!({"elicitation": {}})).await;
    pipe
}

/// Calls a tool as a task, as that client does.
pub(super) async fn start_legacy(pipe: &mut Pipe, tool: &str) -> String {
    let created = pipe.result("tools/call", json!({"name": tool, "task": {}})).await;
    created["task"]["taskId"].as_str().unwrap().to_owned()
}

pub(super) async fn legacy_status(pipe: &mut Pipe, id: &str) -> String {
    let task = pipe.result("tasks/get", json!({"taskId": id})).await;
    task["status"].as_str().unwrap().to_owned()
}
