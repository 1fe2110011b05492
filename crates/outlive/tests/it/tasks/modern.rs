//! Tasks of the extension of 2026-07-28.

use std::{sync::atomic::Ordering, time::Duration};

use outlive::server::{Principal, tasks::TaskConfig};
use serde_json::{Value, json};

use super::world::{Counts, builder, get, modern, server, start, until};
use crate::support::pipe::{Pipe, error, result, text};

// T2-20, T2-21, T2-23, T2-30, T2-36, X-01
#[tokio::test(start_paused = true)]
async fn slow_call_is_promoted_to_task_without_rerun() {
    let counts = Counts::default();
    let mut pipe = Pipe::open(&server(&counts));
    let quick = modern(&mut pipe, "tools/call", json!({"name": "nap", "arguments": {"ms": 100}}));
    assert_eq!(text(&result(&quick.await)), "slept 100 ms");
    let answer =
        modern(&mut pipe, "tools/call", json!({"name": "nap", "arguments": {"ms": 5000}})).await;
    let created = result(&answer);
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    for absent in ["task", "result", "error", "inputRequests", "requestState", "ttl"] {
        assert!(created.get(absent).is_none(), "{absent}: {created}");
    }
    let id = created["taskId"].as_str().unwrap();
    assert!(id.len() >= 32, "unguessable: {id}");
    let done = until(&mut pipe, id, "completed").await;
    assert_eq!(text(&done["result"]), "slept 5000 ms");
    assert_eq!(done["result"]["resultType"], "complete");
    assert_eq!(counts.runs.load(Ordering::Relaxed), 2, "each handler ran once");
}

// T2-03, T2-04, T2-05, T2-10
#[tokio::test(start_paused = true)]
async fn client_without_task_extension_gets_no_task() {
    let mut pipe = Pipe::open(&server(&Counts::default()));
    let plain = pipe.modern("tools/call", json!({"name": "nap", "arguments": {"ms": 5000}})).await;
    assert_eq!(text(&result(&plain)), "slept 5000 ms");
    let needed = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    for (method, params) in [
        ("tools/call", json!({"name": "deploy"})),
        ("tasks/get", json!({"taskId": "unknown"})),
        ("tasks/update", json!({"taskId": "unknown", "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": "unknown"})),
        ("subscriptions/listen", json!({"notifications": {"taskIds": ["unknown"]}})),
    ] {
        let refused = error(&pipe.modern(method, params).await);
        assert_eq!(refused["code"], -32021, "{method}: {refused}");
        assert_eq!(refused["data"]["requiredCapabilities"], needed, "{method}");
    }
}

// MT-01, MT-03, MT-04, MT-05, MT-07, MT-08
#[tokio::test(start_paused = true)]
async fn task_promoted_after_rounds_keeps_input_responses() {
    let counts = Counts::default();
    let mut pipe = Pipe::open(&server(&counts));
    let asked = result(&modern(&mut pipe, "tools/call", json!({"name": "wizard"})).await);
    assert_eq!(asked["resultType"], "input_required");
    let round = json!({
        "name": "wizard",
        "requestState": asked["requestState"],
        "inputResponses": {"sure": {"action": "accept", "content": {"yes": true}}},
    });
    let task = result(&modern(&mut pipe, "tools/call", round.clone()).await);
    assert_eq!(task["resultType"], "task");
    assert!(task.get("requestState").is_none() && task.get("inputRequests").is_none());
    let done = until(&mut pipe, task["taskId"].as_str().unwrap(), "completed").await;
    assert_eq!(text(&done["result"]), "sure: true");
    assert_eq!(counts.runs.load(Ordering::Relaxed), 1, "promotion did not rerun the handler");
    // A last round without task support returns the result when the call is done.
    let plain = pipe.modern_with(json!({"elicitation": {}}), "tools/call", round).await;
    assert_eq!(text(&result(&plain)), "sure: true");
}

