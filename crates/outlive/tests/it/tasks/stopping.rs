//! Cancellation of running tasks with the default limits: no further step runs, and waits end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    Form,
    server::{
        Cx, Durable, Error, Result, Server, State, Tool,
        durable::Cleanup,
        tasks::{TaskConfig, TaskPolicy},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::world::{Counts, get, modern, start, until};
use crate::support::pipe::{Pipe, result, text};

/// Counts of executed operations.
#[derive(Clone, Default)]
struct Done {
    steps: Arc<AtomicUsize>,
    shielded: Arc<AtomicUsize>,
    cleaned: Arc<AtomicUsize>,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Sure {
    yes: bool,
}

async fn naps(cx: Durable) -> Result<&'static str> {
    cx.sleep("nap", Duration::from_secs(9)).await?;
    Ok("slept")
}

async fn asks(cx: Durable) -> Result<String> {
    let sure: Sure = cx.elicit("sure", "Are you sure?").await?;
    Ok(sure.yes.to_string())
}

async fn waits_outside(cx: Durable) -> Result<String> {
    cx.external_event::<String>("elsewhere").await?.await
}

async fn steps(cx: Durable, done: State<Done>) -> Result<String> {
    for number in 0..100 {
        let step = async || {
            tokio::time::sleep(Duration::from_millis(100)).await;
            done.steps.fetch_add(1, Ordering::SeqCst);
            Ok(())
        };
        cx.step(("pack", number), step).await?;
    }
    Ok("packed".to_owned())
}

async fn tries_again(cx: Durable, done: State<Done>) -> Result<String> {
    let retry = outlive::server::durable::Retry::attempts(1_000);
    let fails = async |_| {
        done.steps.fetch_add(1, Ordering::SeqCst);
        Err(Error::new("not yet"))
    };
    cx.step_retry("try", retry, fails).await
}

/// Finishes its work under a shield after the cancellation.
async fn shields(cx: Durable, done: State<Done>) -> Result<String> {
    let Err(stopped) = cx.sleep("nap", Duration::from_secs(9)).await else {
        return Ok("slept".to_owned());
    };
    assert!(stopped.is_task_cancelled());
    assert!(cx.step("more", async || Ok(1)).await.is_err_and(|error| error.is_task_cancelled()));
    let shielded = cx.shielded();
    shielded.sleep("settle", Duration::from_secs(1)).await?;
    let settle = async || Ok(done.shielded.fetch_add(1, Ordering::SeqCst));
    shielded.scope("end").step("settle", settle).await?;
    Err(stopped)
}

/// Returns an error when it is cancelled.
async fn polite(cx: Cx) -> Result<String> {
    cx.cancelled().await;
    Err(Error::new("stopped in the middle of it"))
}

async fn clean_up(_: Cleanup, done: State<Done>) -> Result<()> {
    done.cleaned.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

fn server(done: &Done) -> Server {
    let always = |tool: Tool| tool.task(TaskPolicy::Always);
    super::world::builder(TaskConfig::in_memory(), &Counts::default())
        .state(done.clone())
        .tool(always(Tool::new("naps", naps).cleanup(clean_up)))
        .tool(always(Tool::new("asks", asks)))
        .tool(always(Tool::new("waits_outside", waits_outside)))
        .tool(always(Tool::new("steps", steps).cleanup(clean_up)))
        .tool(always(Tool::new("tries_again", tries_again)))
        .tool(always(Tool::new("shields", shields)))
        .tool(always(Tool::new("stops", polite)))
        .build()
        .unwrap()
}

async fn cancel(pipe: &mut Pipe, id: &str) {
    let acknowledged = modern(pipe, "tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(result(&acknowledged)["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn cancelled_waiting_task_ends_immediately() {
    let done = Done::default();
    let mut pipe = Pipe::open(&server(&done));
    for tool in ["naps", "asks", "waits_outside", "explicit", "stops"] {
        let id = start(&mut pipe, tool, json!({})).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(get(&mut pipe, &id).await["result"].is_null());
        let asked = Instant::now();
        cancel(&mut pipe, &id).await;
        let ended = until(&mut pipe, &id, "cancelled").await;
        assert!(asked.elapsed() < Duration::from_secs(1), "{tool}: {:?}", asked.elapsed());
        assert!(ended.get("inputRequests").is_none() && ended.get("result").is_none(), "{ended}");
    }
    assert_eq!(done.cleaned.load(Ordering::SeqCst), 1, "only one tool has a cleanup");
}

#[tokio::test(start_paused = true)]
async fn cancelled_task_finishes_running_step_and_starts_no_other() {
    let done = Done::default();
    let mut pipe = Pipe::open(&server(&done));
    let id = start(&mut pipe, "steps", json!({})).await;
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    let begun = done.steps.load(Ordering::SeqCst) + 1;
    cancel(&mut pipe, &id).await;
    until(&mut pipe, &id, "cancelled").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(done.steps.load(Ordering::SeqCst), begun, "the running step finished");
    assert_eq!(done.cleaned.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn cancelled_step_is_not_retried() {
    let done = Done::default();
    let mut pipe = Pipe::open(&server(&done));
    let id = start(&mut pipe, "tries_again", json!({})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    cancel(&mut pipe, &id).await;
    until(&mut pipe, &id, "cancelled").await;
    let tries = done.steps.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(done.steps.load(Ordering::SeqCst), tries);
}

#[tokio::test(start_paused = true)]
async fn shielded_part_of_cancelled_task_completes() {
    let done = Done::default();
    let mut pipe = Pipe::open(&server(&done));
    let id = start(&mut pipe, "shields", json!({})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    cancel(&mut pipe, &id).await;
    until(&mut pipe, &id, "cancelled").await;
    assert_eq!(done.shielded.load(Ordering::SeqCst), 1);
    // A task that is not cancelled does not reach the shield.
    let id = start(&mut pipe, "shields", json!({})).await;
    assert_eq!(text(&until(&mut pipe, &id, "completed").await["result"]), "slept");
}
