//! A raw client on a pipe: one JSON message per line.
//!
//! It validates every message against the official schema of its version. Tests that use it run
//! with paused time. Time then advances only when all tasks are idle, so timeouts cost nothing and
//! [`Pipe::quiet`] is reliable.

use std::{collections::HashMap, time::Duration};

use outlive::server::{Principal, Server};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split},
    time::timeout,
};

use super::schema;

/// The modern version.
pub(crate) const MODERN: &str = "2026-07-28";

/// The legacy versions, oldest first.
pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// All versions, oldest first.
pub(crate) const REVISIONS: [&str; 5] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];

/// The `_meta` key that makes a request modern.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Upper limit of every wait. Only a failing test waits this long.
const GUARD: Duration = Duration::from_secs(10);

/// One connection to a server.
pub(crate) struct Pipe {
    stream: DuplexStream,
    unread: Vec<u8>,
    /// The start of a line whose end is not sent yet.
    unfinished: Vec<u8>,
    next_id: u64,
    /// The negotiated version.
    session: Option<String>,
    /// Method and version of the sent requests, by ID.
    asked: HashMap<String, Vec<Asked>>,
}

/// A sent request, for the validation of its response.
#[derive(Clone)]
struct Asked {
    method: String,
    /// `None` before a handshake.
    version: Option<String>,
    /// Whether several responses are allowed.
    streams: bool,
}

impl Pipe {
    /// Connects without sending anything.
    pub(crate) fn open(server: &Server) -> Self {
        Self::on(server.connect_in_memory().stream)
    }

    /// Connects as `principal`.
    pub(crate) fn open_as(server: &Server, principal: Principal) -> Self {
        let (client, end) = duplex(64 << 10);
        let (input, output) = split(end);
        let server = server.clone();
        tokio::spawn(async move { server.serve_stream(principal, input, output).await });
        Self::on(client)
    }

    /// Connects and performs the handshake of the version, if it has one.
    pub(crate) async fn speaking(server: &Server, version: &str) -> Self {
        let mut pipe = Self::open(server);
        pipe.speak(version).await;
        pipe
    }

    /// Like [`Pipe::speaking`], as `principal`.
    pub(crate) async fn speaking_as(server: &Server, version: &str, principal: Principal) -> Self {
        let mut pipe = Self::open_as(server, principal);
        pipe.speak(version).await;
        pipe
    }

    /// Creates a client on this stream.
    pub(crate) fn on(stream: DuplexStream) -> Self {
        Self {
            stream,
            unread: Vec::new(),
            unfinished: Vec::new(),
            next_id: 1,
            session: None,
            asked: HashMap::new(),
        }
    }

    async fn speak(&mut self, version: &str) {
        if version != MODERN {
            self.legacy(version).await;
        }
    }

    /// Performs the handshake of a legacy version and returns its result.
    pub(crate) async fn legacy(&mut self, version: &str) -> Value {
        self.legacy_with(version, json!({})).await
    }

    /// Like [`Pipe::legacy`], with client capabilities.
    pub(crate) async fn legacy_with(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let id = self.send_as_is("initialize", params).await;
        let answer = self.answer(id).await;
        self.notify("notifications/initialized", json!({})).await;
        result(&answer)
    }

