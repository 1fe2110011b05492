//! A server mounted in an axum application: graceful shutdown ends open streams and calls.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{ConnectInfo, Request as HttpRequest},
    middleware::map_request,
};
use outlive::server::{Server, http::HttpConfig, tasks::TaskConfig};
use serde_json::json;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::support::http::{Connection, Request, Session, Stream, World, standard, within};

/// An application. A message on `stop` starts its shutdown; `ended` resolves when it has stopped.
struct Application {
    address: SocketAddr,
    server: Server,
    world: Arc<World>,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

/// Sets up the application as docs/deployment.md shows.
async fn application(timeout: Duration) -> Application {
    let world = Arc::new(World::default());
    let server = standard(&world).tasks(TaskConfig::in_memory()).build().unwrap();
    let mcp = server.http_service(HttpConfig::new());
    let app = Router::new()
        .nest_service("/sse", mcp.sse("/messages"))
        .nest_service("/messages", mcp.messages())
        .nest_service("/mcp", mcp)
        .layer(map_request(
            async |ConnectInfo(peer): ConnectInfo<SocketAddr>, mut request: HttpRequest| {
                request.extensions_mut().insert(peer);
                request
            },
        ))
        .into_make_service_with_connect_info::<SocketAddr>();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let mounted = server.clone();
    let ended = tokio::spawn(async move {
        let signal = async { drop(stopped.await) };
        let stopping = mounted.clone();
        let shutdown = async move { stopping.shutdown(signal, timeout).await };
        axum::serve(listener, app).with_graceful_shutdown(shutdown).await.unwrap();
        mounted.drain(timeout).await;
    });
    Application { address, server, world, stop, ended }
}

impl Application {
    async fn open(&self, request: &Request) -> Stream {
        Connection::open(self.address).await.open_stream(request).await
    }

    /// Opens every kind of stream on which a client can wait.
    async fn listeners(&self) -> Vec<Stream> {
        let listen = Request::modern("subscriptions/listen");
        let listen = listen.param("notifications", json!({"toolsListChanged": true}));
        let session = Session::open(self.address, Request::initialize("2025-11-25"), None).await;
        let old = Request::new("GET", "2024-11-05").target("/sse").accept("text/event-stream");
        let mut streams = Vec::new();
        for request in [listen, session.get(), old] {
            let mut stream = self.open(&request).await;
            assert!(stream.event().await.is_some());
            streams.push(stream);
        }
        streams
    }
}

/// A timeout so long that a test that waits for it fails.
const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn open_streams_do_not_block_application_shutdown() {
    let application = application(LONG).await;
    let streams = application.listeners().await;
    let call = Request::call("wait", json!({"key": "w"}));
    let mut running = Connection::open(application.address).await;
    running.write(&call.bytes()).await;
    application.world.started("w").await;
    application.stop.send(()).unwrap();
    // The streams end first, the running call completes, and then the application stops.
    for mut stream in streams {
        while stream.event().await.is_some() {}
    }
    assert!(!application.ended.is_finished());
    application.world.release("w");
    assert_eq!(running.response(&call).await.text(), "waited w");
    within(application.ended).await.unwrap();
}

#[tokio::test]
async fn calls_over_drain_timeout_do_not_block_application_shutdown() {
    let application = application(Duration::from_millis(100)).await;
    let session = Session::open(application.address, Request::initialize("2025-11-25"), None).await;
    let progress = |request: Request| request.meta("progressToken", json!(1));
    let calls = [
        Request::call("wait", json!({"key": "a"})),
        session.call("wait", json!({"key": "b"})),
        progress(Request::call("count", json!({"key": "c", "to": 2}))),
        progress(session.call("count", json!({"key": "d", "to": 2}))),
    ];
    let mut connections = Vec::new();
    for (call, key) in calls.iter().zip(["a", "b", "c", "d"]) {
        let mut connection = Connection::open(application.address).await;
        connection.write(&call.bytes()).await;
        application.world.started(key).await;
        connections.push(connection);
    }
    application.stop.send(()).unwrap();
    within(application.ended).await.unwrap();
    assert_eq!(connections[0].response(&calls[0]).await.status(), 503);
}

#[tokio::test]
async fn drain_ends_open_streams() {
    let application = application(LONG).await;
    let streams = application.listeners().await;
    within(application.server.drain(LONG)).await;
    for mut stream in streams {
        while stream.event().await.is_some() {}
    }
    application.ended.abort();
}
