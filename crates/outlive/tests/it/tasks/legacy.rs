//! Tasks of 2025-11-25.

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

/// Calls a tool as a task and returns the task ID.
async fn start(pipe: &mut Pipe, tool: &str, arguments: Value) -> String {
    let call = json!({"name": tool, "arguments": arguments, "task": {"ttl": 60_000}});
    let created = pipe.result("tools/call", call).await;
    let task = &created["task"];
    assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(60_000)), "{created}");
    task["taskId"].as_str().unwrap().to_owned()
}

// T1-01, T1-02, T1-05, T1-09
#[tokio::test(start_paused = true)]
async fn tasks_capability_is_declared_in_2025_11_25() {
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
    assert!(
        hello["capabilities"]["tasks"].get("list").is_none(),
        "anonymous callers cannot be distinguished"
    );
    assert_eq!(anonymous.error("tasks/list", json!({})).await["code"], -32601);
}

// T1-06, T1-07, T1-10, T1-13, T1-18
#[tokio::test(start_paused = true)]
async fn legacy_call_becomes_task_only_if_requested() {
    let mut pipe = client(&Counts::default()).await;
    let plain = pipe.call("nap", json!({"ms": 5000})).await;
    assert_eq!(text(&plain), "slept 5000 ms", "no task was requested");
    start(&mut pipe, "nap", json!({"ms": 5000})).await;
    let task = json!({"name": "plain", "arguments": {"ms": 1}, "task": {}});
    assert_eq!(
        pipe.error("tools/call", task).await["code"],
        -32601,
        "the tool never runs as a task"
    );
    assert_eq!(pipe.error("tools/call", json!({"name": "deploy"})).await["code"], -32601);
    for bad in [json!(1), json!({"ttl": -1}), json!({"ttl": "x"}), json!({"ttl": 1.5})] {
        let call = json!({"name": "nap", "arguments": {"ms": 1}, "task": bad});
        assert_eq!(pipe.error("tools/call", call).await["code"], -32602);
    }
}

