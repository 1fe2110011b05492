//! Crashes between an input request and its response.

use std::{sync::atomic::Ordering, time::Duration};

use outlive::store::{Phase, WorkQueue};
use serde_json::{Value, json};

use super::super::{
    stage::{
        Process, Stage, acknowledged, answer, asked, legacy, legacy_status, parked, send,
        start_legacy, until_asked, update,
    },
    world::{get, start, until},
};
use crate::support::{
    fail_points::{Op, after, before},
    pipe::{Pipe, result, text},
};

/// Starts a task that elicits, and crashes its process, optionally in the middle of `tasks/update`.
fn ask_and_die(stage: &Stage, place: Option<crate::support::fail_points::Point>) -> String {
    let first = Process::start();
    let id = first.run(async {
        let (server, points) = stage.replica();
        let mut pipe = Pipe::open(&server);
        let id = start(&mut pipe, "deploy", json!({})).await;
        until_asked(&mut pipe, &id, &["approve"]).await;
        parked().await;
        if let Some(place) = place {
            let lost = points.hold(place);
            send(&mut pipe, "tasks/update", update(&id, &[("approve", true)])).await;
            lost.arrived().await;
        }
        id
    });
    first.kill(&stage.store);
    id
}

// K-07
#[test]
fn input_response_stored_but_unacknowledged_counts_and_is_repeatable() {
    let stage = Stage::new();
    let id = ask_and_die(&stage, Some(after(Op::Answer)));
    Process::start().run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        answer(&mut pipe, &id, &[("approve", false)]).await;
        let done = until(&mut pipe, &id, "completed").await;
        assert_eq!(text(&done["result"]), "shop:1: true", "the first response counts");
    });
}

// K-08
#[test]
fn input_response_lost_before_store_is_accepted_when_resent() {
    let stage = Stage::new();
    let id = ask_and_die(&stage, Some(before(Op::Answer)));
    Process::start().run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        until_asked(&mut pipe, &id, &["approve"]).await;
        answer(&mut pipe, &id, &[("approve", true)]).await;
        assert_eq!(text(&until(&mut pipe, &id, "completed").await["result"]), "shop:1: true");
    });
}

// K-08, K-16
#[tokio::test(start_paused = true)]
async fn input_response_and_cancel_are_acknowledged_after_store() {
    let stage = Stage::new();
    let (server, points) = stage.replica();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "deploy", json!({})).await;
    until_asked(&mut pipe, &id, &["approve"]).await;
    for (op, method) in [(Op::Answer, "tasks/update"), (Op::Cancel, "tasks/cancel")] {
        let storing = points.hold(before(op));
        let request = send(&mut pipe, method, update(&id, &[("approve", true)])).await;
        storing.arrived().await;
        pipe.quiet().await;
        storing.open(1);
        acknowledged(&pipe.answer(request).await);
    }
    let mut older = legacy(&server).await;
    let id = start_legacy(&mut older, "gated").await;
    let storing = points.hold(before(Op::Cancel));
    let request = older.send("tasks/cancel", json!({"taskId": id})).await;
    storing.arrived().await;
    older.quiet().await;
    storing.open(1);
    assert_eq!(result(&older.answer(request).await)["status"], "cancelled");
}

// K-09
#[test]
fn acknowledged_input_response_reaches_handler_after_crash() {
    for place in [before(Op::Claim), after(Op::Claim), before(Op::Heard), before(Op::End)] {
        let stage = Stage::new();
        let first = Process::start();
        let id = first.run(async {
            let (server, points) = stage.replica();
            let mut pipe = Pipe::open(&server);
            let id = start(&mut pipe, "deploy", json!({})).await;
            until_asked(&mut pipe, &id, &["approve"]).await;
            parked().await;
            let lost = points.hold(place);
            answer(&mut pipe, &id, &[("approve", true)]).await;
            lost.arrived().await;
            assert_eq!(get(&mut pipe, &id).await["status"], "working");
            id
        });
        first.kill(&stage.store);
        Process::start().run(async {
            let mut pipe = Pipe::open(&stage.replica().0);
            let working = get(&mut pipe, &id).await;
            assert!(asked(&working).is_empty(), "{working}");
            let done = until(&mut pipe, &id, "completed").await;
            assert_eq!(text(&done["result"]), "shop:1: true", "{place:?}");
        });
        assert_eq!(stage.counts.builds.load(Ordering::Relaxed), 1, "{place:?}");
    }
}

// K-10
#[test]
fn input_request_lost_before_store_is_made_by_next_process() {
    let stage = Stage::new();
    let first = Process::start();
    let id = first.run(async {
        let (server, points) = stage.replica();
        let asking = points.hold(before(Op::Ask));
        let mut pipe = Pipe::open(&server);
        let id = start(&mut pipe, "deploy", json!({})).await;
        asking.arrived().await;
        let working = get(&mut pipe, &id).await;
        assert_eq!((&working["status"], asked(&working).len()), (&json!("working"), 0));
        id
    });
    first.kill(&stage.store);
    Process::start().run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        until_asked(&mut pipe, &id, &["approve"]).await;
        answer(&mut pipe, &id, &[("approve", false)]).await;
        assert_eq!(text(&until(&mut pipe, &id, "completed").await["result"]), "shop:1: false");
    });
    assert_eq!(stage.counts.builds.load(Ordering::Relaxed), 1);
}

