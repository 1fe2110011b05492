//! Tools that run as tasks, and a client with task support.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    Form,
    server::{
        Args, CallToolResult, Cx, Durable, Error, Result, Server, ServerBuilder, State, Tool,
        durable::{ElicitOutcome, InputRequestSet, Round, RoundOutcome},
        tasks::{TaskConfig, TaskPolicy},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::pipe::{Pipe, result};

/// Counts of executed operations, kept outside the journal.
#[derive(Clone, Default)]
pub(super) struct Counts {
    pub(super) builds: Arc<AtomicUsize>,
    pub(super) runs: Arc<AtomicUsize>,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Approval {
    yes: bool,
}

async fn deploy(cx: Durable, counts: State<Counts>) -> Result<String> {
    counts.runs.fetch_add(1, Ordering::Relaxed);
    let image: String = cx
        .step("build", async || {
            counts.builds.fetch_add(1, Ordering::Relaxed);
            Ok("shop:1".to_owned())
        })
        .await?;
    let approval: Approval = cx.elicit("approve", format!("Deploy {image}?")).await?;
    Ok(format!("{image}: {}", approval.yes))
}

#[derive(Deserialize, JsonSchema)]
struct Nap {
    ms: u64,
}

async fn nap(counts: State<Counts>, Args(nap): Args<Nap>) -> String {
    counts.runs.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(nap.ms)).await;
    format!("slept {} ms", nap.ms)
}

async fn fail() -> CallToolResult {
    tokio::time::sleep(Duration::from_millis(10)).await;
    CallToolResult::error("quota")
}

async fn refuse() -> Result<String> {
    tokio::time::sleep(Duration::from_millis(10)).await;
    Err(Error::with_code(77, "not here"))
}

async fn explode() -> String {
    tokio::time::sleep(Duration::from_millis(10)).await;
    panic!("on purpose")
}

/// Stops cooperatively when it is cancelled.
async fn polite(cx: Cx) -> &'static str {
    cx.cancelled().await;
    "stopped in time"
}

/// Never returns.
async fn stubborn() -> &'static str {
    std::future::pending().await
}

/// Elicits, then works for a while.
async fn wizard(cx: Durable, counts: State<Counts>) -> Result<String> {
    let approval: Approval = cx.elicit("sure", "Are you sure?").await?;
    counts.runs.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(5)).await;
    Ok(format!("sure: {}", approval.yes))
}

/// Explicit rounds with a counter as state.
async fn explicit(round: Round<u32>) -> Result<RoundOutcome<String>> {
    let asked = round.state().copied().unwrap_or_default();
    match round.form::<Approval>("sure")? {
        Some(ElicitOutcome::Accepted(approval)) if approval.yes => {
            Ok(RoundOutcome::Done(format!("sure after {asked} input requests")))
        }
        _ => {
            let questions = InputRequestSet::new().form::<Approval>("sure", "Are you sure?")?;
            Ok(RoundOutcome::Ask(questions.state(&(asked + 1))?))
        }
    }
}

/// Returns the idempotency key of a step.
async fn keyed(cx: Durable) -> Result<String> {
    let before = cx.idempotency_key("pay");
    let approval: Approval = cx.elicit("sure", before.clone()).await?;
    Ok(format!("{before} {}", approval.yes))
}

pub(super) fn builder(config: TaskConfig, counts: &Counts) -> ServerBuilder {
    let auto = TaskPolicy::Auto { after: Duration::from_millis(250) };
    Server::builder("tasks", "1")
        .tasks(config)
        .state(counts.clone())
        .tool(Tool::new("deploy", deploy).task(TaskPolicy::Always))
        .tool(Tool::new("nap", nap).task(auto))
        .tool(Tool::new("wizard", wizard).task(auto))
        .tool(Tool::new("explicit", explicit).task(TaskPolicy::Always))
        .tool(Tool::new("keyed", keyed).task(TaskPolicy::Always))
        .tool(Tool::new("plain", nap))
        .tool(Tool::new("fail", fail).task(TaskPolicy::Always))
        .tool(Tool::new("refuse", refuse).task(TaskPolicy::Always))
        .tool(Tool::new("explode", explode).task(TaskPolicy::Always))
        .tool(Tool::new("polite", polite).task(TaskPolicy::Always))
        .tool(Tool::new("stubborn", stubborn).task(TaskPolicy::Always))
}

pub(super) fn server(counts: &Counts) -> Server {
    builder(TaskConfig::in_memory(), counts).build().unwrap()
}

/// The capabilities of a modern client with tasks and elicitation.
pub(super) fn holds() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// Sends a modern request of such a client.
pub(super) async fn modern(pipe: &mut Pipe, method: &str, params: Value) -> Value {
    pipe.modern_with(holds(), method, params).await
}

/// Calls a tool and returns the task ID.
pub(super) async fn start(pipe: &mut Pipe, tool: &str, arguments: Value) -> String {
    let answer = modern(pipe, "tools/call", json!({"name": tool, "arguments": arguments})).await;
    let task = result(&answer);
    assert_eq!(task["resultType"], "task", "{answer}");
    task["taskId"].as_str().unwrap().to_owned()
}

pub(super) async fn get(pipe: &mut Pipe, id: &str) -> Value {
    result(&modern(pipe, "tasks/get", json!({"taskId": id})).await)
}

/// Polls until a task has this status.
pub(super) async fn until(pipe: &mut Pipe, id: &str, status: &str) -> Value {
    for _ in 0..500 {
        let task = get(pipe, id).await;
        if task["status"] == status {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} never reached {status}: {}", get(pipe, id).await);
}

/// Polls until a task is quarantined, and returns the reason.
pub(super) async fn until_kept(pipe: &mut Pipe, id: &str) -> String {
    for _ in 0..500 {
        let task = get(pipe, id).await;
        let message = task["statusMessage"].as_str().unwrap_or_default();
        if let Some(why) = message.strip_prefix("quarantined until an operator retries the task: ")
        {
            // Open input requests of a quarantined task can still get a response.
            let status = task["status"].as_str().unwrap_or_default();
            assert!(["working", "input_required"].contains(&status), "{task}");
            return why.to_owned();
        }
        assert!(task["error"].is_null() && task["result"].is_null(), "{task}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} was never quarantined: {}", get(pipe, id).await);
}
