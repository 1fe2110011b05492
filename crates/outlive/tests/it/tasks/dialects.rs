//! Task methods by protocol version and declared capabilities.

use outlive::server::{Principal, Server};
use serde_json::{Value, json};

use super::world::{Counts, builder, holds, modern, server, start};
use crate::support::pipe::{LEGACY, Pipe, error, result, text};

const TASKS: [&str; 5] =
    ["tasks/get", "tasks/cancel", "tasks/update", "tasks/result", "tasks/list"];

/// Returns the error code of a response, or 0.
fn code(answer: &Value) -> i64 {
    answer.get("error").map_or(0, |error| error["code"].as_i64().unwrap())
}

/// Returns the error code of every task method for an unknown task.
async fn codes(mut ask: impl AsyncFnMut(&str, Value) -> Value) -> [i64; 5] {
    let mut codes = [0; 5];
    for (at, method) in TASKS.into_iter().enumerate() {
        let mut params = json!({"taskId": "nobody"});
        match method {
            "tasks/update" => params["inputResponses"] = json!({}),
            "tasks/list" => params = json!({}),
            _ => {}
        }
        codes[at] = code(&ask(method, params).await);
    }
    codes
}

fn nap(ms: u64) -> Value {
    json!({"name": "nap", "arguments": {"ms": ms}})
}

/// A server without tasks.
fn without_tasks() -> Server {
    let nap = outlive::server::Tool::new("nap", async || "rested");
    Server::builder("plain", "1").tool(nap).build().unwrap()
}

// B-01, B-04, T1-02, T1-08
#[tokio::test(start_paused = true)]
async fn task_of_2025_11_25_is_requested_by_call_not_by_extension() {
    let server = server(&Counts::default());
    for capabilities in [json!({}), json!({"extensions": holds()["extensions"]})] {
        let mut pipe = Pipe::open(&server);
        pipe.legacy_with("2025-11-25", capabilities).await;
        assert_eq!(text(&pipe.result("tools/call", nap(5000)).await), "slept 5000 ms");
        assert_eq!(pipe.error("tools/call", json!({"name": "deploy"})).await["code"], -32601);
        let codes = codes(async |method, params| pipe.ask(method, params).await).await;
        assert_eq!(codes, [-32602, -32602, -32601, -32602, 0]);
    }
}

// B-02, T1-58
#[tokio::test(start_paused = true)]
async fn task_update_in_2025_11_25_is_method_not_found() {
    let mut pipe = Pipe::speaking(&server(&Counts::default()), "2025-11-25").await;
    let mut call = nap(1);
    call["task"] = json!({});
    let id = pipe.result("tools/call", call).await["task"]["taskId"].clone();
    let update = json!({"taskId": id, "inputResponses": {}});
    assert_eq!(pipe.error("tasks/update", update).await["code"], -32601);
    assert_eq!(text(&pipe.result("tasks/result", json!({"taskId": id})).await), "slept 1 ms");
}

// B-03, B-10, T1-03, T1-08
#[tokio::test(start_paused = true)]
async fn server_without_tasks_ignores_task_request() {
    let server = without_tasks();
    let mut call = json!({"name": "nap", "task": {"ttl": 1}});
    let mut pipe = Pipe::speaking(&server, "2025-11-25").await;
    assert_eq!(text(&pipe.result("tools/call", call.clone()).await), "rested");
    let legacy = codes(async |method, params| pipe.ask(method, params).await).await;
    assert_eq!(legacy, [-32601; 5]);
    call["task"] = Value::Null;
    let mut pipe = Pipe::open(&server);
    assert_eq!(text(&result(&modern(&mut pipe, "tools/call", call).await)), "rested");
    let codes = codes(async |method, params| modern(&mut pipe, method, params).await).await;
    assert_eq!(codes, [-32601; 5]);
}

// B-06, B-08, B-12, T2-10
#[tokio::test(start_paused = true)]
async fn task_in_2026_07_28_requires_declared_extension() {
    let server = server(&Counts::default());
    for capabilities in [
        json!({}),
        json!({"tasks": {"requests": {"tools": {"call": {}}}}}),
        json!({"extensions": {"dev.outlive/task-partials": {}}}),
    ] {
        let mut pipe = Pipe::open(&server);
        let mut ask = async |method: &str, params: Value| {
            pipe.modern_with(capabilities.clone(), method, params).await
        };
        assert_eq!(text(&result(&ask("tools/call", nap(5000)).await)), "slept 5000 ms");
        assert_eq!(code(&ask("tools/call", json!({"name": "deploy"})).await), -32021);
        assert_eq!(codes(ask).await, [-32021, -32021, -32021, -32601, -32601], "{capabilities}");
    }
}

