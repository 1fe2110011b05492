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

use super::{
    stage::Stage,
    world::{holds, start, until},
};
use crate::support::{
    fail_points::{Op, before},
    gate::Gate,
    http::{HttpFixture, ManualClock, Request, within},
    pipe::{Pipe, text},
};

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

/// The lease is too long for a task to be reclaimed during a test.
fn config(store: &Arc<MemoryStore>) -> TaskConfig {
    TaskConfig::new(Arc::clone(store) as _).engine(|engine| {
        engine.lease_duration = Duration::from_secs(600);
    })
}

fn server(store: &Arc<MemoryStore>, begun: &Arc<AtomicUsize>) -> Server {
    Server::builder("drains", "1")
        .tasks(config(store))
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

/// A step that waits at the gate.
async fn gated(cx: Durable, gate: State<Gate>) -> Result<String> {
    let pass = async || {
        gate.pass().await;
        Ok(())
    };
    cx.step("pass", pass).await?;
    Ok("done".to_owned())
}

/// The engine has no run when it drains. Then the transport waits for its call, which becomes a
/// task.
#[tokio::test]
async fn call_promoted_during_shutdown_is_released() {
    const AFTER: Duration = Duration::from_millis(250);
    let (store, gate, clock) = (Arc::new(MemoryStore::new()), Gate::default(), ManualClock::new());
    let replica = async || {
        let server = Server::builder("drains", "1")
            .tasks(config(&store))
            .clock(clock.clone())
            .state(gate.clone())
            .tool(Tool::new("gated", gated).task(TaskPolicy::Auto { after: AFTER }))
            .build()
            .unwrap();
        HttpFixture::of(server, HttpConfig::new().shutdown_grace(Duration::from_secs(1))).await
    };
    let first = replica().await;
    let call = Request::call("gated", json!({})).reserved("clientCapabilities", holds());
    let mut connection = first.begin(&call).await;
    gate.arrived().await;
    let promoted = async {
        clock.advance(AFTER);
        connection.response(&call).await.result()
    };
    // The shutdown is polled first, and drains the engine at once.
    let ((), task) = within(async { tokio::join!(first.serving.shutdown(), promoted) }).await;
    assert_eq!(task["resultType"], "task", "{task}");
    let _second = replica().await;
    gate.arrived().await;
}

/// The claim is sent before the drain, and the store executes it afterwards.
#[tokio::test(start_paused = true)]
async fn task_claimed_during_drain_is_released() {
    let stage = Stage::new();
    let id = stage.queue("gated").await;
    let (first, points) = stage.replica();
    let claim = points.hold(before(Op::Claim));
    let _pipe = Pipe::open(&first);
    claim.arrived().await;
    // The drain is polled first.
    tokio::join!(first.drain(Duration::from_secs(5)), async { claim.open(1) });
    let (second, _) = stage.replica();
    let mut other = Pipe::open(&second);
    stage.gate.arrived().await;
    stage.gate.open(1);
    until(&mut other, &id, "completed").await;
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
