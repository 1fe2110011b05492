//! Upstreams that are processes: exits, hangs, floods, limits, idle stops.

use std::time::Duration;

use outlive::client::Version;
use outlive_gateway::{GatewaySettings, status::State};
use serde_json::json;

use crate::support::{Served, eventually, process, text, tool_names};

#[tokio::test(flavor = "multi_thread")]
async fn exit_in_the_handshake_is_reported_with_the_last_line() {
    let served = Served::new([process("child", "exits", None)]);
    let client = served.client(Version::V2025_06_18).await;
    assert!(!tool_names(&client).await.iter().any(|name| name.starts_with("child__")));
    let status = served.gateway.status();
    let upstream = &status.upstreams[0];
    assert_eq!(upstream.state, State::Failing);
    let reason = upstream.reason.as_deref().unwrap();
    assert!(reason.contains("cannot read the configuration"), "{reason}");
    assert!(upstream.next_attempt.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_in_a_call_names_code_and_last_line_and_the_next_call_starts_again() {
    let served = Served::new([process("child", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    let first = text(&client.call_tool("child__pid", json!({})).await.unwrap());
    let result = client.call_tool("child__exit", json!({})).await.unwrap();
    assert_eq!(result.is_error, Some(true));
    let shown = text(&result);
    assert!(shown.contains("upstream `child`") && shown.contains("going down"), "{shown}");
    assert!(shown.contains("it is unknown whether `child` executed the call"), "{shown}");
    eventually("the exit code", async || {
        let reason = served.gateway.status().upstreams[0].reason.clone();
        reason.is_some_and(|reason| reason.contains("code 7"))
    })
    .await;
    // Calls fail at once while the next start waits.
    let refused = text(&client.call_tool("child__pid", json!({})).await.unwrap());
    assert!(refused.contains("the next attempt to connect is in"), "{refused}");
    eventually("a new process", async || {
        let result = client.call_tool("child__pid", json!({})).await.unwrap();
        result.is_error != Some(true) && text(&result) != first
    })
    .await;
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn process_that_never_responds_ends_after_the_start_timeout() {
    let silent = process("child", "silent", None).start_timeout(Duration::from_millis(400));
    let served = Served::new([silent]);
    let client = served.client(Version::V2025_06_18).await;
    tool_names(&client).await;
    let status = served.gateway.status();
    assert_eq!(status.upstreams[0].state, State::Failing);
    assert_eq!(status.upstreams[0].processes, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn process_that_floods_does_not_affect_another_upstream() {
    let flood = process("flood", "floods", None).start_timeout(Duration::from_secs(2));
    let served = Served::new([flood, process("child", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    let result = client.call_tool("child__echo", json!({"a": 1})).await.unwrap();
    assert_eq!(text(&result), r#"{"a":1}"#);
    eventually("the problem", async || {
        let status = served.gateway.status();
        !status.upstreams[0].state.is_usable() && status.upstreams[0].processes == 0
    })
    .await;
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_process_is_stopped_and_started_again_by_the_next_call() {
    let child = process("child", "serves", None).idle_stop(Duration::from_millis(300));
    let served = Served::new([child]);
    let client = served.client(Version::V2025_06_18).await;
    let first = text(&client.call_tool("child__pid", json!({})).await.unwrap());
    eventually("the stop", async || {
        let status = served.gateway.status();
        status.upstreams[0].processes == 0 && status.upstreams[0].state == State::Idle
    })
    .await;
    let second = text(&client.call_tool("child__pid", json!({})).await.unwrap());
    assert_ne!(first, second);
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limit_of_all_processes_stops_an_idle_one() {
    let settings = GatewaySettings::new().max_processes(1);
    let served =
        Served::with(settings, [process("a", "serves", None), process("b", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    for tool in ["a__pid", "b__pid", "a__pid"] {
        eventually("the call", async || {
            let result = client.call_tool(tool, json!({})).await;
            result.is_ok_and(|result| result.is_error != Some(true))
        })
        .await;
    }
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ends_all_processes() {
    let served = Served::new([process("child", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    let pid: u32 = text(&client.call_tool("child__pid", json!({})).await.unwrap()).parse().unwrap();
    served.gateway.shutdown().await;
    eventually("the end of the process", async || {
        !std::path::Path::new(&format!("/proc/{pid}/stat")).exists()
            || std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| stat.contains(") Z "))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_not_messages_close_the_connection_and_fail_its_calls() {
    let raw = process("raw", "raw", None).protocol_version(Version::V2025_06_18);
    let served = Served::new([raw, process("child", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    let call = client.call_tool("raw__noise", json!({}));
    let result = tokio::time::timeout(Duration::from_secs(20), call).await.unwrap().unwrap();
    assert_eq!(result.is_error, Some(true));
    let shown = text(&result);
    assert!(shown.contains("upstream `raw`") && shown.contains("100 lines in a row"), "{shown}");
    eventually("the state", async || {
        let status = served.gateway.status();
        let reason = status.upstreams[0].reason.clone().unwrap_or_default();
        status.upstreams[0].state == State::Failing
            && status.upstreams[0].processes == 0
            && reason.contains("100 lines in a row")
    })
    .await;
    let result = client.call_tool("child__echo", json!({"a": 1})).await.unwrap();
    assert_eq!(text(&result), r#"{"a":1}"#);
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn result_line_above_the_limit_fails_only_its_call_with_its_size() {
    let raw = process("raw", "raw", None).protocol_version(Version::V2025_06_18).max_result(10_000);
    for served in [Served::new([raw.clone()]), Served::supervised([raw])] {
        let client = served.client(Version::V2025_06_18).await;
        let call = client.call_tool("raw__large", json!({"bytes": 1_000_000}));
        let result = tokio::time::timeout(Duration::from_secs(20), call).await.unwrap().unwrap();
        let shown = text(&result);
        assert!(shown.contains("upstream `raw`") && shown.contains("`max_result`"), "{shown}");
        assert!(shown.contains("it has 10000"), "the size is named: {shown}");
        let small = client.call_tool("raw__large", json!({"bytes": 10})).await.unwrap();
        assert_eq!(text(&small), "xxxxxxxxxx");
        let status = served.gateway.status();
        assert_eq!((status.upstreams[0].state, status.upstreams[0].processes), (State::Ready, 1));
        assert!(status.upstreams[0].last_error.as_ref().unwrap().contains("`max_result`"));
        served.gateway.shutdown().await;
    }
}

/// Returns the resident memory of this process in bytes, where the system tells.
fn memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split(' ').nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_line_is_read_in_bounded_memory_until_the_connection_is_closed() {
    let raw =
        process("raw", "raw", None).protocol_version(Version::V2025_06_18).max_result(1 << 20);
    let served = Served::new([raw, process("child", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    client.call_tool("child__echo", json!({})).await.unwrap();
    client.call_tool("raw__large", json!({"bytes": 1})).await.unwrap();
    let before = memory();
    let call = client.call_tool("raw__endless", json!({}));
    let result = tokio::time::timeout(Duration::from_secs(60), call).await.unwrap().unwrap();
    let shown = text(&result);
    assert!(shown.contains("upstream `raw`") && shown.contains("`max_result`"), "{shown}");
    if let (Some(before), Some(after)) = (before, memory()) {
        let grown = after.saturating_sub(before);
        assert!(grown < 24 << 20, "{grown} bytes for a line of more than 64 MiB");
    }
    eventually("the state", async || {
        let status = served.gateway.status();
        status.upstreams[0].state == State::Failing && status.upstreams[0].processes == 0
    })
    .await;
    let result = client.call_tool("child__echo", json!({"a": 1})).await.unwrap();
    assert_eq!(text(&result), r#"{"a":1}"#);
    served.gateway.shutdown().await;
}
