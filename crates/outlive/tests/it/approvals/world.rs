//! A gated tool, its callers and its approvers.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use outlive::{
    server::{
        Args, Clock, Principal, SealKeys, Server, ServerBuilder, State, Tool,
        approve::Approve,
        hosts::Hosts,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{
        Decision, DecisionOutcome, DecisionStore, InboxItem, InboxReader, MemoryStore, TaskId,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::pipe::{Pipe, raw, result};

pub(super) const HOUR: Duration = Duration::from_secs(3_600);

/// Call timeout of the clients. The slice is 4.1 seconds.
const CALL_TIMEOUT: Duration = Duration::from_secs(6);

/// A wall clock that the test advances together with the clock of the store.
#[derive(Clone, Debug, Default)]
struct Wall(Arc<AtomicU64>);

impl Clock for Wall {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now() + Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(span))
    }
}

/// Executed calls, as an external system would see them.
#[derive(Clone, Default)]
pub(super) struct Runs(Arc<Mutex<Vec<String>>>);

impl Runs {
    pub(super) fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// The store, the clock and the executed calls.
#[derive(Clone, Default)]
pub(super) struct World {
    pub(super) store: Arc<MemoryStore>,
    pub(super) runs: Runs,
    wall: Wall,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Deploy {
    version: String,
    #[serde(default = "prod")]
    env: String,
}

impl Deploy {
    pub(super) fn is_prod(&self) -> bool {
        self.env == "prod"
    }
}

fn prod() -> String {
    "prod".to_owned()
}

async fn deploy(runs: State<Runs>, Args(deploy): Args<Deploy>) -> String {
    runs.add(format!("{} {}", deploy.version, deploy.env));
    format!("deployed {} to {}", deploy.version, deploy.env)
}

/// The tool `deploy` without a rule.
pub(super) fn plain_tool() -> Tool {
    Tool::new("deploy", deploy)
}

/// The tool `deploy` under a rule.
pub(super) fn tool(approve: Approve) -> Tool {
    plain_tool().approve(approve)
}

/// A rule that two of three people satisfy.
pub(super) fn two_of_three() -> Approve {
    Approve::by(["ada", "ben", "cid"]).count(2)
}

/// A rule that one person satisfies.
pub(super) fn by_ada() -> Approve {
    Approve::by(["ada"])
}

pub(super) fn hosts() -> Hosts {
    Hosts::known().call_timeout(CALL_TIMEOUT)
}

impl World {
    /// The builder of a server over the store, without tools.
    pub(super) fn builder(&self, change: impl FnOnce(TaskConfig) -> TaskConfig) -> ServerBuilder {
        let config = TaskConfig::people(Arc::clone(&self.store) as _);
        let config = config.engine(|engine| engine.sweep_interval = Duration::from_secs(5));
        Server::builder("shop", "1")
            .seal_keys(SealKeys::new([9; 32]))
            .clock(self.wall.clone())
            .state(self.runs.clone())
            .tasks(change(config))
    }

    /// A server that bridges calls, with the tool `deploy` under a rule.
    pub(super) fn server(&self, approve: Approve) -> Server {
        self.server_of(tool(approve).task(TaskPolicy::auto()))
    }

    /// A server that bridges calls, with a tool.
    pub(super) fn server_of(&self, tool: Tool) -> Server {
        self.builder(|config| config.hosts(hosts())).tool(tool).build().unwrap()
    }

    /// A server without fallback tools, with the tool `deploy` under a rule.
    pub(super) fn server_without_hosts(&self, approve: Approve) -> Server {
        self.builder(|config| config).tool(tool(approve)).build().unwrap()
    }

    /// Advances all clocks.
    pub(super) async fn advance(&self, span: Duration) {
        self.wall.0.fetch_add(u64::try_from(span.as_millis()).unwrap(), Ordering::Relaxed);
        self.store.advance_clock(span);
        settle().await;
    }

    /// Returns the open requests to people, oldest first.
    pub(super) async fn open(&self) -> Vec<InboxItem> {
        self.store.open_for(&InboxReader::default().all(true), None, 100).await.unwrap()
    }

    /// Returns the only open request to people.
    pub(super) async fn only(&self) -> InboxItem {
        let mut open = self.open().await;
        assert_eq!(open.len(), 1, "{open:?}");
        open.remove(0)
    }

    /// Votes on a request with the digest that it shows, and lets the server react.
    pub(super) async fn vote(
        &self,
        item: &InboxItem,
        person: &str,
        accepts: bool,
    ) -> DecisionOutcome {
        self.decide(item, person, accepts, true).await
    }

    /// Approves a request as a person does whose server has another definition of the tool.
    pub(super) async fn approve_other_definition(
        &self,
        item: &InboxItem,
        person: &str,
    ) -> DecisionOutcome {
        self.decide(item, person, true, false).await
    }

    async fn decide(
        &self,
        item: &InboxItem,
        person: &str,
        accepts: bool,
        saw_definition: bool,
    ) -> DecisionOutcome {
        let action = if accepts { "accept" } else { "decline" };
        let reason = (!accepts).then_some("not before the freeze is over");
        let response = json!({"action": action, "reason": reason, "by": person});
        let digest = item.binding.as_ref().map(|binding| binding.digest.clone());
        let decision = Decision::new(Some(person.to_owned()), accepts, raw(&response))
            .scopes(vec!["ops".to_owned()])
            .reason(reason.map(str::to_owned))
            .digest(digest)
            .saw_definition(saw_definition);
        let outcome = self.store.decide(&item.task, &item.name, &decision).await.unwrap();
        settle().await;
        outcome
    }
}

/// Lets the server react to a change.
pub(super) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1_500)).await;
}

/// Connects the caller `ann` as a client of 2025-11-25 without tasks.
pub(super) async fn legacy(server: &Server) -> Pipe {
    Pipe::speaking_as(server, "2025-11-25", Principal::named("ann")).await
}

/// Connects the caller `ann` without a handshake.
pub(super) fn modern(server: &Server) -> Pipe {
    Pipe::open_as(server, Principal::named("ann"))
}

pub(super) fn call(version: &str) -> Value {
    json!({"name": "deploy", "arguments": {"version": version}})
}

/// Sends a request of a client with tasks.
pub(super) async fn with_tasks(pipe: &mut Pipe, method: &str, params: Value) -> Value {
    let capabilities =
        json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    result(&pipe.modern_with(capabilities, method, params).await)
}

/// Calls `deploy` as a client with tasks, and returns the task.
pub(super) async fn start(pipe: &mut Pipe, version: &str) -> Value {
    let task = with_tasks(pipe, "tools/call", call(version)).await;
    assert_eq!(task["resultType"], "task", "{task}");
    task
}

/// Returns the state of a task.
pub(super) async fn get(pipe: &mut Pipe, task: &Value) -> Value {
    with_tasks(pipe, "tasks/get", json!({"taskId": task["taskId"]})).await
}

/// Returns the state of an approval in the `_meta` of a result.
#[track_caller]
pub(super) fn approval_of(result: &Value) -> &str {
    let state = &result["_meta"]["dev.outlive/approval"]["state"];
    state.as_str().unwrap_or_else(|| panic!("an approval: {result}"))
}

pub(super) fn id_of(task: &Value) -> TaskId {
    TaskId::new(task["taskId"].as_str().unwrap())
}
