//! Rules of the extension of 2026-07-28 about tasks that `modern` does not cover.

use std::time::Duration;

use outlive::server::{
    Cx, LoggingLevel, Tool,
    http::HttpConfig,
    tasks::{TaskConfig, TaskPolicy},
};
use serde_json::{Value, json};

use super::{
    legacy_rules::twice_server,
    world::{Counts, builder, get, holds, modern, server, start, until},
};
use crate::support::{
    http::{Connection, Request, Session},
    pipe::{Pipe, error, result, text, with_meta},
};

// T2-14, T2-15, T2-16, T2-20, T2-21, T2-26, T2-33, T2-35, T2-50, T2-65
#[tokio::test(start_paused = true)]
async fn modern_task_responses_have_exactly_specified_members() {
    let mut pipe = Pipe::open(&server(&Counts::default()));
    let call = json!({"name": "nap", "arguments": {"ms": 5000}});
    let created = result(&modern(&mut pipe, "tools/call", call).await);
    let id = created["taskId"].as_str().unwrap().to_owned();
    assert!(id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)));
    let working = get(&mut pipe, &id).await;
    let about = json!({"taskId": id, "inputResponses": {}, "requestState": "x"});
    let updated = result(&modern(&mut pipe, "tasks/update", about).await);
    let done = until(&mut pipe, &id, "completed").await;
    let cancelled = result(&modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await);
    assert_eq!(created["resultType"], "task");
    for answer in [&created, &working, &done] {
        for time in ["ttlMs", "pollIntervalMs"] {
            assert!(answer[time].as_u64().is_some_and(|ms| ms > 0), "{time}: {answer}");
        }
        for absent in ["error", "inputRequests", "requestState", "ttl", "pollInterval", "task"] {
            assert!(answer.get(absent).is_none(), "{absent}: {answer}");
        }
    }
    assert!(created.get("result").is_none() && working.get("result").is_none());
    for answer in [&working, &updated, &done, &cancelled] {
        assert_eq!(answer["resultType"], "complete", "{answer}");
    }
    for acknowledged in [&updated, &cancelled] {
        assert!(acknowledged.get("taskId").is_none(), "{acknowledged}");
    }
    for answer in [&created, &working, &updated, &done, &cancelled] {
        let server = &answer["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(server["name"], "tasks", "{answer}");
    }
    assert!(!done["result"].to_string().contains("related-task"), "{done}");
}

