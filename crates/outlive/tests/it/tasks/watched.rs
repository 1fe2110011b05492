//! Audit log, metrics, and the rate limit of polls.

use std::{sync::Arc, time::Duration};

use outlive::{
    server::{Principal, RateLimit, Server, http::HttpConfig, tasks::TaskConfig},
    store::{AuditLog, AuditRecord, MemoryStore},
};
use serde_json::json;

use super::world::{Counts, builder, holds, modern, start, until};
use crate::support::{
    http::{Connection, Request},
    pipe::{Pipe, error, result},
};

fn server(store: &Arc<MemoryStore>) -> Server {
    let limit = RateLimit::per_second(1.0).burst(20);
    let config = TaskConfig::new(Arc::clone(store) as _).poll_rate(limit);
    builder(config, &Counts::default()).build().unwrap()
}

async fn events(store: &MemoryStore, task: &str) -> Vec<AuditRecord> {
    // The engine writes audit events in batches.
    tokio::time::sleep(Duration::from_millis(300)).await;
    store.read(Some(task), 0, 100).await.unwrap()
}

fn words(events: &[AuditRecord]) -> Vec<&str> {
    events.iter().map(|audit| audit.event.action.as_str()).collect()
}

//
#[tokio::test(start_paused = true)]
async fn audit_log_records_principal_and_action() {
    let store = Arc::new(MemoryStore::new());
    let server = server(&store);
    let mut pipe = Pipe::open_as(&server, Principal::named("alice"));
    let id = start(&mut pipe, "deploy", json!({})).await;
    until(&mut pipe, &id, "input_required").await;
    let answers = json!({"approve": {"action": "accept", "content": {"yes": true}}});
    modern(&mut pipe, "tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
    until(&mut pipe, &id, "completed").await;
    let mut other = Pipe::open_as(&server, Principal::named("bob"));
    error(&modern(&mut other, "tasks/get", json!({"taskId": id})).await);
    // Denied lookups are collected for a minute.
    tokio::time::sleep(Duration::from_secs(70)).await;
    let audit = events(&store, &id).await;
    let expected = ["created", "started", "updated", "completed", "retrieved", "look-up-denied"];
    assert_eq!(words(&audit), expected);
    let who: Vec<_> = audit.iter().map(|audit| audit.event.principal.as_str()).collect();
    assert_eq!(who[..5], ["name:alice"; 5]);
    assert_eq!(who[5], "name:bob");
    let by_worker: Vec<_> = audit.iter().map(|audit| audit.event.worker.is_some()).collect();
    assert_eq!(by_worker, [false, true, false, true, false, false]);
    let text = serde_json::to_string(&audit).unwrap();
    assert!(!text.contains("accept"), "no payloads: {text}");
}

// the ID of an anonymous task is a credential
#[tokio::test(start_paused = true)]
async fn audit_log_hashes_id_of_anonymous_task() {
    let store = Arc::new(MemoryStore::new());
    let mut pipe = Pipe::open_as(&server(&store), Principal::ANONYMOUS);
    let id = start(&mut pipe, "stubborn", json!({})).await;
    modern(&mut pipe, "tasks/cancel", json!({"taskId": id})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let all = store.read(None, 0, 100).await.unwrap();
    assert_eq!(words(&all), ["created", "started", "cancel-requested", "cancelled"]);
    let named = |audit: &AuditRecord| audit.event.task.clone();
    assert!(all.iter().map(named).all(|task| task.starts_with("sha256:") && !task.contains(&id)));
    assert!(events(&store, &id).await.is_empty());
}

//
#[tokio::test(start_paused = true)]
async fn poll_over_rate_limit_returns_retry_delay() {
    let store = Arc::new(MemoryStore::new());
    let server = server(&store);
    let mut pipe = Pipe::open_as(&server, Principal::named("alice"));
    let id = start(&mut pipe, "stubborn", json!({})).await;
    for _ in 0..20 {
        result(&modern(&mut pipe, "tasks/get", json!({"taskId": id})).await);
    }
    let refused = error(&modern(&mut pipe, "tasks/get", json!({"taskId": id})).await);
    assert!(
        refused["data"]["retryAfterMs"].as_u64().is_some_and(|wait| wait <= 1_000),
        "{refused}"
    );
    let mut other = Pipe::open_as(&server, Principal::named("bob"));
    let unknown = error(&modern(&mut other, "tasks/get", json!({"taskId": id})).await);
    assert_eq!(unknown["code"], -32602, "other callers are not affected");
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert!(words(&events(&store, &id).await).contains(&"polled-too-often"));
}

#[tokio::test(start_paused = true)]
async fn cancelled_task_is_counted_once_whether_parked_or_running() {
    let store = Arc::new(MemoryStore::new());
    let server = server(&store);
    let mut pipe = Pipe::open_as(&server, Principal::named("alice"));
    let parked = start(&mut pipe, "deploy", json!({})).await;
    until(&mut pipe, &parked, "input_required").await;
    // Longer than a task waits in memory.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let running = start(&mut pipe, "stubborn", json!({})).await;
    let tasks = server.metrics().await.tasks.unwrap();
    assert_eq!((tasks.parked, tasks.running), (1, 1));
    modern(&mut pipe, "tasks/cancel", json!({"taskId": parked})).await;
    assert_eq!(server.metrics().await.cancelled, 1);
    modern(&mut pipe, "tasks/cancel", json!({"taskId": running})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(server.metrics().await.cancelled, 2);
    // An ended task is not cancelled again.
    modern(&mut pipe, "tasks/cancel", json!({"taskId": parked})).await;
    assert_eq!(server.metrics().await.cancelled, 2);
}

#[tokio::test]
async fn http_poll_over_rate_limit_is_429_and_counted_in_metrics() {
    let store = Arc::new(MemoryStore::new());
    let server = server(&store);
    let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await.unwrap();
    let mut client = Connection::open(serving.address()).await;
    let call = Request::call("stubborn", json!({})).reserved("clientCapabilities", holds());
    let created = client.send(&call).await.result();
    let id = created["taskId"].as_str().unwrap();
    let poll = Request::modern("tasks/get")
        .reserved("clientCapabilities", holds())
        .param("taskId", json!(id))
        .header("mcp-name", id);
    for _ in 0..20 {
        assert_eq!(client.send(&poll).await.status(), 200);
    }
    let refused = client.send(&poll).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (429, Some("1")));
    let numbers = server.metrics().await.to_string();
    for line in [
        "outlive_tasks{phase=\"running\"} 1",
        "outlive_tasks_created_total 1",
        "outlive_polls_rate_limited_total 1",
        "outlive_task_lookups_denied_total 0",
        "# TYPE outlive_store_commit_seconds histogram",
    ] {
        assert!(numbers.lines().any(|there| there == line), "{line} in\n{numbers}");
    }
}
