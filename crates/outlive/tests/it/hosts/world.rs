//! Tools of the tests, and clients without tasks.

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
        Args, Cx, Durable, Json, Result, Server, ServerBuilder, State, Tool,
        hosts::Hosts,
        tasks::{OnCrash, TaskConfig, TaskPolicy},
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::pipe::{Pipe, result};

/// Call timeout of the clients. The slice is 4.1 seconds.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(6);

/// Number of executions.
#[derive(Clone, Default)]
pub(super) struct Runs(Arc<AtomicUsize>);

impl Runs {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nap {
    ms: u64,
}

#[derive(Serialize, JsonSchema)]
struct Slept {
    ms: u64,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Approval {
    yes: bool,
}

async fn nap(runs: State<Runs>, Args(nap): Args<Nap>) -> String {
    runs.add();
    tokio::time::sleep(Duration::from_millis(nap.ms)).await;
    format!("slept {} ms", nap.ms)
}

async fn typed_nap(runs: State<Runs>, Args(nap): Args<Nap>) -> Json<Slept> {
    runs.add();
    tokio::time::sleep(Duration::from_millis(nap.ms)).await;
    Json(Slept { ms: nap.ms })
}

/// Reports one frame per second, after a pause without progress.
async fn render_late(cx: Cx, nap: Args<Nap>) -> String {
    tokio::time::sleep(Duration::from_secs(8)).await;
    render(cx, nap).await
}

/// Reports one frame per second.
async fn render(cx: Cx, Args(nap): Args<Nap>) -> String {
    let frames = nap.ms / 1_000;
    for frame in 1..=frames {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cx.progress(frame as f64, frames as f64, format!("frame {frame} of {frames}"));
    }
    format!("{frames} frames")
}

async fn deploy(cx: Durable, runs: State<Runs>) -> Result<String> {
    runs.add();
    let approval: Approval = cx.elicit("approve", "Deploy shop:1?").await?;
    Ok(format!("deployed: {}", approval.yes))
}

pub(super) fn hosts() -> Hosts {
    Hosts::known().call_timeout(CALL_TIMEOUT)
}

pub(super) fn builder(config: TaskConfig, runs: &Runs) -> ServerBuilder {
    let auto = TaskPolicy::Auto { after: Duration::from_millis(250) };
    Server::builder("hosts", "1")
        .tasks(config)
        .state(runs.clone())
        .tool(Tool::new("nap", nap).task(auto).on_crash(OnCrash::Rerun))
        .tool(Tool::new("typed_nap", typed_nap).task(auto))
        .tool(Tool::new("render", render).task(auto))
        .tool(Tool::new("render_late", render_late).task(auto))
        .tool(Tool::new("deploy", deploy).task(auto))
        .tool(Tool::new("always", nap).task(TaskPolicy::Always))
        .tool(Tool::new("plain", nap))
}

/// A server that bridges calls.
pub(super) fn server(runs: &Runs) -> Server {
    server_with(runs, hosts())
}

pub(super) fn server_with(runs: &Runs, hosts: Hosts) -> Server {
    builder(TaskConfig::in_memory().hosts(hosts), runs).build().unwrap()
}

/// Connects a client of 2025-11-25 without tasks and elicitation.
pub(super) async fn legacy(server: &Server) -> Pipe {
    Pipe::speaking(server, "2025-11-25").await
}

/// Calls a tool as a client of 2026-07-28 that follows empty rounds. Returns the last result and the
/// number of rounds before it.
pub(super) async fn with_rounds(pipe: &mut Pipe, tool: &str, arguments: Value) -> (Value, usize) {
    let mut params = json!({"name": tool, "arguments": arguments});
    for round in 0..10 {
        let answer = result(&pipe.modern("tools/call", params.clone()).await);
        if answer["resultType"] != "input_required" {
            return (answer, round);
        }
        assert!(answer.get("inputRequests").is_none_or(|asked| asked == &json!({})), "{answer}");
        params["requestState"] = answer["requestState"].clone();
    }
    panic!("an eleventh round");
}

/// Returns the task ID of a pending result.
#[track_caller]
pub(super) fn task_of(pending: &Value) -> String {
    let task = &pending["structuredContent"]["task"];
    let id = task["id"].as_str().unwrap_or_else(|| panic!("a pending result: {pending}"));
    assert_eq!(pending["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id, "{pending}");
    id.to_owned()
}
