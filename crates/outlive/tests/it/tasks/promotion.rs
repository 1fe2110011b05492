//! Calls that become tasks before their first step or input request, so that a crash loses no
//! recorded step.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use outlive::{
    Form,
    server::{
        Durable, Result, Server, State, Tool,
        durable::Cleanup,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{StoreMonitor, StoreStats},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    stage::{Process, Stage},
    world::{get, holds, modern, start, until},
};
use crate::support::{
    gate::Gate,
    pipe::{Pipe, result, text},
};

async fn order(cx: Durable, gate: State<Gate>) -> Result<String> {
    let reserved: u32 = cx.step("reserve", async || Ok(7)).await?;
    let packed = async || {
        gate.pass().await;
        Ok(())
    };
    cx.step("pack", packed).await?;
    Ok(format!("{reserved} packed"))
}

/// Waker of a future that is polled only after it was woken.
#[derive(Default)]
struct Woken {
    flag: AtomicBool,
    handler: Mutex<Option<Waker>>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.flag.store(true, Ordering::Release);
        if let Some(handler) = self.handler.lock().unwrap().take() {
            handler.wake();
        }
    }
}

/// Awaits a future as sets of futures do, such as `FuturesUnordered`.
async fn in_set<T>(future: impl Future<Output = T>) -> T {
    let woken = Arc::new(Woken { flag: AtomicBool::new(true), ..Woken::default() });
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    poll_fn(|task| {
        *woken.handler.lock().unwrap() = Some(task.waker().clone());
        match woken.flag.swap(false, Ordering::Acquire) {
            true => future.as_mut().poll(&mut Context::from_waker(&waker)),
            false => Poll::Pending,
        }
    })
    .await
}

async fn order_in_set(cx: Durable) -> Result<String> {
    let reserved: u32 = in_set(cx.step("reserve", async || Ok(7))).await?;
    Ok(format!("{reserved} reserved"))
}

async fn clean_up(_: Cleanup) -> Result<()> {
    Ok(())
}

/// So long that no call becomes a task because of its duration.
const LATE: TaskPolicy = TaskPolicy::Auto { after: Duration::from_secs(3600) };

fn server(stage: &Stage) -> Server {
    Server::builder("orders", "1")
        .tasks(TaskConfig::new(stage.store.clone()))
        .state(stage.gate.clone())
        .tool(Tool::new("cleans", order).task(LATE).cleanup(clean_up))
        .tool(Tool::new("once", order).task(LATE).uses_step_once())
        .tool(Tool::new("asks", order).task(LATE).promote_at_first_step(true))
        .tool(Tool::new("plain", order).task(LATE))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn step_with_its_own_waker_continues_after_promotion() {
    let server = Server::builder("orders", "1")
        .tasks(TaskConfig::in_memory())
        .tool(Tool::new("order", order_in_set).task(LATE).promote_at_first_step(true))
        .build()
        .unwrap();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "order", json!({})).await;
    let ended = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&ended["result"]), "7 reserved");
}

#[test]
fn recorded_step_of_auto_tool_with_cleanup_survives_crash() {
    for tool in ["cleans", "once", "asks"] {
        let stage = Stage::new();
        let first = Process::start();
        let id = first.run(async {
            let mut pipe = Pipe::open(&server(&stage));
            let call = json!({"name": tool, "arguments": {}});
            let task = result(&modern(&mut pipe, "tools/call", call).await);
            assert_eq!(task["resultType"], "task", "{tool}: {task}");
            stage.gate.arrived().await;
            task["taskId"].as_str().unwrap().to_owned()
        });
        first.kill(&stage.store);
        Process::start().run(async {
            let mut pipe = Pipe::open(&server(&stage));
            assert_eq!(get(&mut pipe, &id).await["status"], "working", "{tool}");
            stage.gate.open(1);
            let ended = until(&mut pipe, &id, "completed").await;
            assert_eq!(text(&ended["result"]), "7 packed");
        });
    }
}

#[tokio::test(start_paused = true)]
async fn call_without_cleanup_or_task_support_stays_inline() {
    let stage = Stage::new();
    let mut pipe = Pipe::open(&server(&stage));
    stage.gate.open(2);
    for (tool, capabilities) in [("plain", holds()), ("cleans", json!({}))] {
        let call = json!({"name": tool, "arguments": {}});
        let done = result(&pipe.modern_with(capabilities, "tools/call", call).await);
        assert_eq!(text(&done), "7 packed", "{tool}");
    }
    assert_eq!(stage.store.stats().await.unwrap(), StoreStats::default(), "no call became a task");
}

#[derive(Deserialize, JsonSchema, Form)]
struct Approval {
    yes: bool,
}

async fn approve(cx: Durable) -> Result<String> {
    let image: String = cx.step("build", async || Ok("shop:1".to_owned())).await?;
    let approval: Approval = cx.elicit("approve", format!("Deploy {image}?")).await?;
    Ok(format!("{image}: {}", approval.yes))
}

fn asking(stage: &Stage, promote: bool) -> Server {
    Server::builder("orders", "1")
        .tasks(TaskConfig::new(stage.store.clone()).promote_before_input(promote))
        .tool(Tool::new("approve", approve).task(LATE))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn call_that_waits_for_input_becomes_task_only_if_configured() {
    let call = json!({"name": "approve", "arguments": {}});
    for (promote, capabilities, expected) in [
        (true, holds(), "task"),
        (false, holds(), "input_required"),
        (true, json!({"elicitation": {}}), "input_required"),
    ] {
        let mut pipe = Pipe::open(&asking(&Stage::new(), promote));
        let done = pipe.modern_with(capabilities, "tools/call", call.clone()).await;
        assert_eq!(result(&done)["resultType"], expected, "{promote}: {done}");
    }
}

#[tokio::test(start_paused = true)]
async fn call_promoted_before_input_completes_with_response() {
    let mut pipe = Pipe::open(&asking(&Stage::new(), true));
    let id = start(&mut pipe, "approve", json!({})).await;
    until(&mut pipe, &id, "input_required").await;
    let responses = json!({"approve": {"action": "accept", "content": {"yes": true}}});
    modern(&mut pipe, "tasks/update", json!({"taskId": id, "inputResponses": responses})).await;
    let ended = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&ended["result"]), "shop:1: true");
}
