//! Stored bytes per caller, and rejected requests that store nothing.

use std::{sync::Arc, time::Duration};

use outlive::{
    server::{Principal, RateLimit, Server, tasks::TaskConfig},
    store::{AuditLog, AuditRecord, MemoryStore, StoreMonitor},
};
use serde_json::{Value, json};

use super::world::{Counts, builder, modern, start, until};
use crate::support::pipe::{Pipe, error, result};

fn over(store: &Arc<MemoryStore>, change: impl FnOnce(TaskConfig) -> TaskConfig) -> Server {
    let config = change(TaskConfig::new(Arc::clone(store) as _));
    builder(config, &Counts::default()).build().unwrap()
}

async fn events(store: &MemoryStore) -> Vec<AuditRecord> {
    store.read(None, 0, 1_000).await.unwrap()
}

fn named(events: &[AuditRecord], what: &str) -> Vec<AuditRecord> {
    events.iter().filter(|audit| audit.event.action == what).cloned().collect()
}

async fn get(pipe: &mut Pipe, id: &str) -> Value {
    modern(pipe, "tasks/get", json!({"taskId": id})).await
}

#[tokio::test(start_paused = true)]
async fn polls_of_malformed_task_ids_store_nothing() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store, |config| config);
    let mut pipe = Pipe::open_as(&server, Principal::named("eve"));
    let upper = "0123456789ABCDEF0123456789ABCDEF";
    for id in ["", "x", upper, &"a".repeat(31), &"a".repeat(33), &"x".repeat(1 << 20)] {
        for method in ["tasks/get", "tasks/cancel"] {
            let refused = error(&modern(&mut pipe, method, json!({"taskId": id})).await);
            assert_eq!(refused["code"], -32602, "{refused}");
        }
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(events(&store).await.is_empty(), "no audit event is stored");
    assert_eq!(server.metrics().await.lookups_denied, 12, "the metric counts the lookups");
}

#[tokio::test(start_paused = true)]
async fn denied_lookups_yield_one_audit_event_per_caller_and_minute() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store, |config| config);
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    let mut bob = Pipe::open_as(&server, Principal::named("bob"));
    for number in 0..100 {
        error(&get(&mut eve, &format!("{number:032x}")).await);
    }
    error(&get(&mut bob, &"b".repeat(32)).await);
    tokio::time::sleep(Duration::from_secs(70)).await;
    let mut denied = named(&events(&store).await, "look-up-denied");
    denied.sort_by(|one, other| one.event.principal.cmp(&other.event.principal));
    assert_eq!(denied.len(), 2, "{denied:?}");
    let causes: Vec<_> =
        denied.iter().map(|audit| audit.event.reason.as_deref().unwrap()).collect();
    assert!(causes[0].starts_with("1 times") && causes[1].starts_with("100 times"), "{causes:?}");
    assert_eq!(denied[1].event.task, format!("{:032x}", 0), "the first requested ID");
}

#[tokio::test(start_paused = true)]
async fn rate_limited_polls_yield_one_audit_event_per_caller_and_minute() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store, |config| config.poll_rate(RateLimit::per_second(0.001).burst(5)));
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    for number in 0..105 {
        error(&get(&mut eve, &format!("{number:032x}")).await);
    }
    tokio::time::sleep(Duration::from_secs(70)).await;
    let events = events(&store).await;
    let refused = named(&events, "polled-too-often");
    assert_eq!((events.len(), refused.len()), (2, 1), "{events:?}");
    assert!(refused[0].event.reason.as_deref().unwrap().starts_with("100 times"), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn tool_error_of_task_counts_as_failed() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store, |config| config);
    let mut pipe = Pipe::open_as(&server, Principal::named("ada"));
    let id = start(&mut pipe, "fail", json!({})).await;
    until(&mut pipe, &id, "completed").await;
    let metrics = server.metrics().await;
    assert_eq!((metrics.failed, metrics.completed), (1, 0));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let events = events(&store).await;
    assert_eq!(named(&events, "failed").len(), 1, "{events:?}");
    assert!(named(&events, "completed").is_empty(), "{events:?}");
}

/// Creates tasks until one is rejected, and returns the error.
async fn until_refused(pipe: &mut Pipe) -> Value {
    for _ in 0..100 {
        let call = json!({"name": "fail", "arguments": {}});
        let answer = modern(pipe, "tools/call", call).await;
        if answer.get("error").is_some() {
            return error(&answer);
        }
        let id = result(&answer)["taskId"].as_str().unwrap().to_owned();
        until(pipe, &id, "completed").await;
    }
    panic!("no request was rejected");
}

