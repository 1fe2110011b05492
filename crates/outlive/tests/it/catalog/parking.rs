//! Runs that must not end with a round, because they hold something open.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    server::{
        Durable, Result, SealKeys, Server, State, Tool,
        hosts::Hosts,
        tasks::{TaskConfig, TaskPolicy},
    },
    wire::InputRequest,
};
use serde_json::{Value, json};

use crate::support::pipe::{MODERN, Pipe, result, text};

#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

/// Holds an exchange open while the user responds.
async fn exchange(cx: Durable, runs: State<Runs>) -> Result<String> {
    let run = runs.0.fetch_add(1, Ordering::Relaxed);
    let _open = cx.prevent_parking();
    let request: InputRequest = serde_json::from_value(json!({
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "Go?", "requestedSchema": {"type": "object", "properties": {}}},
    }))?;
    let response = cx.request_input("go", request).await?;
    Ok(format!("run {run}: {}", response.get()))
}

fn server(runs: &Runs, policy: TaskPolicy) -> Server {
    let hosts = Hosts::known().call_timeout(Duration::from_secs(6));
    Server::builder("near", "1")
        .seal_keys(SealKeys::new([9; 32]))
        .state(runs.clone())
        .tasks(TaskConfig::in_memory().hosts(hosts))
        .tool(Tool::new("exchange", exchange).task(policy))
        .build()
        .unwrap()
}

fn accept() -> Value {
    json!({"action": "accept", "content": {}})
}

#[tokio::test(start_paused = true)]
async fn unparkable_run_continues_in_next_round_of_modern_call() {
    let runs = Runs::default();
    let server = server(&runs, TaskPolicy::auto());
    let mut pipe = Pipe::open(&server);
    let can = json!({"elicitation": {}});
    let mut params = json!({"name": "exchange"});
    let asked = result(&pipe.modern_with(can.clone(), "tools/call", params.clone()).await);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let requests = asked["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["params"]["message"], "Go?");
    // Much later than the engine parks other runs.
    tokio::time::sleep(Duration::from_secs(300)).await;
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({key: accept()});
    let done = result(&pipe.modern_with(can, "tools/call", params).await);
    assert_eq!(text(&done), format!("run 0: {}", accept()), "{done}");
    assert_eq!(runs.0.load(Ordering::Relaxed), 1, "the handler was not restarted");
}

#[tokio::test(start_paused = true)]
async fn unparkable_run_of_legacy_call_waits_on_its_stream() {
    let runs = Runs::default();
    let mut pipe = Pipe::open(&server(&runs, TaskPolicy::Never));
    pipe.legacy_with("2025-11-25", json!({"elicitation": {}})).await;
    let id = pipe.send("tools/call", json!({"name": "exchange"})).await;
    let asked = pipe.read().await;
    pipe.reply(&asked, accept()).await;
    let done = pipe.answer(id).await;
    assert_eq!(text(&done["result"]), format!("run 0: {}", accept()), "{done}");
}

#[tokio::test(start_paused = true)]
async fn unparkable_run_that_cannot_become_task_gets_error() {
    let server = server(&Runs::default(), TaskPolicy::Never);
    let mut pipe = Pipe::speaking(&server, MODERN).await;
    let can = json!({"elicitation": {}});
    let failed = pipe.modern_with(can, "tools/call", json!({"name": "exchange"})).await;
    assert_eq!(result(&failed)["isError"], true, "{failed}");
}

#[tokio::test(start_paused = true)]
async fn unparkable_run_of_task_is_not_parked() {
    let runs = Runs::default();
    let server = server(&runs, TaskPolicy::Always);
    let mut pipe = Pipe::open(&server);
    let can = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    let params = json!({"name": "exchange"});
    let created = result(&pipe.modern_with(can.clone(), "tools/call", params).await);
    let id = &created["taskId"];
    tokio::time::sleep(Duration::from_secs(300)).await;
    let task = result(&pipe.modern_with(can.clone(), "tasks/get", json!({"taskId": id})).await);
    assert_eq!(task["status"], "input_required", "{task}");
    let update = json!({"taskId": id, "inputResponses": {"go": accept()}});
    result(&pipe.modern_with(can.clone(), "tasks/update", update).await);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let task = result(&pipe.modern_with(can, "tasks/get", json!({"taskId": id})).await);
    assert_eq!(text(&task["result"]), format!("run 0: {}", accept()), "{task}");
    assert_eq!(runs.0.load(Ordering::Relaxed), 1, "the handler was not restarted");
}
