//! Two workers for one task, two calls for one task, and clients that disconnect.

use std::{sync::Arc, time::Duration};

use outlive::{
    server::{Principal, Tool, http::HttpConfig, tasks::TaskPolicy},
    store::{MemoryStore, Phase, TaskRecord, TaskStore},
};
use serde_json::json;

use super::super::{
    stage::{LEASE, Stage, legacy, legacy_status, parked, send, slow_order, start_legacy},
    world::{get, holds, start, until},
};
use crate::support::{
    fail_points::{FailPoints, Op, after, before},
    gate::Gate,
    http::{Connection, Request},
    pipe::{Pipe, result, text},
};

/// Stops the claims and heartbeats of a replica, as if its process were frozen.
async fn freeze(points: &FailPoints) -> [Gate; 2] {
    let frozen = [points.hold(before(Op::Claim)), points.hold(before(Op::Renew))];
    frozen[0].arrived().await;
    frozen
}

//
#[tokio::test(start_paused = true)]
async fn worker_with_reclaimed_task_cannot_write() {
    let stage = Stage::new();
    let (first, points) = stage.replica();
    let mut pipe = Pipe::open(&first);
    let id = start(&mut pipe, "gated", json!({})).await;
    stage.gate.arrived().await;
    let _frozen = freeze(&points).await;
    stage.store.advance_clock(LEASE * 2);
    let (second, _) = stage.replica();
    let mut other = Pipe::open(&second);
    get(&mut other, &id).await;
    stage.gate.arrived().await;
    // Both workers wait at the gate; the gate lets the first worker through first.
    let ending = points.hold(before(Op::End));
    stage.gate.open(1);
    ending.arrived().await;
    ending.open(1);
    parked().await;
    assert_eq!(
        get(&mut other, &id).await["status"],
        "working",
        "the first worker cannot end the task"
    );
    stage.gate.open(1);
    assert_eq!(text(&until(&mut other, &id, "completed").await["result"]), "done");
}

//
#[tokio::test(start_paused = true)]
async fn worker_with_reclaimed_task_drops_its_run() {
    let stage = Stage::new();
    let (first, points) = stage.replica();
    let mut pipe = Pipe::open(&first);
    let id = start(&mut pipe, "gated", json!({})).await;
    stage.gate.arrived().await;
    let [_claims, renewals] = freeze(&points).await;
    stage.store.advance_clock(LEASE * 2);
    let (second, _) = stage.replica();
    let mut other = Pipe::open(&second);
    get(&mut other, &id).await;
    stage.gate.arrived().await;
    renewals.open(1);
    stage.gate.abandoned().await;
    stage.gate.open(1);
    until(&mut other, &id, "completed").await;
    assert_eq!(stage.gate.count_abandoned(), 0, "one of two runs was dropped");
}

//
#[tokio::test(start_paused = true)]
async fn session_ending_while_waiting_for_result_keeps_task() {
    let stage = Stage::new();
    let (server, _) = stage.replica();
    let mut pipe = legacy(&server).await;
    let id = start_legacy(&mut pipe, "gated").await;
    stage.gate.arrived().await;
    pipe.send("tasks/result", json!({"taskId": id})).await;
    parked().await;
    drop(pipe);
    parked().await;
    let mut again = legacy(&server).await;
    assert_eq!(legacy_status(&mut again, &id).await, "working");
    stage.gate.open(1);
    assert_eq!(text(&again.result("tasks/result", json!({"taskId": id})).await), "done");
}

// R-20, MT-06
#[tokio::test(start_paused = true)]
async fn concurrent_duplicate_of_last_round_creates_one_task() {
    let stage = Stage::new();
    let points = FailPoints::over(Arc::clone(&stage.store) as _);
    let auto = TaskPolicy::Auto { after: Duration::from_millis(250) };
    let tool = Tool::new("slow_order", slow_order).task(auto);
    let server = stage.builder(&points, |config| config).tool(tool).build().unwrap();
    let (mut one, mut two) = (Pipe::open(&server), Pipe::open(&server));
    let call = json!({"name": "slow_order"});
    let asked = result(&one.modern_with(holds(), "tools/call", call).await);
    let round = json!({
        "name": "slow_order",
        "requestState": asked["requestState"],
        "inputResponses": {"sure": {"action": "accept", "content": {"yes": true}}},
    });
    let gates = [points.hold(before(Op::Keep)), points.hold(before(Op::Keep).nth(2))];
    let first = send(&mut one, "tools/call", round.clone()).await;
    gates[0].arrived().await;
    let second = send(&mut two, "tools/call", round).await;
    gates[1].arrived().await;
    gates.iter().for_each(|gate| gate.open(1));
    let task = |answer| result(&answer)["taskId"].as_str().unwrap().to_owned();
    let (first, second) = (task(one.answer(first).await), task(two.answer(second).await));
    assert_eq!(first, second);
    stage.gate.open(10);
    assert_eq!(text(&until(&mut one, &first, "completed").await["result"]), "ordered: true");
    assert_eq!(stage.effects.count(), (2, 2), "each effect once");
    assert_eq!(stage.tasks().await.len(), 1);
}

