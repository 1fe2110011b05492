//! A raw HTTP client of either era, with or without tasks.

use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::crash::http::{self, Response};

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

/// Response timeout, unless the caller simulates a shorter one.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A principal, its protocol version and its capabilities.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    server: SocketAddr,
    token: Option<&'static str>,
    /// The session of a legacy caller.
    session: Option<String>,
    has_tasks: bool,
    /// Whether a modern caller declares elicitation.
    has_input: bool,
}

impl Caller {
    /// A caller of 2026-07-28 without tasks.
    pub(crate) fn modern(server: SocketAddr, token: Option<&'static str>) -> Self {
        Self { server, token, session: None, has_tasks: false, has_input: false }
    }

    /// A caller of 2026-07-28 that declares elicitation, without tasks.
    pub(crate) fn with_input(server: SocketAddr, token: Option<&'static str>) -> Self {
        Self { has_input: true, ..Self::modern(server, token) }
    }

    /// A caller of 2026-07-28 that declares tasks and elicitation.
    pub(crate) fn with_tasks(server: SocketAddr, token: Option<&'static str>) -> Self {
        Self { has_tasks: true, ..Self::modern(server, token) }
    }

    /// A caller of 2025-11-25 without tasks, in a new session.
    pub(crate) fn legacy(server: SocketAddr, token: Option<&'static str>) -> Result<Self> {
        Self::legacy_with(server, token, json!({}))
    }

    /// A caller of 2025-11-25 with these capabilities, in a new session.
    #[expect(clippy::needless_pass_by_value, reason = "callers pass a `json!` value in place")]
    pub(crate) fn legacy_with(
        server: SocketAddr,
        token: Option<&'static str>,
        capabilities: Value,
    ) -> Result<Self> {
        let mut caller = Self::modern(server, token);
        let has_tasks = capabilities.get("tasks").is_some();
        let params = json!({
            "protocolVersion": LEGACY, "capabilities": capabilities,
            "clientInfo": {"name": "raw-host", "version": "1"},
        });
        let response = caller.send(&message("initialize", params), TIMEOUT)?;
        let session = response.header("mcp-session-id").context("the server opened no session")?;
        caller.session = Some(session.to_owned());
        caller.has_tasks = has_tasks;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        caller.notify(&ready)?;
        Ok(caller)
    }

    /// The same caller at another process of the server. A session is in the store.
    pub(crate) fn at(&self, server: SocketAddr) -> Self {
        Self { server, ..self.clone() }
    }

    /// The same caller, and its session, with the token of another principal.
    pub(crate) fn with_token(&self, token: &'static str) -> Self {
        Self { token: Some(token), ..self.clone() }
    }

    /// Whether the caller has a session.
    pub(crate) fn is_legacy(&self) -> bool {
        self.session.is_some()
    }

    /// Whether the caller declares tasks.
    pub(crate) fn has_tasks(&self) -> bool {
        self.has_tasks
    }

    /// Calls a tool and returns the whole response message.
    #[expect(clippy::needless_pass_by_value, reason = "callers pass a `json!` value in place")]
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> io::Result<Value> {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool until its result is not an empty round. Returns the response message.
    pub(crate) fn call_in_rounds(&self, tool: &str, arguments: &Value) -> io::Result<Value> {
        let mut params = json!({"name": tool, "arguments": arguments});
        loop {
            let message = self.request("tools/call", params.clone())?;
            match message["result"].get("requestState") {
                Some(state) => params["requestState"] = state.clone(),
                None => return Ok(message),
            }
        }
    }

    /// Sends a request and returns its final message.
    pub(crate) fn request(&self, method: &str, params: Value) -> io::Result<Value> {
        let mut response = self.send(&self.framed(method, params), TIMEOUT)?;
        last(&mut response)
    }

    /// Sends a request and returns every message of its response.
    pub(crate) fn exchange(&self, method: &str, params: Value) -> io::Result<(u16, Vec<Value>)> {
        let mut response = self.send(&self.framed(method, params), TIMEOUT)?;
        let mut messages = Vec::new();
        while let Some(message) = response.message()? {
            let is_last = message.get("method").is_none();
            messages.push(message);
            if is_last {
                break;
            }
        }
        Ok((response.status, messages))
    }

    /// A request of the caller's protocol version.
    pub(crate) fn framed(&self, method: &str, mut params: Value) -> Value {
        if !self.is_legacy() {
            let tasks =
                json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
            let capabilities = match (self.has_tasks, self.has_input) {
                (true, _) => tasks,
                (false, true) => json!({"elicitation": {}}),
                (false, false) => json!({}),
            };
            // Members of the caller stay.
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            meta["io.modelcontextprotocol/clientInfo"] =
                json!({"name": "raw-host", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        }
        message(method, params)
    }

    /// Sends a framed request and reads the head of its response.
    pub(crate) fn send(&self, message: &Value, timeout: Duration) -> io::Result<Response> {
        let stream = TcpStream::connect_timeout(&self.server, TIMEOUT)?;
        let headers = self.headers(message);
        let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
        http::exchange(stream, &headers.collect::<Vec<_>>(), message, timeout)
    }

    /// Sends a framed request. The caller reads the response from the stream.
    pub(crate) fn open(&self, message: &Value) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.server, TIMEOUT)?;
        let headers = self.headers(message);
        let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
        http::send(&mut stream, &headers.collect::<Vec<_>>(), message)?;
        Ok(stream)
    }

    /// Sends a notification of a legacy caller.
    pub(crate) fn notify(&self, message: &Value) -> io::Result<()> {
        self.send(message, TIMEOUT).map(drop)
    }

    /// Requests a page without a credential.
    pub(crate) fn page(&self, method: &str, path: &str, body: &str) -> io::Result<(u16, String)> {
        let mut stream = TcpStream::connect_timeout(&self.server, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut response = Response::read(BufReader::new(stream))?;
        Ok((response.status, response.text()?))
    }

    fn headers(&self, message: &Value) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        headers.extend(self.token.map(|token| ("Authorization", format!("Bearer {token}"))));
        let method = message["method"].as_str().unwrap_or_default();
        match &self.session {
            Some(session) => {
                headers.push(("Mcp-Session-Id", session.clone()));
                headers.push(("MCP-Protocol-Version", LEGACY.to_owned()));
            }
            None if method == "initialize" => {}
            None => {
                let params = &message["params"];
                let name = ["name", "taskId", "uri"].iter().find_map(|name| params[name].as_str());
                headers.push(("MCP-Protocol-Version", MODERN.to_owned()));
                headers.push(("Mcp-Method", method.to_owned()));
                headers.extend(name.map(|name| ("Mcp-Name", name.to_owned())));
            }
        }
        headers
    }
}

/// Returns the final message of a response.
pub(crate) fn last(response: &mut Response) -> io::Result<Value> {
    while let Some(message) = response.message()? {
        if message.get("method").is_none() {
            return Ok(message);
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// A request with a unique ID.
#[expect(clippy::needless_pass_by_value, reason = "callers pass a `json!` value in place")]
fn message(method: &str, params: Value) -> Value {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The text of a result: all its text blocks.
pub(crate) fn text(message: &Value) -> String {
    let blocks = message["result"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// The task of a pending result.
pub(crate) fn pending_task(message: &Value) -> Option<&str> {
    let task = &message["result"]["structuredContent"]["task"];
    task["status"].as_str().and_then(|_| task["id"].as_str())
}
