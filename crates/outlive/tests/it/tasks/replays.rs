//! Handlers that run their work elsewhere: recorded steps, replays within a run, incompatible entries,
//! and the reason why a run is dropped.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use outlive::{
    Form,
    server::{
        Durable, Error, Result, Server, State, Tool,
        durable::{DropReason, Key, StepOutcome},
        tasks::{TaskConfig, TaskPolicy},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::world::{Counts, get, holds, modern, start, until, until_kept};
use crate::support::pipe::{Pipe, result, text};

#[derive(Deserialize, JsonSchema, Form)]
struct Approval {
    yes: bool,
}

type Work = Pin<Box<dyn Future<Output = Result<String>> + Send>>;

/// Work that a handler can start again.
fn work(cx: Durable, counts: State<Counts>) -> Work {
    Box::pin(async move {
        let image: String = cx
            .step(Key::parts(["build", "eu"]), async || {
                counts.builds.fetch_add(1, Ordering::Relaxed);
                Ok("shop:1".to_owned())
            })
            .await?;
        cx.emit("built").await?;
        let approval: Approval = cx.elicit("approve", "Deploy?").await?;
        Ok(format!("{image}: {}", approval.yes))
    })
}

/// Polls work for a while.
async fn poll_for(work: &mut Work, span: Duration) {
    assert!(tokio::time::timeout(span, work).await.is_err(), "the work waits for input");
}

/// Starts its work twice, with a gap.
async fn restarts(cx: Durable, counts: State<Counts>) -> Result<String> {
    counts.runs.fetch_add(1, Ordering::Relaxed);
    let mut first = work(cx.clone(), counts.clone());
    poll_for(&mut first, Duration::from_secs(1)).await;
    cx.replay(first).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    work(cx.clone(), counts).await
}

/// Describes its recorded steps.
async fn lists(cx: Durable) -> Result<String> {
    let _: u32 = cx.step("a", async || Ok(1)).await?;
    let failed: Result<u32> =
        cx.scope("s").step("b", async || Err(Error::new("broken").permanent())).await;
    assert!(failed.is_err());
    cx.sleep("nap", Duration::from_millis(1)).await?;
    assert!(!cx.mark_replayed("c")?, "the step is not recorded");
    assert!(cx.mark_replayed("a").is_err(), "the run has used the key");
    let shown = cx.records().into_iter().map(|record| {
        let outcome = match record.outcome {
            StepOutcome::Value(value) => value.get().to_owned(),
            other => format!("{other:?}"),
        };
        format!("{}={outcome} of {:?}", record.key.as_str(), record.revision)
    });
    Ok(shown.collect::<Vec<_>>().join(", "))
}

async fn unreadable(cx: Durable) -> Result<String> {
    let _: u32 = cx.step("image", async || Ok(1)).await?;
    Err(cx.incompatible("image", "'tag' is missing").await)
}

/// Reasons of dropped runs.
#[derive(Clone, Default)]
struct Drops(Arc<Mutex<Vec<DropReason>>>);

struct Guard(Durable, Drops);

impl Drop for Guard {
    fn drop(&mut self) {
        self.1.0.lock().unwrap().push(self.0.drop_reason());
    }
}

async fn guarded(cx: Durable, drops: State<Drops>) -> Result<String> {
    let guard = Guard(cx.clone(), Drops::clone(&drops));
    let approval: Approval = cx.elicit("approve", "Deploy?").await?;
    std::mem::forget(guard);
    Ok(approval.yes.to_string())
}

fn server(counts: &Counts, drops: &Drops) -> Server {
    let config = TaskConfig::in_memory().engine(|engine| {
        engine.park_after = Duration::from_secs(5);
        engine.cancel_grace = Duration::from_secs(1);
    });
    let always = |tool: Tool| tool.task(TaskPolicy::Always);
    Server::builder("replays", "1")
        .tasks(config)
        .state(counts.clone())
        .state(drops.clone())
        .tool(always(Tool::new("restarts", restarts)))
        .tool(Tool::new("lists", lists))
        .tool(Tool::new("unreadable", unreadable))
        .tool(always(Tool::new("unreadable_task", unreadable)))
        .tool(Tool::new("guarded", guarded))
        .tool(always(Tool::new("guarded_task", guarded)))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn replay_within_run_keeps_input_request_and_executes_step_once() {
    let counts = Counts::default();
    let mut pipe = Pipe::open(&server(&counts, &Drops::default()));
    let id = start(&mut pipe, "restarts", json!({})).await;
    let asking = until(&mut pipe, &id, "input_required").await;
    assert!(asking["inputRequests"].get("approve").is_some(), "{asking}");
    // Before, during and after the gap between both works.
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(get(&mut pipe, &id).await["status"], "input_required");
    }
    let answers = json!({"approve": {"action": "accept", "content": {"yes": true}}});
    modern(&mut pipe, "tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
    let done = until(&mut pipe, &id, "completed").await;
    let content = done["result"]["content"].as_array().unwrap();
    let texts: Vec<&str> = content.iter().filter_map(|block| block["text"].as_str()).collect();
    assert_eq!(texts, ["built", "shop:1: true"], "the segment is stored once");
    let count = |count: &std::sync::atomic::AtomicUsize| count.load(Ordering::Relaxed);
    assert_eq!((count(&counts.builds), count(&counts.runs)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn input_response_during_replay_reaches_new_work() {
    let counts = Counts::default();
    let mut pipe = Pipe::open(&server(&counts, &Drops::default()));
    let id = start(&mut pipe, "restarts", json!({})).await;
    until(&mut pipe, &id, "input_required").await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let answers = json!({"approve": {"action": "accept", "content": {"yes": true}}});
    modern(&mut pipe, "tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(done["result"]["content"][1]["text"], "shop:1: true");
    assert_eq!(counts.builds.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn records_contain_steps_only() {
    let mut pipe = Pipe::open(&server(&Counts::default(), &Drops::default()));
    let call = json!({"name": "lists", "arguments": {}});
    let shown = result(&pipe.modern_with(json!({}), "tools/call", call).await);
    assert_eq!(text(&shown), "a=1 of None, s/b=Failed(\"broken\") of None");
}

#[tokio::test(start_paused = true)]
async fn incompatible_entry_quarantines_task_and_fails_inline_call() {
    let mut pipe = Pipe::open(&server(&Counts::default(), &Drops::default()));
    let call = json!({"name": "unreadable", "arguments": {}});
    let failed = result(&pipe.modern_with(json!({}), "tools/call", call).await);
    assert_eq!(failed["isError"], true);
    assert!(text(&failed).contains("`image`") && text(&failed).contains("'tag' is missing"));
    let id = start(&mut pipe, "unreadable_task", json!({})).await;
    let why = until_kept(&mut pipe, &id).await;
    assert!(why.contains("`image`") && why.contains("'tag' is missing"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn destructor_of_dropped_run_knows_the_reason() {
    let drops = Drops::default();
    let mut pipe = Pipe::open(&server(&Counts::default(), &drops));
    let call = json!({"name": "guarded", "arguments": {}});
    let elicits = json!({"elicitation": {}});
    let asked = result(&pipe.modern_with(elicits, "tools/call", call).await);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let id = start(&mut pipe, "guarded_task", json!({})).await;
    until(&mut pipe, &id, "input_required").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let id = start(&mut pipe, "guarded_task", json!({})).await;
    until(&mut pipe, &id, "input_required").await;
    pipe.modern_with(holds(), "tasks/cancel", json!({"taskId": id})).await;
    until(&mut pipe, &id, "cancelled").await;
    let dropped = || drops.0.lock().unwrap().clone();
    poll_fn(|task| match dropped().len() {
        3.. => Poll::Ready(()),
        _ => {
            task.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
    assert_eq!(dropped(), [DropReason::Suspended, DropReason::Parked, DropReason::Cancelled]);
}
