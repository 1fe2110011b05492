//! Policies of tools, limits, reload and the status file.

use std::{sync::Arc, time::Duration};

use outlive::{
    client::Version,
    server::{Server, Tool, tasks::TaskPolicy},
};
use outlive_gateway::{
    Gateway, GatewaySettings, Policy, ToolSettings, Upstream,
    status::{GatewayStatus, State},
};
use serde_json::json;

use crate::support::{
    Counter, HttpUpstream, Served, eventually, executions_file, go_file, named_server, process,
    text, tool_names,
};

#[tokio::test(flavor = "multi_thread")]
async fn call_of_a_slow_tool_becomes_a_task_without_a_second_execution() {
    let counter = Counter::default();
    let executions = counter.clone();
    let slow = move || {
        executions.add();
        async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            "rendered"
        }
    };
    let server = Server::builder("up", "1").tool(Tool::new("render", slow)).build().unwrap();
    let upstream = HttpUpstream::serve(server).await;
    let policy = Policy::new().task(TaskPolicy::Auto { after: Duration::from_millis(100) });
    let served = Served::new([upstream.settings("up").policy(policy)]);
    for version in [Version::V2025_11_25, Version::V2026_07_28] {
        let client = served.client(version).await;
        let mut handle = client.start_tool("up__render", json!({})).await.unwrap();
        let result = handle.wait().await.unwrap();
        assert_eq!(text(&result), "rendered", "{version}");
    }
    assert_eq!(counter.get(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn timeout_and_size_of_a_result_are_limited() {
    let slow = async || {
        tokio::time::sleep(Duration::from_secs(60)).await;
        "late"
    };
    let large = async || "x".repeat(100_000);
    let server = Server::builder("up", "1")
        .tool(Tool::new("slow", slow))
        .tool(Tool::new("large", large))
        .build()
        .unwrap();
    let upstream = HttpUpstream::serve(server).await;
    let slow = ToolSettings::new().policy(Policy::new().timeout(Duration::from_millis(200)));
    let large = ToolSettings::new().max_result(10_000);
    let served = Served::new([upstream.settings("up").tool("slow", slow).tool("large", large)]);
    let client = served.client(Version::V2025_06_18).await;
    let shown = text(&client.call_tool("up__slow", json!({})).await.unwrap());
    assert!(shown.contains("did not respond within") && shown.contains("timeout"), "{shown}");
    let shown = text(&client.call_tool("up__large", json!({})).await.unwrap());
    assert!(shown.contains("`max_result` is 10000"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_changes_policies_at_once_and_keeps_connections() {
    let served = Served::new([process("child", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    let first = text(&client.call_tool("child__pid", json!({})).await.unwrap());
    let hidden = process("child", "serves", None).hide(["echo"]);
    served.gateway.reload(GatewaySettings::new(), vec![hidden]).unwrap();
    assert!(!tool_names(&client).await.contains(&"child__echo".to_owned()));
    assert_eq!(text(&client.call_tool("child__pid", json!({})).await.unwrap()), first);
    let other = process("child", "serves", None).env("CHANGED", "1");
    served.gateway.reload(GatewaySettings::new(), vec![other]).unwrap();
    assert_ne!(text(&client.call_tool("child__pid", json!({})).await.unwrap()), first);
    let invalid = Upstream::url("child", "http://elsewhere.example/mcp");
    assert!(served.gateway.reload(GatewaySettings::new(), vec![invalid]).is_err());
    served.gateway.reload(GatewaySettings::new(), Vec::new()).unwrap();
    let names = tool_names(&client).await;
    assert!(!names.iter().any(|name| name.starts_with("child__")), "{names:?}");
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_file_has_the_state_of_each_upstream() {
    let path = std::env::temp_dir().join(format!("outlive-gateway-it-{}", std::process::id()));
    let upstream = HttpUpstream::serve(named_server(&["one"], &Counter::default())).await;
    let gateway = Gateway::builder()
        .upstream(upstream.settings("up").tool("oen", ToolSettings::new()))
        .upstream(Upstream::misconfigured("unset", "no variable"))
        .status_file(&path)
        .build()
        .unwrap();
    let server = Arc::new(gateway.attach(Server::builder("gateway", "1")).build().unwrap());
    gateway.start(&server);
    let reports = gateway.check(None).await;
    assert_eq!(reports[0].problem, None);
    assert_eq!(reports[0].tools, ["up__one"]);
    assert!(reports[1].problem.as_deref().unwrap().contains("no variable"));
    eventually("the status file", async || {
        // The connection is ready before its lists are read, which have the warnings.
        GatewayStatus::read(&path).unwrap().is_some_and(|status| {
            let up = &status.upstreams[0];
            up.state == State::Ready && !up.warnings.is_empty()
        })
    })
    .await;
    let status = GatewayStatus::read(&path).unwrap().unwrap();
    assert_eq!(status.upstreams[1].state, State::Misconfigured);
    let warnings = &status.upstreams[0].warnings;
    assert!(warnings[0].contains("did you mean `one`?"), "{warnings:?}");
    gateway.shutdown().await;
    assert!(GatewayStatus::read(&path).unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn result_limit_of_a_tool_may_exceed_that_of_its_upstream() {
    let large = ToolSettings::new().max_result(200_000);
    let child = process("child", "serves", None).max_result(1_000).tool("echo", large);
    for served in [Served::new([child.clone()]), Served::supervised([child])] {
        let client = served.client(Version::V2025_06_18).await;
        let sent = "x".repeat(150_000);
        let result = client.call_tool("child__echo", json!({"text": sent})).await.unwrap();
        assert_eq!(text(&result).len(), 150_000 + r#"{"text":""}"#.len());
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_that_waits_for_a_process_when_settings_change_gets_its_result() {
    let file = executions_file();
    let settings = |value: &str| process("child", "late", Some(&file)).env("CHANGED", value);
    let served = Served::new([settings("before")]);
    let client = served.client(Version::V2025_06_18).await;
    let call = tokio::spawn(async move { client.call_tool("child__echo", json!({})).await });
    eventually("the start of the process", async || file.exists()).await;
    served.gateway.reload(GatewaySettings::new(), vec![settings("after")]).unwrap();
    std::fs::write(go_file(&file), "").unwrap();
    assert_eq!(text(&call.await.unwrap().unwrap()), "{}");
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn call_during_any_number_of_reloads_never_fails() {
    let counter = Counter::default();
    let upstream = HttpUpstream::serve(named_server(&["one"], &counter)).await;
    let settings = |number: usize| {
        // Every second change needs new connections.
        let child = process("child", "serves", None).env("CHANGED", (number / 2).to_string());
        let up = upstream.settings("up").max_concurrent(8 + number / 2);
        vec![child.idle_stop(Duration::from_secs(600 + number as u64)), up]
    };
    let served = Arc::new(Served::new(settings(0)));
    let ended = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut callers = tokio::task::JoinSet::new();
    for (version, tool) in [
        (Version::V2025_06_18, "child__echo"),
        (Version::V2026_07_28, "child__echo"),
        (Version::V2025_06_18, "up__one"),
        (Version::V2026_07_28, "up__one"),
    ] {
        let (served, ended) = (Arc::clone(&served), Arc::clone(&ended));
        callers.spawn(async move {
            let client = served.client(version).await;
            let mut calls = 0;
            while !ended.load(std::sync::atomic::Ordering::SeqCst) {
                let result = client.call_tool(tool, json!({})).await;
                let result = result.unwrap_or_else(|error| panic!("{tool} {version}: {error}"));
                assert_ne!(result.is_error, Some(true), "{tool} {version}: {}", text(&result));
                calls += 1;
            }
            calls
        });
    }
    for number in 1..=20 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        served.gateway.reload(GatewaySettings::new(), settings(number)).unwrap();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    ended.store(true, std::sync::atomic::Ordering::SeqCst);
    while let Some(calls) = callers.join_next().await {
        assert!(calls.unwrap() > 0);
    }
    served.gateway.shutdown().await;
}
