//! Crashes during the creation of a task.

use std::sync::{Arc, atomic::Ordering};

use outlive::{
    server::{Principal, Server},
    store::Phase,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};

use super::super::{
    stage::{Process, Stage, send, until_asked},
    world::{get, holds, modern, start, until},
};
use crate::support::{
    fail_points::{FailPoints, Op, after, before},
    pipe::{Pipe, result, text, with_meta},
};

fn keyed(tool: &str) -> Value {
    json!({"name": tool, "_meta": {"dev.outlive/idempotencyKey": "k"}})
}

/// Returns the task ID of a call's result.
fn id_of(answer: &Value) -> String {
    result(answer)["taskId"].as_str().unwrap().to_owned()
}

// K-01
#[test]
fn crash_before_task_creation_leaves_nothing() {
    let stage = Stage::new();
    for call in [json!({"name": "deploy"}), keyed("deploy")] {
        let first = Process::start();
        first.run(async {
            let (server, points) = stage.replica();
            let making = points.hold(before(Op::Create));
            send(&mut Pipe::open(&server), "tools/call", call.clone()).await;
            making.arrived().await;
        });
        first.kill(&stage.store);
    }
    assert_eq!(stage.counts.runs.load(Ordering::Relaxed), 0);
    Process::start().run(async {
        assert!(stage.tasks().await.is_empty());
        let mut pipe = Pipe::open(&stage.replica().0);
        let id = id_of(&modern(&mut pipe, "tools/call", keyed("deploy")).await);
        until_asked(&mut pipe, &id, &["approve"]).await;
        assert_eq!(stage.tasks().await.len(), 1, "the repeated call creates one task");
    });
}

/// Creates a task whose ID is never sent, and returns the ID.
fn make_and_die(stage: &Stage, call: &Value) -> String {
    let first = Process::start();
    first.run(async {
        let (server, points) = stage.replica();
        let made = points.hold(after(Op::Create));
        send(&mut Pipe::open(&server), "tools/call", call.clone()).await;
        made.arrived().await;
    });
    first.kill(&stage.store);
    let views = Process::start().run(stage.tasks());
    views.last().unwrap().id.as_str().to_owned()
}

// K-02, K-45
#[test]
fn task_with_unsent_id_is_found_by_idempotency_key() {
    let stage = Stage::new();
    let id = make_and_die(&stage, &keyed("deploy"));
    Process::start().run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        assert_eq!(id_of(&modern(&mut pipe, "tools/call", keyed("deploy")).await), id);
        until_asked(&mut pipe, &id, &["approve"]).await;
        assert_eq!(stage.tasks().await.len(), 1);
    });
}

// K-02
#[test]
fn task_with_unsent_id_and_no_key_runs_beside_retry() {
    let stage = Stage::new();
    let orphan = make_and_die(&stage, &json!({"name": "deploy"}));
    Process::start().run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        let id = start(&mut pipe, "deploy", json!({})).await;
        assert_ne!(id, orphan);
        until_asked(&mut pipe, &id, &["approve"]).await;
        until_asked(&mut pipe, &orphan, &["approve"]).await;
    });
}

// K-03
#[test]
fn queued_task_is_claimed_by_next_process() {
    let stage = Stage::new();
    let first = Process::start();
    let id = first.run(async { stage.queue("gated").await });
    drop(first);
    Process::start().run(async {
        assert_eq!(stage.tasks().await[0].phase, Phase::Queued);
        let mut pipe = Pipe::open(&stage.replica().0);
        assert_eq!(get(&mut pipe, &id).await["status"], "working");
        stage.gate.open(1);
        assert_eq!(text(&until(&mut pipe, &id, "completed").await["result"]), "done");
    });
}

/// Sends a call over a small buffer and reads only part of the response.
async fn read_a_part(server: &Server, mut call: Value) {
    let (mut client, end) = duplex(64);
    let (input, output) = split(end);
    let server = server.clone();
    tokio::spawn(async move { server.serve_stream(Principal::LOCAL, input, output).await });
    call["_meta"]["io.modelcontextprotocol/clientCapabilities"] = holds();
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": with_meta(call),
    });
    client.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    let mut part = [0; 10];
    client.read_exact(&mut part).await.unwrap();
}

// K-04
#[test]
fn task_with_truncated_response_is_found_by_idempotency_key() {
    let stage = Stage::new();
    let first = Process::start();
    first.run(async { read_a_part(&stage.replica().0, keyed("deploy")).await });
    first.kill(&stage.store);
    Process::start().run(async {
        let views = stage.tasks().await;
        assert_eq!(views.len(), 1);
        let mut pipe = Pipe::open(&stage.replica().0);
        let id = id_of(&modern(&mut pipe, "tools/call", keyed("deploy")).await);
        assert_eq!(views[0].id.as_str(), id);
        until_asked(&mut pipe, &id, &["approve"]).await;
    });
}

// K-41
#[test]
fn new_process_reads_every_task() {
    let stage = Stage::new();
    let first = Process::start();
    let id = first.run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        let id = start(&mut pipe, "deploy", json!({})).await;
        until_asked(&mut pipe, &id, &["approve"]).await;
        id
    });
    drop(first);
    Process::start().run(async {
        // The lease is still valid and nothing can be claimed; the first read finds the task.
        let points = FailPoints::over(Arc::clone(&stage.store) as _);
        points.hold(before(Op::Claim));
        let server = stage.builder(&points, |config| config).build().unwrap();
        let task = get(&mut Pipe::open(&server), &id).await;
        assert_eq!(task["status"], "input_required");
    });
}
