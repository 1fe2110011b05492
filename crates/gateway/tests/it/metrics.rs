//! Metrics of upstreams, and audit events of relayed calls.

use std::{collections::BTreeSet, sync::Arc};

use outlive::{
    client::Version,
    store::{AuditLog as _, MemoryStore},
};
use outlive_gateway::{CallAudit, GatewaySettings, Upstream};
use serde_json::json;

use crate::support::{Served, eventually, process, text};

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_calls_input_requests_and_exits() {
    let child = process("child", "serves", None).protocol_version(Version::V2025_06_18);
    let served = Served::new([child, Upstream::misconfigured("unset", "no variable")]);
    let client = served.answering(Version::V2025_06_18).await;
    client.call_tool("child__echo", json!({"a": 1})).await.unwrap();
    client.call_tool("child__form", json!({})).await.unwrap();
    let failed = client.call_tool("child__exit", json!({})).await.unwrap();
    assert_eq!(failed.is_error, Some(true));
    for line in [
        r#"outlive_upstream_calls_total{upstream="child",tool="echo",outcome="completed"} 1"#,
        r#"outlive_upstream_calls_total{upstream="child",tool="exit",outcome="failed"} 1"#,
        r#"outlive_upstream_call_seconds_count{upstream="child"} 3"#,
        r#"outlive_upstream_added_seconds_count{upstream="child"} 3"#,
        r#"outlive_upstream_input_requests_total{upstream="child",kind="form",path="connection"} 1"#,
        r#"outlive_upstream_starts_total{upstream="child"} 1"#,
        r#"outlive_upstream_exits_total{upstream="child"} 1"#,
        r#"outlive_upstream_processes{upstream="child"} 0"#,
        r#"outlive_upstream_state{upstream="child",state="failing"} 1"#,
        r#"outlive_upstream_state{upstream="unset",state="misconfigured"} 1"#,
    ] {
        eventually(line, async || {
            served.gateway.metrics().to_string().lines().any(|known| known == line)
        })
        .await;
    }
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn call_that_becomes_a_task_for_its_input_counts_as_bridged() {
    let child = process("child", "serves", None).protocol_version(Version::V2025_06_18);
    let served = Served::hosted([child]);
    let client = served.answering(Version::V2026_07_28).await;
    let result = client.call_tool("child__form", json!({})).await.unwrap();
    assert_eq!(text(&result), r#"painted "red""#);
    eventually("the bridged call", async || {
        let metrics = served.gateway.metrics().to_string();
        metrics.contains(r#"outlive_upstream_bridged_calls_total{upstream="child"} 1"#)
    })
    .await;
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_of_an_upstream_survive_a_change_of_its_settings() {
    let served = Served::new([process("child", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    client.call_tool("child__echo", json!({})).await.unwrap();
    let other = process("child", "serves", None).env("CHANGED", "1");
    served.gateway.reload(GatewaySettings::new(), vec![other]).unwrap();
    client.call_tool("child__echo", json!({})).await.unwrap();
    let metrics = served.gateway.metrics().to_string();
    let line =
        r#"outlive_upstream_calls_total{upstream="child",tool="echo",outcome="completed"} 2"#;
    assert!(metrics.contains(line), "{metrics}");
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn relayed_call_is_an_audit_event_without_contents_if_the_settings_say_so() {
    for audit in [CallAudit::Store, CallAudit::Off] {
        let store = Arc::new(MemoryStore::new());
        let settings = GatewaySettings::new().audit(audit);
        let child = process("child", "serves", None);
        let served = Served::on(Arc::clone(&store), settings, [child]);
        let client = served.client(Version::V2025_06_18).await;
        client.call_tool("child__echo", json!({"secret": "blue whale"})).await.unwrap();
        let relayed = async || {
            let events = store.read(None, 0, 100).await.unwrap();
            let is_it = |event: &&outlive::store::AuditRecord| event.event.action == "relayed";
            events.iter().find(is_it).map(|record| record.event.clone())
        };
        if audit == CallAudit::Off {
            served.server.drain(std::time::Duration::from_secs(1)).await;
            assert!(relayed().await.is_none());
            continue;
        }
        eventually("the event", async || relayed().await.is_some()).await;
        let event = relayed().await.unwrap();
        assert_eq!((event.principal.as_str(), event.task.as_str()), ("local", ""));
        let reason = event.reason.unwrap();
        assert!(
            reason.starts_with("upstream=child tool=echo outcome=completed duration_ms="),
            "{reason}"
        );
        assert!(reason.contains("arguments=sha256:") && !reason.contains("whale"), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_page_lists_the_printed_metrics() {
    let served = Served::new([process("child", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    client.call_tool("child__echo", json!({})).await.unwrap();
    let text = served.gateway.metrics().to_string();
    let printed: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| line.replace(' ', " | "))
        .collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let page = std::fs::read_to_string(path).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `outlive_upstream_"));
    let listed: BTreeSet<String> = rows
        .map(|row| {
            let mut cells = row.split('|').map(|cell| cell.trim().trim_matches('`'));
            format!("outlive_upstream_{} | {}", cells.next().unwrap(), cells.next().unwrap())
        })
        // Another table has conditions for alerts.
        .filter(|row| !row.contains('>'))
        .collect();
    assert_eq!(printed, listed);
    served.gateway.shutdown().await;
}
