//! Calls: steps, input requests, timers, external events, segments, results.

use serde_json::json;

use crate::support::{Place, Served, eventually, text_of, texts_of};

#[tokio::test]
async fn function_without_context_returns_its_value() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    assert_eq!(served.worker.app_name(), Some("tests"));
    let mut client = served.client();
    assert_eq!(text_of(&client.call("greet", json!({"name": "Ada"})).await), "hello Ada");
    let wrong = client.call("greet", json!({"nam": "Ada"})).await;
    assert_eq!(wrong["isError"], true, "the server validates arguments: {wrong}");
    let metrics = served.worker.metrics();
    assert_eq!((metrics.processes, metrics.running, metrics.calls), (1, 0, 1));
}

#[tokio::test]
async fn call_carries_key_and_attempt_but_not_an_unnamed_principal() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let one = client.call("whoami", json!({})).await["structuredContent"].clone();
    let two = client.call("whoami", json!({})).await["structuredContent"].clone();
    assert_eq!(one["attempt"], 1);
    assert_eq!(one["key"].as_str().unwrap().len(), 32);
    assert_ne!(one["key"], two["key"]);
    assert_eq!(one["pid"], two["pid"]);
}

#[tokio::test]
async fn steps_execute_once_over_parked_input_request() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let task = client.start("deploy", json!({})).await;
    client.until(&task, "input_required").await;
    let worker = &served.worker;
    // The task is parked: no process has the call.
    eventually("the call is dropped", || worker.metrics().running == 0).await;
    client.accept(&task, "approve", json!({"yes": true})).await;
    assert_eq!(client.completed(&task).await, "shop:1 is out");
    assert_eq!(place.executions(), ["build", "push"]);
}

#[tokio::test]
async fn inline_call_is_suspended_and_continues_with_response() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let asked = client.call("ask", json!({})).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let worker = &served.worker;
    eventually("the call is dropped", || worker.metrics().running == 0).await;
    let responses = json!({"approve": {"action": "accept", "content": {"yes": true}}});
    let params = json!({
        "name": "ask", "arguments": {}, "requestState": asked["requestState"], "inputResponses": responses,
    });
    let answer = client.ask("tools/call", params).await;
    assert_eq!(text_of(&answer["result"]), "shop:1 is out");
    assert_eq!(place.executions(), ["build", "push"]);
}

#[tokio::test]
async fn declined_input_request_reaches_function() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let task = client.start("deploy", json!({})).await;
    client.until(&task, "input_required").await;
    let responses = json!({"approve": {"action": "decline"}});
    client.ask("tasks/update", json!({"taskId": task, "inputResponses": responses})).await;
    assert_eq!(client.completed(&task).await, "nothing happened");
}

#[tokio::test]
async fn timers_wake_function_after_it_was_parked() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let task = client.start("naps", json!({})).await;
    assert_eq!(client.completed(&task).await, "awake");
}

#[tokio::test]
async fn parallel_steps_and_failures_are_recorded() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let task = client.start("parallel", json!({})).await;
    assert_eq!(client.completed(&task).await, "a b c");
    let task = client.start("fails", json!({})).await;
    assert_eq!(client.completed(&task).await, "tried once");
    assert_eq!(place.count("try"), 1, "a permanent failure is recorded");
}

#[tokio::test]
async fn external_event_reaches_function() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let task = client.start("renders", json!({})).await;
    eventually("the function has a token", || !place.executions().is_empty()).await;
    let token = place.executions()[0].strip_prefix("token ").unwrap().to_owned();
    served.server.complete_external_event(&token, "film.mp4").await.unwrap();
    assert_eq!(client.completed(&task).await, "film: film.mp4");
}

#[tokio::test]
async fn segments_are_stored_once_over_lost_process() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let task = client.start("streams", json!({})).await;
    let done = client.until(&task, "completed").await;
    let texts = texts_of(&done["result"]);
    assert_eq!(texts.len(), 103, "{texts:?}");
    assert_eq!((texts[0].as_str(), texts[99].as_str()), ("compiling 0", "compiling 99"));
    assert_eq!(texts[100..], ["packed", "shipped", "done"]);
    assert_eq!(served.worker.metrics().losses, 1);
}

#[tokio::test]
async fn long_journal_arrives_in_pieces() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let task = client.start("crawls", json!({})).await;
    assert_eq!(client.completed(&task).await, "600000");
}

#[tokio::test]
async fn incompatible_entry_quarantines_task() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let task = client.start("strange", json!({})).await;
    let why = client.until_says(&task, "quarantined").await;
    assert!(why.contains("`image`") && why.contains("'tag' is missing"), "{why}");
    eventually("the call has ended", || served.worker.metrics().running == 0).await;
}

#[tokio::test]
async fn cancelled_task_is_cleaned_up_by_its_function() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let task = client.start("orders", json!({})).await;
    client.until(&task, "input_required").await;
    client.ask("tasks/cancel", json!({"taskId": task})).await;
    client.until(&task, "cancelled").await;
    eventually("the cleanup has run", || place.count("freed 7 because cancelled") == 1).await;
}

#[tokio::test]
async fn cleanup_gets_input_responses() {
    let place = Place::new();
    let served = Served::start(place.settings()).await;
    let mut client = served.client();
    let task = client.start("orders", json!({})).await;
    client.until(&task, "input_required").await;
    client.accept(&task, "approve", json!({"yes": true})).await;
    client.until(&task, "working").await;
    client.ask("tasks/cancel", json!({"taskId": task})).await;
    client.until(&task, "cancelled").await;
    eventually("the cleanup has run", || place.count("approve was accept") == 1).await;
}

#[tokio::test]
async fn calls_above_max_concurrent_wait_for_their_turn() {
    let place = Place::new();
    let served = Served::start(place.settings().max_concurrent(1)).await;
    let mut client = served.client();
    let mut other = served.client();
    let first =
        client.send("tools/call", json!({"name": "works", "arguments": {"seconds": 0.3}})).await;
    eventually("the first call runs", || place.count("works") == 1).await;
    assert_eq!(text_of(&other.call("greet", json!({})).await), "hello you");
    assert_eq!(text_of(&client.answer(first).await["result"]), "worked");
    // A call that waits for longer is rejected with the name of the limit.
    let long =
        client.send("tools/call", json!({"name": "works", "arguments": {"seconds": 20}})).await;
    eventually("the second call runs", || place.count("works") == 2).await;
    let rejected = other.ask("tools/call", json!({"name": "greet", "arguments": {}})).await;
    assert_eq!(rejected["error"]["data"]["limit"], "workers.shop.max_concurrent", "{rejected}");
    // A task waits in the store instead.
    let task = other.start("parallel", json!({})).await;
    other.until_says(&task, "max_concurrent = 1").await;
    // The process is killed to end the long call, and the task continues in the next one.
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": long},
    });
    client.notify(&cancel).await;
    assert_eq!(place.count("works"), 2);
}
