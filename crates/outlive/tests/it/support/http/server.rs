//! A server on its own port for one test.

use std::{borrow::Borrow, net::SocketAddr, sync::Arc};

use outlive::server::{
    Server, ServerBuilder,
    http::{HttpConfig, HttpServer},
};
use serde_json::{Value, json};

use super::{Connection, ManualClock, Request, Response, Session, Stream, World, standard};

/// A listening server. Dropping it stops the server immediately.
pub(crate) struct HttpFixture {
    pub(crate) server: Server,
    pub(crate) world: Arc<World>,
    pub(crate) serving: HttpServer,
}

impl HttpFixture {
    /// The standard server with the default configuration.
    pub(crate) async fn start() -> Self {
        Self::with(HttpConfig::new()).await
    }

    /// The standard server.
    pub(crate) async fn with(config: HttpConfig) -> Self {
        Self::build(config, |server| server).await
    }

    /// The standard server with changes.
    pub(crate) async fn build(
        config: HttpConfig,
        change: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let world = Arc::new(World::default());
        Self::serve(change(standard(&world)).build().expect("a server"), world, config).await
    }

    /// The standard server with a manual clock. It signals when sessions open and close.
    pub(crate) async fn with_clock(config: HttpConfig, clock: &ManualClock) -> Self {
        Self::build_with_clock(config, clock, |server| server).await
    }

    /// The same with changes.
    pub(crate) async fn build_with_clock(
        config: HttpConfig,
        clock: &ManualClock,
        change: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let world = Arc::new(World::default());
        let (opening, closing) = (Arc::clone(&world), Arc::clone(&world));
        let server = standard(&world)
            .clock(clock.clone())
            .on_session_open(move |_| opening.tell("session opened"))
            .on_session_close(move |_| closing.tell("session closed"));
        Self::serve(change(server).build().expect("a server"), world, config).await
    }

    /// A server that the test built.
    pub(crate) async fn of(server: Server, config: HttpConfig) -> Self {
        Self::serve(server, Arc::default(), config).await
    }

    async fn serve(server: Server, world: Arc<World>, config: HttpConfig) -> Self {
        let serving = server.serve_http("127.0.0.1:0", config).await.expect("a free port");
        Self { server, world, serving }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.serving.address()
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(self.address()).await
    }

    /// Sends a request on a new connection and reads the whole response.
    pub(crate) async fn send(&self, request: impl Borrow<Request>) -> Response {
        self.connect().await.send(request.borrow()).await
    }

    /// Sends a request on a new connection without reading the response.
    pub(crate) async fn begin(&self, request: impl Borrow<Request>) -> Connection {
        let mut connection = self.connect().await;
        connection.write(&request.borrow().bytes()).await;
        connection
    }

    /// Sends a request whose response is a stream.
    pub(crate) async fn open(&self, request: impl Borrow<Request>) -> Stream {
        self.connect().await.open_stream(request.borrow()).await
    }

    /// Opens a session and sends `notifications/initialized`.
    pub(crate) async fn session(&self, version: &str) -> Session {
        self.session_as(version, None).await
    }

    /// Opens a session with a token.
    pub(crate) async fn session_as(&self, version: &str, token: Option<&str>) -> Session {
        Session::open(self.address(), Request::initialize(version), token).await
    }
}

impl Session {
    /// Performs the handshake and sends `notifications/initialized`.
    pub(crate) async fn open(address: SocketAddr, hello: Request, token: Option<&str>) -> Self {
        let hello = match token {
            Some(token) => hello.bearer(token),
            None => hello,
        };
        let answer = Connection::open(address).await.send(&hello).await;
        let result = answer.result();
        let session = Session {
            id: answer.header("mcp-session-id").expect("a session").to_owned(),
            version: result["protocolVersion"].as_str().expect("a version").to_owned(),
            token: token.map(Into::into),
            methods: Arc::default(),
        };
        let wanted = hello.get_param("protocolVersion");
        assert_eq!(json!(session.version), wanted, "the server agrees to the version");
        let ready = session.notification("notifications/initialized", json!({}));
        let ready = Connection::open(address).await.send(&ready).await;
        assert_eq!(ready.status(), 202);
        session
    }

    /// Responds to a request of the server.
    pub(crate) fn reply(&self, asked: &Value, result: Value) -> Request {
        self.message(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
    }
}
