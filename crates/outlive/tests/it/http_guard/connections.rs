//! Connection limits: number per address, slow clients, and unread bytes.

use std::{net::IpAddr, time::Duration};

use outlive::server::{
    Tool,
    http::{HttpConfig, StaticTokens},
};
use serde_json::{Value, json};

use crate::support::http::{Connection, HttpFixture, Request, within};

const ANNA: &str = "annas-token-0123456789";
const BERT: &str = "berts-token-0123456789";

fn ping() -> Request {
    Request::modern("tools/list")
}

/// Opens connections and sends a request on each, so that the server has accepted them.
async fn taken(server: &HttpFixture, count: usize) -> Vec<Connection> {
    let mut connections = Vec::new();
    for _ in 0..count {
        let mut connection = server.connect().await;
        assert_eq!(connection.send(&ping()).await.status(), 200);
        connections.push(connection);
    }
    connections
}

#[track_caller]
fn names(limit: &str, error: &Value) {
    let error = error["error"]["message"].to_string();
    assert!(error.contains(&format!("`{limit}`")), "{error}");
}

#[tokio::test]
async fn connection_limit_of_one_address_does_not_affect_others() {
    // SEC-06
    let server = HttpFixture::with(HttpConfig::new().max_connections_per_address(3)).await;
    let mut own = taken(&server, 3).await;
    let refused = server.send(&ping()).await;
    assert_eq!((refused.status(), refused.header("connection")), (429, Some("close")));
    names("max_connections_per_address", &refused.json());
    // Open connections keep working, and another address has its own limit.
    assert_eq!(own[0].send(&ping()).await.status(), 200);
    let mut other = Connection::open_from(server.address(), [127, 0, 0, 2]).await.unwrap();
    assert_eq!(other.send(&ping()).await.status(), 200);
    // A closed connection frees its slot as soon as the server notices.
    own.truncate(2);
    within(async { while server.send(&ping()).await.status() == 429 {} }).await;
}

#[tokio::test]
async fn trusted_proxy_has_no_connection_limit() {
    let proxy: IpAddr = [127, 0, 0, 1].into();
    let config = HttpConfig::new().max_connections_per_address(1).trusted_proxy(proxy);
    let server = HttpFixture::with(config).await;
    assert_eq!(taken(&server, 5).await.len(), 5);
}

#[tokio::test]
async fn connection_without_request_head_is_closed_after_timeout() {
    // SEC-06
    let config = HttpConfig::new().head_timeout(Duration::from_millis(50));
    let server = HttpFixture::with(config).await;
    let (idle, mut slow) = (server.connect().await, server.connect().await);
    slow.write(&ping().bytes()[..20]).await;
    idle.closed().await;
    slow.closed().await;
}

#[tokio::test]
async fn slow_body_times_out_with_408() {
    // SEC-06
    let config = HttpConfig::new().body_timeout(Duration::from_millis(200));
    let server = HttpFixture::with(config).await;
    let request = Request::call("echo", json!({"text": "x".repeat(100_000)}));
    let whole = request.bytes();
    let mut connection = server.connect().await;
    let body = request.body_bytes().len();
    connection.write(&whole[..whole.len() - body]).await;
    // Each pause is short, but the whole body would take minutes.
    let response = within(async {
        let mut pace = tokio::time::interval(Duration::from_millis(10));
        for byte in request.body_bytes() {
            pace.tick().await;
            if connection.try_write(&[byte]).await.is_err() {
                break;
            }
            if let Some(response) = connection.response_if_any(&request).await {
                return response;
            }
        }
        connection.response(&request).await
    })
    .await;
    assert_eq!(response.status(), 408);
}

/// A server with a tool whose result exceeds the socket buffers.
async fn large(config: HttpConfig) -> HttpFixture {
    let tokens = StaticTokens::new().with("anna", ANNA).with("bert", BERT);
    HttpFixture::build(config.authenticator(tokens), |server| {
        server.tool(Tool::new("large", async || "x".repeat(16 << 20)))
    })
    .await
}

#[tokio::test]
async fn unread_bytes_over_caller_limit_are_429() {
    // SEC-06
    let server = large(HttpConfig::new().max_unread_bytes_per_caller(1 << 20)).await;
    let call = |token| Request::call("large", json!({})).bearer(token);
    let mut unread = server.begin(call(ANNA)).await;
    unread.until_something_came().await;
    let refused = server.send(call(ANNA)).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (429, Some("1")));
    assert_eq!(refused.json()["error"]["data"]["limit"], "max_unread_bytes_per_caller");
    // Another caller has its own limit, and bytes that were read no longer count.
    assert_eq!(server.send(call(BERT)).await.status(), 200);
    assert_eq!(unread.response(&call(ANNA)).await.status(), 200);
    assert_eq!(server.send(call(ANNA)).await.status(), 200);
}

#[tokio::test]
async fn non_reading_client_is_disconnected_after_write_timeout() {
    // SEC-06
    let config =
        HttpConfig::new().write_timeout(Duration::from_millis(50)).max_connections_per_address(1);
    let server = large(config).await;
    let call = Request::call("large", json!({})).bearer(ANNA);
    let mut unread = server.begin(&call).await;
    unread.until_something_came().await;
    // The only slot becomes free when the server closes the connection.
    let ping = ping().bearer(ANNA);
    within(async { while server.send(&ping).await.status() == 429 {} }).await;
    assert!(unread.try_response(&call).await.is_err());
}

#[tokio::test]
async fn large_requests_of_one_caller_run_one_at_a_time() {
    // SEC-06
    let tokens = StaticTokens::new().with("anna", ANNA).with("bert", BERT);
    let config = HttpConfig::new().authenticator(tokens).max_request_bytes_per_caller(150_000);
    let server = HttpFixture::with(config).await;
    let pad = "x".repeat(100_000);
    let call =
        |key: &str, token| Request::call("wait", json!({"key": key, "pad": pad})).bearer(token);
    let (first, second) = (call("first", ANNA), call("second", ANNA));
    let mut running = server.begin(&first).await;
    server.world.started("first").await;
    let mut waiting = server.begin(&second).await;
    // The request of another caller is read immediately, and so is a small one.
    let theirs = call("theirs", BERT);
    let mut other = server.begin(&theirs).await;
    server.world.started("theirs").await;
    assert_eq!(server.send(ping().bearer(ANNA)).await.status(), 200);
    assert!(!server.world.has_started("second"));
    for key in ["first", "second", "theirs"] {
        server.world.release(key);
    }
    assert_eq!(running.response(&first).await.text(), "waited first");
    assert_eq!(waiting.response(&second).await.text(), "waited second");
    assert_eq!(other.response(&theirs).await.text(), "waited theirs");
}

#[tokio::test]
async fn unknown_completion_token_is_404_before_body() {
    let server = HttpFixture::with(HttpConfig::new().external_event_path("/done")).await;
    let request = Request::post("2026-07-28").target("/done/made-up").raw("x".repeat(1 << 20));
    let whole = request.bytes();
    let mut connection = server.connect().await;
    connection.write(&whole[..whole.len() - (1 << 20)]).await;
    assert_eq!(connection.response(&request).await.status(), 404);
}
