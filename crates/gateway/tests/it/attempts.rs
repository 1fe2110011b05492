//! Calls whose result is lost: reruns by policy, and calls that must not be repeated.

use std::{sync::Arc, time::Duration};

use outlive::{
    client::Version,
    server::{
        Cx, Server, Tool,
        tasks::{OnCrash, TaskConfig, TaskPolicy},
    },
    store::{MemoryStore, TaskId, TaskOutcome, TaskStore as _},
};
use outlive_gateway::{GatewaySettings, Policy, ToolSettings};
use serde_json::json;

use crate::support::{
    Counter, HttpUpstream, Served, Turnstile, eventually, executions_file, lines, process, text,
    tool_names,
};

/// Key of the principal of an in-memory client.
const LOCAL: &str = "local";

#[tokio::test(flavor = "multi_thread")]
async fn read_only_call_is_sent_again_after_its_process_exits() {
    for is_task in [false, true] {
        let file = executions_file();
        let served = Served::new([process("child", "serves", Some(&file))]);
        let client = served.client(Version::V2025_11_25).await;
        let result = match is_task {
            false => client.call_tool("child__safe_exit", json!({})).await.unwrap(),
            true => {
                let mut task = client.start_tool("child__safe_exit", json!({})).await.unwrap();
                task.wait().await.unwrap()
            }
        };
        assert_eq!(text(&result), "executed 2 times", "task: {is_task}");
        assert_eq!(lines(&file).len(), 2);
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_with_reruns_is_sent_as_often_as_max_attempts() {
    let policy = Policy::new().on_crash(OnCrash::Rerun).max_attempts(2);
    let exit = ToolSettings::new().policy(policy);
    let served = Served::new([process("child", "serves", None).tool("exit", exit)]);
    let client = served.client(Version::V2025_06_18).await;
    let shown = text(&client.call_tool("child__exit", json!({})).await.unwrap());
    assert!(shown.contains("was sent 2 times") && shown.contains("`child`"), "{shown}");
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_crash_of_the_settings_wins_over_hints() {
    let file = executions_file();
    let fails = ToolSettings::new().policy(Policy::new().on_crash(OnCrash::Fail));
    let child = process("child", "serves", Some(&file)).tool("safe_exit", fails);
    let served = Served::new([child]);
    let client = served.client(Version::V2025_06_18).await;
    let shown = text(&client.call_tool("child__safe_exit", json!({})).await.unwrap());
    assert!(shown.contains("it is unknown whether `child` executed the call"), "{shown}");
    assert_eq!(lines(&file).len(), 1);
    served.gateway.shutdown().await;
}

/// Returns the outcome of a task as text, once it has one.
async fn outcome(store: &MemoryStore, id: &str) -> String {
    let id = TaskId::new(id);
    let mut shown = None;
    eventually("the end of the task", async || {
        let record = store.get(LOCAL, &id).await.unwrap().unwrap();
        shown = record.outcome.map(|outcome| match outcome {
            TaskOutcome::Result(raw) => raw.get().to_owned(),
            other => format!("{other:?}"),
        });
        shown.is_some()
    })
    .await;
    shown.unwrap()
}

/// Starts a task on one server, stops that server, and returns the outcome that another one reports.
async fn interrupted(tool: Tool, executions: &Counter, gate: &Turnstile) -> String {
    let upstream =
        HttpUpstream::serve(Server::builder("up", "1").tool(tool).build().unwrap()).await;
    let store = Arc::new(MemoryStore::new());
    let settings = upstream.settings("up").policy(Policy::new().task(TaskPolicy::Always));
    let first = Served::on(Arc::clone(&store), GatewaySettings::new(), [settings.clone()]);
    let client = first.client(Version::V2025_11_25).await;
    let task = client.start_tool("up__wait", json!({})).await.unwrap();
    let id = task.task_id().unwrap().to_owned();
    eventually("the execution", async || executions.get() == 1).await;
    first.server.drain(Duration::ZERO).await;
    first.gateway.shutdown().await;
    let second = Served::on(Arc::clone(&store), GatewaySettings::new(), [settings]);
    // A server starts its worker with its first client.
    tool_names(&second.client(Version::V2025_11_25).await).await;
    gate.open();
    gate.open();
    let shown = outcome(&store, &id).await;
    second.gateway.shutdown().await;
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_call_fails_as_unknown_and_is_not_repeated() {
    let gate = Turnstile::default();
    let shown = interrupted(gate.tool("wait"), &gate.1, &gate).await;
    assert!(shown.contains("it is unknown whether `up` executed the call"), "{shown}");
    assert_eq!(gate.1.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_call_of_an_idempotent_tool_is_repeated() {
    let gate = Turnstile::default();
    let shown = interrupted(gate.tool("wait").idempotent(), &gate.1, &gate).await;
    assert!(shown.contains("opened"), "{shown}");
    assert_eq!(gate.1.get(), 2);
}

/// Returns the idempotency key of a call.
async fn show(cx: Cx) -> String {
    let meta = cx.meta().unwrap_or_default();
    json!({"key": meta.get("dev.outlive/idempotencyKey")}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn idempotency_key_is_sent_to_upstreams_that_accept_keys() {
    for accepts in [true, false] {
        let store = Arc::new(MemoryStore::new());
        let server = Server::builder("up", "1")
            .tasks(TaskConfig::people(store as _))
            .idempotency_keys(accepts)
            .tool(Tool::new("show", show));
        let upstream = HttpUpstream::serve(server.build().unwrap()).await;
        let served = Served::new([upstream.settings("up")]);
        let client = served.client(Version::V2025_11_25).await;
        let shown = async |tool: &str| text(&client.call_tool(tool, json!({})).await.unwrap());
        let (first, second) = (shown("up__show").await, shown("up__show").await);
        let is_keyed = first.len() > r#"{"key":null}"#.len() + 20;
        assert_eq!(is_keyed, accepts, "{first}");
        assert_eq!(first != second, accepts, "each call has its own key: {first} {second}");
        served.gateway.shutdown().await;
    }
}
