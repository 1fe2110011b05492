//! Requests that wait for a task while the store does not respond.

use std::{sync::Arc, time::Duration};

use outlive::{
    server::{Server, tasks::TaskConfig},
    store::MemoryStore,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::world::{Runs, builder, hosts, legacy, task_of};
use crate::support::{
    fail_points::FailPoints,
    pipe::{Pipe, error, result, text},
};

/// A server whose store can be down. Its clients wait 4.1 s in one request.
struct World {
    store: Arc<FailPoints>,
    server: Server,
    runs: Runs,
}

impl World {
    fn new() -> Self {
        let (store, runs) = (FailPoints::over(Arc::new(MemoryStore::new()) as _), Runs::default());
        let config = TaskConfig::new(Arc::clone(&store) as _).hosts(hosts());
        let server = builder(config, &runs).build().unwrap();
        Self { store, server, runs }
    }

    /// Stops the store for some time, from now on.
    fn stop_store(&self, time: Duration) {
        self.store.down(true);
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            sleep(time).await;
            store.down(false);
        });
    }
}

fn nap(state: &Value) -> Value {
    json!({"name": "nap", "arguments": {"ms": 12_000}, "requestState": state})
}

#[tokio::test(start_paused = true)]
async fn round_during_an_outage_of_the_store_waits_and_ends_with_the_result() {
    let world = World::new();
    let mut pipe = Pipe::open(&world.server);
    let mut params = json!({"name": "nap", "arguments": {"ms": 12_000}});
    let mut rounds = 0;
    let done = loop {
        let reply = result(&pipe.modern("tools/call", params).await);
        if reply["resultType"] == "complete" {
            break reply;
        }
        assert_eq!(reply["resultType"], "input_required", "{reply}");
        rounds += 1;
        // The outage of the first round is shorter than its slice, that of the second one is longer.
        match rounds {
            1 => world.stop_store(Duration::from_secs(1)),
            2 => world.stop_store(Duration::from_secs(5)),
            _ => {}
        }
        params = nap(&reply["requestState"]);
    };
    assert_eq!((text(&done), world.runs.count()), ("slept 12000 ms", 1));
}

#[tokio::test(start_paused = true)]
async fn poll_during_an_outage_of_the_store_waits_for_the_store() {
    let world = World::new();
    let mut pipe = legacy(&world.server).await;
    let call = json!({"name": "nap", "arguments": {"ms": 6_000}});
    let task = task_of(&pipe.result("tools/call", call).await);
    let poll = json!({"name": "task_result", "arguments": {"task": task}});
    world.stop_store(Duration::from_secs(3));
    let done = pipe.result("tools/call", poll).await;
    assert_eq!((text(&done), world.runs.count()), ("slept 6000 ms", 1));
}

#[tokio::test(start_paused = true)]
async fn poll_during_a_longer_outage_gets_the_error_of_the_store() {
    let world = World::new();
    let mut pipe = legacy(&world.server).await;
    let call = json!({"name": "nap", "arguments": {"ms": 30_000}});
    let task = task_of(&pipe.result("tools/call", call).await);
    world.stop_store(Duration::from_secs(10));
    let poll = json!({"name": "task_result", "arguments": {"task": task}});
    let id = pipe.send("tools/call", poll).await;
    let refused = error(&pipe.answer(id).await);
    assert!(refused["message"].as_str().unwrap().contains("store"), "{refused}");
}
