//! A store that is unavailable for a while, or that fails after it executed an operation.

use std::{sync::atomic::Ordering, time::Duration};

use outlive::{
    server::http::HttpConfig,
    store::{Phase, TaskOutcome},
};
use serde_json::json;

use super::super::{
    stage::{
        LEASE, Stage, acknowledged, answer, legacy, legacy_status, parked, start_legacy,
        until_asked, update,
    },
    world::{get, holds, modern, start, until},
};
use crate::support::{
    fail_points::{Op, after, before},
    http::{Connection, Request},
    pipe::{Pipe, error, result, text},
};

// K-24
#[tokio::test(start_paused = true)]
async fn store_outage_returns_internal_error_and_keeps_tasks() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let (mut pipe, mut older) = (Pipe::open(&server), legacy(&server).await);
    let id = start(&mut pipe, "deploy", json!({})).await;
    let other = start_legacy(&mut older, "gated").await;
    until_asked(&mut pipe, &id, &["approve"]).await;
    parked().await;
    points.down(true);
    for (method, params) in [
        ("tools/call", json!({"name": "deploy"})),
        ("tasks/get", json!({"taskId": id})),
        ("tasks/update", update(&id, &[("approve", true)])),
        ("tasks/cancel", json!({"taskId": id})),
    ] {
        let refused = error(&modern(&mut pipe, method, params).await);
        assert_eq!(refused["code"], -32603, "{method}: {refused}");
    }
    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        let refused = older.error(method, json!({"taskId": other})).await;
        assert_eq!(refused["code"], -32603, "{method}: {refused}");
    }
    let call = json!({"name": "gated", "task": {}});
    assert_eq!(older.error("tools/call", call).await["code"], -32603);
    // Longer than any lease, on the clocks of the worker and of the store.
    tokio::time::sleep(LEASE * 4).await;
    stage.store.advance_clock(LEASE * 4);
    points.down(false);
    assert_eq!(stage.tasks().await.len(), 2, "no task was created");
    assert_eq!(legacy_status(&mut older, &other).await, "working");
    stage.gate.open(1);
    assert_eq!(text(&older.result("tasks/result", json!({"taskId": other})).await), "done");
    answer(&mut pipe, &id, &[("approve", true)]).await;
    until(&mut pipe, &id, "completed").await;
}

// K-24
#[tokio::test]
async fn store_outage_over_http_is_503_with_retry_after() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await.unwrap();
    let mut client = Connection::open(serving.address()).await;
    let call = Request::call("gated", json!({})).reserved("clientCapabilities", holds());
    let created = client.send(&call).await.result();
    let id = created["taskId"].as_str().unwrap();
    let get = Request::modern("tasks/get")
        .reserved("clientCapabilities", holds())
        .param("taskId", json!(id))
        .header("mcp-name", id);
    points.down(true);
    for request in [&call, &get] {
        let refused = client.send(request).await;
        assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("1")));
        let error = refused.json()["error"].take();
        assert_eq!(
            (&error["code"], &error["data"]),
            (&json!(-32603), &json!({"retryAfterMs": 1000}))
        );
        assert!(error["message"].as_str().unwrap().contains("try again"), "{error}");
    }
    points.down(false);
    assert_eq!(client.send(&get).await.result()["status"], "working");
}

// K-24
#[tokio::test(start_paused = true)]
async fn call_with_failed_task_creation_runs_once() {
    for place in [before(Op::Create), after(Op::Create)] {
        let stage = Stage::new();
        let (server, points) = stage.replica();
        points.fail(place);
        let mut pipe = Pipe::open(&server);
        let call = json!({"name": "nap", "arguments": {"ms": 5000}});
        let plain = modern(&mut pipe, "tools/call", call).await;
        assert_eq!(text(&result(&plain)), "slept 5000 ms", "the call continues without a task");
        stage.store.advance_clock(LEASE * 2);
        tokio::time::sleep(LEASE).await;
        assert_eq!(stage.counts.runs.load(Ordering::Relaxed), 1, "{place:?}");
        for view in stage.tasks().await {
            assert!(matches!(view.outcome, Some(TaskOutcome::Cancelled)), "{view:?}");
        }
    }
}

