//! A protected server, an issuer of tokens, and a raw HTTP client.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use outlive::server::{
    Cx, Prompt, Resource, ResourceTemplate, Server, Tool,
    http::{HttpConfig, HttpServer},
};
use outlive_auth::{
    jose::{Algorithm, JwkSet, SigningKey},
    server::{Issuer, ResourceServer, ResourceServerBuilder},
};
use outlive_protocol::Clock;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Public URL of the server. It is not resolved.
pub(crate) const RESOURCE: &str = "https://mcp.example/mcp";
pub(crate) const METADATA: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
pub(crate) const ISSUER: &str = "https://id.example";

const MODERN: &str = "2026-07-28";

pub(crate) use crate::support::clock::StandingClock;

impl StandingClock {
    pub(crate) fn seconds(&self) -> i64 {
        self.wall().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
    }
}

/// A key and valid tokens, of which a test changes exactly one property.
pub(crate) struct Signer {
    pub(crate) key: SigningKey,
    pub(crate) clock: StandingClock,
}

impl Signer {
    pub(crate) fn new(clock: &StandingClock) -> Self {
        let key = SigningKey::generate(Algorithm::Es256).unwrap().with_id("k1");
        Self { key, clock: clock.clone() }
    }

    pub(crate) fn keys(&self) -> JwkSet {
        JwkSet::new([self.key.public()])
    }

    pub(crate) fn issuer(&self) -> Issuer {
        Issuer::new(ISSUER).keys(self.keys())
    }

    pub(crate) fn claims(&self) -> Value {
        json!({
            "iss": ISSUER, "sub": "ann", "client_id": "app", "aud": RESOURCE, "scope": "mcp",
            "iat": self.clock.seconds(), "exp": self.clock.seconds() + 600,
        })
    }

    /// Returns a token with changed claims; `null` removes a claim.
    pub(crate) fn token(&self, changes: Value) -> String {
        self.key.sign("at+jwt", &changed(self.claims(), changes)).unwrap()
    }
}

pub(crate) fn changed(mut claims: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    claims
}

/// A listening protected server, with a counter of calls that reached a handler.
pub(crate) struct Protected {
    serving: HttpServer,
    calls: Arc<AtomicUsize>,
}

impl Protected {
    /// Starts a server that has the keys of its issuer and requires the scope `mcp`.
    pub(crate) async fn start(signer: &Signer) -> Self {
        Self::with(builder(signer)).await
    }

    pub(crate) async fn with(builder: ResourceServerBuilder) -> Self {
        Self::guarded(builder.build().unwrap()).await
    }

    pub(crate) async fn guarded(auth: ResourceServer) -> Self {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let count = move || {
            counted.fetch_add(1, Ordering::SeqCst);
        };
        let whoami = {
            let count = count.clone();
            move |cx: Cx| {
                count();
                let heads = cx.http_parts().map(|parts| format!("{:?}", parts.headers));
                let text = format!("{} {}", cx.principal(), heads.unwrap_or_default());
                async move { text }
            }
        };
        let counting = |text: &'static str| {
            let count = count.clone();
            move || {
                count();
                async move { text }
            }
        };
        let server = Server::builder("protected", "1")
            .tool(Tool::new("whoami", whoami))
            .tool(Tool::new("write", counting("written")).scopes(["write"]))
            .tool(Tool::new("shown", counting("shown")).scopes(["write", "admin"]).always_listed())
            .resource(Resource::new("mem://open", "open", counting("open")))
            .resource(Resource::new("mem://secret", "secret", counting("secret")).scopes(["read"]))
            .resource_template(
                ResourceTemplate::new("deep://{x}", "deep", counting("deep")).scopes(["read"]),
            )
            .prompt(Prompt::new("plain", counting("plain")))
            .prompt(Prompt::new("wise", counting("wise")).scopes(["read"]))
            .build()
            .unwrap();
        let config = HttpConfig::new().authenticator(auth);
        let serving = server.serve_http("127.0.0.1:0", config).await.unwrap();
        Self { serving, calls }
    }

    /// Returns the number of calls that reached a handler.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) async fn send(&self, request: &Sent) -> Got {
        exchange(self.serving.address(), request).await
    }

    /// Calls a tool with a bearer token.
    pub(crate) async fn call(&self, tool: &str, token: &str) -> Got {
        self.send(&Sent::call(tool).bearer(token)).await
    }
}

pub(crate) fn builder(signer: &Signer) -> ResourceServerBuilder {
    ResourceServer::builder(RESOURCE)
        .issuer(signer.issuer())
        .scopes(["mcp"])
        .clock(Arc::new(signer.clock.clone()))
}

