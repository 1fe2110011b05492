//! The extension `dev.outlive/task-partials` of 2026-07-28 and its documentation.

use std::{collections::HashMap, fs, path::Path, sync::Arc};

use outlive::{
    server::{Principal, RateLimit, http::HttpConfig},
    store::MemoryStore,
};
use serde_json::{Value, json};

use super::stage::{Change, World, script_of};
use crate::support::{
    http::{HttpFixture, Request},
    pipe::{Pipe, error, result},
};

const SHARED: Change = |tasks| tasks.partial_results(true);
const AFTER: &str = "dev.outlive/afterSeq";
const PARTIALS: &str = "dev.outlive/partials";
const FILTER: &str = "dev.outlive/taskPartials";
const PUSHED: &str = "notifications/dev.outlive/task_partials";

fn declares() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}, "dev.outlive/task-partials": {}}})
}

fn holds() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

async fn start(pipe: &mut Pipe, batches: &[usize], end: &str) -> String {
    let call = json!({"name": "always", "arguments": script_of(batches, end)});
    let made = result(&pipe.modern_with(holds(), "tools/call", call).await);
    made["taskId"].as_str().unwrap().to_owned()
}

async fn get(pipe: &mut Pipe, id: &str, after: Value) -> Value {
    let params = json!({"taskId": id, "_meta": {AFTER: after}});
    pipe.modern_with(declares(), "tasks/get", params).await
}

/// Polls until the task has `count` segments.
async fn pull(pipe: &mut Pipe, id: &str, count: u64) -> Value {
    loop {
        let task = result(&get(pipe, id, json!(0)).await);
        if task["_meta"][PARTIALS]["lastSeq"] == count {
            return task;
        }
        tokio::task::yield_now().await;
    }
}

/// Reads pushed segments until the task is complete, and returns their numbers in order.
async fn pushed(pipe: &mut Pipe) -> Vec<u64> {
    let mut numbers = Vec::new();
    loop {
        let message = pipe.read().await;
        assert_eq!(message["method"], PUSHED, "{message}");
        let segments = message["params"]["segments"].as_array().unwrap();
        numbers.extend(segments.iter().map(|segment| segment["seq"].as_u64().unwrap()));
        if message["params"]["complete"] == true {
            return numbers;
        }
    }
}

/// Returns the examples of the documentation by name.
pub(super) fn examples() -> HashMap<String, Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/extensions/task-partials.md")).unwrap();
    let mut examples = HashMap::new();
    for part in page.split("<!-- example: ").skip(1) {
        let (name, rest) = part.split_once(" -->").unwrap();
        let json = rest.split("```json").nth(1).and_then(|rest| rest.split("```").next());
        let json =
            serde_json::from_str(json.unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            examples.insert(name.to_owned(), json).is_none(),
            "the example {name} is duplicated"
        );
    }
    examples
}

/// The task ID in the examples.
const EXAMPLE: &str = "5f1d6bb5a8a94a0f9a2d1f5a0c3e7b21";

fn renamed(message: &Value, from: &str, to: &str) -> Value {
    serde_json::from_str(&message.to_string().replace(from, to)).unwrap()
}

/// Asserts that a message has every member of the example. Timestamps may differ.
#[track_caller]
fn says(said: &Value, example: &Value) {
    match (said, example) {
        (Value::Object(said_members), Value::Object(members)) => {
            for (name, value) in members {
                let found = said_members.get(name);
                let found = found.unwrap_or_else(|| panic!("`{name}` is missing: {said}"));
                if name != "createdAt" && name != "lastUpdatedAt" {
                    says(found, value);
                }
            }
        }
        _ => assert_eq!(said, example),
    }
}

