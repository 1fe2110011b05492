//! Processes that are lost between a question and its answer.

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

/// Begins a task that asks, and loses its process in the middle of an update, or not.
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
fn an_answer_that_was_stored_and_not_acknowledged_counts_and_may_be_sent_again() {
    let stage = Stage::new();
    let id = ask_and_die(&stage, Some(after(Op::Answer)));
    Process::start().run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        answer(&mut pipe, &id, &[("approve", false)]).await;
        let done = until(&mut pipe, &id, "completed").await;
        assert_eq!(text(&done["result"]), "shop:1: true", "the first has counted");
    });
}

// K-08
#[test]
fn an_answer_that_was_not_stored_is_missed_and_taken_when_it_is_sent_again() {
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
async fn nothing_is_acknowledged_before_it_is_stored() {
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
fn an_answer_that_was_acknowledged_reaches_its_handler_though_the_process_is_lost() {
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
fn a_question_that_was_not_stored_was_never_seen_and_is_asked_by_the_next() {
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
fn a_question_that_was_stored_keeps_its_name_and_is_asked_once() {
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
            // At every moment, whoever has it now.
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
fn a_task_that_waits_for_days_needs_no_process() {
    let stage = Stage::new();
    let id = ask_and_die(&stage, None);
    Process::start().run(async {
        let view = stage.tasks().await.remove(0);
        assert_eq!(view.phase, Phase::Parked);
        assert_eq!(stage.store.next_due(&[]).await.unwrap(), None, "nobody has to look at it");
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
fn who_waited_for_a_result_when_the_process_was_lost_waits_again() {
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
fn a_question_on_the_older_wire_is_put_again_to_the_next_session_of_its_caller() {
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
        // Who answers what the lost process has asked answers nothing.
        pipe.reply(&old, json!({"action": "accept", "content": {"yes": false}})).await;
        assert_eq!(legacy_status(&mut pipe, &id).await, "input_required");
        let waiting = pipe.send("tasks/result", json!({"taskId": id})).await;
        let first = next_question(&mut pipe).await;
        assert_eq!(first["params"], old["params"]);
        pipe.cancel(waiting).await;
        // On every stream it has another id, and that of a stream that is gone answers nothing.
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