/// A raw HTTP request.
#[derive(Clone)]
pub(crate) struct Sent {
    verb: &'static str,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Sent {
    pub(crate) fn new(verb: &'static str, target: &str) -> Self {
        let headers = vec![("host".to_owned(), "localhost".to_owned())];
        Self { verb, target: target.to_owned(), headers, body: String::new() }
    }

    pub(crate) fn modern(method: &str, name: Option<(&str, &str)>) -> Self {
        let params = match name {
            Some((member, value)) => json!({ member: value }),
            None => json!({}),
        };
        Self::modern_with(method, params, json!({}))
    }

    /// Returns a request of 2026-07-28 with these client capabilities.
    pub(crate) fn modern_with(method: &str, mut params: Value, capabilities: Value) -> Self {
        let mut request = Self::new("POST", "/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", method);
        let name = ["name", "uri", "taskId"].into_iter().find_map(|member| params[member].as_str());
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        request.body = message.to_string();
        request
    }

    pub(crate) fn call(tool: &str) -> Self {
        Self::modern("tools/call", Some(("name", tool)))
    }

    pub(crate) fn read(uri: &str) -> Self {
        Self::modern("resources/read", Some(("uri", uri)))
    }

    pub(crate) fn prompt(name: &str) -> Self {
        Self::modern("prompts/get", Some(("name", name)))
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sets a header and replaces existing ones with the same name.
    pub(crate) fn replaced(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.header(name, value)
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    pub(crate) fn target(mut self, target: &str) -> Self {
        self.target = target.to_owned();
        self
    }

    pub(crate) fn body(mut self, body: &Value) -> Self {
        self.body = body.to_string();
        self
    }
}

/// A raw HTTP response.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "two {name} headers");
        value
    }

    pub(crate) fn challenge(&self) -> &str {
        self.header("www-authenticate").unwrap_or("")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(crate) fn result(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()["result"].clone()
    }

    /// Returns the text of a tool result.
    pub(crate) fn text(&self) -> String {
        self.result()["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }
}

/// Sends a request and returns the ID of the first event of the response stream.
pub(crate) async fn first_event(address: SocketAddr, request: &Sent) -> String {
    let mut stream = begin(address, request).await;
    let mut text = String::new();
    loop {
        let mut chunk = [0; 1024];
        let read = stream.read(&mut chunk).await.unwrap();
        assert!(read > 0, "no event: {text}");
        text.push_str(str::from_utf8(&chunk[..read]).unwrap());
        let id = text.split_once("\nid: ").and_then(|(_, rest)| rest.split_once('\n'));
        if let Some((id, _)) = id {
            return id.trim().to_owned();
        }
    }
}

async fn begin(address: SocketAddr, request: &Sent) -> TcpStream {
    let mut out = format!("{} {} HTTP/1.1\r\n", request.verb, request.target);
    for (name, value) in &request.headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = request.body.len();
    out.push_str(&format!("connection: close\r\ncontent-length: {length}\r\n\r\n"));
    out.push_str(&request.body);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(out.as_bytes()).await.unwrap();
    stream
}

pub(crate) async fn exchange(address: SocketAddr, request: &Sent) -> Got {
    let mut stream = begin(address, request).await;
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut bytes));
    read.await.expect("a response within 10 seconds").unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    Got { status, headers, body: body.to_owned() }
}

/// A web server that publishes documents and counts requests.
#[derive(Clone)]
pub(crate) struct Site {
    address: SocketAddr,
    shared: Arc<Mutex<Documents>>,
}

#[derive(Default)]
struct Documents {
    /// Status and body by path.
    pages: HashMap<String, (u16, String)>,
    reads: HashMap<String, usize>,
    /// Received requests.
    requests: Vec<String>,
}

impl Site {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let site = Self { address: listener.local_addr().unwrap(), shared: Arc::default() };
        let serving = site.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().answer(stream));
            }
        });
        site
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn publish(&self, path: &str, status: u16, body: impl Into<String>) {
        self.shared.lock().unwrap().pages.insert(path.to_owned(), (status, body.into()));
    }

    pub(crate) fn reads(&self, path: &str) -> usize {
        self.shared.lock().unwrap().reads.get(path).copied().unwrap_or_default()
    }

    pub(crate) fn last_request(&self) -> String {
        self.shared.lock().unwrap().requests.last().cloned().unwrap_or_default()
    }

    async fn answer(self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let length_of = |head: &str| {
            let head = head.to_ascii_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            length.unwrap_or(0usize)
        };
        let request = loop {
            let mut chunk = [0; 4096];
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(read) => bytes.extend_from_slice(&chunk[..read]),
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && body.len() >= length_of(head)
            {
                break text;
            }
        };
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let (status, body) = {
            let mut shared = self.shared.lock().unwrap();
            *shared.reads.entry(path.clone()).or_default() += 1;
            shared.requests.push(request);
            shared.pages.get(&path).cloned().unwrap_or((404, String::new()))
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}
