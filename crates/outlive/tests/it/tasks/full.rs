//! Tasks of callers at their limit of stored bytes: new journal entries fail, but the end of a task
//! is always stored.

use std::{env, fs, process, sync::Arc, time::Duration};

use outlive::{
    Form,
    server::{
        Args, ContentBlock, Durable, Principal, Result, Server, Tool,
        durable::{DurableError, JournalError},
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{MemoryStore, SqliteStore, Store, StoreMonitor},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::world::{get, modern, start, until};
use crate::support::pipe::{Pipe, error, result};

const LIMIT: u64 = 64 << 10;

/// Bytes that one step, one segment and one result may exceed the limit by.
const SLACK: u64 = 2 << 10;

#[derive(Deserialize, JsonSchema, Form)]
struct Name {
    name: String,
}

fn long(kib: usize) -> String {
    "x".repeat(kib << 10)
}

/// Records steps until one fails.
async fn hoard(cx: Durable) -> Result<String> {
    for number in 0..1_000_u32 {
        cx.step(("part", number), async || Ok(long(4))).await?;
    }
    Ok("all of it".to_owned())
}

/// Records steps until one fails, and returns their number.
async fn thrifty(cx: Durable) -> Result<String> {
    for number in 0..1_000_u32 {
        let step = cx.step(("part", number), async || Ok(long(4))).await;
        if let Err(full) = step {
            let is_full = |error: &DurableError| {
                matches!(error, DurableError::Journal(JournalError::BytesExceeded { limit })
                    if *limit == "max_store_bytes_per_caller")
            };
            assert!(full.durable_error().is_some_and(is_full), "{full}");
            let again =
                cx.step("more", async || -> Result<u32> { panic!("the step must not run") });
            assert!(again.await.is_err(), "a step that cannot be recorded does not run");
            return Ok(format!("{number} parts"));
        }
    }
    Ok("all of it".to_owned())
}

/// Emits without checking for errors until the end.
async fn flood(cx: Durable) -> Result<String> {
    for _ in 0..40 {
        cx.emit(ContentBlock::text(long(4))).await?;
    }
    Ok("all of it".to_owned())
}

async fn large() -> String {
    tokio::time::sleep(Duration::from_millis(10)).await;
    long(100)
}

async fn pester(cx: Durable) -> Result<String> {
    let name: Name = cx.elicit("name", long(100)).await?;
    Ok(name.name)
}

async fn ask(cx: Durable) -> Result<String> {
    let name: Name = cx.elicit("name", "Who?").await?;
    Ok(name.name)
}

#[derive(Deserialize, JsonSchema)]
struct Blob {
    blob: String,
}

/// Elicits, with large arguments.
async fn fill(cx: Durable, Args(Blob { blob }): Args<Blob>) -> Result<String> {
    let name: Name = cx.elicit("name", format!("Whose are {} bytes?", blob.len())).await?;
    Ok(name.name)
}

/// Runs `step_once` in an inline call.
async fn pay(cx: Durable) -> Result<String> {
    let receipt: u32 = cx.step_once("pay", async || Ok(7)).await?;
    Ok(format!("receipt {receipt}"))
}

fn server<S: Store>(store: &Arc<S>, change: impl FnOnce(TaskConfig) -> TaskConfig) -> Server {
    let config = change(TaskConfig::new(Arc::clone(store) as _));
    Server::builder("full", "1")
        .tasks(config)
        .tool(Tool::new("hoard", hoard).task(TaskPolicy::Always))
        .tool(Tool::new("thrifty", thrifty).task(TaskPolicy::Always))
        .tool(Tool::new("flood", flood).task(TaskPolicy::Always))
        .tool(Tool::new("large", large).task(TaskPolicy::Always))
        .tool(Tool::new("pester", pester).task(TaskPolicy::Always))
        .tool(Tool::new("ask", ask).task(TaskPolicy::Always))
        .tool(Tool::new("fill", fill).task(TaskPolicy::Always))
        .tool(Tool::new("pay", pay).uses_step_once())
        .build()
        .unwrap()
}

/// Runs a tool as a task to this status and returns the task.
async fn run(store: &Arc<MemoryStore>, tool: &str, status: &str) -> Value {
    let server = server(store, |config| config.max_store_bytes_per_caller(LIMIT));
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    let id = start(&mut eve, tool, json!({})).await;
    let task = until(&mut eve, &id, status).await;
    let stored = store.stored_bytes("name:eve").await.unwrap();
    assert!(stored <= LIMIT + SLACK, "{stored}");
    // Other callers are not affected.
    let mut ada = Pipe::open_as(&server, Principal::named("ada"));
    let id = start(&mut ada, "ask", json!({})).await;
    until(&mut ada, &id, "input_required").await;
    task
}

fn says_the_limit(task: &Value) {
    assert_eq!(task["error"]["data"]["limit"], "max_store_bytes_per_caller", "{task}");
    let message = task["error"]["message"].as_str().unwrap();
    assert!(message.contains("`max_store_bytes_per_caller`"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn step_over_stored_bytes_limit_fails_and_names_limit() {
    let store = Arc::new(MemoryStore::new());
    let task = run(&store, "hoard", "completed").await;
    assert_eq!(task["result"]["isError"], true, "{task}");
    let text = task["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`max_store_bytes_per_caller`"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn handler_at_stored_bytes_limit_can_return_result() {
    let store = Arc::new(MemoryStore::new());
    let task = run(&store, "thrifty", "completed").await;
    let text = task["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with(" parts"), "{text}");
    assert_ne!(text, "0 parts");
}

#[tokio::test(start_paused = true)]
async fn segments_over_stored_bytes_limit_fail_task_and_name_limit() {
    let store = Arc::new(MemoryStore::new());
    let server = server(&store, |config| config.max_store_bytes_per_caller(LIMIT));
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    let id = start(&mut eve, "flood", json!({})).await;
    let mut task = get(&mut eve, &id).await;
    while task["status"] == "working" {
        tokio::time::sleep(Duration::from_millis(20)).await;
        task = get(&mut eve, &id).await;
    }
    assert!(task.to_string().contains("`max_store_bytes_per_caller`"), "{task}");
    let stored = store.stored_bytes("name:eve").await.unwrap();
    assert!(stored <= LIMIT + SLACK, "{stored}");
}

#[tokio::test(start_paused = true)]
async fn result_over_stored_bytes_limit_becomes_error_naming_limit() {
    let store = Arc::new(MemoryStore::new());
    says_the_limit(&run(&store, "large", "failed").await);
}

#[tokio::test(start_paused = true)]
async fn input_request_over_stored_bytes_limit_fails_task_and_names_limit() {
    let store = Arc::new(MemoryStore::new());
    says_the_limit(&run(&store, "pester", "failed").await);
}

#[tokio::test(start_paused = true)]
async fn input_response_over_stored_bytes_limit_is_rejected_and_retryable() {
    let store = Arc::new(MemoryStore::new());
    let server = server(&store, |config| config.max_store_bytes_per_caller(LIMIT));
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    let id = start(&mut eve, "ask", json!({})).await;
    let task = until(&mut eve, &id, "input_required").await;
    let key = task["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answer = |name: &str| {
        let answer = json!({"action": "accept", "content": {"name": name}});
        json!({"taskId": id, "inputResponses": {key.as_str(): answer}})
    };
    let refused = error(&modern(&mut eve, "tasks/update", answer(&long(100))).await);
    assert_eq!(refused["code"], 429, "{refused}");
    assert_eq!(refused["data"]["limit"], "max_store_bytes_per_caller", "{refused}");
    assert_eq!(get(&mut eve, &id).await["status"], "input_required");
    result(&modern(&mut eve, "tasks/update", answer("eve")).await);
    until(&mut eve, &id, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn input_response_over_max_store_is_rejected_but_cancel_works() {
    let store = Arc::new(MemoryStore::new());
    let server = server(&store, |config| config.max_store(LIMIT));
    let mut ada = Pipe::open_as(&server, Principal::named("ada"));
    let id = start(&mut ada, "ask", json!({})).await;
    let task = until(&mut ada, &id, "input_required").await;
    let key = task["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    let large = start(&mut eve, "large", json!({})).await;
    until(&mut eve, &large, "completed").await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let answer = json!({"action": "accept", "content": {"name": "ada"}});
    let update = json!({"taskId": id, "inputResponses": {key: answer}});
    let refused = error(&modern(&mut ada, "tasks/update", update).await);
    assert_eq!(refused["data"]["limit"], "max_store", "{refused}");
    modern(&mut ada, "tasks/cancel", json!({"taskId": id})).await;
    until(&mut ada, &id, "cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn step_once_entries_count_as_stored_bytes() {
    let store = Arc::new(MemoryStore::new());
    let server = server(&store, |config| config.max_store_bytes_per_caller(4 << 10));
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    let call = json!({"name": "pay", "arguments": {}});
    let mut paid = 0;
    let refused = loop {
        let answer = result(&modern(&mut eve, "tools/call", call.clone()).await);
        if answer["isError"] == true {
            break answer;
        }
        paid += 1;
        assert!(paid < 100, "no call was rejected");
    };
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`max_store_bytes_per_caller`"), "{text}");
    let stored = store.stored_bytes("name:eve").await.unwrap();
    assert!(paid > 1 && stored > 1 << 10 && stored <= 4 << 10, "{paid} {stored}");
}

/// A SQLite store whose disk is full.
#[tokio::test]
async fn full_disk_rejects_new_tasks_until_space_is_free() {
    let folder = env::temp_dir().join(format!("outlive-full-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let store = Arc::new(SqliteStore::open(folder.join("tasks.db")).unwrap());
    store.set_max_bytes(1 << 20).await.unwrap();
    let server = server(&store, |config| config);
    let mut ada = Pipe::open_as(&server, Principal::named("ada"));
    let call = |kib: usize| json!({"name": "fill", "arguments": {"blob": long(kib)}});
    let mut made = Vec::new();
    let refused = loop {
        let answer = modern(&mut ada, "tools/call", call(100)).await;
        if answer.get("error").is_some() {
            break error(&answer);
        }
        made.push(result(&answer)["taskId"].as_str().unwrap().to_owned());
        assert!(made.len() < 50, "the disk is not full");
    };
    assert_eq!(refused["code"], -32603, "{refused}");
    assert!(refused["data"]["retryAfterMs"].is_u64(), "the error is retryable: {refused}");
    assert!(
        !refused.to_string().contains("tasks.db"),
        "a full disk is not a caller's limit: {refused}"
    );
    assert!(made.len() > 2, "{made:?}");
    for id in &made {
        assert_ne!(get(&mut ada, id).await["status"], "failed", "acknowledged tasks exist");
    }
    store.set_max_bytes(16 << 20).await.unwrap();
    let answer = modern(&mut ada, "tools/call", call(100)).await;
    made.push(result(&answer)["taskId"].as_str().unwrap().to_owned());
    for id in &made {
        until(&mut ada, id, "input_required").await;
    }
    server.drain(Duration::from_secs(5)).await;
    drop((ada, server, store));
    fs::remove_dir_all(folder).unwrap();
}
