//! Progress of tasks: as status message, and as numbers in the extension.

use std::{sync::Arc, time::Duration};

use outlive::{
    server::{
        Cx, Server, State, Tool,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::MemoryStore,
};
use serde_json::{Value, json};

use super::partials::examples;
use crate::support::{
    gate::Gate,
    pipe::{Pipe, result, with_meta},
};

/// The `_meta` key of the extension for progress.
const BESIDE: &str = "dev.outlive/progress";

/// Reports progress and waits for the gate after each report.
async fn pack(cx: Cx, gate: State<Gate>) -> &'static str {
    cx.progress(1.0, 3.0, "packing");
    gate.pass().await;
    cx.progress(2.0, 3.0, "");
    gate.pass().await;
    cx.progress(1.5, 3.0, "backwards");
    cx.progress(2.5, None, "nearly");
    gate.pass().await;
    cx.set_status_message("sealed");
    gate.pass().await;
    "packed"
}

fn server(gate: &Gate) -> Server {
    server_with(gate, |tasks| tasks)
}

fn server_with(gate: &Gate, change: fn(TaskConfig) -> TaskConfig) -> Server {
    let config = change(TaskConfig::new(Arc::new(MemoryStore::new())));
    let tool = Tool::new("pack", pack).task(TaskPolicy::Always);
    Server::builder("packs", "1").state(gate.clone()).tasks(config).tool(tool).build().unwrap()
}

fn holds() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

/// Polls until the status message of a task changes.
async fn words(pipe: &mut Pipe, id: &str, before: &Value) -> Value {
    loop {
        let task = pipe.modern_with(holds(), "tasks/get", json!({"taskId": id})).await;
        let words = result(&task)["statusMessage"].clone();
        if words != *before {
            return words;
        }
        // Progress within the minimum interval is stored later.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn modern_task_progress_becomes_status_message() {
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
async fn legacy_task_progress_without_token_becomes_status_message() {
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
        assert_eq!(
            task["statusMessage"], expected,
            "with a token the client gets progress instead"
        );
        gate.open(1);
    }
}

fn declares() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}, "dev.outlive/task-partials": {}}})
}

async fn start(pipe: &mut Pipe) -> String {
    let call = json!({"name": "pack", "arguments": {}});
    let made = result(&pipe.modern_with(holds(), "tools/call", call).await);
    made["taskId"].as_str().unwrap().to_owned()
}

/// Polls a task with these capabilities until its status message is `words`.
async fn look(pipe: &mut Pipe, capabilities: Value, id: &str, words: &str) -> Value {
    loop {
        let get = json!({"taskId": id});
        let task = result(&pipe.modern_with(capabilities.clone(), "tasks/get", get).await);
        if task["statusMessage"] == words {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn client_with_extension_polls_progress_numbers() {
    let gate = Gate::default();
    let mut pipe = Pipe::open(&server_with(&gate, |tasks| tasks.partial_results(true)));
    let id = start(&mut pipe).await;
    let far = [
        ("packing (1 of 3)", json!({"progress": 1, "total": 3, "message": "packing"})),
        ("2 of 3", json!({"progress": 2, "total": 3})),
        ("nearly (2.5)", json!({"progress": 2.5, "message": "nearly"})),
        ("sealed", json!({"progress": 2.5, "message": "nearly"})),
    ];
    for (words, far) in far {
        let task = look(&mut pipe, declares(), &id, words).await;
        assert_eq!(task["_meta"][BESIDE], far, "{task}");
        if words.starts_with("packing") {
            assert_eq!(
                examples()["progress"]["_meta"][BESIDE],
                far,
                "the example of the documentation"
            );
        }
        let plain = look(&mut pipe, holds(), &id, words).await;
        assert!(!plain.to_string().contains("dev.outlive"), "{plain}");
        gate.open(1);
    }
    let over = loop {
        let get = json!({"taskId": id});
        let task = result(&pipe.modern_with(declares(), "tasks/get", get).await);
        if task["status"] == "completed" {
            break task;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(over["_meta"].get(BESIDE).is_none(), "an ended task has no progress: {over}");
}

#[tokio::test(start_paused = true)]
async fn server_without_partial_results_sends_status_message_only() {
    let gate = Gate::default();
    let mut pipe = Pipe::open(&server(&gate));
    let id = start(&mut pipe).await;
    let task = look(&mut pipe, declares(), &id, "packing (1 of 3)").await;
    assert!(task["_meta"].get(BESIDE).is_none(), "{task}");
    gate.open(4);
}

#[tokio::test(start_paused = true)]
async fn subscriber_with_extension_is_notified_of_progress_numbers() {
    for (capabilities, is_told) in [(declares(), true), (holds(), false)] {
        let gate = Gate::default();
        let server = server_with(&gate, |tasks| tasks.partial_results(true));
        let mut pipe = Pipe::open(&server);
        let id = start(&mut pipe).await;
        look(&mut pipe, holds(), &id, "packing (1 of 3)").await;
        let mut listener = Pipe::open(&server);
        let mut params = with_meta(json!({"notifications": {"taskIds": [id]}}));
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        listener.send_as_is("subscriptions/listen", params).await;
        listener.read().await;
        gate.open(1);
        loop {
            let told = listener.read().await;
            if told["params"]["statusMessage"] == "2 of 3" {
                let far = told["params"]["_meta"].get(BESIDE);
                let expected = json!({"progress": 2, "total": 3});
                assert_eq!(far, is_told.then_some(&expected), "{told}");
                break;
            }
        }
        gate.open(3);
    }
}