/// Returns the tasks of anonymous HTTP clients.
async fn anonymous(store: &MemoryStore) -> Vec<TaskRecord> {
    store.list(Principal::ANONYMOUS.key(), "modern", None, 10).await.unwrap()
}

/// Waits until there is a task that has ended or is being cancelled.
async fn until_given_up(store: &MemoryStore) -> TaskRecord {
    for _ in 0..500 {
        let given_up =
            |view: &TaskRecord| view.phase == Phase::Ended || view.cancel_requested.is_some();
        if let Some(view) = anonymous(store).await.into_iter().find(given_up) {
            return view;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the task continues without a client: {:?}", anonymous(store).await);
}

//
#[tokio::test]
async fn client_leaving_before_promotion_creates_no_task() {
    let stage = Stage::new();
    let (server, _) = stage.replica();
    let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await.unwrap();
    let mut client = Connection::open(serving.address()).await;
    let call = Request::call("patient", json!({})).reserved("clientCapabilities", holds());
    client.write(&call.bytes()).await;
    stage.gate.arrived().await;
    drop(client);
    stage.gate.abandoned().await;
    assert!(anonymous(&stage.store).await.is_empty());
}

// R-21, K-05
#[tokio::test]
async fn unacknowledged_task_of_disconnected_client_is_cancelled() {
    for place in [before(Op::Create), after(Op::Create)] {
        let stage = Stage::new();
        let (server, points) = stage.replica();
        let making = points.hold(place);
        let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await.unwrap();
        let mut client = Connection::open(serving.address()).await;
        let call = Request::call("gated", json!({})).reserved("clientCapabilities", holds());
        client.write(&call.bytes()).await;
        making.arrived().await;
        // The server closes the connection when it has noticed the disconnect.
        client.half_close().await;
        client.closed().await;
        making.open(1);
        until_given_up(&stage.store).await;
    }
}

// K-05
#[tokio::test]
async fn unacknowledged_task_with_idempotency_key_continues() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let made = points.hold(after(Op::Create));
    let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await.unwrap();
    let mut client = Connection::open(serving.address()).await;
    let call = Request::call("gated", json!({}))
        .reserved("clientCapabilities", holds())
        .meta("dev.outlive/idempotencyKey", json!("an unguessable idempotency key"));
    client.write(&call.bytes()).await;
    made.arrived().await;
    drop(client);
    made.open(1);
    let mut again = Connection::open(serving.address()).await;
    let task = again.send(&call).await.result();
    let views = anonymous(&stage.store).await;
    assert_eq!(views.len(), 1);
    assert_eq!(views[0].id.as_str(), task["taskId"]);
    assert!(views[0].cancel_requested.is_none());
}

// K-05
#[tokio::test(start_paused = true)]
async fn call_cancelled_before_task_response_cancels_task() {
    for (tool, arguments) in [("gated", json!({})), ("nap", json!({"ms": 3_600_000}))] {
        let stage = Stage::new();
        let (server, points) = stage.replica();
        let made = points.hold(after(Op::Create));
        let mut pipe = Pipe::open(&server);
        let call = json!({"name": tool, "arguments": arguments});
        let call = send(&mut pipe, "tools/call", call).await;
        made.arrived().await;
        pipe.cancel(call).await;
        parked().await;
        made.open(1);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let views = stage.tasks().await;
        assert_eq!(views.len(), 1, "{tool}");
        assert_eq!(views[0].phase, Phase::Ended, "{tool}: {views:?}");
    }
}
