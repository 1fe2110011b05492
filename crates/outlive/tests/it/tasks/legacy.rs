//! Tasks as 2025-11-25 has them.

use std::time::Duration;

use outlive::server::Principal;
use serde_json::{Value, json};

use super::world::{Counts, server};
use crate::support::pipe::{LEGACY, Pipe, error, result, text};

const VERSION: &str = "2025-11-25";
const RELATED: &str = "io.modelcontextprotocol/related-task";

async fn client(counts: &Counts) -> Pipe {
    let mut pipe = Pipe::open(&server(counts));
    pipe.legacy_with(VERSION, json!({"elicitation": {}})).await;
    pipe
}

/// Calls a tool as a task, and returns its id.
async fn start(pipe: &mut Pipe, tool: &str, arguments: Value) -> String {
    let call = json!({"name": tool, "arguments": arguments, "task": {"ttl": 60_000}});
    let created = pipe.result("tools/call", call).await;
    let task = &created["task"];
    assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(60_000)), "{created}");
    task["taskId"].as_str().unwrap().to_owned()
}

// T1-01, T1-02, T1-05, T1-09
#[tokio::test(start_paused = true)]
async fn tasks_are_declared_to_those_who_know_them() {
    let counts = Counts::default();
    let mut pipe = Pipe::open(&server(&counts));
    let hello = pipe.legacy(VERSION).await;
    let declared = json!({"cancel": {}, "list": {}, "requests": {"tools": {"call": {}}}});
    assert_eq!(hello["capabilities"]["tasks"], declared);
    let tools = pipe.result("tools/list", json!({})).await;
    let support = |name: &str| {
        let tools = tools["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap()["execution"]["taskSupport"].clone()
    };
    assert_eq!(support("nap"), "optional");
    assert_eq!(support("deploy"), "required");
    assert_eq!(support("plain"), Value::Null);
    for version in &LEGACY[..3] {
        let mut pipe = Pipe::open(&server(&counts));
        assert!(pipe.legacy(version).await["capabilities"].get("tasks").is_none(), "{version}");
        assert_eq!(pipe.error("tasks/get", json!({"taskId": "x"})).await["code"], -32601);
    }
    let mut anonymous = Pipe::open_as(&server(&counts), Principal::ANONYMOUS);
    let hello = anonymous.legacy(VERSION).await;
    assert!(hello["capabilities"]["tasks"].get("list").is_none(), "nobody could be told apart");
    assert_eq!(anonymous.error("tasks/list", json!({})).await["code"], -32601);
}

// T1-06, T1-07, T1-10, T1-13, T1-18
#[tokio::test(start_paused = true)]
async fn a_call_is_a_task_if_it_asks_to_be() {
    let mut pipe = client(&Counts::default()).await;
    let plain = pipe.call("nap", json!({"ms": 5000})).await;
    assert_eq!(text(&plain), "slept 5000 ms", "nobody asked");
    start(&mut pipe, "nap", json!({"ms": 5000})).await;
    let task = json!({"name": "plain", "arguments": {"ms": 1}, "task": {}});
    assert_eq!(pipe.error("tools/call", task).await["code"], -32601, "it never is one");
    assert_eq!(pipe.error("tools/call", json!({"name": "deploy"})).await["code"], -32601);
    for bad in [json!(1), json!({"ttl": -1}), json!({"ttl": "x"}), json!({"ttl": 1.5})] {
        let call = json!({"name": "nap", "arguments": {"ms": 1}, "task": bad});
        assert_eq!(pipe.error("tools/call", call).await["code"], -32602);
    }
}

// T1-15, T1-16, X-20
#[tokio::test(start_paused = true)]
async fn a_task_lives_as_long_as_asked_and_no_longer_than_allowed() {
    let mut pipe = client(&Counts::default()).await;
    for (asked, granted) in [
        (json!({"ttl": 5_000}), 5_000),
        (json!({}), 3_600_000),
        (json!({"ttl": 1_000_000_000_000_u64}), 30 * 24 * 3_600_000_u64),
    ] {
        let call = json!({"name": "nap", "arguments": {"ms": 1}, "task": asked});
        let created = pipe.result("tools/call", call).await;
        assert_eq!(created["task"]["ttl"], granted);
        let id = &created["task"]["taskId"];
        assert_eq!(pipe.result("tasks/get", json!({"taskId": id})).await["ttl"], granted);
    }
}

// T1-22, T1-23, T1-24, T1-27, T1-28
#[tokio::test(start_paused = true)]
async fn the_result_is_waited_for_and_can_be_read_again() {
    let mut pipe = client(&Counts::default()).await;
    let id = start(&mut pipe, "nap", json!({"ms": 5000})).await;
    for _ in 0..2 {
        let done = pipe.result("tasks/result", json!({"taskId": id})).await;
        assert_eq!(text(&done), "slept 5000 ms");
        assert_eq!(done["_meta"][RELATED], json!({"taskId": id}));
    }
    let status = pipe.result("tasks/get", json!({"taskId": id})).await;
    assert_eq!(status["status"], "completed");
    let id = start(&mut pipe, "fail", json!({})).await;
    let failed = pipe.result("tasks/result", json!({"taskId": id})).await;
    assert_eq!((&failed["isError"], text(&failed)), (&json!(true), "quota"));
    let status = pipe.result("tasks/get", json!({"taskId": id})).await;
    assert_eq!(status["status"], "failed", "which is completed on the newer wire");
    let id = start(&mut pipe, "refuse", json!({})).await;
    let refused = pipe.error("tasks/result", json!({"taskId": id})).await;
    assert_eq!(refused, json!({"code": 77, "message": "not here"}));
}

// T1-40, T1-41, T1-43
#[tokio::test(start_paused = true)]
async fn what_a_task_asks_comes_on_the_stream_of_its_result() {
    let mut pipe = client(&Counts::default()).await;
    let id = start(&mut pipe, "deploy", json!({})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status = pipe.result("tasks/get", json!({"taskId": id})).await;
    assert_eq!(status["status"], "input_required");
    let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
    let asked = pipe.read().await;
    assert_eq!(asked["method"], "elicitation/create");
    assert_eq!(asked["params"]["_meta"][RELATED], json!({"taskId": id}));
    pipe.reply(&asked, json!({"action": "accept", "content": {"yes": true}})).await;
    assert_eq!(text(&result(&pipe.answer(waiting).await)), "shop:1: true");
}

// T1-54, T1-55, T1-56, T1-26, R-01
#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_over_at_once_and_stays_so() {
    let mut pipe = client(&Counts::default()).await;
    let id = start(&mut pipe, "nap", json!({"ms": 5000})).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let cancelled = pipe.result("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!((&cancelled["taskId"], &cancelled["status"]), (&json!(id), &json!("cancelled")));
    assert_eq!(pipe.error("tasks/cancel", json!({"taskId": id})).await["code"], -32602);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let status = pipe.result("tasks/get", json!({"taskId": id})).await;
    assert_eq!(status["status"], "cancelled", "though the work has ended since");
    assert_eq!(pipe.error("tasks/result", json!({"taskId": id})).await["code"], -32603);
    assert_eq!(pipe.error("tasks/get", json!({"taskId": "nobody"})).await["code"], -32602);
}

// T1-51, T1-52, T1-53
#[tokio::test(start_paused = true)]
async fn a_caller_lists_its_own_tasks_page_by_page() {
    let counts = Counts::default();
    let server = super::world::builder(outlive::server::TaskConfig::volatile(), &counts)
        .limits(|limits| limits.page_size = 2)
        .build()
        .unwrap();
    let mut ada = Pipe::open_as(&server, Principal::named("ada"));
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    ada.legacy(VERSION).await;
    eve.legacy(VERSION).await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(start(&mut ada, "nap", json!({"ms": 1})).await);
    }
    start(&mut eve, "nap", json!({"ms": 1})).await;
    let mut seen = Vec::new();
    let mut params = json!({});
    loop {
        let page = ada.result("tasks/list", params.clone()).await;
        let tasks = page["tasks"].as_array().unwrap();
        seen.extend(tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()));
        let Some(next) = page.get("nextCursor") else { break };
        params["cursor"] = next.clone();
        let foreign = eve.error("tasks/list", params.clone()).await;
        assert_eq!(foreign["code"], -32602, "a cursor is of use to its caller alone");
    }
    seen.sort();
    made.sort();
    assert_eq!(seen, made);
    assert_eq!(ada.error("tasks/list", json!({"cursor": "x"})).await["code"], -32602);
    let answer = ada.ask("tasks/get", json!({"taskId": "x"})).await;
    assert_eq!(error(&answer)["code"], -32602);
}