// K-11
#[test]
fn stored_input_request_keeps_its_key_after_crash() {
    for place in [after(Op::Ask), before(Op::Park), after(Op::Park)] {
        let stage = Stage::new();
        let first = Process::start();
        let (id, shown) = first.run(async {
            let (server, points) = stage.replica();
            let lost = points.hold(place);
            let mut pipe = Pipe::open(&server);
            let id = start(&mut pipe, "deploy", json!({})).await;
            lost.arrived().await;
            let shown = get(&mut pipe, &id).await;
            assert_eq!(asked(&shown), ["approve"]);
            (id, shown)
        });
        first.kill(&stage.store);
        Process::start().run(async {
            let mut pipe = Pipe::open(&stage.replica().0);
            // The input request is visible at every moment, whether or not a worker has the task.
            for _ in 0..100 {
                let task = get(&mut pipe, &id).await;
                assert_eq!(task["inputRequests"], shown["inputRequests"], "{place:?}");
                assert_eq!(task["status"], "input_required");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            answer(&mut pipe, &id, &[("approve", true)]).await;
            assert_eq!(text(&until(&mut pipe, &id, "completed").await["result"]), "shop:1: true");
        });
        assert_eq!(stage.counts.builds.load(Ordering::Relaxed), 1, "{place:?}");
    }
}

// K-12
#[test]
fn parked_task_waiting_for_days_needs_no_process() {
    let stage = Stage::new();
    let id = ask_and_die(&stage, None);
    Process::start().run(async {
        let view = stage.tasks().await.remove(0);
        assert_eq!(view.phase, Phase::Parked);
        assert_eq!(stage.store.next_due(&[]).await.unwrap(), None, "no task is due");
    });
    stage.store.advance_clock(Duration::from_secs(20 * 24 * 3600));
    Process::start().run(async {
        let (server, _) = stage.replica();
        let mut pipe = Pipe::open(&server);
        until_asked(&mut pipe, &id, &["approve"]).await;
        answer(&mut pipe, &id, &[("approve", true)]).await;
        assert_eq!(text(&until(&mut pipe, &id, "completed").await["result"]), "shop:1: true");
    });
}

// K-17
#[test]
fn client_waiting_for_result_during_crash_can_wait_again() {
    let stage = Stage::new();
    let first = Process::start();
    let id = first.run(async {
        let mut pipe = legacy(&stage.replica().0).await;
        let id = start_legacy(&mut pipe, "gated").await;
        stage.gate.arrived().await;
        pipe.send("tasks/result", json!({"taskId": id})).await;
        parked().await;
        id
    });
    first.kill(&stage.store);
    Process::start().run(async {
        let mut pipe = legacy(&stage.replica().0).await;
        assert_eq!(legacy_status(&mut pipe, &id).await, "working");
        let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
        stage.gate.open(1);
        assert_eq!(text(&result(&pipe.answer(waiting).await)), "done");
    });
}

// K-18
#[test]
fn legacy_input_request_is_resent_to_next_session_of_principal() {
    let stage = Stage::new();
    let first = Process::start();
    let (id, old) = first.run(async {
        let mut pipe = legacy(&stage.replica().0).await;
        let id = start_legacy(&mut pipe, "deploy").await;
        pipe.send("tasks/result", json!({"taskId": id})).await;
        let asked = next_question(&mut pipe).await;
        (id, asked)
    });
    first.kill(&stage.store);
    Process::start().run(async {
        let mut pipe = legacy(&stage.replica().0).await;
        // A response to the request ID of the crashed process has no effect.
        pipe.reply(&old, json!({"action": "accept", "content": {"yes": false}})).await;
        assert_eq!(legacy_status(&mut pipe, &id).await, "input_required");
        let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
        let first = next_question(&mut pipe).await;
        assert_eq!(first["params"], old["params"]);
        pipe.cancel(waiting).await;
        // Every stream uses another request ID, and the ID of a closed stream has no effect.
        let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
        let second = next_question(&mut pipe).await;
        assert_ne!(first["id"], second["id"]);
        pipe.reply(&first, json!({"action": "accept", "content": {"yes": false}})).await;
        assert_eq!(legacy_status(&mut pipe, &id).await, "input_required");
        pipe.reply(&second, json!({"action": "accept", "content": {"yes": true}})).await;
        let told = pipe.read_to(waiting).await;
        assert_eq!(text(&result(told.last().unwrap())), "shop:1: true");
    });
}

async fn next_question(pipe: &mut Pipe) -> Value {
    loop {
        let said = pipe.read().await;
        if said["method"] == "elicitation/create" {
            return said;
        }
    }
}
