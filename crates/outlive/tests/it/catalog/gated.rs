//! Policies of catalog tools: tasks, clients without tasks, approvals.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use outlive::{
    server::{
        Durable, Principal, Result, SealKeys, Server, ServerBuilder, Tool,
        approve::Approve,
        hosts::Hosts,
        response::RelayedResult,
        tasks::{OnCrash, TaskConfig, TaskPolicy},
    },
    store::{Decision, DecisionStore, InboxReader, MemoryStore},
};
use serde_json::{Value, json};

use super::world::{Foreign, both, relay, serve, tool_definition};
use crate::support::pipe::{MODERN, Pipe, raw, result, text};

fn builder(store: &Arc<MemoryStore>) -> ServerBuilder {
    let config = TaskConfig::people(Arc::clone(store) as _).engine(|engine| {
        engine.poll_interval = Duration::from_millis(20);
        engine.lease_duration = Duration::from_millis(400);
    });
    let hosts = Hosts::known().call_timeout(Duration::from_secs(6));
    Server::builder("near", "1").seal_keys(SealKeys::new([9; 32])).tasks(config.hosts(hosts))
}

/// Waits before it relays.
async fn slow(cx: Durable) -> Result<RelayedResult> {
    tokio::time::sleep(Duration::from_secs(10)).await;
    relay(cx).await
}

/// Waits for a real moment.
async fn short(cx: Durable) -> Result<RelayedResult> {
    tokio::time::sleep(Duration::from_millis(300)).await;
    relay(cx).await
}

