//! A client of HTTP+SSE: one stream for all server messages, and a path for POST requests.

use serde_json::{Value, json};

use super::{HttpFixture, Request, Response, Stream};

/// The stream and the POST path.
pub(crate) struct Pair {
    pub(crate) stream: Stream,
    /// The path from the first event.
    pub(crate) target: String,
    post: Request,
}

impl HttpFixture {
    /// Opens an HTTP+SSE stream without a handshake.
    pub(crate) async fn pair(&self) -> Pair {
        self.pair_as("2024-11-05", None).await
    }

    /// Opens a stream for a protocol version, with a token.
    pub(crate) async fn pair_as(&self, version: &str, token: Option<&str>) -> Pair {
        let with_token = |request: Request| match token {
            Some(token) => request.bearer(token),
            None => request,
        };
        let get =
            with_token(Request::new("GET", version).target("/sse").accept("text/event-stream"));
        let mut stream = self.open(&get).await;
        let first = stream.event().await.expect("an event");
        assert_eq!(first.name.as_deref(), Some("endpoint"), "{first:?}");
        let mut post =
            with_token(Request::post(version).target(&first.data).without_header("accept"));
        post.methods = get.methods;
        Pair { stream, target: first.data, post }
    }

    /// Opens a stream and performs the handshake.
    pub(crate) async fn pair_ready(&self, version: &str) -> Pair {
        let mut pair = self.pair_as(version, None).await;
        let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "o", "version": "1"}});
        let answer = pair.ask(self, 0, "initialize", hello).await;
        assert_eq!(answer["result"]["protocolVersion"], version);
        pair.post(self, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        pair
    }
}

impl Pair {
    /// Sends the handshake without reading the response.
    pub(crate) async fn handshake(&self, server: &HttpFixture) {
        let hello = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "o", "version": "1"}});
        self.begin(server, 0, "initialize", hello).await;
        self.post(server, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    /// Returns a POST of this message, which the test can change.
    pub(crate) fn request(&self, message: Value) -> Request {
        self.post.clone().json(message)
    }

    /// Posts a message and expects 202.
    pub(crate) async fn post(&self, server: &HttpFixture, message: Value) -> Response {
        let response = server.send(self.request(message)).await;
        assert_eq!((response.status(), response.body.len()), (202, 0), "{response:?}");
        response
    }

    /// Posts a request.
    pub(crate) async fn begin(
        &self,
        server: &HttpFixture,
        id: impl Into<Value>,
        method: &str,
        params: Value,
    ) {
        let id: Value = id.into();
        self.post(server, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
    }

    /// Posts a request and reads the next message.
    pub(crate) async fn ask(
        &mut self,
        server: &HttpFixture,
        id: impl Into<Value>,
        method: &str,
        params: Value,
    ) -> Value {
        self.begin(server, id, method, params).await;
        self.message().await
    }

    /// Returns the next message of the stream.
    pub(crate) async fn message(&mut self) -> Value {
        let (event, message) = self.stream.said().await;
        assert_eq!((event.name.as_deref(), event.id), (Some("message"), None));
        message
    }
}
