//! Response streams of legacy upstreams that are resumed, and requests that are lost with the
//! gateway.

use std::{sync::Arc, time::Duration};

use outlive::{
    client::{Client, Version, tasks::TaskStatus},
    server::{
        Cx, Durable, Result, Server, Tool,
        durable::ElicitOutcome,
        http::{HttpConfig, HttpServer},
        tasks::{OnCrash, TaskConfig, TaskPolicy},
    },
    store::MemoryStore,
    wire::RequestedSchema,
};
use outlive_gateway::{Policy, Upstream};
use serde_json::json;

use crate::support::{Counter, Gate, Restartable, callbacks, eventually, text};

/// Versions over Streamable HTTP whose streams have event IDs.
const WITH_EVENT_IDS: [Version; 3] =
    [Version::V2025_03_26, Version::V2025_06_18, Version::V2025_11_25];

/// Serves at once with a stream, so that there is an event to resume after.
async fn serve(server: &Server) -> HttpServer {
    let config = HttpConfig::new().stream_after(Duration::from_millis(50));
    server.serve_http("127.0.0.1:0", config).await.unwrap()
}

/// Returns a tool that reports progress, and waits at a gate.
fn gated(gate: &Gate) -> Tool {
    let gate = gate.clone();
    Tool::new("wait", move |cx: Cx| {
        let gate = gate.clone();
        async move {
            cx.progress(1.0, 2.0, "at the gate");
            gate.pass().await;
            cx.progress(2.0, 2.0, "behind it");
            "passed"
        }
    })
}