// T1-15, T1-16, X-20
#[tokio::test(start_paused = true)]
async fn legacy_task_ttl_is_requested_value_up_to_maximum() {
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
async fn legacy_task_result_waits_and_is_readable_again() {
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
    assert_eq!(status["status"], "failed", "the modern status is `completed`");
    let id = start(&mut pipe, "refuse", json!({})).await;
    let refused = pipe.error("tasks/result", json!({"taskId": id})).await;
    assert_eq!(refused, json!({"code": 77, "message": "not here"}));
}

// T1-40, T1-41, T1-43
#[tokio::test(start_paused = true)]
async fn legacy_task_sends_input_request_on_result_stream() {
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
    let told = pipe.read_to(waiting).await;
    assert_eq!(told[0]["method"], "notifications/tasks/status", "T1-50: {told:?}");
    assert_eq!(told[0]["params"]["status"], "working");
    assert!(told[0]["params"].get("_meta").is_none());
    assert_eq!(text(&result(&told[1])), "shop:1: true");
}

// T1C-30, T1C-31, T1C-32
#[tokio::test(start_paused = true)]
async fn client_can_answer_input_request_with_client_task() {
    let mut pipe = Pipe::open(&super::world::server(&Counts::default()));
    let hosts = json!({"requests": {"elicitation": {"create": {}}}, "cancel": {}});
    pipe.legacy_with(VERSION, json!({"elicitation": {}, "tasks": hosts})).await;
    let id = start(&mut pipe, "deploy", json!({})).await;
    let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
    let mut asked = pipe.read().await;
    if asked["method"] == "notifications/tasks/status" {
        asked = pipe.read().await;
    }
    assert_eq!(asked["method"], "elicitation/create");
    assert!(asked["params"]["task"]["ttl"].is_u64(), "{asked}");
    assert_eq!(asked["params"]["_meta"][RELATED], json!({"taskId": id}), "the error of the tool");
    let task = |status: &str| {
        let at = "2026-01-01T00:00:00Z";
        json!({"taskId": "theirs", "status": status, "createdAt": at, "lastUpdatedAt": at,
            "ttl": 1000, "pollInterval": 200})
    };
    pipe.reply(&asked, json!({"task": task("working")})).await;
    for status in ["working", "input_required", "completed"] {
        let look = pipe.read().await;
        assert_eq!(
            (&look["method"], &look["params"]["taskId"]),
            (&json!("tasks/get"), &json!("theirs"))
        );
        pipe.reply(&look, task(status)).await;
    }
    let fetch = pipe.read().await;
    assert_eq!(fetch["method"], "tasks/result");
    pipe.reply(&fetch, json!({"action": "accept", "content": {"yes": true}})).await;
    let told = pipe.read_to(waiting).await;
    assert_eq!(text(&result(told.last().unwrap())), "shop:1: true");
}

/// A client that can answer with a task may also respond directly. Inline calls use the same input
/// requests.
#[tokio::test(start_paused = true)]
async fn client_with_task_support_can_respond_directly() {
    let mut pipe = Pipe::open(&super::world::server(&Counts::default()));
    let hosts = json!({"requests": {"elicitation": {"create": {}}}});
    pipe.legacy_with(VERSION, json!({"elicitation": {}, "tasks": hosts})).await;
    let call = pipe.send("tools/call", json!({"name": "wizard"})).await;
    let asked = pipe.read().await;
    assert!(asked["params"]["task"].is_object());
    pipe.reply(&asked, json!({"action": "accept", "content": {"yes": true}})).await;
    assert_eq!(text(&result(&pipe.answer(call).await)), "sure: true");
}

/// Reports progress four times, once with a lower value.
async fn counting(cx: outlive::server::Cx) -> &'static str {
    for done in [1.0, 2.0, 1.5, 3.0] {
        cx.progress(done, 3.0, "");
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    "counted"
}

// T1-31, T1-32
#[tokio::test(start_paused = true)]
async fn client_waiting_for_legacy_task_gets_progress_with_token_of_call() {
    let counts = Counts::default();
    let tool = outlive::server::Tool::new("counting", counting)
        .task(outlive::server::tasks::TaskPolicy::Always);
    let config = outlive::server::tasks::TaskConfig::in_memory();
    let server = super::world::builder(config, &counts).tool(tool).build().unwrap();
    let mut pipe = Pipe::open(&server);
    pipe.legacy(VERSION).await;
    let call = json!({"name": "counting", "task": {}, "_meta": {"progressToken": "mine"}});
    let id = pipe.result("tools/call", call).await["task"]["taskId"].clone();
    let first = pipe.send("tasks/result", json!({"taskId": id})).await;
    let heard = pipe.read().await;
    let (token, done) = (&heard["params"]["progressToken"], &heard["params"]["progress"]);
    assert_eq!((token, done.as_f64()), (&json!("mine"), Some(1.0)));
    pipe.cancel(first).await;
    let again = pipe.send("tasks/result", json!({"taskId": id})).await;
    let heard = pipe.read_to(again).await;
    let told: Vec<_> =
        heard.iter().filter_map(|said| said["params"]["progress"].as_f64()).collect();
    assert_eq!(told, [2.0, 3.0], "increasing values without repetition: {heard:?}");
    assert_eq!(text(&result(heard.last().unwrap())), "counted");
}

// T1-17
#[tokio::test(start_paused = true)]
async fn legacy_task_creation_carries_immediate_response() {
    let counts = Counts::default();
    let nap = outlive::server::Tool::new("film", async || "done")
        .task(outlive::server::tasks::TaskPolicy::Always)
        .immediate_response("The film is being made.");
    let config = outlive::server::tasks::TaskConfig::in_memory();
    let server = super::world::builder(config, &counts).tool(nap).build().unwrap();
    let mut pipe = Pipe::open(&server);
    pipe.legacy(VERSION).await;
    let created = pipe.result("tools/call", json!({"name": "film", "task": {}})).await;
    let said = &created["_meta"]["io.modelcontextprotocol/model-immediate-response"];
    assert_eq!(said, "The film is being made.", "{created}");
}

// T1-54, T1-55, T1-56, T1-26, R-01
#[tokio::test(start_paused = true)]
async fn legacy_cancelled_task_ends_immediately_and_stays_cancelled() {
    let mut pipe = client(&Counts::default()).await;
    let id = start(&mut pipe, "nap", json!({"ms": 5000})).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let cancelled = pipe.result("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!((&cancelled["taskId"], &cancelled["status"]), (&json!(id), &json!("cancelled")));
    assert_eq!(pipe.error("tasks/cancel", json!({"taskId": id})).await["code"], -32602);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let status = pipe.result("tasks/get", json!({"taskId": id})).await;
    assert_eq!(status["status"], "cancelled", "although the run has ended since");
    assert_eq!(pipe.error("tasks/result", json!({"taskId": id})).await["code"], -32603);
    assert_eq!(pipe.error("tasks/get", json!({"taskId": "nobody"})).await["code"], -32602);
}

// T1-51, T1-52, T1-53
#[tokio::test(start_paused = true)]
async fn task_list_returns_own_tasks_in_pages() {
    let counts = Counts::default();
    let server = super::world::builder(outlive::server::tasks::TaskConfig::in_memory(), &counts)
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
        assert_eq!(foreign["code"], -32602, "a cursor is valid only for its principal");
    }
    seen.sort();
    made.sort();
    assert_eq!(seen, made);
    assert_eq!(ada.error("tasks/list", json!({"cursor": "x"})).await["code"], -32602);
    let answer = ada.ask("tasks/get", json!({"taskId": "x"})).await;
    assert_eq!(error(&answer)["code"], -32602);
}

// B-21, T1-51
#[tokio::test(start_paused = true)]
async fn modern_task_is_unknown_in_legacy_era() {
    let server = super::world::server(&Counts::default());
    let mut newer = Pipe::open(&server);
    let theirs = super::world::start(&mut newer, "deploy", json!({})).await;
    let mut pipe = Pipe::open(&server);
    pipe.legacy_with(VERSION, json!({"elicitation": {}})).await;
    let ours = start(&mut pipe, "deploy", json!({})).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = pipe.error(method, json!({"taskId": theirs})).await;
        assert_eq!(refused["code"], -32602, "{method}");
    }
    let listed = pipe.result("tasks/list", json!({})).await;
    let ids: Vec<_> =
        listed["tasks"].as_array().unwrap().iter().map(|task| &task["taskId"]).collect();
    assert_eq!(ids, [&json!(ours)]);
    let seen = super::world::get(&mut newer, &ours).await;
    assert_eq!(seen["taskId"], json!(ours), "the modern era sees both tasks");
}

/// A client that cannot respond gets the input request again only on another stream.
#[tokio::test(start_paused = true)]
async fn input_request_with_error_response_is_resent_on_another_stream_only() {
    let mut pipe = client(&Counts::default()).await;
    let id = start(&mut pipe, "deploy", json!({})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    for answer in [
        json!({"error": {"code": -1, "message": "no user is present"}}),
        json!({"result": {"x": 1}}),
    ] {
        let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
        let asked = pipe.read().await;
        assert_eq!(asked["method"], "elicitation/create");
        let mut reply = json!({"jsonrpc": "2.0", "id": asked["id"]});
        reply.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        pipe.send_json(&reply).await;
        pipe.quiet().await;
        pipe.cancel(waiting).await;
    }
    let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
    let asked = pipe.read().await;
    pipe.reply(&asked, json!({"action": "accept", "content": {"yes": true}})).await;
    assert_eq!(text(&result(pipe.read_to(waiting).await.last().unwrap())), "shop:1: true");
}