// T2-50, T2-52, T2-53, T2-54, T2-57, T2-58
#[tokio::test(start_paused = true)]
async fn modern_task_input_request_waits_while_parked() {
    let counts = Counts::default();
    let mut pipe = Pipe::open(&server(&counts));
    let id = start(&mut pipe, "deploy", json!({})).await;
    let asking = until(&mut pipe, &id, "input_required").await;
    assert_eq!(asking["inputRequests"]["approve"]["params"]["message"], "Deploy shop:1?");
    // Long enough for the task to be parked.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(get(&mut pipe, &id).await["status"], "input_required");

    let update = |answers: Value| json!({"taskId": id, "inputResponses": answers});
    let unknown = modern(&mut pipe, "tasks/update", update(json!({"zzz": {"action": "decline"}})));
    assert_eq!(result(&unknown.await)["resultType"], "complete", "acknowledged and ignored");
    let none = modern(&mut pipe, "tasks/update", update(json!({"approve": 12345}))).await;
    assert_eq!(error(&none)["code"], -32602);
    let wrong = json!({"approve": {"action": "accept", "content": {"yes": "maybe"}}});
    modern(&mut pipe, "tasks/update", update(wrong)).await;
    let again = loop {
        let task = get(&mut pipe, &id).await;
        if task["inputRequests"].get("approve#2").is_some() {
            break task;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(again["inputRequests"].get("approve").is_none(), "a key is used once: {again}");
    let right = json!({"approve#2": {"action": "accept", "content": {"yes": true}}});
    modern(&mut pipe, "tasks/update", update(right)).await;
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&done["result"]), "shop:1: true");
    assert_eq!(counts.builds.load(Ordering::Relaxed), 1, "the step was not repeated");
    assert!(counts.runs.load(Ordering::Relaxed) >= 2, "though the handler ran again");
}

#[tokio::test(start_paused = true)]
async fn explicit_rounds_work_in_task() {
    let mut pipe = Pipe::open(&server(&Counts::default()));
    let id = start(&mut pipe, "explicit", json!({})).await;
    for (name, yes) in [("sure", false), ("sure#2", true)] {
        while get(&mut pipe, &id).await["inputRequests"].get(name).is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The task is parked in between.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let answers = json!({name: {"action": "accept", "content": {"yes": yes}}});
        modern(&mut pipe, "tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
    }
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&done["result"]), "sure after 2 input requests");
}

#[tokio::test(start_paused = true)]
async fn idempotency_key_is_stable_after_task_was_parked() {
    let mut pipe = Pipe::open(&server(&Counts::default()));
    let id = start(&mut pipe, "keyed", json!({})).await;
    let asking = until(&mut pipe, &id, "input_required").await;
    let key = asking["inputRequests"]["sure"]["params"]["message"].as_str().unwrap().to_owned();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let answers = json!({"sure": {"action": "accept", "content": {"yes": true}}});
    modern(&mut pipe, "tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&done["result"]), format!("{key} true"));
}

// T2-40, T2-41
#[tokio::test(start_paused = true)]
async fn tool_error_completes_task_and_protocol_error_fails_it() {
    let mut pipe = Pipe::open(&server(&Counts::default()));
    let id = start(&mut pipe, "fail", json!({})).await;
    let failed = until(&mut pipe, &id, "completed").await;
    assert_eq!((&failed["result"]["isError"], text(&failed["result"])), (&json!(true), "quota"));
    let id = start(&mut pipe, "refuse", json!({})).await;
    let refused = until(&mut pipe, &id, "failed").await;
    assert_eq!(refused["error"], json!({"code": 77, "message": "not here"}));
    assert!(refused.get("result").is_none());
    let id = start(&mut pipe, "explode", json!({})).await;
    assert_eq!(until(&mut pipe, &id, "failed").await["error"]["code"], -32603);
}

// T2-65, T2-66, T2-67, T2-68, T2-70, R-02, R-03
#[tokio::test(start_paused = true)]
async fn modern_cancelled_task_stops_cooperatively_or_after_grace() {
    let mut pipe = Pipe::open(&server(&Counts::default()));
    for (tool, status) in [("polite", "completed"), ("stubborn", "cancelled")] {
        let id = start(&mut pipe, tool, json!({})).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        for _ in 0..2 {
            let acknowledged = modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await;
            assert_eq!(result(&acknowledged)["resultType"], "complete");
            assert!(result(&acknowledged).get("taskId").is_none());
        }
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert_eq!(get(&mut pipe, &id).await["status"], status, "{tool}");
        let again = modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(result(&again)["resultType"], "complete", "{tool}");
    }
    let unknown = modern(&mut pipe, "tasks/cancel", json!({"taskId": "nobody"})).await;
    assert_eq!(error(&unknown)["code"], -32602);
}

// T2-31
#[tokio::test(start_paused = true)]
async fn task_of_another_principal_is_unknown() {
    let server = server(&Counts::default());
    let mut ada = Pipe::open_as(&server, Principal::named("ada"));
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    let id = start(&mut ada, "deploy", json!({})).await;
    until(&mut ada, &id, "input_required").await;
    for (method, extra) in [
        ("tasks/get", json!({})),
        ("tasks/update", json!({"inputResponses": {"approve": {"action": "decline"}}})),
        ("tasks/cancel", json!({})),
    ] {
        let of = |id: &str| {
            let mut params = extra.clone();
            params["taskId"] = json!(id);
            params
        };
        let foreign = error(&modern(&mut eve, method, of(&id)).await);
        let unknown = error(&modern(&mut eve, method, of(&"0".repeat(32))).await);
        assert_eq!(foreign, unknown, "{method}");
        assert_eq!(foreign["code"], -32602, "{method}");
    }
    assert_eq!(get(&mut ada, &id).await["status"], "input_required");
}

// T2-75, T2-76, T2-77, T2-79, T2-80
#[tokio::test(start_paused = true)]
async fn subscription_notifies_own_tasks_only() {
    let server = server(&Counts::default());
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "deploy", json!({})).await;
    until(&mut pipe, &id, "input_required").await;
    let mut listener = Pipe::open(&server);
    let mut params = json!({"notifications": {"taskIds": [id, "nobody"]}});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = super::world::holds();
    let listen =
        listener.send_as_is("subscriptions/listen", crate::support::pipe::with_meta(params)).await;
    let acknowledged = listener.read().await;
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([id]));
    let first = listener.read().await;
    assert_eq!(first["method"], "notifications/tasks");
    assert_eq!(first["params"]["status"], "input_required");
    assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(listen));
    let answers = json!({"approve": {"action": "accept", "content": {"yes": false}}});
    modern(&mut pipe, "tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
    let mut last = listener.read().await;
    while last["params"]["status"] != "completed" {
        last = listener.read().await;
    }
    assert_eq!(text(&last["params"]["result"]), "shop:1: false");
}