// S-88, S-89, S-90, S-91, S-92
#[tokio::test(start_paused = true)]
async fn extension_documentation_examples_match_server() {
    let world = World::new(SHARED);
    let examples = examples();
    let mut pipe = Pipe::open(&world.server);
    let id = start(&mut pipe, &[2, 1], "empty").await;
    pull(&mut pipe, &id, 2).await;
    let send = |name: &str| renamed(&examples[name], EXAMPLE, &id);
    let check = |said: &Value, name: &str| says(&renamed(said, &id, EXAMPLE), &examples[name]);
    let mut used = vec!["server-capabilities"];
    let found = result(&pipe.modern("server/discover", json!({})).await);
    says(&found["capabilities"], &examples["server-capabilities"]);
    // The requests use the IDs of the examples, so they need their own pipe.
    let mut reader = Pipe::open(&world.server);
    for (request, response) in [("pull-request", "pull-response"), ("bad-request", "bad-response")]
    {
        reader.send_json(&send(request)).await;
        check(&reader.read().await, response);
        used.extend([request, response]);
    }
    reader.send_json(&send("listen-request")).await;
    check(&reader.read().await, "acknowledged");
    check(&reader.read().await, "pushed");
    world.gate.open(2);
    // The server may send one or two messages; the example shows one.
    let mut last = reader.read().await;
    if last["params"]["complete"] == false {
        let end = reader.read().await;
        assert_eq!(end["params"]["segments"], json!([]));
        last["params"]["complete"] = end["params"]["complete"].clone();
    }
    check(&last, "pushed-last");
    used.extend(["listen-request", "acknowledged", "pushed", "pushed-last"]);
    // `progress.rs` checks this example.
    used.push("progress");
    let mut all: Vec<&str> = examples.keys().map(String::as_str).collect();
    used.sort_unstable();
    all.sort_unstable();
    assert_eq!(used, all, "every example is used");
    reader.quiet().await;
}

// S-90, S-53, S-89
#[tokio::test(start_paused = true)]
async fn client_without_partials_extension_sees_standard_messages() {
    let with = World::new(SHARED);
    let without = World::new(|tasks| tasks);
    let mut seen = Vec::new();
    for world in [&with, &without] {
        let mut pipe = Pipe::open(&world.server);
        let id = start(&mut pipe, &[2], "x").await;
        let listen = json!({"notifications": {FILTER: [{"taskId": id, "afterSeq": 0}]}});
        let mut answers = Vec::new();
        // Without the declaration the server ignores the key.
        for params in [json!({"taskId": id}), json!({"taskId": id, "_meta": {AFTER: 0}})] {
            answers.push(pipe.modern_with(holds(), "tasks/get", params).await);
        }
        let mut listener = Pipe::open(&world.server);
        let mut params = crate::support::pipe::with_meta(listen);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = holds();
        listener.send_as_is("subscriptions/listen", params).await;
        let acknowledged = listener.read().await;
        assert_eq!(acknowledged["params"]["notifications"], json!({}));
        world.gate.open(1);
        listener.quiet().await;
        answers.push(pipe.modern_with(holds(), "tasks/get", json!({"taskId": id})).await);
        assert_eq!(answers[2]["result"]["status"], "completed");
        for answer in &mut answers {
            for own in ["createdAt", "lastUpdatedAt", "ttlMs"] {
                answer["result"][own] = json!("");
            }
        }
        seen.push(json!(answers).to_string().replace(&id, "id"));
    }
    assert_eq!(seen[0], seen[1], "byte for byte");
    assert!(!seen[0].contains("dev.outlive"));
}

// S-90
#[tokio::test(start_paused = true)]
async fn server_without_partial_results_ignores_requests_for_them() {
    let world = World::new(|tasks| tasks);
    let mut pipe = Pipe::open(&world.server);
    let id = start(&mut pipe, &[1], "x").await;
    let task = result(&get(&mut pipe, &id, json!(0)).await);
    assert!(task["_meta"].get(PARTIALS).is_none());
    let found = result(&pipe.modern("server/discover", json!({})).await);
    assert!(found["capabilities"]["extensions"].get("dev.outlive/task-partials").is_none());
    world.gate.open(1);
}

// S-90
#[tokio::test(start_paused = true)]
async fn task_get_returns_segments_after_any_number() {
    let world = World::new(SHARED);
    let mut pipe = Pipe::open(&world.server);
    let id = start(&mut pipe, &[3], "end").await;
    pull(&mut pipe, &id, 3).await;
    for (after, count) in [(0, 3), (1, 2), (3, 0), (9, 0)] {
        let task = result(&get(&mut pipe, &id, json!(after)).await);
        let partials = &task["_meta"][PARTIALS];
        assert_eq!(partials["segments"].as_array().unwrap().len(), count, "after {after}");
        assert_eq!((&partials["lastSeq"], &partials["complete"]), (&json!(3), &json!(false)));
    }
    for bad in [json!(-1), json!(1.5), json!("2"), json!([0])] {
        assert_eq!(error(&get(&mut pipe, &id, bad).await)["code"], -32602);
    }
    let plain = pipe.modern_with(declares(), "tasks/get", json!({"taskId": id})).await;
    assert!(
        plain["result"]["_meta"].get(PARTIALS).is_none(),
        "without a number there are no segments"
    );
    world.gate.open(1);
    let task = loop {
        let task = result(&get(&mut pipe, &id, json!(2)).await);
        if task["status"] == "completed" {
            break task;
        }
        tokio::task::yield_now().await;
    };
    let partials = &task["_meta"][PARTIALS];
    assert_eq!((&partials["complete"], &partials["lastSeq"]), (&json!(true), &json!(3)));
    let texts: Vec<&Value> =
        task["result"]["content"].as_array().unwrap().iter().map(|block| &block["text"]).collect();
    assert_eq!(texts, ["1", "2", "3", "end"], "the result starts with all segments");
}

