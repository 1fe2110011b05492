//! How far a task is, in words where numbers cannot be told.

use std::{sync::Arc, time::Duration};

use outlive::{
    server::{Cx, Server, State, TaskConfig, TaskPolicy, Tool},
    tasks::MemoryStore,
};
use serde_json::{Value, json};

use crate::support::{
    gate::Gate,
    pipe::{Pipe, result},
};

/// Says how far it is, and stops each time.
async fn pack(cx: Cx, gate: State<Gate>) -> &'static str {
    cx.progress(1.0, 3.0, "packing");
    gate.pass().await;
    cx.progress(2.0, 3.0, "");
    gate.pass().await;
    cx.progress(1.5, 3.0, "backwards");
    cx.progress(2.5, None, "nearly");
    gate.pass().await;
    cx.status("sealed");
    gate.pass().await;
    "packed"
}

fn server(gate: &Gate) -> Server {
    let config = TaskConfig::new(Arc::new(MemoryStore::new()));
    let tool = Tool::new("pack", pack).task(TaskPolicy::Always);
    Server::builder("packs", "1").state(gate.clone()).tasks(config).tool(tool).build().unwrap()
}

fn holds() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// Waits until a task says something else.
async fn words(pipe: &mut Pipe, id: &str, before: &Value) -> Value {
    loop {
        let task = pipe.modern_with(holds(), "tasks/get", json!({"taskId": id})).await;
        let words = result(&task)["statusMessage"].clone();
        if words != *before {
            return words;
        }
        // What is said too fast waits for its time.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_modern_task_is_its_status_message() {
    let gate = Gate::default();
    let mut pipe = Pipe::open(&server(&gate));
    let call = json!({"name": "pack", "arguments": {}, "_meta": {"progressToken": 7}});
    let made = result(&pipe.modern_with(holds(), "tools/call", call).await);
    let id = made["taskId"].as_str().unwrap().to_owned();
    let mut said = Value::Null;
    for expected in ["packing (1 of 3)", "2 of 3", "nearly (2.5)", "sealed"] {
        said = words(&mut pipe, &id, &said).await;
        assert_eq!(said, expected);
        gate.open(1);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_without_a_token_is_a_status_message_on_the_older_wire_too() {
    let gate = Gate::default();
    let mut pipe = Pipe::open(&server(&gate));
    pipe.legacy("2025-11-25").await;
    for (meta, expected) in
        [(json!({}), json!("packing (1 of 3)")), (json!({"progressToken": 7}), Value::Null)]
    {
        let call = json!({"name": "pack", "arguments": {}, "task": {}, "_meta": meta});
        let made = pipe.result("tools/call", call).await;
        let id = made["task"]["taskId"].clone();
        gate.arrived().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let task = pipe.result("tasks/get", json!({"taskId": id})).await;
        assert_eq!(task["statusMessage"], expected, "who has a token hears of it as progress");
        gate.open(1);
    }
}
