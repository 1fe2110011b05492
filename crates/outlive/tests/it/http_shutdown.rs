//! Graceful shutdown: running calls finish, streams end, sessions close.

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive::server::http::{HttpConfig, HttpServer};
use serde_json::json;
use tokio::net::TcpStream;

use crate::support::http::{HttpFixture, Request, World, within};

/// A grace period so long that a test that waits for it fails.
fn patient() -> HttpConfig {
    HttpConfig::new().shutdown_grace(Duration::from_secs(60))
}

/// Shuts a server down while `meanwhile` runs.
async fn shut_down_while<T>(serving: HttpServer, meanwhile: impl Future<Output = T>) -> T {
    within(async { tokio::join!(serving.shutdown(), meanwhile).1 }).await
}

#[tokio::test]
async fn idle_server_shuts_down_immediately() {
    let server = HttpFixture::with(patient()).await;
    let address = server.address();
    let mut idle = server.connect().await;
    assert_eq!(idle.send(&Request::modern("tools/list")).await.status(), 200);
    let session = server.session("2025-11-25").await;
    let _ = session;
    within(server.serving.shutdown()).await;
    idle.closed().await;
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn running_calls_finish_during_shutdown() {
    let server = HttpFixture::with(patient()).await;
    let session = server.session("2025-11-25").await;
    let modern = Request::call("wait", json!({"key": "m"}));
    let legacy = session.call("wait", json!({"key": "l"}));
    let mut pending = server.begin(&modern).await;
    let mut pending_legacy = server.begin(&legacy).await;
    let mut stream = server
        .open(Request::call("count", json!({"key": "s", "to": 2})).meta("progressToken", json!(1)))
        .await;
    stream.message().await;
    let mut numbered = server
        .open(session.call("count", json!({"key": "n", "to": 1})).meta("progressToken", json!(1)))
        .await;
    numbered.message().await;
    for key in ["m", "l"] {
        server.world.started(key).await;
    }
    let world = Arc::clone(&server.world);
    shut_down_while(server.serving, async {
        // The shutdown has started; the running calls still make progress.
        world.release("s");
        assert_eq!(stream.message().await["params"]["progress"], 2);
        for key in ["m", "l", "s", "n"] {
            world.release(key);
        }
        assert_eq!(pending.response(&modern).await.text(), "waited m");
        assert_eq!(pending_legacy.response(&legacy).await.text(), "waited l");
        assert_eq!(stream.message().await["result"]["content"][0]["text"], "counted 2");
        assert_eq!(numbered.message().await["result"]["content"][0]["text"], "counted 1");
        // Then the server closes the connections.
        stream.ended().await.closed().await;
        numbered.ended().await.closed().await;
        pending.closed().await;
        pending_legacy.closed().await;
    })
    .await;
}

#[tokio::test]
async fn call_of_disconnected_client_finishes_during_shutdown() {
    let server = HttpFixture::with(patient()).await;
    let session = server.session("2025-11-25").await;
    let connection = server.begin(session.call("wait", json!({"key": "w"}))).await;
    server.world.started("w").await;
    drop(connection);
    // Two round trips, so that the server has noticed the disconnect.
    for _ in 0..2 {
        assert_eq!(server.send(session.request("ping")).await.status(), 200);
    }
    let world = Arc::clone(&server.world);
    shut_down_while(server.serving, async {
        tokio::task::yield_now().await;
        assert!(!world.is_cancelled("w"));
        world.release("w");
        world.finished("w").await;
    })
    .await;
}

#[tokio::test]
async fn shutdown_ends_subscriptions_with_result() {
    // SUB-11, SUB-12, C-14
    let server = HttpFixture::with(patient()).await;
    let mut streams = Vec::new();
    for id in [json!(7), json!("seven")] {
        let listen = Request::modern("subscriptions/listen").id(id.clone());
        let mut stream =
            server.open(listen.param("notifications", json!({"toolsListChanged": true}))).await;
        stream.message().await;
        streams.push((id, stream));
    }
    shut_down_while(server.serving, async {
        for (id, mut stream) in streams {
            let last = stream.message().await;
            assert_eq!(last["id"], id);
            assert_eq!(last["result"]["resultType"], "complete");
            assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
            // A `notifications/cancelled` after the result is for pipes only.
            stream.ended().await.closed().await;
        }
    })
    .await;
}

#[tokio::test]
async fn shutdown_ends_get_streams() {
    let server = HttpFixture::with(patient()).await;
    let session = server.session("2025-11-25").await;
    let mut cut = server.open(session.get()).await;
    let id = cut.event().await.unwrap().id.unwrap();
    cut.cut();
    let resumed = server.open(session.resume(&id)).await;
    let other = server.open(server.session("2025-06-18").await.get()).await;
    shut_down_while(server.serving, async {
        resumed.ended().await.closed().await;
        other.ended().await.closed().await;
    })
    .await;
}

#[tokio::test]
async fn shutdown_ends_http_sse_streams() {
    let server = HttpFixture::with(patient()).await;
    let fresh = server.pair().await;
    let ready = server.pair_ready("2024-11-05").await;
    shut_down_while(server.serving, async {
        fresh.stream.ended().await.closed().await;
        ready.stream.ended().await.closed().await;
    })
    .await;
}

#[tokio::test]
async fn shutdown_closes_sessions() {
    let closed = Arc::new(Mutex::new(0));
    let count = Arc::clone(&closed);
    let server = HttpFixture::build(patient(), |server| {
        server.on_session_close(move |_| *count.lock().unwrap() += 1)
    })
    .await;
    server.session("2025-11-25").await;
    server.session("2025-03-26").await;
    let pair = server.pair_ready("2024-11-05").await;
    within(server.serving.shutdown()).await;
    assert_eq!(*closed.lock().unwrap(), 3);
    drop(pair);
}

/// Starts calls of every kind that never return, with keys `a` to `d`.
async fn endless(server: &HttpFixture) -> Vec<crate::support::http::Connection> {
    let session = server.session("2025-11-25").await;
    let mut connections = Vec::new();
    let wait = |key: &str| json!({"key": key});
    connections.push(server.begin(Request::call("wait", wait("a"))).await);
    connections.push(server.begin(session.call("wait", wait("b"))).await);
    drop(server.begin(session.call("wait", wait("c"))).await);
    let stateful =
        session.call("count", json!({"key": "d", "to": 1})).meta("progressToken", json!(1));
    connections.push(server.begin(stateful).await);
    for key in ["a", "b", "c", "d"] {
        server.world.started(key).await;
    }
    connections
}

async fn all_cancelled(world: &World) {
    for key in ["a", "b", "c", "d"] {
        world.cancelled(key).await;
    }
}

#[tokio::test]
async fn shutdown_past_grace_period_cancels_calls() {
    let server =
        HttpFixture::with(HttpConfig::new().shutdown_grace(Duration::from_millis(50))).await;
    let connections = endless(&server).await;
    within(server.serving.shutdown()).await;
    all_cancelled(&server.world).await;
    for connection in connections {
        connection.closed().await;
    }
}

#[tokio::test]
async fn shutdown_at_connection_limit_cancels_calls_after_grace_period() {
    let config = HttpConfig::new().shutdown_grace(Duration::from_millis(50)).max_connections(1);
    let server = HttpFixture::with(config).await;
    let connection = server.begin(Request::call("wait", json!({"key": "w"}))).await;
    server.world.started("w").await;
    within(server.serving.shutdown()).await;
    server.world.cancelled("w").await;
    connection.closed().await;
}

#[tokio::test]
async fn dropped_server_stops_immediately() {
    let server = HttpFixture::with(patient()).await;
    let address = server.address();
    let connections = endless(&server).await;
    drop(server.serving);
    all_cancelled(&server.world).await;
    for connection in connections {
        connection.closed().await;
    }
    assert!(TcpStream::connect(address).await.is_err());
}