    /// Sends a request in the version of the pipe and returns the response.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Sends a request in the version of the pipe and returns its result.
    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        result(&self.ask(method, params).await)
    }

    /// Sends a request in the version of the pipe and returns its error.
    pub(crate) async fn error(&mut self, method: &str, params: Value) -> Value {
        error(&self.ask(method, params).await)
    }

    /// Calls a tool and returns its result.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Sends a modern request and returns the response, with or without a handshake.
    pub(crate) async fn modern(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_as_is(method, with_meta(params)).await;
        self.answer(id).await
    }

    /// Sends a request in the version of the pipe and returns its ID.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        let params = if self.session.is_some() { params } else { with_meta(params) };
        self.send_as_is(method, params).await
    }

    /// Sends a request with exactly these parameters and returns its ID.
    pub(crate) async fn send_as_is(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send_json(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// Sends a notification.
    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send_json(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Cancels a request.
    pub(crate) async fn cancel(&mut self, id: impl Into<Value>) {
        let id: Value = id.into();
        self.notify("notifications/cancelled", json!({"requestId": id})).await;
    }

    /// Responds to a request of the server.
    pub(crate) async fn reply(&mut self, asked: &Value, result: Value) {
        self.send_json(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
    }

    /// Sends a modern request with these client capabilities and returns the response.
    pub(crate) async fn modern_with(
        &mut self,
        capabilities: Value,
        method: &str,
        mut params: Value,
    ) -> Value {
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        let id = self.send_as_is(method, with_meta(params)).await;
        self.answer(id).await
    }

    /// Sends a message.
    pub(crate) async fn send_json(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes()).await;
    }

    /// Sends bytes.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        self.unfinished.extend_from_slice(bytes);
        while let Some(at) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=at).collect();
            self.remember(&line);
        }
        self.stream.write_all(bytes).await.expect("the server reads");
    }

    /// Closes the write direction.
    pub(crate) async fn finish(&mut self) {
        let rest = std::mem::take(&mut self.unfinished);
        self.remember(&rest);
        self.stream.shutdown().await.expect("the server reads");
    }

    /// Returns the next message.
    pub(crate) async fn read(&mut self) -> Value {
        let line = self.read_line().await.expect("a message, not the end");
        self.checked(&line)
    }

    /// Returns the next line. `None` is the end.
    pub(crate) async fn read_line(&mut self) -> Option<String> {
        timeout(GUARD, self.next_line()).await.expect("a message within ten seconds")
    }

    /// Returns all messages up to the response to a request, which is last.
    pub(crate) async fn read_to(&mut self, id: impl Into<Value>) -> Vec<Value> {
        let id: Value = id.into();
        let mut messages = Vec::new();
        loop {
            let message = self.read().await;
            let last = message.get("id") == Some(&id);
            messages.push(message);
            if last {
                return messages;
            }
        }
    }

    /// Returns the response to a request, which must be the next message.
    pub(crate) async fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id: Value = id.into();
        let message = self.read().await;
        assert_eq!(message["id"], id, "the next message must be the response: {message}");
        message
    }

    /// Returns all messages until the server closes the pipe.
    pub(crate) async fn read_to_end(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(line) = self.read_line().await {
            messages.push(self.checked(&line));
        }
        messages
    }

    /// Asserts that no message arrives until all tasks are idle.
    pub(crate) async fn quiet(&mut self) {
        if let Ok(line) = timeout(GUARD, self.next_line()).await {
            panic!("unexpected message: {line:?}");
        }
    }

    async fn next_line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line = self.unread.drain(..=at).collect::<Vec<_>>();
                return Some(
                    String::from_utf8(line).expect("messages are UTF-8").trim_end().to_owned(),
                );
            }
            // The buffer is in `self`, so that a timeout loses no bytes.
            if self.stream.read_buf(&mut self.unread).await.expect("the pipe is open") == 0 {
                assert_eq!(self.unread, b"", "the last message has no line end");
                return None;
            }
        }
    }

    /// Records the version of each request in a line, for the validation of responses.
    fn remember(&mut self, line: &[u8]) {
        let messages = match serde_json::from_slice(line) {
            Ok(Value::Array(batch)) => batch,
            Ok(message) => vec![message],
            Err(_) => return,
        };
        for message in messages {
            let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else {
                continue;
            };
            let version = match message["params"]["_meta"].get(VERSION) {
                Some(_) => Some(MODERN.to_owned()),
                None => self.session.clone(),
            };
            let modes = message["params"]["task"]["responseModes"].as_array();
            let streams = modes.is_some_and(|modes| modes.contains(&json!("streaming")));
            let asked = Asked { method: method.to_owned(), version, streams };
            self.asked.entry(id.to_string()).or_default().push(asked);
        }
    }

    /// Parses a line and validates it against the schema of its version.
    fn checked(&mut self, line: &str) -> Value {
        let message: Value = serde_json::from_str(line).expect("a line is a message");
        match &message {
            Value::Array(batch) => batch.iter().for_each(|message| self.check(message)),
            message => self.check(message),
        }
        message
    }

    fn check(&mut self, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        if message.get("id").is_some() && message.get("method").is_some() {
            let Some(version) = &self.session else {
                panic!("the server sent a request in an era without server requests: {message}");
            };
            schema::check(version, None, message);
            return;
        }
        let Some(id) = message.get("id") else {
            if message.get("error").is_none() {
                schema::check(self.version_of_notification(message), None, message);
            }
            // The legacy schemas have no error without an ID, so it cannot be validated.
            return;
        };
        let asked = self.answered(id, message);
        let agreed =
            message["result"]["protocolVersion"].as_str().filter(|_| asked.method == "initialize");
        if let Some(agreed) = agreed {
            self.session = Some(agreed.to_owned());
        }
        // Without a handshake, only the response to `ping` follows the legacy schema.
        let other = if asked.method == "ping" { LEGACY[3] } else { MODERN };
        let version = agreed.or(asked.version.as_deref()).unwrap_or(other);
        schema::check(version, Some(&asked.method), message);
    }

    /// Returns the request of a response. If two requests have one ID, an error belongs to the
    /// later one. An error may also belong to an invalid request.
    fn answered(&mut self, id: &Value, message: &Value) -> Asked {
        let asked = self.asked.entry(id.to_string()).or_default();
        let result = &message["result"];
        // A streaming call has more responses until one is the last.
        let is_last = result.get("content").is_some()
            || result["isComplete"] == true
            || result["_meta"].get("io.modelcontextprotocol/fallback-mode").is_some();
        match message.get("error").is_some() {
            true => asked.pop().unwrap_or_else(|| Asked {
                method: String::new(),
                version: self.session.clone(),
                streams: false,
            }),
            false if asked.is_empty() => panic!("unsolicited response with ID {id}"),
            false if asked[0].streams && !is_last => asked[0].clone(),
            false => asked.remove(0),
        }
    }

    /// Subscriptions and requests without a session are modern; everything else belongs to the
    /// session.
    fn version_of_notification(&self, message: &Value) -> &str {
        let subscribed =
            message["params"]["_meta"].get("io.modelcontextprotocol/subscriptionId").is_some();
        match &self.session {
            Some(version) if !subscribed => version,
            _ => MODERN,
        }
    }
}

/// Adds the `_meta` keys of a modern request if they are missing.
pub(crate) fn with_meta(mut params: Value) -> Value {
    let meta = &mut params["_meta"];
    if meta.get(VERSION).is_none() {
        meta[VERSION] = json!(MODERN);
    }
    if meta.get("io.modelcontextprotocol/clientCapabilities").is_none() {
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    params
}

/// Returns the result of a response.
#[track_caller]
pub(crate) fn result(answer: &Value) -> Value {
    match answer.get("result") {
        Some(result) => result.clone(),
        None => panic!("a result was expected: {answer}"),
    }
}

/// Returns the error of a response.
#[track_caller]
pub(crate) fn error(answer: &Value) -> Value {
    match answer.get("error") {
        Some(error) => error.clone(),
        None => panic!("an error was expected: {answer}"),
    }
}

/// Returns the text of the first block of a tool result.
#[track_caller]
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("a text was expected: {result}"))
}

/// Converts a schema or other JSON for the builder.
pub(crate) fn raw(json: &Value) -> outlive::wire::RawJson {
    serde_json::value::to_raw_value(json).expect("a value is JSON")
}
