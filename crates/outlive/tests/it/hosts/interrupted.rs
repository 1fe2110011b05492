//! Requests that end while the store records that they wait for a run.

use std::{sync::Arc, time::Duration};

use outlive::{
    server::{Server, tasks::TaskConfig},
    store::MemoryStore,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::world::{Runs, builder, hosts, legacy, task_of};
use crate::support::{
    fail_points::{FailPoints, Op, Point, after, before},
    gate::Gate,
    pipe::{Pipe, result, text},
};

/// A client whose calls take 30 seconds, and the store of its server.
struct World {
    memory: Arc<MemoryStore>,
    store: Arc<FailPoints>,
    server: Server,
    runs: Runs,
    pipe: Pipe,
}

impl World {
    async fn new() -> Self {
        let memory = Arc::new(MemoryStore::new());
        let (store, runs) = (FailPoints::over(Arc::clone(&memory) as _), Runs::default());
        let config = TaskConfig::new(Arc::clone(&store) as _).hosts(hosts());
        let server = builder(config, &runs).build().unwrap();
        let pipe = legacy(&server).await;
        Self { memory, store, server, runs, pipe }
    }

    fn params() -> Value {
        json!({"name": "nap", "arguments": {"ms": 30_000}})
    }

    /// Calls a tool, and leaves as a client does at its timeout while the store writes.
    async fn leave_at(&mut self, point: Point, params: Value) -> Gate {
        let gate = self.store.hold(point);
        let id = self.pipe.send("tools/call", params).await;
        gate.arrived().await;
        self.leave(id).await;
        gate
    }

    /// Calls the tool as a client of 2026-07-28. Returns the parameters of the next round.
    async fn round(&self, pipe: &mut Pipe) -> Value {
        let round = result(&pipe.modern("tools/call", Self::params()).await);
        assert_eq!(round["resultType"], "input_required", "{round}");
        let mut params = Self::params();
        params["requestState"] = round["requestState"].clone();
        params
    }

    async fn leave(&mut self, id: u64) {
        let reason = "McpError: MCP error -32001: Request timed out";
        let params = json!({"requestId": id, "reason": reason});
        self.pipe.notify("notifications/cancelled", params).await;
        sleep(Duration::from_millis(1)).await;
    }

    /// Repeats the call, and lets the store continue meanwhile. Returns the joined task.
    async fn repeat(&mut self, gate: &Gate) -> String {
        let id = self.pipe.send("tools/call", Self::params()).await;
        sleep(Duration::from_secs(1)).await;
        gate.open(1);
        let pending = self.pipe.answer(id).await;
        task_of(&pending["result"])
    }
}

#[tokio::test(start_paused = true)]
async fn call_that_ends_during_its_promotion_is_joined() {
    for point in [before(Op::Create), after(Op::Create)] {
        let mut world = World::new().await;
        let gate = world.leave_at(point, World::params()).await;
        world.repeat(&gate).await;
        assert_eq!(world.runs.count(), 1, "{point:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn call_that_ends_while_it_joins_leaves_the_run_to_the_next_call() {
    for point in [before(Op::Join), after(Op::Join)] {
        let mut world = World::new().await;
        let first = task_of(&world.pipe.result("tools/call", World::params()).await);
        let gate = world.leave_at(point, World::params()).await;
        assert_eq!(world.repeat(&gate).await, first, "{point:?}");
        assert_eq!(world.runs.count(), 1, "{point:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn poll_that_ends_while_it_attends_leaves_the_run_to_the_next_call() {
    for point in [before(Op::Attend), after(Op::Attend)] {
        let mut world = World::new().await;
        let first = task_of(&world.pipe.result("tools/call", World::params()).await);
        let poll = json!({"name": "task_result", "arguments": {"task": first}});
        let gate = world.leave_at(point, poll).await;
        assert_eq!(world.repeat(&gate).await, first, "{point:?}");
        assert_eq!(world.runs.count(), 1, "{point:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn repeated_call_waits_for_the_departure_of_the_earlier_one() {
    let mut world = World::new().await;
    let id = world.pipe.send("tools/call", World::params()).await;
    sleep(Duration::from_secs(1)).await;
    let gate = world.store.hold(before(Op::Leave));
    world.leave(id).await;
    gate.arrived().await;
    world.repeat(&gate).await;
    assert_eq!(world.runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn departure_that_an_unavailable_store_refuses_is_stored_later() {
    let mut world = World::new().await;
    let id = world.pipe.send("tools/call", World::params()).await;
    sleep(Duration::from_secs(1)).await;
    world.store.fail(before(Op::Leave));
    world.leave(id).await;
    task_of(&world.pipe.result("tools/call", World::params()).await);
    assert_eq!(world.runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn call_that_is_repeated_after_a_lost_round_joins_the_run() {
    let world = World::new().await;
    let mut pipe = Pipe::open(&world.server);
    world.round(&mut pipe).await;
    let id = pipe.send("tools/call", World::params()).await;
    sleep(Duration::from_secs(1)).await;
    world.memory.advance_clock(Duration::from_secs(3));
    let round = result(&pipe.answer(id).await);
    assert_eq!(round["resultType"], "input_required", "{round}");
    assert_eq!(world.runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn equal_call_between_two_rounds_of_another_client_is_a_second_run() {
    let world = World::new().await;
    let (mut pipe, mut other) = (Pipe::open(&world.server), Pipe::open(&world.server));
    let next = world.round(&mut pipe).await;
    let id = other.send("tools/call", World::params()).await;
    sleep(Duration::from_millis(500)).await;
    assert_eq!(world.runs.count(), 1, "the equal call waits for the client of the round");
    result(&pipe.modern("tools/call", next).await);
    result(&other.answer(id).await);
    assert_eq!(world.runs.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn intentional_cancellation_during_the_promotion_cancels_the_run() {
    let mut world = World::new().await;
    let gate = world.store.hold(after(Op::Create));
    let id = world.pipe.send("tools/call", World::params()).await;
    gate.arrived().await;
    world.pipe.notify("notifications/cancelled", json!({"requestId": id, "reason": "user"})).await;
    sleep(Duration::from_millis(1)).await;
    gate.open(1);
    sleep(Duration::from_secs(1)).await;
    let answer = world.pipe.result("tools/call", World::params()).await;
    task_of(&answer);
    assert!(!text(&answer).contains("This is the call"), "a cancelled run is not joined: {answer}");
    assert_eq!(world.runs.count(), 2);
}
