//! One scenario with a crash before and after each of its writes.
//!
//! In every case acknowledged data survives, effects keep their idempotency keys, the user is asked
//! once, and the task stays readable and never moves backward.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::{
    stage::{Process, Stage, acknowledged, asked, update},
    world::{get, modern},
};
use crate::support::{
    fail_points::{Op, Point, after, before},
    gate::Gate,
    pipe::{Pipe, result},
};

/// A client that outlives the crashes. It remembers acknowledged data and repeats the rest.
#[derive(Debug, Default)]
struct Client {
    id: Option<String>,
    /// Whether the input response was acknowledged.
    answered: bool,
    last: String,
    done: Option<Value>,
}

impl Client {
    async fn go_on(&mut self, pipe: &mut Pipe) {
        let call = json!({"name": "order", "_meta": {"dev.outlive/idempotencyKey": "k"}});
        let id = match &self.id {
            Some(id) => id.clone(),
            None => {
                let made = result(&modern(pipe, "tools/call", call).await);
                made["taskId"].as_str().unwrap().to_owned()
            }
        };
        self.id = Some(id.clone());
        loop {
            let task = get(pipe, &id).await;
            self.look(&task);
            match asked(&task).as_slice() {
                [] => {}
                [sure] if sure == "sure" => {
                    let agree = update(&id, &[("sure", true)]);
                    acknowledged(&modern(pipe, "tasks/update", agree).await);
                    self.answered = true;
                }
                other => panic!("unexpected input request: {other:?}"),
            }
            if task["status"] == "completed" {
                self.done = Some(task);
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asserts that the task did not move backward.
    fn look(&mut self, task: &Value) {
        let updated = task["lastUpdatedAt"].as_str().unwrap().to_owned();
        assert!(self.last <= updated, "{self:?} {task}");
        self.last = updated;
        if self.answered {
            assert!(asked(task).is_empty(), "the input request is repeated: {task}");
        }
    }
}

/// Lets the client continue in a new process, which crashes at `place` if it reaches it.
fn act(stage: &Stage, client: &mut Client, place: Option<Point>) -> bool {
    let process = Process::start();
    let lost = process.run(async {
        let (server, points) = stage.replica();
        let lost = place.map(|place| points.hold(place));
        let mut pipe = Pipe::open(&server);
        tokio::select! {
            biased;
            () = arrived(lost) => true,
            () = client.go_on(&mut pipe) => false,
        }
    });
    process.kill(&stage.store);
    lost
}

async fn arrived(gate: Option<Gate>) {
    match gate {
        Some(gate) => gate.arrived().await,
        None => std::future::pending().await,
    }
}

/// Runs the scenario with crashes at these places, and returns the number of crashes.
fn play(places: &[Point]) -> usize {
    let stage = Stage::new();
    let mut client = Client::default();
    let mut lost = 0;
    for place in places {
        if !act(&stage, &mut client, Some(*place)) {
            break;
        }
        lost += 1;
    }
    if client.done.is_none() {
        act(&stage, &mut client, None);
    }
    let done = client.done.unwrap();
    let content = done["result"]["content"].as_array().unwrap();
    let texts: Vec<_> = content.iter().map(|block| block["text"].clone()).collect();
    assert_eq!(texts, ["reserved", "paid", "ordered: true"], "{places:?}");
    let (keys, times) = stage.effects.count();
    assert_eq!(keys, 2, "a repeated step has the same key: {places:?}");
    assert!(times as usize <= 2 + lost, "{places:?}");
    let tasks = Process::start().run(stage.tasks());
    assert_eq!(tasks.len(), 1, "{places:?}");
    lost
}

// K-42, K-48
#[test]
fn crash_at_any_write_loses_no_acknowledged_data() {
    for side in [before, after] {
        let mut nth = 1;
        while play(&[side(Op::Change).nth(nth)]) == 1 {
            nth += 1;
        }
        assert!(nth > 6, "there are more writes than {nth}");
    }
}

// K-42, K-48
#[test]
fn two_crashes_in_a_row_lose_no_acknowledged_data() {
    for first in 1..=7 {
        for second in 1..=5 {
            play(&[after(Op::Change).nth(first), before(Op::Change).nth(second)]);
            play(&[before(Op::Change).nth(first), after(Op::Change).nth(second)]);
        }
    }
}

// K-42, K-06
#[test]
fn crash_at_claim_inbox_sweep_or_read_loses_no_acknowledged_data() {
    for op in [Op::Claim, Op::Heard, Op::Sweep, Op::View] {
        for nth in 1..=3 {
            play(&[before(op).nth(nth)]);
            play(&[after(op).nth(nth)]);
        }
    }
}
