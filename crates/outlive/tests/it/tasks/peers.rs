//! Task quotas of anonymous callers, per network address and in total.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use outlive::{
    server::{
        Principal,
        http::{HttpConfig, HttpServer},
        tasks::TaskConfig,
    },
    store::{CancelOutcome, StoreMonitor, TaskId, TaskStore},
};
use serde_json::json;

use super::{stage::Stage, world::holds};
use crate::support::{
    fail_points::FailPoints,
    http::{Connection, Request, Response},
};

/// A server with a quota of two tasks per address and five in total.
async fn serve(stage: &Stage, http: HttpConfig) -> (HttpServer, Connection) {
    let points = FailPoints::over(Arc::clone(&stage.store) as _);
    let few = |config: TaskConfig| config.max_tasks_per_caller(2).max_anonymous_tasks(5);
    let server = stage.builder(&points, few).build().unwrap();
    let serving = server.serve_http("127.0.0.1:0", http).await.unwrap();
    let client = Connection::open(serving.address()).await;
    (serving, client)
}

/// The configuration behind a trusted proxy.
fn proxied() -> HttpConfig {
    HttpConfig::new().trusted_proxy(Ipv4Addr::LOCALHOST)
}

/// Creates a task for a client behind the proxy.
async fn call(client: &mut Connection, from: &str) -> Response {
    let call = Request::call("gated", json!({})).reserved("clientCapabilities", holds());
    client.send(&call.header("x-forwarded-for", from)).await
}

async fn status(client: &mut Connection, from: &str) -> u16 {
    call(client, from).await.status()
}

/// Creates a task and returns its ID.
async fn made(client: &mut Connection, from: &str) -> String {
    let response = call(client, from).await;
    assert_eq!(response.status(), 200, "{from}: {}", response.json());
    response.result()["taskId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn anonymous_tasks_are_limited_per_address_and_in_total() {
    let stage = Stage::new();
    let (_serving, mut client) = serve(&stage, proxied()).await;
    for _ in 0..2 {
        made(&mut client, "198.51.100.1").await;
        made(&mut client, "2001:db8:1:2::7").await;
    }
    let refused = call(&mut client, "198.51.100.1").await;
    assert_eq!((refused.status(), refused.header("retry-after")), (429, Some("1")));
    // All addresses of one IPv6 /64 network count as one caller.
    assert_eq!(status(&mut client, "2001:db8:1:2::8").await, 429);
    made(&mut client, "2001:db8:1:3::7").await;
    assert_eq!(status(&mut client, "198.51.100.2").await, 429, "the total limit is reached");
}

#[tokio::test]
async fn ended_task_frees_quota_of_its_address() {
    let stage = Stage::new();
    let (_serving, mut client) = serve(&stage, proxied()).await;
    made(&mut client, "198.51.100.1").await;
    made(&mut client, "198.51.100.1").await;
    assert_eq!(status(&mut client, "198.51.100.1").await, 429);
    stage.gate.open(1);
    while stage.store.stats().await.unwrap().ended == 0 {
        tokio::task::yield_now().await;
    }
    made(&mut client, "198.51.100.1").await;
    assert_eq!(status(&mut client, "198.51.100.1").await, 429, "only one slot was freed");
}

#[tokio::test]
async fn task_ended_on_another_replica_frees_quota() {
    let stage = Stage::new();
    let (_serving, mut client) = serve(&stage, proxied()).await;
    let ids = [made(&mut client, "198.51.100.1").await, made(&mut client, "198.51.100.1").await];
    assert_eq!(stage.store.stats().await.unwrap().ended, 0);
    // Another replica cancels the tasks.
    for id in ids {
        let (anyone, id) = (Principal::ANONYMOUS, TaskId::new(id));
        let cancelled = stage.store.cancel(anyone.key(), &id, true, Duration::from_secs(3600));
        assert_eq!(cancelled.await, Ok(Some(CancelOutcome::Cancelled)));
    }
    made(&mut client, "198.51.100.1").await;
}

#[tokio::test]
async fn forwarded_address_from_untrusted_proxy_is_ignored() {
    let stage = Stage::new();
    let (_serving, mut client) = serve(&stage, HttpConfig::new()).await;
    made(&mut client, "198.51.100.1").await;
    made(&mut client, "198.51.100.2").await;
    assert_eq!(status(&mut client, "198.51.100.3").await, 429, "they count as one address");
}
