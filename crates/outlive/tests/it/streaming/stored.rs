//! Segments in the store: numbering, limits, and crashes.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use outlive::{
    server::{
        CallToolResult, Durable, Result, Server, State, Task, Tool,
        tasks::{OnCrash, TaskConfig, TaskPolicy},
    },
    store::{MemoryStore, SqliteStore},
};
use serde_json::{Value, json};

use super::stage::{ALL, Change, Wire, World, numbers, task_of};
use crate::support::pipe::{Pipe, result, text};

const STREAMING: Change = |tasks| tasks.response_modes(ALL);

/// Counts the runs of a handler.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicU32>);

impl Runs {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Emits inside and between steps. The first run never ends. A later run emits other texts between
/// steps.
async fn mixed(cx: Durable, runs: State<Runs>) -> Result<CallToolResult> {
    let run = runs.next();
    cx.emit(format!("first, run {run}")).await?;
    let _: u32 = cx
        .step("work", async || {
            cx.emit("in a step").await?;
            cx.emit("in a step again").await?;
            Ok(run)
        })
        .await?;
    let part = cx.scope("part");
    part.emit("in a scope").await?;
    if run == 0 {
        let _: u32 = cx
            .step("stuck", async || {
                cx.emit("before it is lost").await?;
                std::future::pending().await
            })
            .await?;
    }
    let _: u32 = cx
        .step("stuck", async || {
            cx.emit("before it is lost").await?;
            cx.emit("after it was lost").await?;
            Ok(run)
        })
        .await?;
    cx.emit("last").await?;
    Ok(CallToolResult::new([]))
}

/// Emits once and never ends. The second run emits twice.
async fn plain(cx: Task, runs: State<Runs>) -> Result<CallToolResult> {
    let run = runs.next();
    cx.emit("one").await?;
    if run == 0 {
        std::future::pending::<()>().await;
    }
    cx.emit("two").await?;
    Ok(CallToolResult::new([]))
}

fn server(store: &Arc<MemoryStore>, runs: &Runs) -> Server {
    let config = TaskConfig::new(Arc::clone(store) as _).partial_results(true).engine(|engine| {
        engine.lease_duration = Duration::from_millis(400);
        engine.poll_interval = Duration::from_millis(20);
    });
    let always = |tool: Tool| tool.task(TaskPolicy::Always).streams_content();
    Server::builder("stored", "1")
        .tasks(config)
        .state(runs.clone())
        .tool(always(Tool::new("mixed", mixed)))
        .tool(always(Tool::new("plain", plain)))
        .tool(always(Tool::new("idempotent", plain).idempotent()))
        .tool(always(Tool::new("again", plain).on_crash(OnCrash::Rerun)))
        .build()
        .unwrap()
}

/// Runs `work` on a replica, then kills the replica.
fn on_a_replica<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

fn declared() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}, "dev.outlive/task-partials": {}}})
}

