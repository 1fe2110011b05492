//! One story, and a process that is lost at each of its writes, before and after it.
//!
//! Whatever is lost: nothing that was acknowledged is, what was done outside was done under the same
//! keys, the user is asked once, and the task is there under its id and never goes back.

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

/// A client that survives: it remembers what it was told, and asks again for what it was not.
#[derive(Debug, Default)]
struct Client {
    id: Option<String>,
    /// Whether its answer was acknowledged.
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
                other => panic!("the user is asked something else: {other:?}"),
            }
            if task["status"] == "completed" {
                self.done = Some(task);
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Nothing goes back.
    fn look(&mut self, task: &Value) {
        let updated = task["lastUpdatedAt"].as_str().unwrap().to_owned();
        assert!(self.last <= updated, "{self:?} {task}");
        self.last = updated;
        if self.answered {
            assert!(asked(task).is_empty(), "the user is asked twice: {task}");
        }
    }
}

/// Lets the client go on in a process of its own, which is lost at a place if it comes there.
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

/// Plays the story with processes that are lost at these places, and returns how many were.
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
    assert_eq!(keys, 2, "what is done again is done under the same key: {places:?}");
    assert!(times as usize <= 2 + lost, "{places:?}");
    let tasks = Process::start().run(stage.tasks());
    assert_eq!(tasks.len(), 1, "{places:?}");
    lost
}

// K-42, K-48
#[test]
fn a_process_that_is_lost_at_any_write_costs_nothing_that_was_promised() {
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
fn nor_do_two_processes_that_are_lost_one_after_the_other() {
    for first in 1..=7 {
        for second in 1..=5 {
            play(&[after(Op::Change).nth(first), before(Op::Change).nth(second)]);
            play(&[before(Op::Change).nth(first), after(Op::Change).nth(second)]);
        }
    }
}

// K-42, K-06
#[test]
fn nor_does_one_that_is_lost_while_it_takes_a_task_or_hears_of_it() {
    for op in [Op::Claim, Op::Heard, Op::Sweep, Op::View] {
        for nth in 1..=3 {
            play(&[before(op).nth(nth)]);
            play(&[after(op).nth(nth)]);
        }
    }
}