/// Returns a text with the escapes of a serializer that writes ASCII only.
async fn large() -> Result<RelayedResult> {
    let text = "a line \\u00f6f text\\n".repeat(20_000);
    Ok(RelayedResult::new(format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#))?)
}

async fn with_tasks(pipe: &mut Pipe, method: &str, params: Value) -> Value {
    let declared = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    result(&pipe.modern_with(declared, method, params).await)
}

async fn completed(pipe: &mut Pipe, id: &Value) -> Value {
    for _ in 0..1_000 {
        let task = with_tasks(pipe, "tasks/get", json!({"taskId": id})).await;
        if task["status"] != "working" {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the task does not end")
}

#[tokio::test(start_paused = true)]
async fn task_of_catalog_tool_stores_relayed_result() {
    for foreign in both() {
        let server = serve(&foreign, builder(&Arc::default()));
        foreign.add(Tool::relayed(tool_definition("slow"), slow).task(TaskPolicy::Always));
        let mut pipe = Pipe::open(&server);
        let params = json!({"name": "slow", "arguments": {"n": 1}});
        let created = with_tasks(&mut pipe, "tools/call", params).await;
        assert_eq!(created["resultType"], "task", "{created}");
        let task = completed(&mut pipe, &created["taskId"]).await;
        assert_eq!(task["status"], "completed", "{task}");
        assert_eq!(text(&task["result"]), r#"{"n":1}"#);
        assert_eq!(task["result"]["_meta"]["far/y"], json!([1.5]));
    }
}

#[tokio::test(start_paused = true)]
async fn client_without_tasks_waits_for_catalog_tool() {
    for foreign in both() {
        let server = serve(&foreign, builder(&Arc::default()));
        foreign.add(Tool::relayed(tool_definition("slow"), slow).task(TaskPolicy::auto()));
        let mut pipe = Pipe::speaking_as(&server, "2025-11-25", Principal::named("ann")).await;
        let tools = pipe.result("tools/list", json!({})).await;
        let names: Vec<_> =
            tools["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
        assert_eq!(names, ["far", "slow", "task_result", "task_cancel"]);
        let pending = pipe.call("slow", json!({"n": 1})).await;
        let task = &pending["structuredContent"]["task"]["id"];
        assert!(task.is_string(), "{pending}");
        let done = pipe.call("task_result", json!({"task": task})).await;
        let done = match done["structuredContent"].get("task") {
            Some(_) => pipe.call("task_result", json!({"task": task})).await,
            None => done,
        };
        assert_eq!(text(&done), r#"{"n":1}"#, "{done}");
    }
}

#[tokio::test(start_paused = true)]
async fn large_relayed_result_is_cut_for_client_without_tasks() {
    let foreign = Arc::<Foreign>::default();
    let server = serve(&foreign, builder(&Arc::default()));
    foreign.add(Tool::relayed(tool_definition("large"), large));
    foreign.add(Tool::relayed(tool_definition("whole"), large).max_inline(1 << 20));
    let mut pipe = Pipe::speaking(&server, "2025-11-25").await;
    let cut = pipe.call("large", json!({})).await;
    assert!(cut.to_string().len() < 100_000 && cut.to_string().contains("outlive://results/"));
    let whole = pipe.call("whole", json!({})).await;
    assert_eq!(text(&whole).len(), 320_000);
    foreign.add(Tool::relayed(tool_definition("task"), large).task(TaskPolicy::Always));
    let cut = pipe.call("task", json!({})).await;
    assert!(cut.to_string().len() < 100_000 && cut.to_string().contains("outlive://results/"));
    let mut modern = Pipe::open(&server);
    let declared = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let whole = modern.modern_with(declared, "tools/call", json!({"name": "large"})).await;
    assert_eq!(text(&whole["result"]).len(), 320_000);
}

#[tokio::test(start_paused = true)]
async fn catalog_tool_waits_for_approval() {
    for foreign in both() {
        let store = Arc::<MemoryStore>::default();
        let server = serve(&foreign, builder(&store));
        let tool = Tool::relayed(tool_definition("gated"), relay).task(TaskPolicy::auto());
        foreign.add(tool.approve(Approve::by(["ada"])).definition("digest"));
        let mut pipe = Pipe::speaking_as(&server, MODERN, Principal::named("ann")).await;
        let params = json!({"name": "gated", "arguments": {"n": 1}});
        let created = with_tasks(&mut pipe, "tools/call", params).await;
        let open = store.open_for(&InboxReader::default().all(true), None, 10).await.unwrap();
        let [item] = &*open else { panic!("one request: {open:?}") };
        let response = raw(&json!({"action": "accept", "by": "ada"}));
        let digest = item.binding.as_ref().map(|binding| binding.digest.clone());
        let decision = Decision::new(Some("ada".to_owned()), true, response).digest(digest);
        store.decide(&item.task, &item.name, &decision).await.unwrap();
        let task = completed(&mut pipe, &created["taskId"]).await;
        assert_eq!(text(&task["result"]), r#"{"n":1}"#, "{task}");
    }
}

#[test]
fn task_of_catalog_tool_resumes_in_another_process() {
    let store = Arc::<MemoryStore>::default();
    let slow_tool = || {
        let tool = Tool::relayed(tool_definition("slow"), short);
        tool.task(TaskPolicy::Always).on_crash(OnCrash::Rerun)
    };
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    };
    let first = runtime();
    let (id, crashed) = first.block_on(async {
        let foreign = Arc::<Foreign>::default();
        let server = serve(&foreign, builder(&store));
        foreign.add(slow_tool());
        let mut pipe = Pipe::open(&server);
        let params = json!({"name": "slow", "arguments": {"n": 1}});
        let id = with_tasks(&mut pipe, "tools/call", params).await["taskId"].clone();
        // The handler has started.
        tokio::time::sleep(Duration::from_millis(100)).await;
        (id, (server, pipe))
    });
    first.shutdown_background();
    runtime().block_on(async {
        // Its tools are not in memory when the engine starts the task.
        let foreign = Arc::<Foreign>::default();
        foreign.is_cold.store(true, Ordering::Relaxed);
        let server = serve(&foreign, builder(&store));
        foreign.add(slow_tool());
        let mut pipe = Pipe::open(&server);
        let task = completed(&mut pipe, &id).await;
        assert_eq!(task["status"], "completed", "{task}");
        assert_eq!(text(&task["result"]), r#"{"n":1}"#, "{task}");
    });
    drop(crashed);
}
