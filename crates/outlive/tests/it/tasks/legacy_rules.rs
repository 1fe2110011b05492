//! Rules of 2025-11-25 about tasks that `legacy` does not cover.

use std::{collections::HashSet, time::Duration};

use outlive::{
    Form,
    server::{
        Durable, Principal, Result, Server, Tool,
        tasks::{TaskConfig, TaskPolicy},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::world::{Counts, builder, server};
use crate::support::pipe::{Pipe, result, text};

const VERSION: &str = "2025-11-25";
const RELATED: &str = "io.modelcontextprotocol/related-task";

async fn client(server: &Server) -> Pipe {
    let mut pipe = Pipe::open(server);
    pipe.legacy_with(VERSION, json!({"elicitation": {}})).await;
    pipe
}

async fn start(pipe: &mut Pipe, tool: &str, arguments: Value) -> String {
    let call = json!({"name": tool, "arguments": arguments, "task": {}});
    let created = pipe.result("tools/call", call).await;
    created["task"]["taskId"].as_str().unwrap().to_owned()
}

#[derive(Deserialize, JsonSchema, Form)]
struct Sure {
    yes: bool,
}

/// Makes two input requests in parallel.
pub(super) async fn twice(cx: Durable) -> Result<String> {
    let (first, second) =
        tokio::join!(cx.elicit::<Sure>("first", "One?"), cx.elicit::<Sure>("second", "Two?"));
    Ok(format!("{} {}", first?.yes, second?.yes))
}

pub(super) fn twice_server() -> Server {
    let twice = Tool::new("twice", twice).task(TaskPolicy::Always);
    builder(TaskConfig::in_memory(), &Counts::default()).tool(twice).build().unwrap()
}

// T1-10, T1-11, T1-12, T1-14, T1-16, T1-20
#[tokio::test(start_paused = true)]
async fn legacy_task_object_has_members_of_its_version() {
    let mut pipe = client(&server(&Counts::default())).await;
    let mut ids = HashSet::new();
    for _ in 0..50 {
        let call = json!({"name": "nap", "arguments": {"ms": 5000}, "task": {}});
        let created = pipe.result("tools/call", call).await;
        assert!(created.get("content").is_none(), "no result: {created}");
        let task = &created["task"];
        let id = task["taskId"].as_str().unwrap();
        assert!(ids.insert(id.to_owned()), "{id} twice");
        let got = pipe.result("tasks/get", json!({"taskId": id})).await;
        for task in [task, &got] {
            for at in ["createdAt", "lastUpdatedAt"] {
                let at = task[at].as_str().unwrap();
                assert!(at.len() >= 20 && at.contains('T') && at.ends_with('Z'), "{at}");
            }
            assert!(task["ttl"].is_u64() && task["pollInterval"].is_u64(), "{task}");
        }
        assert_eq!((&got["taskId"], &got["status"]), (&json!(id), &json!("working")));
        assert!(got.get("task").is_none(), "flat: {got}");
    }
}

// T1-33, T1-57, R-18
#[tokio::test(start_paused = true)]
async fn cancelled_result_request_does_not_cancel_task() {
    let mut pipe = client(&server(&Counts::default())).await;
    let call = json!({"name": "nap", "arguments": {"ms": 5000}, "task": {}});
    let request = pipe.send("tools/call", call).await;
    let id = result(&pipe.answer(request).await)["task"]["taskId"].clone();
    pipe.cancel(request).await;
    let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    pipe.cancel(waiting).await;
    assert_eq!(pipe.result("tasks/get", json!({"taskId": id})).await["status"], "working");
    let done = pipe.result("tasks/result", json!({"taskId": id})).await;
    assert_eq!(text(&done), "slept 5000 ms");
}

// T1-42
#[tokio::test(start_paused = true)]
async fn task_id_parameter_overrides_related_task_meta() {
    let mut pipe = client(&server(&Counts::default())).await;
    let ended = start(&mut pipe, "nap", json!({"ms": 1})).await;
    pipe.result("tasks/result", json!({"taskId": ended})).await;
    let running = start(&mut pipe, "stubborn", json!({})).await;
    let meant =
        |id: &str, related: &str| json!({"taskId": id, "_meta": {RELATED: {"taskId": related}}});
    let got = pipe.result("tasks/get", meant(&ended, &running)).await;
    assert_eq!((&got["taskId"], &got["status"]), (&json!(ended), &json!("completed")));
    let cancelled = pipe.result("tasks/cancel", meant(&running, &ended)).await;
    assert_eq!(cancelled["taskId"], running);
    let done = pipe.result("tasks/result", meant(&ended, &running)).await;
    assert_eq!(done["_meta"][RELATED]["taskId"], ended);
    let listed = pipe.result("tasks/list", json!({})).await;
    for answer in [&got, &cancelled, &listed] {
        assert!(answer["_meta"].get(RELATED).is_none(), "{answer}");
    }
}

// T1-44, T1-46, T1-62
#[tokio::test(start_paused = true)]
async fn legacy_task_with_two_input_requests_waits_for_both() {
    let mut pipe = client(&twice_server()).await;
    let id = start(&mut pipe, "twice", json!({})).await;
    let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
    let mut asked = Vec::new();
    while asked.len() < 2 {
        let message = pipe.read().await;
        if message["method"] == "elicitation/create" {
            asked.push(message);
        }
    }
    assert_ne!(asked[0]["id"], asked[1]["id"], "each input request is sent once");
    pipe.reply(&asked[0], json!({"action": "accept", "content": {"yes": true}})).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let look = pipe.send("tasks/get", json!({"taskId": id})).await;
    let told = pipe.read_to(look).await;
    assert!(told.iter().all(|said| said["method"] != "elicitation/create"), "{told:?}");
    assert_eq!(
        result(told.last().unwrap())["status"],
        "input_required",
        "one input request is still open"
    );
    pipe.reply(&asked[1], json!({"action": "accept", "content": {"yes": false}})).await;
    let told = pipe.read_to(waiting).await;
    assert!(told.iter().all(|said| said["method"] != "elicitation/create"), "{told:?}");
    assert_eq!(text(&result(told.last().unwrap())), "true false");
}

// T1-45
#[tokio::test(start_paused = true)]
async fn legacy_task_input_request_waits_for_result_request() {
    let mut pipe = client(&server(&Counts::default())).await;
    let id = start(&mut pipe, "deploy", json!({})).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let got = pipe.result("tasks/get", json!({"taskId": id})).await;
    assert_eq!(got["status"], "input_required");
    let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
    let asked = pipe.read().await;
    pipe.reply(&asked, json!({"action": "decline"})).await;
    pipe.read_to(waiting).await;
}

// T1-47
#[tokio::test(start_paused = true)]
async fn legacy_task_input_without_capability_fails_task() {
    let mut pipe = Pipe::speaking(&server(&Counts::default()), VERSION).await;
    let id = start(&mut pipe, "deploy", json!({})).await;
    let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
    let told = pipe.read_to(waiting).await;
    assert!(told.iter().all(|said| said["method"] != "elicitation/create"), "{told:?}");
    let status = pipe.result("tasks/get", json!({"taskId": id})).await;
    assert_eq!(status["status"], "failed");
}

// T1-25, T1-28, T1-30
#[tokio::test(start_paused = true)]
async fn failed_legacy_task_has_status_message() {
    let mut pipe = client(&server(&Counts::default())).await;
    for (tool, why) in [("fail", "the tool reported an error"), ("refuse", "not here")] {
        let id = start(&mut pipe, tool, json!({})).await;
        let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
        pipe.read_to(waiting).await;
        let got = pipe.result("tasks/get", json!({"taskId": id})).await;
        assert_eq!((&got["status"], &got["statusMessage"]), (&json!("failed"), &json!(why)));
    }
}

// T1-58, T1-59, T1-61
#[tokio::test]
async fn expired_legacy_task_fails_then_becomes_unknown() {
    let config = TaskConfig::in_memory().engine(|engine| {
        engine.sweep_interval = Duration::from_millis(20);
        engine.poll_interval = Duration::from_millis(20);
        engine.retention = Duration::from_millis(300);
    });
    let server = builder(config, &Counts::default()).build().unwrap();
    let mut pipe = client(&server).await;
    let call = json!({"name": "stubborn", "task": {"ttl": 300}});
    let id = pipe.result("tools/call", call).await["task"]["taskId"].clone();
    let expired = pipe.error("tasks/result", json!({"taskId": id})).await;
    assert_eq!(expired["code"], -32602, "{expired}");
    assert!(expired["message"].as_str().unwrap().contains("expired"), "{expired}");
    let gone = loop {
        let answer = pipe.ask("tasks/get", json!({"taskId": id})).await;
        if let Some(error) = answer.get("error") {
            break error.clone();
        }
        assert_eq!(answer["result"]["status"], "failed", "{answer}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(gone, pipe.error("tasks/get", json!({"taskId": "nobody"})).await);
    assert_eq!(gone["code"], -32602);
}

// T1-51
#[tokio::test(start_paused = true)]
async fn legacy_task_list_contains_only_legacy_tasks() {
    let server = server(&Counts::default());
    let ada = || Principal::named("ada");
    let mut newer = Pipe::open_as(&server, ada());
    let mut older = Pipe::speaking_as(&server, VERSION, ada()).await;
    super::world::start(&mut newer, "stubborn", json!({})).await;
    let mine = start(&mut older, "stubborn", json!({})).await;
    let listed = older.result("tasks/list", json!({})).await;
    let ids: Vec<_> = listed["tasks"].as_array().unwrap().iter().map(|t| &t["taskId"]).collect();
    assert_eq!(ids, [&json!(mine)], "{listed}");
}