// B-07, B-09, T2-06, T2-07
#[tokio::test(start_paused = true)]
async fn task_parameter_in_2026_07_28_is_ignored() {
    let mut pipe = Pipe::open(&server(&Counts::default()));
    for (tool, ms, kind) in
        [("plain", 5000, "complete"), ("nap", 1, "complete"), ("nap", 5000, "task")]
    {
        let call = json!({"name": tool, "arguments": {"ms": ms}, "task": {"ttl": -1}});
        let answer = result(&modern(&mut pipe, "tools/call", call).await);
        assert_eq!(answer["resultType"], kind, "{tool}: {answer}");
    }
    let codes = codes(async |method, params| modern(&mut pipe, method, params).await).await;
    assert_eq!(codes, [-32602, -32602, -32602, -32601, -32601]);
}

// B-11
#[tokio::test(start_paused = true)]
async fn call_before_2025_11_25_never_becomes_task() {
    let server = server(&Counts::default());
    for version in &LEGACY[..3] {
        let mut pipe = Pipe::speaking(&server, version).await;
        let mut call = nap(5000);
        call["task"] = json!({});
        assert_eq!(text(&pipe.result("tools/call", call).await), "slept 5000 ms", "{version}");
        let codes = codes(async |method, params| pipe.ask(method, params).await).await;
        assert_eq!(codes, [-32601; 5], "{version}");
    }
}

// B-21, B-22, B-23
#[tokio::test(start_paused = true)]
async fn legacy_task_is_readable_in_modern_era_but_not_vice_versa() {
    let server = server(&Counts::default());
    let ada = || Principal::named("ada");
    let mut newer = Pipe::open_as(&server, ada());
    let mut older = Pipe::speaking_as(&server, "2025-11-25", ada()).await;
    let mut call = nap(1);
    call["task"] = json!({});
    let created = older.result("tools/call", call).await;
    let id = created["task"]["taskId"].as_str().unwrap();
    older.result("tasks/result", json!({"taskId": id})).await;
    let seen = super::world::get(&mut newer, id).await;
    assert_eq!((&seen["status"], &seen["resultType"]), (&json!("completed"), &json!("complete")));
    assert_eq!(text(&seen["result"]), "slept 1 ms");
    let id = start(&mut newer, "nap", json!({"ms": 5000})).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let unknown = older.error(method, json!({"taskId": id})).await;
        assert_eq!(unknown["code"], -32602, "{method}");
    }
}

//
#[tokio::test(start_paused = true)]
async fn tasks_of_another_principal_are_unknown_in_every_method() {
    let counts = Counts::default();
    let server = builder(outlive::server::tasks::TaskConfig::in_memory(), &counts).build().unwrap();
    let named = Principal::named;
    let mut ada = Pipe::speaking_as(&server, "2025-11-25", named("ada")).await;
    let mut call = json!({"name": "stubborn", "task": {}});
    let id = ada.result("tools/call", call.clone()).await["task"]["taskId"].clone();
    call["task"] = Value::Null;
    let mut eve = Pipe::speaking_as(&server, "2025-11-25", named("eve")).await;
    let mut eve_too = Pipe::open_as(&server, named("eve"));
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let foreign = eve.error(method, json!({"taskId": id})).await;
        let unknown = eve.error(method, json!({"taskId": "0".repeat(32)})).await;
        assert_eq!(foreign, unknown, "{method}");
    }
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let of = |id: &Value| json!({"taskId": id, "inputResponses": {}});
        let foreign = error(&modern(&mut eve_too, method, of(&id)).await);
        let unknown = error(&modern(&mut eve_too, method, of(&json!("0".repeat(32)))).await);
        assert_eq!(foreign, unknown, "{method}");
    }
    assert_eq!(eve.result("tasks/list", json!({})).await["tasks"], json!([]));
    let listed = ada.result("tasks/list", json!({})).await;
    assert_eq!(listed["tasks"][0]["taskId"], id);
}
