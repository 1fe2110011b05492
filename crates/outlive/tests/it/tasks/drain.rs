//! Graceful shutdown: a drained server releases its tasks to other replicas.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    server::{
        Durable, Principal, Result, Scopes, Server, State, Tool,
        http::HttpConfig,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::MemoryStore,
};
use serde_json::json;
use tokio::time::Instant;

use super::world::{start, until};
use crate::support::pipe::{Pipe, text};

/// Ten steps of a tenth of a second, counted when they start.
async fn work(cx: Durable, begun: State<Arc<AtomicUsize>>) -> Result<String> {
    for step in 0..10 {
        cx.step(("part", step), async || {
            begun.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(())
        })
        .await?;
    }
    Ok("done".to_owned())
}

fn server(store: &Arc<MemoryStore>, begun: &Arc<AtomicUsize>) -> Server {
    // The lease is too long for the task to be reclaimed during the test.
    let config = TaskConfig::new(Arc::clone(store) as _).engine(|engine| {
        engine.lease_duration = Duration::from_secs(600);
    });
    Server::builder("drains", "1")
        .tasks(config)
        .state(Arc::clone(begun))
        .tool(Tool::new("work", work).task(TaskPolicy::Always))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn drained_task_resumes_immediately_on_another_replica() {
    let (store, begun) = (Arc::new(MemoryStore::new()), Arc::new(AtomicUsize::new(0)));
    let first = server(&store, &begun);
    let mut pipe = Pipe::open(&first);
    let id = start(&mut pipe, "work", json!({})).await;
    while begun.load(Ordering::Relaxed) < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let second = server(&store, &begun);
    let mut other = Pipe::open(&second);
    first.drain(Duration::from_secs(5)).await;
    let (drained, before) = (Instant::now(), begun.load(Ordering::Relaxed));
    while begun.load(Ordering::Relaxed) == before {
        assert!(drained.elapsed() < Duration::from_secs(1), "no replica continues");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let done = until(&mut other, &id, "completed").await;
    assert_eq!(text(&done["result"]), "done");
    assert_eq!(begun.load(Ordering::Relaxed), 10, "the running step ended before the release");
}

#[tokio::test]
async fn shutdown_of_last_transport_drains_tasks() {
    let (store, begun) = (Arc::new(MemoryStore::new()), Arc::new(AtomicUsize::new(0)));
    let first = server(&store, &begun);
    let serve = || first.serve_http("127.0.0.1:0", HttpConfig::new());
    let (one, two) = (serve().await.unwrap(), serve().await.unwrap());
    let mut pipe = Pipe::open(&first);
    let id = start(&mut pipe, "work", json!({})).await;
    one.shutdown().await;
    let before = begun.load(Ordering::Relaxed);
    while begun.load(Ordering::Relaxed) < before + 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    two.shutdown().await;
    let stopped = begun.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(begun.load(Ordering::Relaxed), stopped, "no replica runs the task");
    let second = server(&store, &begun);
    until(&mut Pipe::open(&second), &id, "completed").await;
    assert_eq!(begun.load(Ordering::Relaxed), 10);
}

/// A run that cannot resume on another replica may finish within the drain timeout.
#[tokio::test]
async fn drain_waits_for_run_that_cannot_resume() {
    let store = Arc::new(MemoryStore::new());
    let nap = async || {
        tokio::time::sleep(Duration::from_millis(400)).await;
        "rested"
    };
    let server = Server::builder("drains", "1")
        .tasks(TaskConfig::new(Arc::clone(&store) as _))
        .tool(Tool::new("nap", nap).task(TaskPolicy::Always))
        .build()
        .unwrap();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "nap", json!({})).await;
    until(&mut pipe, &id, "working").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.drain(Duration::from_secs(5)).await;
    let done = super::world::get(&mut pipe, &id).await;
    assert_eq!(text(&done["result"]), "rested", "{done}");
}

/// Name of a replica.
struct Replica(&'static str);

/// Continues only on the second replica, and records the replicas it ran on.
async fn moves(cx: Durable, replica: State<Replica>) -> Result<String> {
    let mut been = 0;
    while cx.get::<String>(("at", been))?.is_some() {
        been += 1;
    }
    cx.step(("at", been), async || Ok(replica.0.to_owned())).await?;
    if replica.0 != "second" {
        cx.yield_to_replica().retry_after(Duration::from_millis(20)).await?;
    }
    Ok(format!("started at {}", cx.get::<String>(("at", 0))?.unwrap_or_default()))
}

#[tokio::test]
async fn yielding_task_resumes_on_another_replica() {
    let store = Arc::new(MemoryStore::new());
    let serve = |name| {
        Server::builder("moves", "1")
            .tasks(TaskConfig::new(Arc::clone(&store) as _))
            .state(Replica(name))
            .tool(Tool::new("moves", moves).task(TaskPolicy::Always))
            .build()
            .unwrap()
    };
    let (first, second) = (serve("first"), serve("second"));
    let mut pipe = Pipe::open(&first);
    let id = start(&mut pipe, "moves", json!({})).await;
    let _other = Pipe::open(&second);
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&done["result"]), "started at first");
}

/// The scopes belong to the call and the principal to the task; both survive a move to another
/// replica.
#[tokio::test]
async fn task_keeps_scopes_of_its_call_across_replicas() {
    let store = Arc::new(MemoryStore::new());
    let says = async |cx: Durable, replica: State<Replica>| -> Result<String> {
        if replica.0 != "second" {
            cx.yield_to_replica().retry_after(Duration::from_millis(20)).await?;
        }
        Ok(format!("{} may {}", cx.principal(), cx.principal().scopes()))
    };
    let serve = |name| {
        Server::builder("scoped", "1")
            .tasks(TaskConfig::new(Arc::clone(&store) as _))
            .state(Replica(name))
            .tool(Tool::new("says", says).task(TaskPolicy::Always).scopes(["work"]))
            .build()
            .unwrap()
    };
    let (first, second) = (serve("first"), serve("second"));
    let ann = || Principal::named("ann").with_scopes(Scopes::of(["work", "more"]));
    let mut pipe = Pipe::open_as(&first, ann());
    let id = start(&mut pipe, "says", json!({})).await;
    let _other = Pipe::open(&second);
    // The same principal with fewer scopes may still read the task.
    let mut later = Pipe::open_as(&second, Principal::named("ann"));
    let done = until(&mut later, &id, "completed").await;
    assert_eq!(text(&done["result"]), "ann may more work");
}
