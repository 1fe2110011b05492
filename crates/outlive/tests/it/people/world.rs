//! A store with one task of ann, and people with every role.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use outlive::{
    people::{Answer, Channel, People, PeopleConfig, Visitor},
    server::{
        Args, Principal, Scopes, Server, Tool,
        approve::Approve,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{
        Audience, AuditLog as _, AuditRecord, Binding, MemoryStore, NewInputRequest, NewTask,
        TaskId, TaskStore as _,
    },
    wire::{InputRequest, RawJson},
};
use outlive_tasks::delegate_store;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json, value::to_raw_value};

/// Digest of the approval request in [`World::new`].
pub(super) const DIGEST: &str = "4ade91c2";

/// A store that counts the statements.
#[derive(Default)]
pub(super) struct CountingStore {
    inner: MemoryStore,
    statements: AtomicUsize,
}

impl CountingStore {
    fn counted(&self) -> &MemoryStore {
        self.statements.fetch_add(1, Ordering::Relaxed);
        &self.inner
    }

    pub(super) fn statements(&self) -> usize {
        self.statements.load(Ordering::Relaxed)
    }
}

delegate_store!(
    impl TaskStore, WorkQueue, BridgeStore, InputStore, KeyValueStore, ResultStore, AuditLog,
        StoreMonitor, OperatorStore, TaskIndex, DecisionStore, DeliveryQueue, MetricStore
        for CountingStore: |store| store.counted()
);

/// A store, its people, and the functions of a server on it.
pub(super) struct World {
    pub(super) store: Arc<CountingStore>,
    pub(super) people: People,
    /// A task of ann that waits for a vote of ben or cid, for a form and for ann.
    pub(super) task: TaskId,
}

#[derive(Deserialize, JsonSchema)]
struct Deploy {
    #[expect(dead_code, reason = "only shown")]
    version: String,
}

async fn deploy(Args(_): Args<Deploy>) -> &'static str {
    "deployed"
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(Approve::by(["ben", "cid"]).links(true)).await
    }

    /// Creates a world whose tool has this rule.
    pub(super) async fn with(approve: Approve) -> Self {
        let store = Arc::new(CountingStore::default());
        let tool = Tool::new("deploy", deploy).task(TaskPolicy::Always).approve(approve);
        let secret = Tool::new("secured", deploy).task(TaskPolicy::Always).scopes(["deploy"]);
        let server = Server::builder("people", "1")
            .tasks(TaskConfig::people(store.clone()).index_tasks(true))
            .tool(tool)
            .tool(secret)
            .build()
            .unwrap();
        let people = People::new(&server).unwrap();
        let task = TaskId::new("task-of-ann");
        let world = Self { store, people, task };
        let names = Audience::Names(vec!["ben".to_owned(), "cid".to_owned()]);
        let requests = vec![
            approval("#approval", names),
            NewInputRequest::new("form", "form", Some(form())),
            NewInputRequest::new("own", "own", Some(form())).audience(Audience::Caller),
        ];
        world.create("task-of-ann", "ann", "deploy", requests).await;
        world
    }

    /// Creates a parked task of a person.
    pub(super) async fn create(
        &self,
        id: &str,
        person: &str,
        tool: &str,
        requests: Vec<NewInputRequest>,
    ) {
        let principal = format!("name:{person}");
        let task = NewTask::new(TaskId::new(id), principal, tool, "test", call("1.4.2"))
            .person(Some(person.to_owned()))
            .indexed(true)
            .input_requests(requests);
        assert!(self.store.create(task).await.unwrap().is_new());
    }

    /// Returns the actions and reasons in the audit log, oldest first.
    pub(super) async fn events(&self) -> Vec<(String, String, Option<String>)> {
        let records: Vec<AuditRecord> = self.store.read(None, 0, 10_000).await.unwrap();
        let event = |it: AuditRecord| (it.event.principal, it.event.action, it.event.reason);
        records.into_iter().map(event).collect()
    }

    /// Returns the actions in the audit log, oldest first.
    pub(super) async fn actions(&self) -> Vec<String> {
        self.events().await.into_iter().map(|(_, action, _)| action).collect()
    }
}

/// Returns an approval request.
pub(super) fn approval(name: &str, audience: Audience) -> NewInputRequest {
    NewInputRequest::new(name, name, Some(message("Approve `deploy`?")))
        .audience(audience)
        .binding(Some(Binding::new(DIGEST, "definition")))
}

/// Returns a form with one required whole number.
pub(super) fn form() -> InputRequest {
    let schema = json!({"type": "object", "required": ["replicas"],
        "properties": {"replicas": {"type": "integer", "maximum": 9}, "note": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "How many?", "requestedSchema": schema});
    serde_json::from_value(json!({"method": "elicitation/create", "params": params})).unwrap()
}

/// Returns a form without fields.
pub(super) fn message(text: &str) -> InputRequest {
    let schema = json!({"type": "object", "properties": {}});
    let params = json!({"mode": "form", "message": text, "requestedSchema": schema});
    serde_json::from_value(json!({"method": "elicitation/create", "params": params})).unwrap()
}

/// Returns a stored call of a client with tasks.
pub(super) fn call(version: &str) -> RawJson {
    call_of("deploy", json!({"version": version}))
}

/// Returns a stored call of a tool.
pub(super) fn call_of(tool: &str, arguments: Value) -> RawJson {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": meta}});
    to_raw_value(&json!({"version": "2026-07-28", "message": message})).unwrap()
}

/// Roles and settings of the tests.
pub(super) fn config() -> PeopleConfig {
    PeopleConfig {
        operators: vec!["ada".to_owned()],
        viewers: vec!["vic".to_owned()],
        ..PeopleConfig::default()
    }
}

/// Returns a person who is signed in to the console.
pub(super) fn signed_in(person: &str) -> Visitor {
    Visitor::new(&Principal::named(person).deciding(), &config(), Channel::Console)
}

/// Returns a person who is signed in with a scope.
pub(super) fn with_scope(person: &str, scope: &str) -> Visitor {
    let principal = Principal::named(person).with_scopes(Scopes::of([scope])).deciding();
    Visitor::new(&principal, &config(), Channel::Console)
}

/// Returns the MCP token of a person.
pub(super) fn token(person: &str) -> Visitor {
    Visitor::new(&Principal::named(person), &config(), Channel::Api)
}

/// Returns an approval.
pub(super) fn accept() -> Answer {
    Answer { digest: DIGEST.to_owned(), accepts: true, ..Answer::default() }
}

/// Returns a denial.
pub(super) fn deny(reason: &str) -> Answer {
    Answer { accepts: false, reason: Some(reason.to_owned()), ..accept() }
}
