//! Rate limits and concurrency limits per tool, per caller and per connection.

use std::time::Duration;

use outlive::server::{Principal, RateLimit, Server, ServerBuilder, State, Tool};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::{
    gate::Gate,
    pipe::{MODERN, Pipe, REVISIONS, text},
};

/// A code outside the range that JSON-RPC reserves.
const BUSY: i64 = 429;

async fn wait(gate: State<Gate>) -> &'static str {
    gate.pass().await;
    "done"
}

fn quick(name: &str) -> Tool {
    Tool::new(name, async || "done")
}

fn build(builder: ServerBuilder, tools: impl IntoIterator<Item = Tool>) -> Server {
    tools.into_iter().fold(builder, |builder, tool| builder.tool(tool)).build().unwrap()
}

fn server(tools: impl IntoIterator<Item = Tool>) -> Server {
    build(Server::builder("test", "1"), tools)
}

/// Returns `Ok` if the call was accepted, otherwise the retry delay in milliseconds.
async fn called(pipe: &mut Pipe, tool: &str) -> Result<(), u64> {
    let answer = pipe.ask("tools/call", json!({"name": tool})).await;
    match answer.get("error") {
        None => Ok(()),
        Some(error) => {
            assert_eq!(error["code"], BUSY, "{error}");
            let limit = error["data"]["limit"].as_str().unwrap();
            let start = format!("the limit `{limit}` is used up; try again in ");
            assert!(error["message"].as_str().unwrap().starts_with(&start), "{error}");
            Err(error["data"]["retryAfterMs"].as_u64().unwrap())
        }
    }
}

async fn pass(time: Duration) {
    sleep(time).await;
}

const SECOND: Duration = Duration::from_secs(1);

// TOOL-24, RPC-22
#[tokio::test(start_paused = true)]
async fn rate_limited_tool_returns_retry_delay() {
    for version in REVISIONS {
        let limited = quick("limited").rate_limit(RateLimit::per_second(2.0).burst(3));
        let mut pipe = Pipe::speaking(&server([limited, quick("free")]), version).await;
        for _ in 0..3 {
            assert_eq!(called(&mut pipe, "limited").await, Ok(()), "{version}");
        }
        assert_eq!(called(&mut pipe, "limited").await, Err(500), "{version}");
        assert_eq!(
            called(&mut pipe, "free").await,
            Ok(()),
            "{version}: another tool is not affected"
        );
        pass(SECOND / 2).await;
        assert_eq!(
            called(&mut pipe, "limited").await,
            Ok(()),
            "{version}: waiting for the retry delay is enough"
        );
        assert_eq!(called(&mut pipe, "limited").await, Err(500), "{version}");
    }
}

// TOOL-24
#[tokio::test(start_paused = true)]
async fn tool_rate_limit_is_shared_or_per_caller() {
    let rate = RateLimit::per_second(1.0).burst(1);
    let server = server([quick("all").rate_limit(rate), quick("each").rate_limit_per_caller(rate)]);
    let mut ann = Pipe::open_as(&server, Principal::named("ann"));
    let mut bob = Pipe::open_as(&server, Principal::named("bob"));
    assert_eq!(called(&mut ann, "all").await, Ok(()));
    assert_eq!(called(&mut bob, "all").await, Err(1000));
    assert_eq!(called(&mut ann, "each").await, Ok(()));
    assert_eq!(called(&mut bob, "each").await, Ok(()));
    assert_eq!(called(&mut bob, "each").await, Err(1000));
    // Another connection of the same principal is the same caller.
    let mut again = Pipe::open_as(&server, Principal::named("ann"));
    assert_eq!(called(&mut again, "each").await, Err(1000));
}

// TOOL-24
#[tokio::test(start_paused = true)]
async fn caller_rate_limit_counts_every_tool() {
    let builder =
        Server::builder("test", "1").rate_limit_per_caller(RateLimit::per_second(1.0).burst(2));
    let server = build(builder, [quick("a"), quick("b")]);
    let mut ann = Pipe::open_as(&server, Principal::named("ann"));
    assert_eq!(called(&mut ann, "a").await, Ok(()));
    assert_eq!(called(&mut ann, "b").await, Ok(()));
    assert_eq!(called(&mut ann, "a").await, Err(1000));
    assert_eq!(called(&mut ann, "b").await, Err(1000));
    let mut bob = Pipe::open_as(&server, Principal::named("bob"));
    assert_eq!(called(&mut bob, "a").await, Ok(()));
    // Lists do not count as tool calls.
    ann.result("tools/list", json!({})).await;
}

