//! Crashes at the end of a task, during a sweep, and between rounds.

use std::sync::Arc;

use outlive::{
    server::{SealKeys, Server, Tool},
    store::Phase,
};
use serde_json::{Value, json};

use super::super::{
    stage::{LEASE, Process, Stage, TTL, answer, both, parked, send, until_asked},
    world::{get, modern, start, until},
};
use crate::support::{
    fail_points::{FailPoints, Op, after, before},
    pipe::{Pipe, error, result, text},
};

// K-14
#[test]
fn end_without_notification_is_sent_to_next_subscriber() {
    let stage = Stage::new();
    let first = Process::start();
    let id = first.run(async {
        let (server, points) = stage.replica();
        let mut pipe = Pipe::open(&server);
        let id = start(&mut pipe, "gated", json!({})).await;
        let params = json!({"notifications": {"taskIds": [id]}});
        send(&mut pipe, "subscriptions/listen", params).await;
        // The subscriber never gets a notification.
        parked().await;
        points.hold(before(Op::View));
        let ended = points.hold(after(Op::End));
        stage.gate.open(1);
        ended.arrived().await;
        id
    });
    first.kill(&stage.store);
    Process::start().run(async {
        let (server, _) = stage.replica();
        let mut pipe = Pipe::open(&server);
        assert_eq!(text(&get(&mut pipe, &id).await["result"]), "done");
        let params = json!({"notifications": {"taskIds": [id]}});
        send(&mut pipe, "subscriptions/listen", params).await;
        pipe.read().await;
        let told = pipe.read().await;
        assert_eq!(told["params"]["status"], "completed");
        assert_eq!(text(&told["params"]["result"]), "done");
    });
}

// K-21
#[test]
fn end_of_task_is_stored_with_its_last_segment_atomically() {
    for place in [before(Op::End), after(Op::End)] {
        let stage = Stage::new();
        let first = Process::start();
        let id = first.run(async {
            let (server, points) = stage.replica();
            let ending = points.hold(place);
            let mut pipe = Pipe::open(&server);
            let id = start(&mut pipe, "emits", json!({})).await;
            stage.gate.arrived().await;
            stage.gate.open(1);
            ending.arrived().await;
            id
        });
        first.kill(&stage.store);
        Process::start().run(async {
            let phase = stage.tasks().await[0].phase;
            assert!(matches!(phase, Phase::Running | Phase::Ended), "{place:?}: {phase:?}");
            let mut pipe = Pipe::open(&stage.replica().0);
            let seen = get(&mut pipe, &id).await;
            assert_eq!(seen["status"] == "completed", phase == Phase::Ended, "{seen}");
            stage.gate.open(1);
            let done = until(&mut pipe, &id, "completed").await;
            let content = done["result"]["content"].as_array().unwrap();
            let texts: Vec<_> = content.iter().map(|block| block["text"].clone()).collect();
            assert_eq!(texts, ["one", "two", "three", "end"], "{place:?}");
        });
    }
}

// K-19
#[test]
fn crash_during_sweep_leaves_tasks_whole_or_deleted() {
    for (place, left) in [(before(Op::Sweep), 3), (after(Op::Sweep), 2)] {
        let stage = Stage::new();
        let mut ids = Vec::new();
        Process::start().run(async {
            let mut pipe = Pipe::open(&stage.replica().0);
            for _ in 0..3 {
                let id = start(&mut pipe, "deploy", json!({})).await;
                until_asked(&mut pipe, &id, &["approve"]).await;
                answer(&mut pipe, &id, &[("approve", true)]).await;
                until(&mut pipe, &id, "completed").await;
                ids.push(id);
            }
        });
        stage.store.advance_clock(TTL * 3);
        // The sweep deletes one task at a time and crashes at the first.
        let sweeper = Process::start();
        sweeper.run(async {
            let points = FailPoints::over(Arc::clone(&stage.store) as _);
            let lost = points.hold(place);
            let server =
                stage.builder(&points, |config| config.engine(|engine| engine.claim_batch = 1));
            let mut pipe = Pipe::open(&server.build().unwrap());
            pipe.modern("tools/list", json!({})).await;
            let unknown = json!({"taskId": "unknown"});
            modern(&mut pipe, "tasks/get", unknown).await;
            lost.arrived().await;
        });
        sweeper.kill(&stage.store);
        Process::start().run(async {
            let (server, points) = stage.replica();
            let sweeping = points.hold(before(Op::Sweep));
            let mut pipe = Pipe::open(&server);
            let mut whole = 0;
            for id in &ids {
                let answer = modern(&mut pipe, "tasks/get", json!({"taskId": id}));
                let answer = answer.await;
                match answer.get("result") {
                    Some(task) => {
                        assert_eq!(text(&task["result"]), "shop:1: true");
                        whole += 1;
                    }
                    None => assert_eq!(error(&answer)["code"], -32602),
                }
            }
            assert_eq!(whole, left, "{place:?}");
            sweeping.open(1);
            parked().await;
            assert!(stage.tasks().await.is_empty(), "the next sweep continues");
        });
    }
}

/// A server without a store.
fn stateless(keys: u8) -> Server {
    Server::builder("rounds", "1")
        .seal_keys(SealKeys::new([keys; 32]))
        .tool(Tool::new("both", both))
        .build()
        .unwrap()
}

/// Sends a round with a response to every input request.
async fn round(server: &Server, state: Option<&Value>) -> Value {
    let mut call = json!({"name": "both"});
    if let Some(state) = state {
        let agreed = json!({"action": "accept", "content": {"yes": true}});
        call["requestState"] = state.clone();
        call["inputResponses"] = json!({"a": agreed, "b": agreed});
    }
    Pipe::open(server).modern_with(json!({"elicitation": {}}), "tools/call", call).await
}

// K-22
#[test]
fn crash_between_rounds_loses_nothing() {
    let first = Process::start();
    let asked = first.run(async { result(&round(&stateless(1), None).await) });
    drop(first);
    Process::start().run(async {
        let done = round(&stateless(1), Some(&asked["requestState"])).await;
        assert_eq!(text(&result(&done)), "true true");
    });
}

// K-23
#[test]
fn changed_seal_key_invalidates_request_state_but_not_tasks() {
    let stage = Stage::new();
    let (asked, id) = Process::start().run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        let id = start(&mut pipe, "deploy", json!({})).await;
        until_asked(&mut pipe, &id, &["approve"]).await;
        (result(&round(&stateless(1), None).await), id)
    });
    stage.store.advance_clock(LEASE);
    Process::start().run(async {
        let refused = error(&round(&stateless(2), Some(&asked["requestState"])).await);
        assert_eq!(refused["code"], -32602, "{refused}");
        let points = FailPoints::over(Arc::clone(&stage.store) as _);
        let server = stage.builder(&points, |config| config).seal_keys(SealKeys::new([2; 32]));
        let mut pipe = Pipe::open(&server.build().unwrap());
        until_asked(&mut pipe, &id, &["approve"]).await;
        answer(&mut pipe, &id, &[("approve", true)]).await;
        until(&mut pipe, &id, "completed").await;
    });
}
