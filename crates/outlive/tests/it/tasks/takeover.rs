//! Tasks that another process continues after a crash.

use std::{
    future::Future,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use outlive::{
    server::{
        Tool,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::MemoryStore,
};
use serde_json::json;

use super::world::{Counts, builder, modern, start, until};
use crate::support::pipe::{Pipe, text};

fn config(store: &Arc<MemoryStore>) -> TaskConfig {
    TaskConfig::new(Arc::clone(store) as _).engine(|engine| {
        engine.lease_duration = Duration::from_millis(400);
        engine.poll_interval = Duration::from_millis(20);
        engine.park_after = Duration::from_millis(50);
    })
}

/// A simulated process: a runtime that a test can stop in the middle of any operation.
struct Replica(Option<tokio::runtime::Runtime>);

impl Replica {
    fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.as_ref().unwrap().block_on(work)
    }

    fn start() -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        Self(Some(runtime.worker_threads(1).enable_all().build().unwrap()))
    }

    fn kill(mut self) {
        self.0.take().unwrap().shutdown_background();
    }
}

// K-06, K-11, K-12
#[test]
fn task_waiting_for_input_is_finished_by_another_replica() {
    let (store, counts) = (Arc::new(MemoryStore::new()), Counts::default());
    let first = Replica::start();
    let id = first.run(async {
        let mut pipe = Pipe::open(&builder(config(&store), &counts).build().unwrap());
        let id = start(&mut pipe, "deploy", json!({})).await;
        until(&mut pipe, &id, "input_required").await;
        id
    });
    first.kill();
    let second = Replica::start();
    second.run(async {
        let mut pipe = Pipe::open(&builder(config(&store), &counts).build().unwrap());
        let asking = until(&mut pipe, &id, "input_required").await;
        assert!(asking["inputRequests"].get("approve").is_some(), "under the same key: {asking}");
        let answers = json!({"approve": {"action": "accept", "content": {"yes": true}}});
        modern(&mut pipe, "tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
        let done = until(&mut pipe, &id, "completed").await;
        assert_eq!(text(&done["result"]), "shop:1: true");
    });
    assert_eq!(counts.builds.load(Ordering::Relaxed), 1, "the step was not repeated");
}

#[test]
fn plain_task_reruns_after_crash_only_if_idempotent() {
    let (store, counts) = (Arc::new(MemoryStore::new()), Counts::default());
    let server = |safe: bool| {
        let nap = Tool::new("other", async || {
            tokio::time::sleep(Duration::from_secs(2)).await;
            "rested"
        });
        let nap = if safe { nap.idempotent() } else { nap };
        builder(config(&store), &counts).tool(nap.task(TaskPolicy::Always)).build().unwrap()
    };
    for (safe, status) in [(false, "failed"), (true, "completed")] {
        let first = Replica::start();
        let id = first.run(async {
            let mut pipe = Pipe::open(&server(safe));
            let id = start(&mut pipe, "other", json!({})).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            id
        });
        first.kill();
        let second = Replica::start();
        second.run(async {
            let mut pipe = Pipe::open(&server(safe));
            let ended = until(&mut pipe, &id, status).await;
            if !safe {
                let message = ended["error"]["message"].as_str().unwrap();
                assert!(message.contains("the worker crashed"), "{message}");
            }
        });
    }
}

/// A worker starts all due tasks immediately, also more than one claim batch.
#[tokio::test(start_paused = true)]
async fn worker_joining_long_queue_starts_every_task() {
    let (store, counts) = (Arc::new(MemoryStore::new()), Counts::default());
    let idle = TaskConfig::new(Arc::clone(&store) as _).engine(|engine| engine.max_running = 0);
    let mut pipe = Pipe::open(&builder(idle, &counts).build().unwrap());
    for _ in 0..100 {
        start(&mut pipe, "deploy", json!({})).await;
    }
    let begun = tokio::time::Instant::now();
    let all = TaskConfig::new(Arc::clone(&store) as _)
        .engine(|engine| engine.max_running_per_caller = Some(engine.max_running));
    let worker = builder(all, &counts).build().unwrap();
    let _worker = Pipe::open(&worker);
    while counts.runs.load(Ordering::Relaxed) < 100 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
}
