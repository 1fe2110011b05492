//! Idempotency keys of calls, and `step_once`.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use outlive::{
    Form,
    server::{
        Args, Durable, Principal, Result, Server, State, Tool,
        durable::DurableError,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::MemoryStore,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::world::{Counts, builder, holds, modern, server, until};
use crate::support::{
    fail_points::{FailPoints, Op, after},
    pipe::{Pipe, error, result, text},
};

fn keyed(tool: &str, arguments: Value, key: &str) -> Value {
    json!({"name": tool, "arguments": arguments, "_meta": {"dev.outlive/idempotencyKey": key}})
}

// K-02, K-45
#[tokio::test(start_paused = true)]
async fn same_idempotency_key_returns_same_task() {
    let counts = Counts::default();
    let mut pipe = Pipe::open(&server(&counts));
    let mut made = Vec::new();
    for tool in ["deploy", "nap"] {
        let arguments = if tool == "nap" { json!({"ms": 5000}) } else { json!({}) };
        let mut call = async |key: &str| {
            let answer = modern(&mut pipe, "tools/call", keyed(tool, arguments.clone(), key)).await;
            result(&answer)["taskId"].as_str().unwrap().to_owned()
        };
        let keys = [format!("{tool} a"), format!("{tool} b")];
        let (first, again) = (call(&keys[0]).await, call(&keys[0]).await);
        let other = call(&keys[1]).await;
        assert_eq!(first, again, "{tool}");
        assert_ne!(first, other, "{tool}");
        made.push(first);
    }
    for (tool, arguments, key) in [
        ("nap", json!({"ms": 6000}), "nap a"),
        ("deploy", json!({}), "nap a"),
        ("nap", json!({"ms": 5000}), "deploy a"),
    ] {
        let refused = error(&modern(&mut pipe, "tools/call", keyed(tool, arguments, key)).await);
        assert_eq!(refused["code"], -32602, "{refused}");
        assert!(refused["message"].as_str().unwrap().contains("another request"), "{refused}");
    }
    // A rejected use with another request leaves the key valid.
    for (tool, arguments, id) in
        [("deploy", json!({}), &made[0]), ("nap", json!({"ms": 5000}), &made[1])]
    {
        let again = keyed(tool, arguments, &format!("{tool} a"));
        let answer = modern(&mut pipe, "tools/call", again).await;
        assert_eq!(&result(&answer)["taskId"], id.as_str(), "{tool}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn same_idempotency_key_returns_same_result_per_principal() {
    let counts = Counts::default();
    let server = server(&counts);
    let mut pipe = Pipe::open_as(&server, Principal::named("alice"));
    for _ in 0..3 {
        let call = keyed("plain", json!({"ms": 10}), "k");
        let answer = modern(&mut pipe, "tools/call", call).await;
        assert_eq!(text(&result(&answer)), "slept 10 ms");
    }
    assert_eq!(counts.runs.load(Ordering::Relaxed), 1);
    let mut other = Pipe::open_as(&server, Principal::named("bob"));
    modern(&mut other, "tools/call", keyed("plain", json!({"ms": 10}), "k")).await;
    assert_eq!(counts.runs.load(Ordering::Relaxed), 2);
    for bad in [json!(""), json!(7), json!("x".repeat(257))] {
        let mut call = keyed("plain", json!({"ms": 10}), "k");
        call["_meta"]["dev.outlive/idempotencyKey"] = bad;
        assert_eq!(error(&modern(&mut pipe, "tools/call", call).await)["code"], -32602);
    }
}

/// A second call with the same key waits for the result of the first.
#[tokio::test(start_paused = true)]
async fn call_with_key_in_progress_waits_for_first_call() {
    let counts = Counts::default();
    let server = server(&counts);
    let mut first = Pipe::open_as(&server, Principal::named("alice"));
    let call = keyed("plain", json!({"ms": 3000}), "k");
    let id = first.send("tools/call", call.clone()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    first.cancel(id).await;
    drop(first);
    let mut second = Pipe::open_as(&server, Principal::named("alice"));
    assert_eq!(text(&result(&modern(&mut second, "tools/call", call).await)), "slept 3000 ms");
    assert_eq!(counts.runs.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn call_waiting_too_long_for_key_is_429_with_limit_name() {
    let counts = Counts::default();
    let server = server(&counts);
    let mut first = Pipe::open_as(&server, Principal::named("alice"));
    let call = keyed("plain", json!({"ms": 100_000}), "k");
    first.send("tools/call", call.clone()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut second = Pipe::open_as(&server, Principal::named("alice"));
    let id = second.send("tools/call", call).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    let refused = error(&second.answer(id).await);
    assert_eq!((&refused["code"], &refused["data"]["limit"]), (&json!(429), &json!("PATIENCE")));
    assert_eq!(counts.runs.load(Ordering::Relaxed), 1);
}

// K-45
#[tokio::test(start_paused = true)]
async fn call_abandoned_while_storing_its_key_still_runs() {
    let counts = Counts::default();
    let points = FailPoints::over(Arc::new(MemoryStore::new()));
    let server = builder(TaskConfig::new(points.clone()), &counts).build().unwrap();
    let noted = points.hold(after(Op::Keep));
    let mut first = Pipe::open_as(&server, Principal::named("alice"));
    let call = keyed("plain", json!({"ms": 10}), "k");
    let id = first.send("tools/call", call.clone()).await;
    noted.arrived().await;
    first.cancel(id).await;
    // The response shows that the server has handled the cancellation.
    modern(&mut first, "tools/list", json!({})).await;
    drop(first);
    noted.open(1);
    let mut second = Pipe::open_as(&server, Principal::named("alice"));
    assert_eq!(text(&result(&modern(&mut second, "tools/call", call).await)), "slept 10 ms");
    assert_eq!(counts.runs.load(Ordering::Relaxed), 1);
}

#[derive(Deserialize, JsonSchema, Form)]
struct Sure {
    yes: bool,
}

/// Runs a step, elicits, runs another step.
async fn order(cx: Durable, counts: State<Counts>) -> Result<String> {
    let step = async |key: &str| {
        cx.step(key, async || Ok(counts.builds.fetch_add(1, Ordering::Relaxed))).await
    };
    step("reserve").await?;
    let sure: Sure = cx.elicit("sure", "Sure?").await?;
    step("pay").await?;
    Ok(format!("paid: {}", sure.yes))
}

// R-20, MT-06
#[tokio::test(start_paused = true)]
async fn round_after_step_is_executed_once() {
    let counts = Counts::default();
    let config = TaskConfig::in_memory();
    let auto = TaskPolicy::Auto { after: Duration::from_secs(5) };
    let server = builder(config, &counts)
        .tool(Tool::new("order", order))
        .tool(Tool::new("order_task", order).task(auto))
        .build()
        .unwrap();
    for (tool, capabilities) in [("order", json!({"elicitation": {}})), ("order_task", holds())] {
        let before = counts.builds.load(Ordering::Relaxed);
        let mut pipe = Pipe::open(&server);
        let call = json!({"name": tool});
        let asked = result(&pipe.modern_with(capabilities.clone(), "tools/call", call).await);
        let round = json!({
            "name": tool,
            "requestState": asked["requestState"],
            "inputResponses": {"sure": {"action": "accept", "content": {"yes": true}}},
        });
        for _ in 0..3 {
            let answer = pipe.modern_with(capabilities.clone(), "tools/call", round.clone()).await;
            assert_eq!(text(&result(&answer)), "paid: true");
        }
        assert_eq!(counts.builds.load(Ordering::Relaxed) - before, 2, "{tool}: each step ran once");
        let mut other = round.clone();
        other["inputResponses"]["sure"]["content"]["yes"] = json!(false);
        let answer = pipe.modern_with(capabilities, "tools/call", other).await;
        assert_eq!(text(&result(&answer)), "paid: true", "the first response counts");
    }
}

/// Elicits before its first step.
async fn ask_first(cx: Durable, counts: State<Counts>) -> Result<String> {
    let sure: Sure = cx.elicit("sure", "Sure?").await?;
    let again: Sure = cx.elicit("again", "Really?").await?;
    cx.step("pay", async || Ok(counts.builds.fetch_add(1, Ordering::Relaxed))).await?;
    Ok(format!("paid: {} {}", sure.yes, again.yes))
}

// K-45, MT-06
#[tokio::test(start_paused = true)]
async fn rounds_with_idempotency_key_are_executed_once_each() {
    let counts = Counts::default();
    let auto = TaskPolicy::Auto { after: Duration::from_secs(5) };
    let server = builder(TaskConfig::in_memory(), &counts)
        .tool(Tool::new("ask_first", ask_first))
        .tool(Tool::new("ask_first_task", ask_first).task(auto))
        .build()
        .unwrap();
    for (tool, capabilities) in
        [("ask_first", json!({"elicitation": {}})), ("ask_first_task", holds())]
    {
        let before = counts.builds.load(Ordering::Relaxed);
        let mut pipe = Pipe::open(&server);
        let mut call = keyed(tool, json!({}), &format!("{tool} k"));
        for key in ["sure", "again"] {
            let mut asked = Vec::new();
            for _ in 0..2 {
                let answer =
                    pipe.modern_with(capabilities.clone(), "tools/call", call.clone()).await;
                asked.push(result(&answer));
            }
            assert_eq!(asked[0], asked[1], "{tool}: the same round gets the same response");
            assert!(asked[0]["inputRequests"].get(key).is_some(), "{tool}: {}", asked[0]);
            call["requestState"] = asked[0]["requestState"].clone();
            call["inputResponses"] = json!({key: {"action": "accept", "content": {"yes": true}}});
        }
        for _ in 0..3 {
            let answer = pipe.modern_with(capabilities.clone(), "tools/call", call.clone()).await;
            assert_eq!(text(&result(&answer)), "paid: true true", "{tool}");
        }
        assert_eq!(counts.builds.load(Ordering::Relaxed) - before, 1, "{tool}");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Pay {
    hang: bool,
}

/// Runs `step_once`, and hangs inside it if `hang` is set.
async fn pay(cx: Durable, counts: State<Counts>, Args(pay): Args<Pay>) -> Result<String> {
    let paid = cx
        .step_once("pay", async || {
            counts.builds.fetch_add(1, Ordering::Relaxed);
            if pay.hang {
                std::future::pending::<()>().await;
            }
            Ok(7)
        })
        .await;
    match paid {
        Ok(receipt) => Ok(format!("receipt {receipt}")),
        Err(error) if matches!(error.durable_error(), Some(DurableError::Ambiguous { .. })) => {
            Ok(format!("{error}"))
        }
        Err(error) => Err(error),
    }
}

fn payer(store: &Arc<MemoryStore>, counts: &Counts) -> Server {
    let config = TaskConfig::new(Arc::clone(store) as _).engine(|engine| {
        engine.lease_duration = Duration::from_millis(400);
        engine.poll_interval = Duration::from_millis(20);
    });
    let always = Tool::new("pay_task", pay).uses_step_once().task(TaskPolicy::Always);
    let inline = Tool::new("pay", pay).uses_step_once();
    builder(config, counts).tool(always).tool(inline).build().unwrap()
}

// K-13
#[test]
fn step_once_is_not_repeated_after_crash_inside_it() {
    let (store, counts) = (Arc::new(MemoryStore::new()), Counts::default());
    let runtime = || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(1).enable_all().build().unwrap()
    };
    let first = runtime();
    let id = first.block_on(async {
        let mut pipe = Pipe::open(&payer(&store, &counts));
        let id = super::world::start(&mut pipe, "pay_task", json!({"hang": true})).await;
        while counts.builds.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        id
    });
    first.shutdown_background();
    runtime().block_on(async {
        let mut pipe = Pipe::open(&payer(&store, &counts));
        let done = until(&mut pipe, &id, "completed").await;
        assert!(text(&done["result"]).contains("check whether it took effect"), "{done}");
        let paid =
            modern(&mut pipe, "tools/call", json!({"name": "pay", "arguments": {"hang": false}}));
        assert_eq!(
            text(&result(&paid.await)),
            "receipt 7",
            "`step_once` works in inline calls too"
        );
    });
    assert_eq!(counts.builds.load(Ordering::Relaxed), 2, "once per call");
}

/// A key is valid as long as the result of its call is readable.
#[tokio::test(start_paused = true)]
async fn idempotency_key_of_deleted_task_creates_new_task() {
    let (store, counts) = (Arc::new(MemoryStore::new()), Counts::default());
    let config = TaskConfig::new(Arc::clone(&store) as _);
    let server = builder(config, &counts).build().unwrap();
    let mut pipe = Pipe::open(&server);
    let mut call = async || {
        let answer = modern(&mut pipe, "tools/call", keyed("nap", json!({"ms": 5000}), "k")).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        result(&answer)["taskId"].as_str().unwrap().to_owned()
    };
    let first = call().await;
    assert_eq!(first, call().await);
    store.advance_clock(Duration::from_secs(24 * 3600));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_ne!(first, call().await);
}

/// The recorded outcome is the panic.
#[tokio::test(start_paused = true)]
async fn idempotency_key_of_panicked_call_returns_error_again() {
    let counts = Counts::default();
    let bad = async |counts: State<Counts>| -> String {
        counts.runs.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(10)).await;
        panic!("on purpose")
    };
    let config = TaskConfig::in_memory();
    let server = builder(config, &counts).tool(Tool::new("bad", bad)).build().unwrap();
    let mut pipe = Pipe::open(&server);
    for _ in 0..2 {
        let answer = modern(&mut pipe, "tools/call", keyed("bad", json!({}), "k")).await;
        assert_eq!(error(&answer)["code"], -32603, "{answer}");
    }
    assert_eq!(counts.runs.load(Ordering::Relaxed), 1);
}