#[tokio::test(start_paused = true)]
async fn caller_over_stored_bytes_limit_gets_no_task() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store, |config| config.max_store_bytes_per_caller(32 << 10));
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    let refused = until_refused(&mut eve).await;
    assert_eq!(refused["code"], 429, "{refused}");
    assert_eq!(refused["data"]["limit"], "max_store_bytes_per_caller", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("max_store_bytes_per_caller"));
    assert!(store.stored_bytes("name:eve").await.unwrap() <= 33 << 10);
    // A tool that does not need a task runs inline.
    let nap = json!({"name": "nap", "arguments": {"ms": 5000}});
    let answer = result(&modern(&mut eve, "tools/call", nap).await);
    assert_eq!(answer["resultType"], "complete", "{answer}");
    let mut ada = Pipe::open_as(&server, Principal::named("ada"));
    start(&mut ada, "fail", json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn unknown_request_meta_is_not_stored() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store, |config| config);
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    let large = "x".repeat(100_000);
    let meta = json!({"example.com/a": large, "dev.outlive/b": large, "traceparent": large});
    let call = json!({"name": "fail", "arguments": {}, "_meta": meta});
    let made = result(&modern(&mut eve, "tools/call", call).await);
    until(&mut eve, made["taskId"].as_str().unwrap(), "completed").await;
    let stored = store.stored_bytes("name:eve").await.unwrap();
    assert!(stored < 10_000, "{stored}");
}

#[tokio::test(start_paused = true)]
async fn anonymous_callers_share_stored_bytes_limit() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store, |config| config.max_anonymous_store(32 << 10));
    let refused = until_refused(&mut Pipe::open_as(&server, Principal::ANONYMOUS)).await;
    assert_eq!(refused["data"]["limit"], "max_anonymous_store", "{refused}");
    let mut ada = Pipe::open_as(&server, Principal::named("ada"));
    start(&mut ada, "fail", json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn store_over_max_store_rejects_new_task() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store, |config| config.max_store(16 << 10));
    let mut ada = Pipe::open_as(&server, Principal::named("ada"));
    for _ in 0..8 {
        start(&mut ada, "fail", json!({})).await;
    }
    tokio::time::sleep(Duration::from_secs(6)).await;
    let mut bob = Pipe::open_as(&server, Principal::named("bob"));
    let call = json!({"name": "fail", "arguments": {}});
    let refused = error(&modern(&mut bob, "tools/call", call).await);
    assert_eq!(refused["data"]["limit"], "max_store", "{refused}");
}

fn keyed(key: &str) -> Value {
    let meta = json!({"dev.outlive/idempotencyKey": key});
    json!({"name": "plain", "arguments": {"ms": 1}, "_meta": meta})
}

#[tokio::test(start_paused = true)]
async fn guessable_idempotency_key_of_anonymous_caller_is_rejected() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store, |config| config);
    let mut pipe = Pipe::open_as(&server, Principal::ANONYMOUS);
    let refused = error(&modern(&mut pipe, "tools/call", keyed("order-1")).await);
    assert_eq!(refused["code"], -32602, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("UUID"), "{refused}");
    let secret = "6f1c1d6e-5b0e-4f55-9f0e-1f6f2c7d9a10";
    result(&modern(&mut pipe, "tools/call", keyed(secret)).await);
    let mut named = Pipe::open_as(&server, Principal::named("ada"));
    result(&modern(&mut named, "tools/call", keyed("order-1")).await);
}

#[tokio::test(start_paused = true)]
async fn results_with_idempotency_keys_count_as_stored_bytes() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store, |config| config);
    let mut pipe = Pipe::open_as(&server, Principal::named("ada"));
    result(&modern(&mut pipe, "tools/call", keyed("order-1")).await);
    let stored = store.stored_bytes("name:ada").await.unwrap();
    assert!(stored > 256, "{stored}");
}

#[tokio::test(start_paused = true)]
async fn busy_caller_does_not_evict_audit_events_of_others() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store, |config| config.max_audit_events(100));
    let mut ada = Pipe::open_as(&server, Principal::named("ada"));
    let id = start(&mut ada, "fail", json!({})).await;
    until(&mut ada, &id, "completed").await;
    let mut eve = Pipe::open_as(&server, Principal::named("eve"));
    for _ in 0..100 {
        let id = start(&mut eve, "fail", json!({})).await;
        until(&mut eve, &id, "completed").await;
    }
    tokio::time::sleep(Duration::from_secs(70)).await;
    let events = events(&store).await;
    let of = |principal: &str| {
        let of = events.iter().filter(|audit| audit.event.principal == principal);
        of.map(|audit| audit.event.action.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of("name:ada"), ["created", "started", "failed", "retrieved"], "{events:?}");
    let eve = of("name:eve");
    assert!(eve.len() <= 12, "{eve:?}");
    assert!(eve.contains(&"more-events"), "{eve:?}");
    assert!(named(&events, "more-events")[0].event.reason.as_deref().unwrap().contains(" times"));
}