/// Returns the policy of calls that are tasks at once.
fn at_once() -> Policy {
    Policy::new().task(TaskPolicy::Always)
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_is_resumed_after_a_kill_and_the_call_executes_once() {
    for version in WITH_EVENT_IDS {
        let gate = Gate::new();
        let server = Server::builder("up", "1").tool(gated(&gate)).build().unwrap();
        let serving = serve(&server).await;
        let settings =
            Upstream::url("up", serving.url()).protocol_version(version).policy(at_once());
        let mut gateway = Restartable::start([settings]).await;
        for is_graceful in [false, true] {
            gate.close();
            let client = gateway.client(Version::V2026_07_28).await;
            let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
            gateway.recorded(handle.task_id().unwrap(), "stream/0").await;
            match is_graceful {
                true => gateway.stop().await,
                false => gateway.kill(),
            }
            gateway.restart().await;
            gate.open();
            let result = handle.wait().await.unwrap();
            assert_eq!(text(&result), "passed", "{version} {is_graceful}");
        }
        assert_eq!(gate.arrived.get(), 2, "{version}: one execution for each call");
        assert_eq!(gate.dropped.get(), 0, "{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_of_a_promoted_call_is_resumed_after_a_kill() {
    let gate = Gate::new();
    let server = Server::builder("up", "1").tool(gated(&gate)).build().unwrap();
    let serving = serve(&server).await;
    let later = TaskPolicy::Auto { after: Duration::from_millis(400) };
    let settings = Upstream::url("up", serving.url())
        .protocol_version(Version::V2025_11_25)
        .policy(Policy::new().task(later));
    let mut gateway = Restartable::start([settings]).await;
    let client = gateway.client(Version::V2026_07_28).await;
    let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
    // The commit that created the task has the position.
    gateway.kill();
    gateway.restart().await;
    gate.open();
    assert_eq!(text(&handle.wait().await.unwrap()), "passed");
    assert_eq!(gate.arrived.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_input_request_of_a_stream_survives_a_kill() {
    let executions = Counter::default();
    let counted = executions.clone();
    let paint = move |cx: Durable| {
        let executions = counted.clone();
        async move {
            cx.progress(1.0, None, "asks");
            let schema: RequestedSchema = serde_json::from_value(json!({
                "type": "object", "properties": {"color": {"type": "string"}},
                "required": ["color"]
            }))?;
            let asked = cx.elicit_with::<serde_json::Value>("color", "Which color?", schema);
            let outcome = asked.outcome().await?;
            executions.add();
            let text: Result<String> = Ok(match outcome {
                ElicitOutcome::Accepted(chosen) => format!("painted {}", chosen["color"]),
                _ => "not painted".to_owned(),
            });
            text
        }
    };
    let server = Server::builder("up", "1").tool(Tool::new("paint", paint)).build().unwrap();
    let serving = serve(&server).await;
    let settings =
        Upstream::url("up", serving.url()).protocol_version(Version::V2025_11_25).policy(at_once());
    let mut gateway = Restartable::start([settings]).await;
    let builder = Client::builder("test", "1").protocol_version(Version::V2026_07_28);
    let client = gateway.client_with(builder.input_handler(callbacks())).await;
    let mut handle = client.start_tool("up__paint", json!({})).await.unwrap();
    gateway.recorded(handle.task_id().unwrap(), "stream/0").await;
    for _ in 0..2 {
        eventually("the input request", async || {
            let task = handle.get().await.ok().flatten();
            task.is_some_and(|task| {
                task.status == TaskStatus::InputRequired
                    && task.questions.is_some_and(|open| open.len() == 1)
            })
        })
        .await;
        gateway.kill();
        gateway.restart().await;
    }
    assert_eq!(text(&handle.wait().await.unwrap()), r#"painted "red""#);
    assert_eq!(executions.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_task_cancels_the_call_of_a_stream_after_a_kill() {
    let gate = Gate::new();
    let server = Server::builder("up", "1").tool(gated(&gate)).build().unwrap();
    let serving = serve(&server).await;
    let settings =
        Upstream::url("up", serving.url()).protocol_version(Version::V2025_11_25).policy(at_once());
    let mut gateway = Restartable::start([settings]).await;
    let client = gateway.client(Version::V2026_07_28).await;
    let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
    gateway.recorded(handle.task_id().unwrap(), "stream/0").await;
    gateway.kill();
    gateway.restart().await;
    eventually("the cancellation", async || handle.cancel().await.is_ok()).await;
    eventually("the end of the call", async || gate.dropped.get() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_request_is_reported_as_unknown_or_sent_again() {
    // A modern upstream cancels a call whose connection ends, and has nothing to resume.
    for (policy, is_sent_again) in [(at_once(), false), (at_once().on_crash(OnCrash::Rerun), true)]
    {
        let gate = Gate::new();
        let server = Server::builder("up", "1").tool(gated(&gate)).build().unwrap();
        let serving = serve(&server).await;
        let settings = Upstream::url("up", serving.url()).policy(policy);
        let mut gateway = Restartable::start([settings]).await;
        let client = gateway.client(Version::V2026_07_28).await;
        let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
        eventually("the call", async || gate.arrived.get() == 1).await;
        gateway.kill();
        eventually("the end of the call", async || gate.dropped.get() == 1).await;
        gateway.restart().await;
        gate.open();
        let result = handle.wait().await.unwrap();
        let shown = text(&result);
        match is_sent_again {
            true => assert_eq!(shown, "passed"),
            false => {
                assert_eq!(result.is_error, Some(true));
                let expected = "it is unknown whether `up` executed the call";
                assert!(shown.contains(expected), "{shown}");
            }
        }
        assert_eq!(gate.arrived.get(), if is_sent_again { 2 } else { 1 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn session_that_the_upstream_has_forgotten_is_reported_as_unknown() {
    let gate = Gate::new();
    let server = || Server::builder("up", "1").tool(gated(&gate)).build().unwrap();
    let first = server();
    let serving = serve(&first).await;
    let address = serving.address();
    let settings =
        Upstream::url("up", serving.url()).protocol_version(Version::V2025_11_25).policy(at_once());
    let mut gateway = Restartable::start([settings]).await;
    let client = gateway.client(Version::V2026_07_28).await;
    let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
    gateway.recorded(handle.task_id().unwrap(), "stream/0").await;
    gateway.kill();
    drop(serving);
    let second = server();
    let _serving = loop {
        match second.serve_http(address.to_string(), HttpConfig::new()).await {
            Ok(serving) => break serving,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    gateway.restart().await;
    let shown = text(&handle.wait().await.unwrap());
    assert!(shown.contains("it is unknown whether `up` executed the call"), "{shown}");
    assert_eq!(gate.arrived.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn idempotency_key_makes_a_repeated_call_execute_once() {
    let gate = Gate::new();
    let tasks = TaskConfig::people(Arc::new(MemoryStore::new()) as _);
    let server = Server::builder("up", "1")
        .tasks(tasks)
        .idempotency_keys(true)
        .tool(gated(&gate))
        .build()
        .unwrap();
    let serving = serve(&server).await;
    let settings = Upstream::url("up", serving.url()).policy(at_once());
    let mut gateway = Restartable::start([settings]).await;
    let client = gateway.client(Version::V2026_07_28).await;
    let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
    eventually("the call", async || gate.arrived.get() == 1).await;
    gateway.kill();
    gateway.restart().await;
    gate.open();
    assert_eq!(text(&handle.wait().await.unwrap()), "passed");
    assert_eq!(gate.arrived.get(), 1, "the upstream knows the key");
}