// S-92
#[tokio::test(start_paused = true)]
async fn segments_of_failed_or_cancelled_task_stay_readable() {
    let world = World::new(SHARED);
    let mut pipe = Pipe::open(&world.server);
    let failed = start(&mut pipe, &[2], "refuse").await;
    pull(&mut pipe, &failed, 2).await;
    world.gate.open(1);
    let cancelled = start(&mut pipe, &[2, 1], "end").await;
    pull(&mut pipe, &cancelled, 2).await;
    let cancel = json!({"taskId": cancelled});
    result(&pipe.modern_with(holds(), "tasks/cancel", cancel).await);
    for (id, status) in [(failed, "failed"), (cancelled, "cancelled")] {
        loop {
            let task = result(&get(&mut pipe, &id, json!(0)).await);
            let partials = &task["_meta"][PARTIALS];
            assert_eq!(partials["segments"].as_array().unwrap().len(), 2);
            if task["status"] == status {
                assert_eq!(partials["complete"], true);
                break;
            }
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
    }
}

// S-91
#[tokio::test(start_paused = true)]
async fn subscription_pushes_segments_once_and_in_order() {
    let world = World::new(SHARED);
    let mut pipe = Pipe::open(&world.server);
    let id = start(&mut pipe, &[1_500, 1, 2], "end").await;
    let mut reader = Pipe::open(&world.server);
    let filter = json!({FILTER: [{"taskId": id, "afterSeq": 10}], "taskIds": [id]});
    let mut params = crate::support::pipe::with_meta(json!({"notifications": filter}));
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = declares();
    reader.send_as_is("subscriptions/listen", params).await;
    let acknowledged = reader.read().await;
    let honoured = &acknowledged["params"]["notifications"];
    assert_eq!(honoured[FILTER], json!([{"taskId": id, "afterSeq": 10}]));
    assert_eq!(honoured["taskIds"], json!([id]));
    world.gate.open(3);
    let (mut numbers, mut ended, mut complete) = (Vec::new(), false, false);
    while !(ended && complete) {
        let message = reader.read().await;
        let params = &message["params"];
        match message["method"].as_str() {
            Some("notifications/tasks") => ended |= params["status"] == "completed",
            Some(PUSHED) => {
                assert!(!complete, "a message after the last one: {message}");
                complete = params["complete"] == true;
                let segments = params["segments"].as_array().unwrap();
                numbers.extend(segments.iter().map(|segment| segment["seq"].as_u64().unwrap()));
            }
            _ => panic!("{message}"),
        }
    }
    assert_eq!(numbers, (11..=1_503).collect::<Vec<u64>>());
    reader.quiet().await;
}

// S-91
#[tokio::test(start_paused = true)]
async fn partials_subscription_without_extension_or_valid_filter_is_rejected() {
    let world = World::new(SHARED);
    let mut pipe = Pipe::open(&world.server);
    let id = start(&mut pipe, &[1], "x").await;
    let place = json!({"taskId": id, "afterSeq": 0});
    let only = json!({"extensions": {"dev.outlive/task-partials": {}}});
    let params = json!({"notifications": {FILTER: [place.clone()]}});
    let refused = pipe.modern_with(only, "subscriptions/listen", params).await;
    assert_eq!(error(&refused)["code"], -32021, "the task extension must be declared too");
    for bad in [json!({}), json!([{"taskId": id}]), json!([{"taskId": id, "afterSeq": -1}])] {
        let params = json!({"notifications": {FILTER: bad}});
        let refused = pipe.modern_with(declares(), "subscriptions/listen", params).await;
        assert_eq!(error(&refused)["code"], -32602);
    }
    let many: Vec<Value> = (0..2_000).map(|_| place.clone()).collect();
    let params = json!({"notifications": {FILTER: many}});
    let refused = pipe.modern_with(declares(), "subscriptions/listen", params).await;
    assert_eq!(error(&refused)["code"], -32602, "too many filter entries");
    world.gate.open(1);
}

// S-90, S-91, S-69
#[tokio::test(start_paused = true)]
async fn segments_of_another_principal_are_not_readable() {
    let world = World::new(SHARED);
    let mut pipe = Pipe::open(&world.server);
    let id = start(&mut pipe, &[1], "x").await;
    pull(&mut pipe, &id, 1).await;
    let mut stranger = Pipe::open_as(&world.server, Principal::named("eve"));
    assert_eq!(error(&get(&mut stranger, &id, json!(0)).await)["code"], -32602);
    let params = json!({"notifications": {FILTER: [{"taskId": id, "afterSeq": 0}]}});
    let mut params = crate::support::pipe::with_meta(params);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = declares();
    stranger.send_as_is("subscriptions/listen", params).await;
    let acknowledged = stranger.read().await;
    assert_eq!(acknowledged["params"]["notifications"][FILTER], json!([]));
    world.gate.open(1);
    stranger.quiet().await;
}

// S-69
#[tokio::test(start_paused = true)]
async fn segment_polls_are_rate_limited() {
    let slow: Change = |tasks| SHARED(tasks).poll_rate(RateLimit::per_second(0.001).burst(2));
    let world = World::over(Arc::new(MemoryStore::new()), slow);
    let mut pipe = Pipe::open(&world.server);
    let id = start(&mut pipe, &[1], "x").await;
    for _ in 0..2 {
        result(&get(&mut pipe, &id, json!(0)).await);
    }
    error(&get(&mut pipe, &id, json!(0)).await);
    world.gate.open(1);
}

// S-90, S-91
#[tokio::test]
async fn segments_are_pushed_and_polled_over_http() {
    let world = World::new(SHARED);
    let server = HttpFixture::of(world.server.clone(), HttpConfig::new()).await;
    let declared = |request: Request| request.reserved("clientCapabilities", declares());
    let call = declared(Request::call("always", script_of(&[2, 1], "end")));
    let id = server.send(call).await.result()["taskId"].as_str().unwrap().to_owned();
    let filter = json!({FILTER: [{"taskId": id, "afterSeq": 1}]});
    let listen = declared(Request::modern("subscriptions/listen")).param("notifications", filter);
    let mut stream = server.open(listen).await;
    let acknowledged = stream.message().await;
    assert_eq!(acknowledged["params"]["notifications"][FILTER][0]["taskId"], id.as_str());
    let first = stream.message().await;
    assert_eq!(
        first["params"]["segments"],
        json!([{"seq": 2, "block": {"type": "text", "text": "2"}}])
    );
    world.gate.open(2);
    let mut numbers = Vec::new();
    loop {
        let message = stream.message().await;
        let segments = message["params"]["segments"].as_array().unwrap();
        numbers.extend(segments.iter().map(|segment| segment["seq"].as_u64().unwrap()));
        if message["params"]["complete"] == true {
            break;
        }
    }
    assert_eq!(numbers, [3]);
    let get = declared(Request::modern("tasks/get").header("mcp-name", &id))
        .param("taskId", json!(id))
        .meta(AFTER, json!(2));
    let task = server.send(get).await.result();
    assert_eq!(task["_meta"][PARTIALS]["segments"][0]["seq"], 3, "{task}");
    assert_eq!(task["_meta"][PARTIALS]["complete"], true);
}

/// A subscription also polls the store, so lost change notifications do not matter.
#[tokio::test(start_paused = true)]
async fn segments_are_pushed_without_change_notifications() {
    let world = World::new(SHARED);
    let mut pipe = Pipe::open(&world.server);
    let id = start(&mut pipe, &[1, 1], "end").await;
    let mut reader = Pipe::open(&world.server);
    let params = json!({"notifications": {FILTER: [{"taskId": id, "afterSeq": 0}]}});
    let mut params = crate::support::pipe::with_meta(params);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = declares();
    reader.send_as_is("subscriptions/listen", params).await;
    reader.read().await;
    world.gate.open(2);
    assert_eq!(pushed(&mut reader).await, [1, 2]);
}