/// Polls a task until the condition holds.
async fn until(pipe: &mut Pipe, id: &str, is: impl Fn(&Value) -> bool) -> Value {
    loop {
        let params = json!({"taskId": id, "_meta": {"dev.outlive/afterSeq": 0}});
        let task = result(&pipe.modern_with(declared(), "tasks/get", params).await);
        if is(&task) {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn last(task: &Value) -> &Value {
    &task["_meta"]["dev.outlive/partials"]["lastSeq"]
}

/// Calls a tool on one replica until it has emitted `emitted` segments, and lets another replica
/// finish it.
fn lost_and_found(tool: &str, emitted: u64) -> Value {
    let (store, runs) = (Arc::new(MemoryStore::new()), Runs::default());
    let id = on_a_replica(async {
        let mut pipe = Pipe::open(&server(&store, &runs));
        let call = json!({"name": tool, "arguments": {}});
        let made = result(&pipe.modern_with(declared(), "tools/call", call).await);
        let id = made["taskId"].as_str().unwrap().to_owned();
        until(&mut pipe, &id, |task| *last(task) == emitted).await;
        id
    });
    on_a_replica(async {
        let mut pipe = Pipe::open(&server(&store, &runs));
        until(&mut pipe, &id, |task| task["status"] != "working").await
    })
}

fn texts(task: &Value) -> Vec<&str> {
    let segments = task["_meta"]["dev.outlive/partials"]["segments"].as_array().unwrap();
    segments.iter().map(|segment| segment["block"]["text"].as_str().unwrap()).collect()
}

// S-31, S-38, K-20
#[test]
fn replayed_run_emits_no_segment_twice() {
    let task = lost_and_found("mixed", 5);
    let all = [
        "first, run 0", // which differs now, and stays as it was
        "in a step",
        "in a step again",
        "in a scope",
        "before it is lost",
        "after it was lost",
        "last",
    ];
    assert_eq!(texts(&task), all);
    let merged = task["result"]["content"].as_array().unwrap();
    let merged: Vec<&str> = merged.iter().map(|block| block["text"].as_str().unwrap()).collect();
    assert_eq!(merged, all);
}

#[test]
fn plain_task_with_segments_reruns_only_if_tool_allows_it() {
    for tool in ["plain", "idempotent"] {
        let task = lost_and_found(tool, 1);
        assert_eq!(task["status"], "failed", "{tool}");
        let why = task["error"]["message"].as_str().unwrap();
        assert!(why.contains("the worker crashed"), "{why}");
        assert_eq!(texts(&task), ["one"], "emitted segments are readable");
    }
    let task = lost_and_found("again", 1);
    assert_eq!((texts(&task), &task["status"]), (vec!["one", "two"], &json!("completed")));
}

/// Many segments share one commit.
#[tokio::test]
async fn emitting_20000_segments_takes_few_commits() {
    let folder = std::env::temp_dir().join(format!("outlive-chatty-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let store = Arc::new(SqliteStore::open(folder.join("tasks.db")).unwrap());
    let world = World::over(Arc::clone(&store) as _, STREAMING);
    let mut client = world.client(Wire::Pipe).await;
    world.gate.open(1);
    let before = store.commits();
    let script = json!({"batches": [20_000], "end": "empty"});
    let mut flow = client.call("script", script, &["streaming"]).await;
    let parts = client.parts(&mut flow).await;
    assert_eq!(numbers(&parts), (1..=20_000).collect::<Vec<u64>>());
    let commits = store.commits() - before;
    assert!(commits < 200, "{commits} commits for 20,000 segments");
    client.over(flow).await;
    drop((world, store));
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn emitting_over_limit_fails_and_names_limit() {
    for (change, words) in [
        (
            (|tasks| STREAMING(tasks).max_segments(2)) as Change,
            "the call has emitted the maximum of 2 segments; emit larger segments, or raise \
             `max_segments`",
        ),
        (
            |tasks| STREAMING(tasks).max_segment_bytes(5),
            "a segment of 26 bytes exceeds the limit of 5; split it, emit a resource link, or raise \
             `max_segment_bytes`",
        ),
    ] {
        let world = World::new(change);
        let mut client = world.client(Wire::Pipe).await;
        let script = json!({"batches": [3], "end": "empty"});
        let mut flow = client.call("script", script, &["streaming"]).await;
        let parts = client.parts(&mut flow).await;
        let id = task_of(&parts[0]);
        let failed = client.ask("tasks/result", json!({"taskId": id})).await;
        let content = failed["content"].as_array().unwrap();
        assert_eq!(
            (&failed["isError"], content.last().unwrap()["text"].as_str()),
            (&json!(true), Some(words))
        );
        client.over(flow).await;
    }
}

/// Without a task, emitted content is part of the result.
#[tokio::test(start_paused = true)]
async fn inline_call_returns_emitted_content() {
    let world = World::new(STREAMING);
    world.gate.open(2);
    for tool in ["script", "once"] {
        let mut pipe = Pipe::open(&world.server);
        let script = json!({"batches": [2], "end": "end"});
        let done =
            result(&pipe.modern("tools/call", json!({"name": tool, "arguments": script})).await);
        let count = done["content"].as_array().unwrap().len();
        assert_eq!((text(&done), count), ("1", 3), "{done}");
    }
}
