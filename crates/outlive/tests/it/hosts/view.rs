//! The task view: the page, and the calls that it makes. `cargo xtask views` runs the page itself.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::world::{CALL_TIMEOUT, Runs, builder, hosts, legacy, server, server_with, task_of};
use crate::support::pipe::{Pipe, result, text};
use outlive::server::{
    Args, Durable, Result, Server, Tool,
    hosts::AnswerBy,
    tasks::{TaskConfig, TaskPolicy},
};

const PAGE: &str = "ui://outlive/task";

/// Connects a host that renders MCP Apps.
async fn host(server: &Server) -> Pipe {
    let ui = json!({"mimeTypes": ["text/html;profile=mcp-app"]});
    let mut pipe = Pipe::open(server);
    pipe.legacy_with("2025-11-25", json!({"extensions": {"io.modelcontextprotocol/ui": ui}})).await;
    pipe
}

async fn page_of_task_result(pipe: &mut Pipe) -> Value {
    let list = pipe.result("tools/list", json!({})).await;
    let tools = list["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "task_result").unwrap();
    tool["_meta"]["ui"]["resourceUri"].clone()
}

/// Calls `task_result` as the view does.
async fn look(pipe: &mut Pipe, id: &str, seen: Value) -> Value {
    pipe.call("task_result", json!({"task": id, "wait_seconds": 20, "seen": seen})).await
}

fn task(result: &Value) -> &Value {
    &result["_meta"]["dev.outlive/task"]
}

#[tokio::test(start_paused = true)]
async fn page_is_named_and_served_only_to_hosts_that_show_it() {
    let runs = Runs::default();
    let mut pipe = host(&server(&runs)).await;
    assert_eq!(page_of_task_result(&mut pipe).await, PAGE);
    let read = pipe.result("resources/read", json!({"uri": PAGE})).await;
    assert_eq!(read["contents"][0]["mimeType"], "text/html;profile=mcp-app");
    assert_eq!(read["contents"][0]["_meta"]["ui"]["csp"], json!({}));
    let off = server_with(&runs, hosts().view(false));
    for mut other in [legacy(&server(&runs)).await, host(&off).await] {
        assert_eq!(page_of_task_result(&mut other).await, Value::Null);
        other.error("resources/read", json!({"uri": PAGE})).await;
    }
}

#[tokio::test(start_paused = true)]
async fn model_in_host_with_view_gets_control_after_two_seconds() {
    let mut pipe = host(&server(&Runs::default())).await;
    let pending = pipe.call("render", json!({"ms": 60_000})).await;
    assert!(text(&pending).contains("it shows the user a live view"), "{pending}");
    let began = Instant::now();
    let shown = pipe.call("task_result", json!({"task": task_of(&pending)})).await;
    assert_eq!(began.elapsed().as_secs(), 2);
    assert_eq!(task(&shown)["tool"], "render");
}

#[tokio::test(start_paused = true)]
async fn host_with_view_gets_pending_result_instead_of_rounds() {
    let mut pipe = Pipe::open(&server(&Runs::default()));
    let ui = json!({"mimeTypes": ["text/html;profile=mcp-app"]});
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/ui": ui}});
    let params = json!({"name": "render", "arguments": {"ms": 60_000}});
    let pending = result(&pipe.modern_with(capabilities, "tools/call", params).await);
    assert!(text(&pending).contains("it shows the user a live view"), "{pending}");
}

#[tokio::test(start_paused = true)]
async fn call_of_view_waits_no_longer_than_its_host() {
    let mut pipe = host(&server(&Runs::default())).await;
    let id = task_of(&pipe.call("always", json!({"ms": 60_000})).await);
    let first = look(&mut pipe, &id, json!({})).await;
    let began = Instant::now();
    look(&mut pipe, &id, json!({"change": task(&first)["change"], "segment": 0})).await;
    assert!(began.elapsed() < CALL_TIMEOUT, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn call_of_view_returns_at_next_change() {
    let mut pipe = host(&server(&Runs::default())).await;
    let id = task_of(&pipe.call("render", json!({"ms": 60_000})).await);
    let first = look(&mut pipe, &id, json!({})).await;
    let began = Instant::now();
    let seen = json!({"change": task(&first)["change"], "segment": 0});
    let second = look(&mut pipe, &id, seen).await;
    assert!(began.elapsed() <= Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(task(&second)["done"].as_f64() > task(&first)["done"].as_f64(), "{second}");
    assert_eq!(task(&second)["status"], "working");
}

/// Lines of [`print`], more than two replies have.
const LINES: usize = 2_500;

/// Prints lines of a length at once, and ends after the call's slice.
async fn print(cx: Durable, Args(Print { bytes }): Args<Print>) -> Result<String> {
    for line in 0..LINES {
        cx.emit(numbered(line, bytes)).await?;
    }
    tokio::time::sleep(CALL_TIMEOUT).await;
    Ok("printed".to_owned())
}

#[derive(Deserialize, JsonSchema)]
struct Print {
    bytes: usize,
}

fn numbered(line: usize, bytes: usize) -> String {
    format!("{line:<bytes$}")
}

/// Starts [`print`] in a host with the view. Returns the ID of the task.
async fn printing(bytes: usize) -> (Pipe, String) {
    let config = TaskConfig::in_memory().hosts(hosts());
    let tool = Tool::new("print", print).task(TaskPolicy::Always);
    let server = builder(config, &Runs::default()).tool(tool).build().unwrap();
    let mut pipe = host(&server).await;
    let id = task_of(&pipe.call("print", json!({"bytes": bytes})).await);
    (pipe, id)
}

#[tokio::test(start_paused = true)]
async fn view_that_opens_late_gets_newest_lines_in_order() {
    let (mut pipe, id) = printing(10).await;
    for status in ["working", "completed"] {
        let shown = look(&mut pipe, &id, json!({})).await;
        assert_eq!(task(&shown)["status"], status);
        let newest: Vec<String> = (LINES - 1_000..LINES).map(|line| numbered(line, 10)).collect();
        assert_eq!(task(&shown)["lines"]["text"], json!(newest));
        assert_eq!(task(&shown)["lines"]["last"], LINES);
        assert_eq!(task(&shown)["lines"]["skipped"], LINES - 1_000);
        tokio::time::sleep(2 * CALL_TIMEOUT).await;
    }
}

#[tokio::test(start_paused = true)]
async fn lines_that_fit_into_one_reply_have_no_gap() {
    let (mut pipe, id) = printing(10).await;
    let shown = look(&mut pipe, &id, json!({"segment": LINES - 1_000})).await;
    let lines = &task(&shown)["lines"];
    assert_eq!(lines["text"][0], numbered(LINES - 1_000, 10));
    assert_eq!(lines["text"].as_array().unwrap().len(), 1_000);
    assert_eq!(lines.get("skipped"), None);
    let shown = look(&mut pipe, &id, json!({"segment": LINES})).await;
    assert_eq!(task(&shown).get("lines"), None);
}

#[tokio::test(start_paused = true)]
async fn backlog_of_long_lines_ends_with_the_last_line() {
    let (mut pipe, id) = printing(1_000).await;
    tokio::time::sleep(2 * CALL_TIMEOUT).await;
    let shown = look(&mut pipe, &id, json!({"segment": 10})).await;
    let lines = &task(&shown)["lines"];
    let text = lines["text"].as_array().unwrap();
    assert!((100..300).contains(&text.len()), "{} lines", text.len());
    assert_eq!(text[text.len() - 1], numbered(LINES - 1, 1_000));
    assert_eq!(lines["skipped"], LINES - 10 - text.len());
    assert_eq!(lines["last"], LINES);
}

#[tokio::test(start_paused = true)]
async fn result_read_by_view_is_not_delivered_to_model() {
    let runs = Runs::default();
    let mut pipe = host(&server(&runs)).await;
    let arguments = json!({"ms": 9_000});
    let id = task_of(&pipe.call("nap", arguments.clone()).await);
    let mut shown = look(&mut pipe, &id, json!({})).await;
    while task(&shown)["status"] == "working" {
        shown = look(&mut pipe, &id, json!({"change": task(&shown)["change"]})).await;
    }
    assert_eq!(task(&shown)["status"], "completed");
    assert_eq!(text(&shown), "slept 9000 ms");
    let repeated = pipe.call("nap", arguments).await;
    assert_eq!((text(&repeated), runs.count()), ("slept 9000 ms", 1));
}

#[tokio::test(start_paused = true)]
async fn cancelled_call_of_view_leaves_task_running() {
    let mut pipe = host(&server(&Runs::default())).await;
    let id = task_of(&pipe.call("nap", json!({"ms": 60_000})).await);
    let change = task(&look(&mut pipe, &id, json!({})).await)["change"].clone();
    let arguments = json!({"task": id, "wait_seconds": 20, "seen": {"change": change}});
    let call = json!({"name": "task_result", "arguments": arguments});
    let waiting = pipe.send("tools/call", call).await;
    pipe.cancel(waiting).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(task(&look(&mut pipe, &id, json!({})).await)["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn input_request_says_where_it_is_answered_unless_tool_answers() {
    for (answers, says) in [(vec![], true), (vec![AnswerBy::Tool], false)] {
        let server = server_with(&Runs::default(), hosts().answers(answers));
        let mut pipe = host(&server).await;
        let id = task_of(&pipe.call("deploy", json!({})).await);
        let shown = look(&mut pipe, &id, json!({})).await;
        assert_eq!(task(&shown)["status"], "input_required");
        let approve = &shown["structuredContent"]["task"]["inputRequests"]["approve"];
        assert_eq!(approve["message"], "Deploy shop:1?");
        assert_eq!(approve.get("instructions").is_some(), says, "{approve}");
    }
}