//
#[tokio::test(start_paused = true)]
async fn tasks_over_caller_limit_are_429() {
    let counts = Counts::default();
    let config = TaskConfig::in_memory().max_tasks_per_caller(2);
    let mut pipe = Pipe::open(&builder(config, &counts).build().unwrap());
    start(&mut pipe, "stubborn", json!({})).await;
    let second = start(&mut pipe, "stubborn", json!({})).await;
    let refused = modern(&mut pipe, "tools/call", json!({"name": "stubborn"})).await;
    assert_eq!(error(&refused)["code"], 429);
    // A tool that does not need a task runs inline.
    let nap = modern(&mut pipe, "tools/call", json!({"name": "nap", "arguments": {"ms": 5000}}));
    assert_eq!(text(&result(&nap.await)), "slept 5000 ms");
    assert_eq!(counts.runs.load(Ordering::Relaxed), 1, "the handler is not rerun");
    modern(&mut pipe, "tasks/cancel", json!({"taskId": second})).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    until(&mut pipe, &second, "cancelled").await;
    start(&mut pipe, "stubborn", json!({})).await;
}

// T2-39, R-05
#[tokio::test]
async fn modern_task_expires_after_its_ttl() {
    let config = TaskConfig::in_memory().ttl(Duration::from_millis(600)).engine(|engine| {
        engine.sweep_interval = Duration::from_millis(50);
        engine.poll_interval = Duration::from_millis(50);
    });
    let mut pipe = Pipe::open(&builder(config, &Counts::default()).build().unwrap());
    let id = start(&mut pipe, "stubborn", json!({})).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(get(&mut pipe, &id).await["status"], "working");
    let expired = until(&mut pipe, &id, "failed").await;
    assert_eq!(expired["error"]["code"], -32603);
}

// T2-01, T2-02, T2-09
#[tokio::test(start_paused = true)]
async fn task_extension_is_declared_without_legacy_capability() {
    let mut pipe = Pipe::open(&server(&Counts::default()));
    let discovered = result(&modern(&mut pipe, "server/discover", json!({})).await);
    let capabilities = &discovered["capabilities"];
    let declared = json!({"io.modelcontextprotocol/tasks": {}, "dev.outlive/task-list": {}});
    assert_eq!(capabilities["extensions"], declared);
    assert!(capabilities.get("tasks").is_none());
    assert!(capabilities.get("experimental").is_none());
    let tools = result(&modern(&mut pipe, "tools/list", json!({})).await);
    assert!(tools["tools"].as_array().unwrap().iter().all(|tool| tool.get("execution").is_none()));
    for method in ["tasks/result", "tasks/list"] {
        let refused = modern(&mut pipe, method, json!({"taskId": "x"})).await;
        assert_eq!(error(&refused)["code"], -32601, "{method}");
    }
}
