//! Concurrency permits: waiting in a task, and rejection of inline calls.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive::server::{
    Durable, Result, Server, State, Tool,
    durable::{Capacity, Permit},
    tasks::{TaskConfig, TaskPolicy},
};
use serde_json::json;

use super::world::{get, holds, start, until};
use crate::support::pipe::{Pipe, error, result, text};

/// A capacity of one, and the permits of the calls that ran.
#[derive(Clone)]
struct Jobs(Capacity, Arc<Mutex<Vec<Permit>>>);

async fn job(cx: Durable, jobs: State<Jobs>) -> Result<&'static str> {
    let permit = cx.acquire(&jobs.0).await?;
    // The permit belongs to the job, which outlives the call.
    jobs.1.lock().unwrap().push(permit);
    Ok("runs")
}

fn world() -> (Server, Jobs) {
    let jobs = Jobs(Capacity::new("tools.job.concurrency", 1), Arc::default());
    let server = Server::builder("jobs", "1")
        .tasks(TaskConfig::in_memory())
        .state(jobs.clone())
        .tool(Tool::new("plain", job))
        .tool(Tool::new("job", job).task(TaskPolicy::Auto { after: Duration::from_secs(60) }))
        .build()
        .unwrap();
    (server, jobs)
}

#[tokio::test(start_paused = true)]
async fn inline_call_without_permit_is_rejected_with_limit_name() {
    let (server, jobs) = world();
    let mut pipe = Pipe::open(&server);
    for tool in ["plain", "job"] {
        let held = jobs.0.force_acquire();
        let call = json!({"name": tool, "arguments": {}});
        let refused = error(&pipe.modern_with(json!({}), "tools/call", call.clone()).await);
        assert_eq!(refused["code"], 429, "{refused}");
        assert_eq!(refused["data"]["limit"], "tools.job.concurrency");
        assert!(refused["message"].as_str().unwrap().contains("tools.job.concurrency"));
        drop(held);
        let run = result(&pipe.modern_with(json!({}), "tools/call", call).await);
        assert_eq!(text(&run), "runs");
        jobs.1.lock().unwrap().clear();
    }
    assert_eq!(jobs.0.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn task_without_permit_waits_in_store() {
    let (server, jobs) = world();
    let mut pipe = Pipe::open(&server);
    let call = json!({"name": "job", "arguments": {}});
    let run = result(&pipe.modern_with(holds(), "tools/call", call).await);
    assert_eq!(text(&run), "runs", "there was a permit");
    let ids = [start(&mut pipe, "job", json!({})).await, start(&mut pipe, "job", json!({})).await];
    tokio::time::sleep(Duration::from_secs(2)).await;
    for id in &ids {
        assert_eq!(get(&mut pipe, id).await["status"], "working");
    }
    for id in &ids {
        jobs.1.lock().unwrap().clear();
        assert_eq!(text(&until(&mut pipe, id, "completed").await["result"]), "runs");
    }
    assert_eq!((jobs.0.used(), jobs.0.waiting()), (1, 0));
}