// T2-30, T2-34, T2-53, T2-59
#[tokio::test(start_paused = true)]
async fn answered_input_request_disappears_and_others_stay_open() {
    let mut pipe = Pipe::open(&twice_server());
    let id = start(&mut pipe, "twice", json!({})).await;
    let open = async |pipe: &mut Pipe| {
        let task = until(pipe, &id, "input_required").await;
        assert!(task.get("requestState").is_none());
        let asked = task["inputRequests"].as_object().unwrap();
        assert!(asked.values().all(|asked| asked["method"] == "elicitation/create"), "{task}");
        asked.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(open(&mut pipe).await, ["first", "second"]);
    let yes = json!({"action": "accept", "content": {"yes": true}});
    let update = |name: &str| json!({"taskId": id, "inputResponses": {name: yes}});
    modern(&mut pipe, "tasks/update", update("second")).await;
    assert_eq!(open(&mut pipe).await, ["first"], "immediately");
    modern(&mut pipe, "tasks/update", update("first")).await;
    assert_eq!(text(&until(&mut pipe, &id, "completed").await["result"]), "true true");
}

// T2-55, T2-56, T2-60
#[tokio::test(start_paused = true)]
async fn task_update_is_atomic_and_harmless_when_late() {
    let mut pipe = Pipe::open(&twice_server());
    let id = start(&mut pipe, "twice", json!({})).await;
    until(&mut pipe, &id, "input_required").await;
    let update = |answers: Value| json!({"taskId": id, "inputResponses": answers});
    let yes = json!({"action": "accept", "content": {"yes": true}});
    for bad in [json!([]), json!("x"), Value::Null, json!({"first": yes, "second": {"no": 1}})] {
        let refused = modern(&mut pipe, "tasks/update", update(bad)).await;
        assert_eq!(error(&refused)["code"], -32602);
    }
    let missing = modern(&mut pipe, "tasks/update", json!({"taskId": id})).await;
    assert_eq!(error(&missing)["code"], -32602);
    let unknown = json!({"taskId": "nobody", "inputResponses": {}});
    assert_eq!(error(&modern(&mut pipe, "tasks/update", unknown).await)["code"], -32602);
    let task = get(&mut pipe, &id).await;
    assert_eq!(
        task["inputRequests"].as_object().unwrap().len(),
        2,
        "no response was accepted: {task}"
    );
    modern(&mut pipe, "tasks/update", update(json!({"first": yes, "second": yes}))).await;
    let done = until(&mut pipe, &id, "completed").await;
    let no = json!({"action": "decline"});
    let late = modern(&mut pipe, "tasks/update", update(json!({"first": no}))).await;
    assert_eq!(result(&late)["resultType"], "complete");
    assert_eq!(get(&mut pipe, &id).await["result"], done["result"]);
}

// T2-58
#[tokio::test(start_paused = true)]
async fn declined_input_request_ends_task() {
    let mut pipe = Pipe::open(&server(&Counts::default()));
    for action in ["decline", "cancel"] {
        let id = start(&mut pipe, "deploy", json!({})).await;
        until(&mut pipe, &id, "input_required").await;
        let update = json!({"taskId": id, "inputResponses": {"approve": {"action": action}}});
        modern(&mut pipe, "tasks/update", update).await;
        let done = until(&mut pipe, &id, "completed").await;
        assert_eq!(done["result"]["isError"], true, "the handler fails: {done}");
    }
}

// T2-69, B-27
#[tokio::test(start_paused = true)]
async fn cancel_notification_does_not_cancel_task() {
    let mut pipe = Pipe::open(&server(&Counts::default()));
    let mut params = json!({"name": "nap", "arguments": {"ms": 5000}});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = holds();
    let request = pipe.send_as_is("tools/call", with_meta(params)).await;
    let created = result(&pipe.answer(request).await);
    pipe.cancel(request).await;
    let done = until(&mut pipe, created["taskId"].as_str().unwrap(), "completed").await;
    assert_eq!(text(&done["result"]), "slept 5000 ms");
}

/// Reports progress and logs all the time.
async fn talk(cx: Cx) -> &'static str {
    for done in 0..50 {
        cx.progress(f64::from(done), 50.0, "");
        cx.log(LoggingLevel::Error, "listen");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    "enough"
}

// T2-76, T2-82, T2-83
#[tokio::test(start_paused = true)]
async fn task_sends_neither_log_messages_nor_progress() {
    let auto = TaskPolicy::Auto { after: Duration::from_millis(550) };
    let tools = [
        Tool::new("talk", talk).task(auto),
        Tool::new("talk_at_once", talk).task(TaskPolicy::Always),
    ];
    let counts = Counts::default();
    let mut builder = builder(TaskConfig::in_memory(), &counts).logging(true);
    for tool in tools {
        builder = builder.tool(tool);
    }
    let server = builder.build().unwrap();
    for (tool, said_before) in [("talk", true), ("talk_at_once", false)] {
        let mut pipe = Pipe::open(&server);
        let mut params = json!({"name": tool, "_meta": {"progressToken": "p"}});
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = holds();
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        let call = pipe.send_as_is("tools/call", with_meta(params)).await;
        let told = pipe.read_to(call).await;
        assert_eq!(told.len() > 1, said_before, "messages before the promotion: {told:?}");
        let id = result(told.last().unwrap())["taskId"].as_str().unwrap().to_owned();
        // `get` fails if another message than its response arrives.
        let done = until(&mut pipe, &id, "completed").await;
        assert_eq!(text(&done["result"]), "enough");
        pipe.quiet().await;
    }
}

// T2-13, T2-12
#[tokio::test]
async fn task_header_may_be_absent_and_must_not_name_another_task() {
    let server = server(&Counts::default());
    let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await.unwrap();
    let mut client = Connection::open(serving.address()).await;
    let call = Request::call("stubborn", json!({})).reserved("clientCapabilities", holds());
    let id = client.send(&call).await.result()["taskId"].as_str().unwrap().to_owned();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let request = Request::modern(method)
            .reserved("clientCapabilities", holds())
            .param("taskId", json!(id))
            .param("inputResponses", json!({}));
        let encoded = format!("=?base64?{}?=", base64(&id));
        for (name, status, code) in [
            (None, 200, None),
            (Some("other"), 400, Some(-32020)),
            (Some(id.as_str()), 200, None),
            (Some(encoded.as_str()), 200, None),
        ] {
            let request = match name {
                Some(name) => request.clone().header("mcp-name", name),
                None => request.clone().without_header("mcp-name"),
            };
            let answer = client.send(&request).await;
            let said = answer.json()["error"]["code"].as_i64();
            assert_eq!((answer.status(), said), (status, code), "{method}, {name:?}");
        }
        let other = request.clone().header("mcp-name", &id).header("mcp-method", "tools/call");
        assert_eq!(client.send(&other).await.json()["error"]["code"], -32020, "{method}");
        // Header errors are reported before missing capabilities.
        let undeclared = request.clone().reserved("clientCapabilities", json!({}));
        let both = client.send(&undeclared.clone().header("mcp-name", "other")).await;
        assert_eq!(both.json()["error"]["code"], -32020);
        let undeclared = client.send(&undeclared.header("mcp-name", &id)).await;
        assert_eq!(
            (undeclared.status(), &undeclared.json()["error"]["code"]),
            (400, &json!(-32021))
        );
    }
    for method in ["tasks/result", "tasks/list"] {
        let request = Request::modern(method).reserved("clientCapabilities", holds());
        let answer = client.send(&request.param("taskId", json!(id))).await;
        assert_eq!((answer.status(), &answer.json()["error"]["code"]), (404, &json!(-32601)));
    }
}

fn base64(text: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(text)
}

// T1-21, T1-33
#[tokio::test]
async fn http_task_poll_returns_json_and_result_request_can_be_dropped() {
    let server = server(&Counts::default());
    let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await.unwrap();
    let session = Session::open(serving.address(), Request::initialize("2025-11-25"), None).await;
    let mut client = Connection::open(serving.address()).await;
    let call = session.call("nap", json!({"ms": 400})).param("task", json!({}));
    let id = client.send(&call).await.result()["task"]["taskId"].clone();
    let poll = client.send(&session.request("tasks/get").param("taskId", id.clone())).await;
    assert!(!poll.is_stream());
    assert_eq!(poll.result()["status"], "working");
    let result = session.request("tasks/result").param("taskId", id);
    let mut waiting = Connection::open(serving.address()).await;
    waiting.write(&result.bytes()).await;
    drop(waiting);
    assert_eq!(client.send(&result.id(99)).await.text(), "slept 400 ms");
}
