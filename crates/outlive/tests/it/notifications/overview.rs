//! Counts of ended tasks and the entry of the worker, for a console.

use std::{sync::Arc, time::Duration};

use outlive::{
    server::{
        CallToolResult, Tool,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{MemoryStore, MetricStore, OperatorStore},
};
use serde_json::Value;

use super::receiver::{builder, call, until_completed};
use crate::support::pipe::Pipe;

#[tokio::test]
async fn server_with_console_counts_tasks_and_shows_its_worker() {
    let store = Arc::new(MemoryStore::new());
    let fail = Tool::new("fail", async || CallToolResult::error("no")).task(TaskPolicy::Always);
    let console = TaskConfig::people(Arc::clone(&store) as _).index_tasks(true);
    let server = builder(&store).tasks(console).tool(fail).build().unwrap();
    let mut pipe = Pipe::open(&server);
    for tool in ["deploy", "deploy", "fail"] {
        let task = call(&mut pipe, tool).await;
        until_completed(&mut pipe, &task).await;
    }
    server.drain(Duration::from_secs(1)).await;
    let rows = store.metrics(0).await.unwrap();
    let sum = |tool: &str, index: usize| -> u64 {
        rows.iter().filter(|row| row.tool == tool).map(|row| row.ended[index]).sum()
    };
    assert_eq!((sum("deploy", 0), sum("fail", 1)), (2, 1));
    let measured: u64 = rows.iter().flat_map(|row| row.wait.iter().chain(&row.run)).sum();
    assert_eq!(measured, 6, "each task waited and ran");
    let workers = store.key_values("worker/", 10).await.unwrap();
    let [(_, entry)] = &workers[..] else { panic!("one worker: {workers:?}") };
    let entry: Value = serde_json::from_str(entry.get()).unwrap();
    assert_eq!(entry["pid"], std::process::id());
    assert!(!entry["host"].as_str().unwrap().is_empty() && entry["version"].is_string(), "{entry}");
    assert!(entry["heartbeat_at"].as_u64() >= entry["started_at"].as_u64());
}

#[tokio::test]
async fn server_without_console_writes_nothing_for_one() {
    let store = Arc::new(MemoryStore::new());
    let server = builder(&store).build().unwrap();
    let mut pipe = Pipe::open(&server);
    let task = call(&mut pipe, "deploy").await;
    until_completed(&mut pipe, &task).await;
    server.drain(Duration::from_secs(1)).await;
    assert!(store.metrics(0).await.unwrap().is_empty());
    assert!(store.key_values("worker/", 10).await.unwrap().is_empty());
}