/// Starts calls that wait at the gate.
async fn start(pipe: &mut Pipe, gate: &Gate, calls: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    for _ in 0..calls {
        ids.push(pipe.send("tools/call", json!({"name": "wait"})).await);
        gate.arrived().await;
    }
    ids
}

// TOOL-24
#[tokio::test(start_paused = true)]
async fn tool_concurrency_limit_rejects_further_calls() {
    for version in REVISIONS {
        let gate = Gate::default();
        let tool = Tool::new("wait", wait).max_concurrent(2);
        let server = build(Server::builder("test", "1").state(gate.clone()), [tool]);
        let mut pipe = Pipe::speaking(&server, version).await;
        let ids = start(&mut pipe, &gate, 2).await;
        assert_eq!(called(&mut pipe, "wait").await, Err(1000), "{version}");
        // A slot becomes free when a call ends or is cancelled.
        pipe.cancel(ids[0]).await;
        gate.abandoned().await;
        let third = start(&mut pipe, &gate, 1).await[0];
        assert_eq!(called(&mut pipe, "wait").await, Err(1000), "{version}");
        gate.open(1);
        let answered = pipe.read().await["id"].as_u64().unwrap();
        assert!([ids[1], third].contains(&answered), "{version}");
        start(&mut pipe, &gate, 1).await;
        assert_eq!(called(&mut pipe, "wait").await, Err(1000), "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn panicking_call_frees_its_concurrency_slot() {
    let tool = Tool::new("t", async || -> &'static str { panic!("on purpose") }).max_concurrent(1);
    let mut pipe = Pipe::open(&server([tool]));
    for _ in 0..3 {
        assert_eq!(pipe.error("tools/call", json!({"name": "t"})).await["code"], -32603);
    }
}

// TOOL-24
#[tokio::test(start_paused = true)]
async fn concurrency_limit_per_caller_is_independent() {
    let builder = Server::builder("test", "1");
    for (builder, tool) in [
        (Server::builder("test", "1").max_concurrent_per_caller(1), Tool::new("wait", wait)),
        (builder, Tool::new("wait", wait).max_concurrent_per_caller(1)),
    ] {
        let gate = Gate::default();
        let server = build(builder.state(gate.clone()), [tool]);
        let mut ann = Pipe::open_as(&server, Principal::named("ann"));
        let mut bob = Pipe::open_as(&server, Principal::named("bob"));
        start(&mut ann, &gate, 1).await;
        assert_eq!(called(&mut ann, "wait").await, Err(1000));
        start(&mut bob, &gate, 1).await;
        assert_eq!(called(&mut bob, "wait").await, Err(1000));
    }
}

// SEC-06
#[tokio::test(start_paused = true)]
async fn connection_in_flight_limit_rejects_further_calls() {
    for version in REVISIONS {
        let gate = Gate::default();
        let builder = Server::builder("test", "1")
            .state(gate.clone())
            .limits(|limits| limits.max_in_flight = 3);
        let server = build(builder, [Tool::new("wait", wait), quick("quick")]);
        let mut pipe = Pipe::speaking(&server, version).await;
        start(&mut pipe, &gate, 3).await;
        assert_eq!(called(&mut pipe, "wait").await, Err(1000), "{version}");
        gate.abandoned().await;
        assert_eq!(
            called(&mut pipe, "quick").await,
            Ok(()),
            "{version}: a call without waiting needs no slot"
        );
        let mut other = Pipe::speaking(&server, version).await;
        start(&mut other, &gate, 1).await;
        gate.open(4);
        for _ in 0..3 {
            assert_eq!(text(&pipe.read().await["result"]), "done", "{version}");
        }
        assert_eq!(text(&other.read().await["result"]), "done", "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn connection_with_500_calls_in_flight_gets_every_response() {
    let gate = Gate::default();
    let server = build(Server::builder("test", "1").state(gate.clone()), [Tool::new("wait", wait)]);
    let mut pipe = Pipe::speaking(&server, MODERN).await;
    let mut ids = start(&mut pipe, &gate, 500).await;
    gate.open(500);
    let mut answered = Vec::new();
    for _ in 0..500 {
        let answer = pipe.read().await;
        assert_eq!(text(&answer["result"]), "done");
        answered.push(answer["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    ids.sort_unstable();
    assert_eq!(answered, ids);
    assert_eq!(pipe.call("wait", json!({"x": 1})).await["isError"], Value::Bool(true));
}