// K-24, K-02
#[tokio::test(start_paused = true)]
async fn task_created_despite_store_error_is_cancelled_or_found_by_key() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = Pipe::open(&server);
    points.fail(after(Op::Create));
    let refused = modern(&mut pipe, "tools/call", json!({"name": "gated"})).await;
    assert_eq!(error(&refused)["code"], -32603);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(stage.tasks().await[0].phase, Phase::Ended, "its ID was never sent");
    points.fail(after(Op::Create));
    let keyed = json!({"name": "gated", "_meta": {"dev.outlive/idempotencyKey": "k"}});
    let refused = modern(&mut pipe, "tools/call", keyed.clone()).await;
    assert_eq!(error(&refused)["code"], -32603);
    let task = result(&modern(&mut pipe, "tools/call", keyed).await);
    assert_eq!(stage.tasks().await.len(), 2);
    stage.gate.open(1);
    until(&mut pipe, task["taskId"].as_str().unwrap(), "completed").await;
}

// K-24, K-48
#[tokio::test(start_paused = true)]
async fn unconfirmed_write_is_applied_once() {
    for op in [Op::Record, Op::Ask, Op::Park, Op::End, Op::Heard, Op::Claim, Op::Renew] {
        for place in [before(op), after(op)] {
            let stage = Stage::new();
            let (server, points) = stage.replica();
            points.fail(place);
            let mut pipe = Pipe::open(&server);
            let id = stage.run(&mut pipe, "order", op).await;
            // A claim whose result was lost ends with its lease.
            parked().await;
            if op == Op::Claim {
                stage.store.advance_clock(LEASE);
            }
            until_asked(&mut pipe, &id, &["sure"]).await;
            parked().await;
            answer(&mut pipe, &id, &[("sure", true)]).await;
            let done = until(&mut pipe, &id, "completed").await;
            let content = done["result"]["content"].as_array().unwrap();
            let texts: Vec<_> = content.iter().map(|block| block["text"].clone()).collect();
            assert_eq!(texts, ["reserved", "paid", "ordered: true"], "{place:?}");
            assert_eq!(stage.effects.count(), (2, 2), "{place:?}");
        }
    }
}

// K-24, K-07, K-15
#[tokio::test(start_paused = true)]
async fn unconfirmed_input_response_or_cancel_is_repeatable() {
    for place in [before(Op::Answer), after(Op::Answer)] {
        let stage = Stage::new();
        let (server, points) = stage.replica();
        let mut pipe = Pipe::open(&server);
        let id = start(&mut pipe, "deploy", json!({})).await;
        until_asked(&mut pipe, &id, &["approve"]).await;
        points.fail(place);
        let update = update(&id, &[("approve", true)]);
        let refused = modern(&mut pipe, "tasks/update", update.clone()).await;
        assert_eq!(error(&refused)["code"], -32603);
        acknowledged(&modern(&mut pipe, "tasks/update", update).await);
        until(&mut pipe, &id, "completed").await;
    }
    for place in [before(Op::Cancel), after(Op::Cancel)] {
        let stage = Stage::new();
        let (server, points) = stage.replica();
        let mut pipe = Pipe::open(&server);
        let id = start(&mut pipe, "both", json!({})).await;
        until_asked(&mut pipe, &id, &["a", "b"]).await;
        parked().await;
        points.fail(place);
        let refused = modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(error(&refused)["code"], -32603);
        acknowledged(&modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await);
        assert_eq!(get(&mut pipe, &id).await["status"], "cancelled");
    }
}

// K-24, K-15
#[tokio::test(start_paused = true)]
async fn worker_failing_to_read_inbox_retries() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "polite", json!({})).await;
    parked().await;
    points.fail(before(Op::Heard));
    acknowledged(&modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await);
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&done["result"]), "stopped in time");
}
