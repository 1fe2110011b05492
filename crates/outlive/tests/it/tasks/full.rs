//! Tasks whose caller has as many bytes stored as it may: what they record is refused, and how they
//! end is always stored.

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

/// A step, a block and an outcome that are stored at once at most, beside the bytes of the limit.
const SLACK: u64 = 2 << 10;

#[derive(Deserialize, JsonSchema, Form)]
struct Name {
    name: String,
}

fn long(kib: usize) -> String {
    "x".repeat(kib << 10)
}

/// Records steps until it cannot.
async fn hoard(cx: Durable) -> Result<String> {
    for number in 0..1_000_u32 {
        cx.step(("part", number), async || Ok(long(4))).await?;
    }
    Ok("all of it".to_owned())
}

/// Records steps until it cannot, and says what it has got then.
async fn thrifty(cx: Durable) -> Result<String> {
    for number in 0..1_000_u32 {
        let step = cx.step(("part", number), async || Ok(long(4))).await;
        if let Err(full) = step {
            let is_full = |error: &DurableError| {
                matches!(error, DurableError::Journal(JournalError::BytesExceeded { limit })
                    if *limit == "max_store_bytes_per_caller")
            };
            assert!(full.durable_error().is_some_and(is_full), "{full}");
            let again = cx.step("more", async || -> Result<u32> { panic!("it is not begun") });
            assert!(again.await.is_err(), "what cannot be recorded is not done");
            return Ok(format!("{number} parts"));
        }
    }
    Ok("all of it".to_owned())
}

/// Emits without looking back.
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

/// Asks, with a long request.
async fn fill(cx: Durable, Args(Blob { blob }): Args<Blob>) -> Result<String> {
    let name: Name = cx.elicit("name", format!("Whose are {} bytes?", blob.len())).await?;
    Ok(name.name)
}

/// Pays once, in a call that is no task.
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

/// Runs a tool as a task to its end, and returns the task.
async fn run(store: &Arc<MemoryStore>, tool: &str, status: &str) -> Value {
    let server = server(store, |config| config.max_store_bytes_per_caller(LIMIT));
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    let id = start(&mut eve, tool, json!({})).await;
    let task = until(&mut eve, &id, status).await;
    let stored = store.stored_bytes("name:eve").await.unwrap();
    assert!(stored <= LIMIT + SLACK, "{stored}");
    // Others notice nothing.
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
async fn step_beyond_the_stored_bytes_fails_and_names_the_limit() {
    let store = Arc::new(MemoryStore::new());
    let task = run(&store, "hoard", "completed").await;
    assert_eq!(task["result"]["isError"], true, "{task}");
    let text = task["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`max_store_bytes_per_caller`"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn handler_that_meets_the_limit_can_end_with_a_result() {
    let store = Arc::new(MemoryStore::new());
    let task = run(&store, "thrifty", "completed").await;
    let text = task["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with(" parts"), "{text}");
    assert_ne!(text, "0 parts");
}

#[tokio::test(start_paused = true)]
async fn blocks_beyond_the_stored_bytes_are_not_lost_in_silence() {
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
async fn result_beyond_the_stored_bytes_becomes_an_error_that_names_the_limit() {
    let store = Arc::new(MemoryStore::new());
    says_the_limit(&run(&store, "large", "failed").await);
}

#[tokio::test(start_paused = true)]
async fn question_beyond_the_stored_bytes_ends_its_task_and_names_the_limit() {
    let store = Arc::new(MemoryStore::new());
    says_the_limit(&run(&store, "pester", "failed").await);
}

#[tokio::test(start_paused = true)]
async fn answer_beyond_the_stored_bytes_is_refused_and_can_be_given_again() {
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
async fn running_task_stops_to_store_when_all_bytes_are_used_up() {
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
async fn steps_that_are_done_once_count_as_stored_bytes() {
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
        assert!(paid < 100, "nothing was refused");
    };
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`max_store_bytes_per_caller`"), "{text}");
    let stored = store.stored_bytes("name:eve").await.unwrap();
    assert!(paid > 1 && stored > 1 << 10 && stored <= 4 << 10, "{paid} {stored}");
}

/// The server has a disk, and the disk is full.
#[tokio::test]
async fn full_disk_refuses_new_tasks_and_the_server_works_again_when_there_is_room() {
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
        assert!(made.len() < 50, "it is not full");
    };
    assert_eq!(refused["code"], -32603, "{refused}");
    assert!(refused["data"]["retryAfterMs"].is_u64(), "it can be tried again: {refused}");
    assert!(!refused.to_string().contains("tasks.db"), "the disk is the operator's: {refused}");
    assert!(made.len() > 2, "{made:?}");
    for id in &made {
        assert_ne!(get(&mut ada, id).await["status"], "failed", "what was acknowledged is there");
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
