//! Repeated calls join a run that is undelivered and unattended.

use std::{sync::Arc, time::Duration};

use outlive::{
    server::{Principal, hosts::Repeat, tasks::TaskConfig},
    store::MemoryStore,
};
use serde_json::json;

use super::world::{Runs, builder, hosts, legacy, server, server_with, task_of};
use crate::support::pipe::{Pipe, text};

const ARGUMENTS: u64 = 9_000;

#[tokio::test(start_paused = true)]
async fn repeat_after_pending_result_joins_the_run() {
    let runs = Runs::default();
    let mut pipe = legacy(&server(&runs)).await;
    let first = pipe.call("nap", json!({"ms": ARGUMENTS})).await;
    let second = pipe.call("nap", json!({ "ms": ARGUMENTS })).await;
    assert_eq!(task_of(&second), task_of(&first));
    assert!(text(&second).starts_with("This is the call of `nap` that started "), "{second}");
    let done = pipe.call("nap", json!({"ms": ARGUMENTS})).await;
    assert_eq!((text(&done), runs.count()), ("slept 9000 ms", 1));
    // The result was delivered, so the next call is a new one.
    task_of(&pipe.call("nap", json!({"ms": ARGUMENTS})).await);
    assert_eq!(runs.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn repeat_after_timeout_joins_the_run() {
    let runs = Runs::default();
    let mut pipe = legacy(&server(&runs)).await;
    let params = json!({"name": "nap", "arguments": {"ms": ARGUMENTS}});
    let id = pipe.send("tools/call", params.clone()).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let reason = "McpError: MCP error -32001: Request timed out";
    pipe.notify("notifications/cancelled", json!({"requestId": id, "reason": reason})).await;
    let pending = pipe.result("tools/call", params).await;
    task_of(&pending);
    assert_eq!(runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn intentional_cancellation_cancels_the_run() {
    let runs = Runs::default();
    let mut pipe = legacy(&server(&runs)).await;
    let params = json!({"name": "nap", "arguments": {"ms": ARGUMENTS}});
    let id = pipe.send("tools/call", params.clone()).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    pipe.notify("notifications/cancelled", json!({"requestId": id, "reason": "user"})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let pending = pipe.result("tools/call", params).await;
    task_of(&pending);
    assert_eq!(runs.count(), 2, "a cancelled run is not joined");
}

#[tokio::test(start_paused = true)]
async fn equal_calls_side_by_side_are_two_runs() {
    let runs = Runs::default();
    let server = server(&runs);
    let (mut one, mut other) = (legacy(&server).await, legacy(&server).await);
    let params = json!({"name": "nap", "arguments": {"ms": 3_000}});
    let first = one.send("tools/call", params.clone()).await;
    let second = other.send("tools/call", params).await;
    for (pipe, id) in [(&mut one, first), (&mut other, second)] {
        assert_eq!(text(&pipe.answer(id).await["result"]), "slept 3000 ms");
    }
    assert_eq!(runs.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_with_other_arguments_or_principals_do_not_join() {
    let runs = Runs::default();
    let server = server(&runs);
    let user = |name: &str| Principal::named(name);
    let mut alice = Pipe::speaking_as(&server, "2025-11-25", user("alice")).await;
    let mut bob = Pipe::speaking_as(&server, "2025-11-25", user("bob")).await;
    let first = task_of(&alice.call("nap", json!({"ms": 30_000})).await);
    let other = task_of(&alice.call("nap", json!({"ms": 30_001})).await);
    let bobs = task_of(&bob.call("nap", json!({"ms": 30_000})).await);
    assert!(first != other && first != bobs);
    assert_eq!(runs.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn anonymous_calls_without_session_never_join() {
    let runs = Runs::default();
    let server = server(&runs);
    let mut pipe = Pipe::speaking_as(&server, "2025-11-25", Principal::ANONYMOUS).await;
    let first = task_of(&pipe.call("nap", json!({"ms": 30_000})).await);
    let second = task_of(&pipe.call("nap", json!({"ms": 30_000})).await);
    assert_ne!(first, second);
    assert_eq!(runs.count(), 2);
    assert_eq!(text(&pipe.call("task_result", json!({})).await), "pass the task ID as `task`");
}

#[tokio::test(start_paused = true)]
async fn tool_that_repeats_as_new_starts_another_run() {
    let runs = Runs::default();
    let mut pipe = legacy(&server_with(&runs, hosts().repeat(Repeat::New))).await;
    let first = task_of(&pipe.call("nap", json!({"ms": 30_000})).await);
    let second = task_of(&pipe.call("nap", json!({"ms": 30_000})).await);
    assert_ne!(first, second);
    assert_eq!(runs.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn run_that_its_client_left_is_cancelled_after_the_abandon_timeout() {
    let runs = Runs::default();
    let store = Arc::new(MemoryStore::new());
    let config = TaskConfig::new(Arc::clone(&store) as _);
    let config = config.hosts(hosts().abandon_timeout(Duration::from_secs(20)));
    let server = builder(config, &runs).build().unwrap();
    let mut pipe = legacy(&server).await;
    let params = json!({"name": "nap", "arguments": {"ms": 300_000}});
    pipe.send("tools/call", params.clone()).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(pipe);
    // The server ends the calls of a closed pipe after their slice.
    tokio::time::sleep(Duration::from_secs(10)).await;
    store.advance_clock(Duration::from_secs(21));
    tokio::time::sleep(Duration::from_secs(120)).await;
    let mut pipe = legacy(&server).await;
    task_of(&pipe.result("tools/call", params).await);
    assert_eq!(runs.count(), 2, "the abandoned run was cancelled, so it is not joined");
}
