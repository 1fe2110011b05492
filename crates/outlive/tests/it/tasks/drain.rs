//! A server that stops gives its tasks to others.

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

/// Ten steps of a tenth of a second, counted as they begin.
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
    // Neither its lease nor its own polling would give the task to anybody in time.
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
async fn another_replica_goes_on_at_once_and_no_step_is_done_again() {
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
        assert!(drained.elapsed() < Duration::from_secs(1), "nobody goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let done = until(&mut other, &id, "completed").await;
    assert_eq!(text(&done["result"]), "done");
    assert_eq!(begun.load(Ordering::Relaxed), 10, "the step that was at work ended before");
}

#[tokio::test]
async fn a_transport_that_is_shut_down_drains_and_the_last_one_only() {
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
    assert_eq!(begun.load(Ordering::Relaxed), stopped, "nobody has it now");
    let second = server(&store, &begun);
    until(&mut Pipe::open(&second), &id, "completed").await;
    assert_eq!(begun.load(Ordering::Relaxed), 10);
}

/// What cannot go on elsewhere has the time it is given.
#[tokio::test]
async fn a_run_that_nobody_can_resume_may_end() {
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

/// Which replica it is.
struct Replica(&'static str);

/// Goes on at the second replica only, and knows which ones it has been at.
async fn moves(cx: Durable, replica: State<Replica>) -> Result<String> {
    let mut been = 0;
    while cx.get::<String>(("at", been))?.is_some() {
        been += 1;
    }
    cx.step(("at", been), async || Ok(replica.0.to_owned())).await?;
    if replica.0 != "second" {
        cx.yield_to_replica().retry_after(Duration::from_millis(20)).await?;
    }
    Ok(format!("begun at {}", cx.get::<String>(("at", 0))?.unwrap_or_default()))
}

#[tokio::test]
async fn a_task_that_sheds_goes_on_with_whoever_is_first() {
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
    assert_eq!(text(&done["result"]), "begun at first");
}

/// What a caller may do comes with its call, wherever that goes on; who it is with the task.
#[tokio::test]
async fn a_task_keeps_the_scopes_that_its_call_came_with() {
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
    // Another token of the same caller, which may not do it again, may ask how it went.
    let mut later = Pipe::open_as(&second, Principal::named("ann"));
    let done = until(&mut later, &id, "completed").await;
    assert_eq!(text(&done["result"]), "ann may more work");
}
