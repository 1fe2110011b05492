//! Builds valid requests, so that a test can break exactly one part.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};

/// The modern version.
pub(crate) const MODERN: &str = "2026-07-28";

const PREFIX: &str = "io.modelcontextprotocol/";

/// Methods of the sent requests, by ID. Responses are validated with them.
pub(super) type Methods = Arc<Mutex<HashMap<String, String>>>;

/// One HTTP request.
#[derive(Clone)]
pub(crate) struct Request {
    verb: &'static str,
    target: String,
    headers: Vec<(String, Vec<u8>)>,
    message: Option<Value>,
    raw: Option<Vec<u8>>,
    /// Whether headers mirror parts of the body.
    mirrors: bool,
    pub(super) version: String,
    pub(super) methods: Methods,
}

/// A legacy session of a client.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) version: String,
    pub(super) token: Option<String>,
    pub(super) methods: Methods,
}

impl Request {
    /// A request of 2026-07-28, with all headers and `_meta` keys.
    pub(crate) fn modern(method: &str) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "0.1.0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let mut request = Self::message(MODERN, method)
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", method)
            .params(json!({"_meta": meta}));
        request.mirrors = true;
        request
    }

    /// A tool call of 2026-07-28.
    pub(crate) fn call(tool: &str, arguments: Value) -> Self {
        Self::modern("tools/call").name(tool).param("arguments", arguments)
    }

    /// A notification of 2026-07-28.
    pub(crate) fn modern_notification(method: &str) -> Self {
        let message = json!({"jsonrpc": "2.0", "method": method});
        Self::post(MODERN).json(message).header("mcp-protocol-version", MODERN)
    }

    /// The handshake of a legacy version.
    pub(crate) fn initialize(version: &str) -> Self {
        Self::message("2025-11-25", "initialize").params(json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "old", "version": "3"},
        }))
    }

    /// A legacy request without a session.
    pub(crate) fn sessionless(version: &str, method: &str) -> Self {
        Self::message(version, method).header("mcp-protocol-version", version)
    }

    /// A POST with a body that the test supplies.
    pub(crate) fn post(version: &str) -> Self {
        Self::new("POST", version)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    /// A request without a body.
    pub(crate) fn new(verb: &'static str, version: &str) -> Self {
        Self {
            verb,
            target: "/mcp".into(),
            headers: vec![("host".into(), b"localhost".to_vec())],
            message: None,
            raw: None,
            mirrors: false,
            version: version.into(),
            methods: Methods::default(),
        }
    }

    fn message(version: &str, method: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self::post(version).json(json!({"jsonrpc": "2.0", "id": id, "method": method}))
    }

    /// Sets the version of the response if it differs from that of the request.
    pub(crate) fn answered_in(mut self, version: &str) -> Self {
        self.version = version.into();
        self
    }

    /// Sets another path than the endpoint.
    pub(crate) fn target(mut self, target: impl Into<String>) -> Self {
        self.target = target.into();
        self
    }

    /// Sets a header and replaces existing ones.
    pub(crate) fn header(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.without_header(name).add_header(name, value)
    }

    /// Adds a header and keeps existing ones.
    pub(crate) fn add_header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.into(), value.as_ref().to_vec()));
        self
    }

    pub(crate) fn without_header(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn accept(self, accept: &str) -> Self {
        self.header("accept", accept)
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    /// Sets the whole message.
    pub(crate) fn json(mut self, message: Value) -> Self {
        self.message = Some(message);
        self
    }

    /// Sets the raw body.
    pub(crate) fn raw(mut self, body: impl AsRef<[u8]>) -> Self {
        self.raw = Some(body.as_ref().to_vec());
        self
    }

    /// Sets a member of the message.
    pub(crate) fn member(mut self, name: &str, value: Value) -> Self {
        self.body()[name] = value;
        self
    }

    pub(crate) fn without_member(mut self, name: &str) -> Self {
        self.body().as_object_mut().expect("a message is an object").remove(name);
        self
    }

    /// Returns the ID of the message.
    pub(crate) fn message_id(&self) -> Value {
        self.message.as_ref().map_or(Value::Null, |message| message["id"].clone())
    }

    pub(crate) fn id(self, id: impl Into<Value>) -> Self {
        self.member("id", id.into())
    }

    pub(crate) fn params(self, params: Value) -> Self {
        self.member("params", params)
    }

    /// Returns a member of `params`.
    pub(super) fn get_param(&self, name: &str) -> Value {
        self.message.as_ref().map_or(Value::Null, |message| message["params"][name].clone())
    }

    pub(crate) fn param(mut self, name: &str, value: Value) -> Self {
        self.body()["params"][name] = value;
        self
    }

    /// Sets a key of `_meta`.
    pub(crate) fn meta(mut self, key: &str, value: Value) -> Self {
        self.body()["params"]["_meta"][key] = value;
        self
    }

    /// Sets a key of `_meta` that the specification reserves.
    pub(crate) fn reserved(self, key: &str, value: Value) -> Self {
        self.meta(&format!("{PREFIX}{key}"), value)
    }

    /// Removes a reserved key from `_meta`.
    pub(crate) fn without_reserved(mut self, key: &str) -> Self {
        let meta =
            self.body()["params"]["_meta"].as_object_mut().expect("the request has a `_meta`");
        meta.remove(&format!("{PREFIX}{key}"));
        self
    }

    /// Sets the version in the header and in `_meta`.
    pub(crate) fn version(self, version: &str) -> Self {
        self.header("mcp-protocol-version", version).reserved("protocolVersion", json!(version))
    }

    /// Sets `params.name` and the header that mirrors it.
    pub(crate) fn name(self, name: &str) -> Self {
        self.mirrored(name).param("name", json!(name))
    }

    /// Sets `params.uri` and the header that mirrors it.
    pub(crate) fn uri(self, uri: &str) -> Self {
        self.mirrored(uri).param("uri", json!(uri))
    }

    fn mirrored(self, value: &str) -> Self {
        if self.mirrors { self.header("mcp-name", value) } else { self }
    }

    fn body(&mut self) -> &mut Value {
        self.message.as_mut().expect("this request has a message")
    }

    /// Returns the bytes of the body.
    pub(crate) fn body_bytes(&self) -> Vec<u8> {
        let written = || self.message.as_ref().map(|message| message.to_string().into_bytes());
        self.raw.clone().or_else(written).unwrap_or_default()
    }

    /// Returns the bytes of the head, including the empty line.
    pub(crate) fn head_bytes(&self) -> Vec<u8> {
        let mut out = format!("{} {} HTTP/1.1\r\n", self.verb, self.target).into_bytes();
        for (name, value) in &self.headers {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        let has =
            |name: &str| self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        if self.verb == "POST" && !has("content-length") && !has("transfer-encoding") {
            let length = self.body_bytes().len();
            out.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.head_bytes(), self.body_bytes()].concat()
    }

    /// Records the method of each request ID, for the validation of responses.
    pub(super) fn note_methods(&self) {
        let messages = match &self.message {
            Some(Value::Array(batch)) => batch.as_slice(),
            Some(message) => std::slice::from_ref(message),
            None => &[],
        };
        let mut methods = self.methods.lock().unwrap();
        for message in messages {
            if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
                methods.insert(id.to_string(), method.into());
            }
        }
    }
}

impl Session {
    /// Returns the first ID of the server's requests in this session, which all replicas share.
    pub(crate) fn first_request_id(&self) -> u64 {
        let hash = self.id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        hash >> 48 << 32
    }

    /// The same client with another session ID.
    pub(crate) fn with_id(&self, id: &str) -> Self {
        Self { id: id.into(), ..self.clone() }
    }

    /// The same session with the token of another principal.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.into()), ..self.clone() }
    }

    /// A request in this session.
    pub(crate) fn request(&self, method: &str) -> Request {
        self.own(Request::message(&self.version, method))
    }

    /// A tool call in this session.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Request {
        self.request("tools/call").params(json!({"name": tool, "arguments": arguments}))
    }

    pub(crate) fn notification(&self, method: &str, params: Value) -> Request {
        self.message(json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// A message in this session.
    pub(super) fn message(&self, message: Value) -> Request {
        self.own(Request::post(&self.version).json(message))
    }

    /// A batch of messages.
    pub(crate) fn batch(&self, messages: impl IntoIterator<Item = Value>) -> Request {
        self.own(Request::post(&self.version).json(messages.into_iter().collect()))
    }

    /// Opens the change stream.
    pub(crate) fn get(&self) -> Request {
        self.own(Request::new("GET", &self.version).accept("text/event-stream"))
    }

    /// Resumes a stream after the event `last`.
    pub(crate) fn resume(&self, last: &str) -> Request {
        self.get().header("last-event-id", last)
    }

    /// Ends the session.
    pub(crate) fn delete(&self) -> Request {
        self.own(Request::new("DELETE", &self.version))
    }

    fn own(&self, mut request: Request) -> Request {
        request.methods = Arc::clone(&self.methods);
        let request = request
            .header("mcp-session-id", &self.id)
            .header("mcp-protocol-version", &self.version);
        match &self.token {
            Some(token) => request.bearer(token),
            None => request,
        }
    }
}
