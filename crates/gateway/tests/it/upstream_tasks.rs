//! Tasks of upstreams: followed, resumed after a kill, cancelled, with input and partial results.

use std::{sync::Arc, time::Duration};

use outlive::{
    client::{Client, Version, tasks::TaskStatus},
    server::{
        Cx, Durable, Error, Result, Server, ServerBuilder, Tool,
        durable::ElicitOutcome,
        http::HttpConfig,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::MemoryStore,
    wire::RequestedSchema,
};
use outlive_gateway::Policy;
use serde_json::json;

use crate::support::{
    Counter, Gate, HttpUpstream, Restartable, Served, VERSIONS, callbacks, eventually, text,
};

/// Versions of upstreams with tasks of their own.
const DIALECTS: [Version; 2] = [Version::V2025_11_25, Version::V2026_07_28];

/// Returns an upstream with tasks.
fn upstream_with_tasks() -> ServerBuilder {
    let tasks = TaskConfig::people(Arc::new(MemoryStore::new()) as _)
        .poll_interval(Duration::from_millis(50));
    Server::builder("up", "1").tasks(tasks)
}

/// Returns a tool that waits at a gate, and says whether it runs in a task.
fn gated(gate: &Gate, policy: TaskPolicy) -> Tool {
    let gate = gate.clone();
    let wait = move |cx: Cx| {
        let gate = gate.clone();
        async move {
            cx.set_status_message("at the gate");
            tokio::select! {
                () = gate.pass() => format!("task: {}", cx.task_id().is_some()),
                () = cx.cancelled() => "cancelled".to_owned(),
            }
        }
    };
    Tool::new("wait", wait).task(policy)
}

/// Returns the policy of calls that are tasks at once.
fn at_once() -> Policy {
    Policy::new().task(TaskPolicy::Always)
}

#[tokio::test(flavor = "multi_thread")]
async fn task_of_every_dialect_is_followed_for_every_client() {
    for dialect in DIALECTS {
        let gate = Gate::new();
        gate.open();
        let server = upstream_with_tasks().tool(gated(&gate, TaskPolicy::Always)).build().unwrap();
        let upstream = HttpUpstream::serve(server).await;
        let served = Served::new([upstream.settings("up").protocol_version(dialect)]);
        for version in VERSIONS {
            let client = served.client(version).await;
            let result = client.call_tool("up__wait", json!({})).await.unwrap();
            assert_eq!(text(&result), "task: true", "{version} {dialect}");
        }
        assert_eq!(gate.arrived.get(), VERSIONS.len(), "{dialect}");
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn optional_task_of_a_legacy_upstream_is_used_if_the_call_may_be_a_task() {
    let gate = Gate::new();
    gate.open();
    let server = upstream_with_tasks().tool(gated(&gate, TaskPolicy::auto())).build().unwrap();
    let upstream = HttpUpstream::serve(server).await;
    let settings =
        |policy| upstream.settings("up").protocol_version(Version::V2025_11_25).policy(policy);
    for (policy, expected) in
        [(Policy::new(), "task: true"), (Policy::new().task(TaskPolicy::Never), "task: false")]
    {
        let served = Served::new([settings(policy)]);
        let client = served.client(Version::V2026_07_28).await;
        let result = client.call_tool("up__wait", json!({})).await.unwrap();
        assert_eq!(text(&result), expected);
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_that_a_modern_upstream_runs_as_a_task_becomes_a_task_at_once() {
    let gate = Gate::new();
    let server = upstream_with_tasks().tool(gated(&gate, TaskPolicy::Always)).build().unwrap();
    let upstream = HttpUpstream::serve(server).await;
    let late = Policy::new().task(TaskPolicy::Auto { after: Duration::from_secs(3_600) });
    let served = Served::new([upstream.settings("up").policy(late)]);
    let client = served.client(Version::V2026_07_28).await;
    let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
    gate.open();
    assert_eq!(text(&handle.wait().await.unwrap()), "task: true");
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_message_of_the_upstream_task_is_that_of_the_gateways_task() {
    for dialect in DIALECTS {
        let gate = Gate::new();
        let server = upstream_with_tasks().tool(gated(&gate, TaskPolicy::Always)).build().unwrap();
        let upstream = HttpUpstream::serve(server).await;
        let settings = upstream.settings("up").protocol_version(dialect).policy(at_once());
        let served = Served::new([settings]);
        let client = served.client(Version::V2026_07_28).await;
        let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
        eventually("the status message", async || {
            let task = handle.get().await.unwrap().unwrap();
            task.message.as_deref() == Some("at the gate")
        })
        .await;
        gate.open();
        assert_eq!(text(&handle.wait().await.unwrap()), "task: true", "{dialect}");
        served.gateway.shutdown().await;
    }
}

/// Returns a tool that asks for two colors at once, and counts its executions.
fn painting(executions: &Counter) -> Tool {
    let executions = executions.clone();
    let paint = move |cx: Durable| {
        let executions = executions.clone();
        async move {
            let schema: RequestedSchema = serde_json::from_value(json!({
                "type": "object", "properties": {"color": {"type": "string"}},
                "required": ["color"]
            }))?;
            let ask = |key: &'static str, text: &'static str| {
                cx.elicit_with::<serde_json::Value>(key, text, schema.clone()).outcome()
            };
            let (wall, door) = tokio::join!(ask("wall", "Wall?"), ask("door", "Door?"));
            let chosen = |outcome: ElicitOutcome<serde_json::Value>| match outcome {
                ElicitOutcome::Accepted(chosen) => chosen["color"].to_string(),
                _ => "none".to_owned(),
            };
            executions.add();
            let painted = format!("wall {} door {}", chosen(wall?), chosen(door?));
            Ok::<_, Error>(painted)
        }
    };
    Tool::new("paint", paint).task(TaskPolicy::Always)
}

#[tokio::test(flavor = "multi_thread")]
async fn input_requests_of_an_upstream_task_reach_clients_of_both_eras() {
    for dialect in DIALECTS {
        let executions = Counter::default();
        let server = upstream_with_tasks().tool(painting(&executions)).build().unwrap();
        let upstream = HttpUpstream::serve(server).await;
        let served = Served::hosted([upstream.settings("up").protocol_version(dialect)]);
        for version in [Version::V2025_06_18, Version::V2025_11_25, Version::V2026_07_28] {
            let client = served.answering(version).await;
            let result = client.call_tool("up__paint", json!({})).await.unwrap();
            assert_eq!(text(&result), r#"wall "red" door "red""#, "{version} {dialect}");
        }
        assert_eq!(executions.get(), 3, "{dialect}");
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_gateway_attaches_to_the_task_of_its_upstream() {
    for dialect in DIALECTS {
        let gate = Gate::new();
        let server = upstream_with_tasks().tool(gated(&gate, TaskPolicy::Always)).build().unwrap();
        let upstream = HttpUpstream::serve(server).await;
        let settings = upstream.settings("up").protocol_version(dialect).policy(at_once());
        let mut gateway = Restartable::start([settings]).await;
        for is_graceful in [false, true] {
            gate.close();
            let client = gateway.client(Version::V2026_07_28).await;
            let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
            gateway.recorded(handle.task_id().unwrap(), "task/0").await;
            match is_graceful {
                true => gateway.stop().await,
                false => gateway.kill(),
            }
            gateway.restart().await;
            gate.open();
            let result = handle.wait().await.unwrap();
            assert_eq!(text(&result), "task: true", "{dialect} {is_graceful}");
        }
        assert_eq!(gate.arrived.get(), 2, "{dialect}: one execution for each call");
        assert_eq!(gate.dropped.get(), 0, "{dialect}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn promoted_call_is_attached_again_after_a_kill() {
    let gate = Gate::new();
    let auto = TaskPolicy::Auto { after: Duration::from_millis(50) };
    let server = upstream_with_tasks().tool(gated(&gate, auto)).build().unwrap();
    let upstream = HttpUpstream::serve(server).await;
    let later = TaskPolicy::Auto { after: Duration::from_millis(400) };
    let settings = upstream.settings("up").policy(Policy::new().task(later));
    let mut gateway = Restartable::start([settings]).await;
    let client = gateway.client(Version::V2026_07_28).await;
    let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
    // The commit that created the task has the entry.
    gateway.kill();
    gateway.restart().await;
    gate.open();
    assert_eq!(text(&handle.wait().await.unwrap()), "task: true");
    assert_eq!(gate.arrived.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn input_of_an_upstream_task_is_requested_once_across_a_kill() {
    let executions = Counter::default();
    let server = upstream_with_tasks().tool(painting(&executions)).build().unwrap();
    let upstream = HttpUpstream::serve(server).await;
    let settings = upstream.settings("up").policy(at_once());
    let mut gateway = Restartable::start([settings]).await;
    let builder = Client::builder("test", "1").protocol_version(Version::V2026_07_28);
    let client = gateway.client_with(builder.input_handler(callbacks())).await;
    // The handle responds to input requests only while it waits.
    let mut handle = client.start_tool("up__paint", json!({})).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        eventually("both input requests", async || {
            let task = handle.get().await.ok().flatten();
            let Some(task) = task.filter(|task| task.status == TaskStatus::InputRequired) else {
                return false;
            };
            let open = task.questions.unwrap_or_default();
            seen = open.iter().map(|(key, _)| key.to_owned()).collect();
            seen.len() == 2
        })
        .await;
        gateway.kill();
        gateway.restart().await;
    }
    assert_eq!(text(&handle.wait().await.unwrap()), r#"wall "red" door "red""#);
    assert_eq!(executions.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn task_is_followed_through_an_outage_of_its_upstream() {
    for dialect in DIALECTS {
        let gate = Gate::new();
        let server = upstream_with_tasks().tool(gated(&gate, TaskPolicy::Always)).build().unwrap();
        let HttpUpstream { server, serving } = HttpUpstream::serve(server).await;
        let address = serving.address();
        let settings = outlive_gateway::Upstream::url("up", serving.url())
            .protocol_version(dialect)
            .policy(at_once());
        let mut gateway = Restartable::start([settings]).await;
        let client = gateway.client(Version::V2026_07_28).await;
        let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
        gateway.recorded(handle.task_id().unwrap(), "task/0").await;
        drop(serving);
        // The gateway starts while its upstream cannot be reached.
        gateway.kill();
        gateway.restart().await;
        gate.open();
        eventually("the gateway waits for the upstream", async || {
            let task = handle.get().await.ok().flatten();
            let message = task.and_then(|task| task.message).unwrap_or_default();
            message.contains("waits until upstream `up` can be reached")
        })
        .await;
        let _serving = loop {
            match server.serve_http(address.to_string(), HttpConfig::new()).await {
                Ok(serving) => break serving,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        assert_eq!(text(&handle.wait().await.unwrap()), "task: true", "{dialect}");
        assert_eq!(gate.arrived.get(), 1, "{dialect}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn task_that_the_upstream_has_forgotten_fails_with_a_reason() {
    for dialect in DIALECTS {
        let gate = Gate::new();
        let tools = || gated(&gate, TaskPolicy::Always);
        let server = upstream_with_tasks().tool(tools()).build().unwrap();
        let upstream = HttpUpstream::serve(server).await;
        let address = upstream.serving.address();
        let settings = upstream.settings("up").protocol_version(dialect).policy(at_once());
        let served = Served::new([settings]);
        let client = served.client(Version::V2026_07_28).await;
        let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
        eventually("the call", async || gate.arrived.get() == 1).await;
        // Another server at the same address, without the task.
        drop(upstream);
        let other = upstream_with_tasks().tool(tools()).build().unwrap();
        let _serving = loop {
            match other.serve_http(address.to_string(), HttpConfig::new()).await {
                Ok(serving) => break serving,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        let result = handle.wait().await.unwrap();
        assert_eq!(result.is_error, Some(true), "{dialect}");
        let shown = text(&result);
        assert!(shown.contains("no longer knows the task"), "{dialect}: {shown}");
        assert!(shown.contains("it is unknown whether `up` executed the call"), "{shown}");
        assert_eq!(gate.arrived.get(), 1, "{dialect}: the call is not sent again");
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_task_cancels_the_task_of_the_upstream_also_after_a_kill() {
    for dialect in DIALECTS {
        let gate = Gate::new();
        let server = upstream_with_tasks().tool(gated(&gate, TaskPolicy::Always)).build().unwrap();
        let upstream = HttpUpstream::serve(server).await;
        let settings = upstream.settings("up").protocol_version(dialect).policy(at_once());
        let mut gateway = Restartable::start([settings]).await;
        for (number, is_killed) in [false, true].into_iter().enumerate() {
            let client = gateway.client(Version::V2026_07_28).await;
            let mut handle = client.start_tool("up__wait", json!({})).await.unwrap();
            gateway.recorded(handle.task_id().unwrap(), "task/0").await;
            if is_killed {
                gateway.kill();
                gateway.restart().await;
            }
            eventually("the cancellation", async || handle.cancel().await.is_ok()).await;
            eventually("the end of the upstream's task", async || gate.dropped.get() == number + 1)
                .await;
        }
        assert_eq!(gate.arrived.get(), 2, "{dialect}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_inline_call_cancels_the_task_of_the_upstream() {
    for dialect in DIALECTS {
        let gate = Gate::new();
        let server = upstream_with_tasks().tool(gated(&gate, TaskPolicy::Always)).build().unwrap();
        let upstream = HttpUpstream::serve(server).await;
        let policy = Policy::new().task(TaskPolicy::Never);
        let settings = upstream.settings("up").protocol_version(dialect).policy(policy);
        let served = Served::new([settings]);
        let client = served.client(Version::V2026_07_28).await;
        let shown = Counter::default();
        let (caller, counted) = (client.clone(), shown.clone());
        let call = tokio::spawn(async move {
            caller.call_tool("up__wait", json!({})).on_progress(move |_| counted.add()).await
        });
        eventually("the call", async || gate.arrived.get() == 1).await;
        // The gateway knows the task when it shows its status.
        eventually("the status of the task", async || shown.get() > 0).await;
        call.abort();
        eventually("the end of the upstream's task", async || gate.dropped.get() == 1).await;
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn timeout_of_a_call_cancels_the_task_of_the_upstream() {
    for dialect in DIALECTS {
        let gate = Gate::new();
        let server = upstream_with_tasks().tool(gated(&gate, TaskPolicy::Always)).build().unwrap();
        let upstream = HttpUpstream::serve(server).await;
        let policy = at_once().timeout(Duration::from_millis(700));
        let settings = upstream.settings("up").protocol_version(dialect).policy(policy);
        let served = Served::new([settings]);
        let client = served.client(Version::V2026_07_28).await;
        let result = client.call_tool("up__wait", json!({})).await.unwrap();
        assert!(text(&result).contains("raise `timeout`"), "{dialect}: {}", text(&result));
        eventually("the end of the upstream's task", async || gate.dropped.get() == 1).await;
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_results_of_an_upstream_are_segments_of_the_gateways_task() {
    let gate = Gate::new();
    let held = gate.clone();
    let emit = move |cx: Durable| {
        let gate = held.clone();
        async move {
            for number in 1..=3 {
                cx.emit(format!("part {number}")).await?;
            }
            gate.pass().await;
            cx.emit("part 4").await?;
            let end: Result<String> = Ok("the end".to_owned());
            end
        }
    };
    let tasks = TaskConfig::people(Arc::new(MemoryStore::new()) as _)
        .poll_interval(Duration::from_millis(50))
        .partial_results(true);
    let emitting = Tool::new("emit", emit).task(TaskPolicy::Always).streams_content();
    let server = Server::builder("up", "1").tasks(tasks).tool(emitting).build().unwrap();
    let upstream = HttpUpstream::serve(server).await;
    let settings = upstream.settings("up").policy(at_once());
    let mut gateway = Restartable::start([settings]).await;
    let builder = Client::builder("test", "1").protocol_version(Version::V2026_07_28);
    let client = gateway.client_with(builder.partial_results()).await;
    let mut handle = client.start_tool("up__emit", json!({})).await.unwrap();
    eventually("the segments", async || {
        let segments = handle.emitted(0).await.unwrap_or_default();
        let numbers: Vec<u64> = segments.iter().map(|segment| segment.number).collect();
        numbers == [1, 2, 3]
    })
    .await;
    gateway.kill();
    gateway.restart().await;
    gate.open();
    let result = handle.wait().await.unwrap();
    let texts: Vec<String> = result
        .content
        .iter()
        .map(|block| match block {
            outlive::wire::ContentBlock::Text(text) => text.text.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(texts, ["part 1", "part 2", "part 3", "part 4", "the end"]);
    assert_eq!(gate.arrived.get(), 1);
}
