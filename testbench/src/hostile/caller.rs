//! A raw HTTP client with its own address and an optional token.

use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

use crate::crash::http::{self, Response};

pub(super) const MODERN: &str = "2026-07-28";
pub(super) const LEGACY: &str = "2025-11-25";

/// Response timeout.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Network address, credential and target of a caller.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    server: SocketAddr,
    address: Ipv4Addr,
    authorization: Option<String>,
}

impl Caller {
    pub(super) fn new(server: SocketAddr, address: Ipv4Addr, token: Option<&str>) -> Self {
        let authorization = token.map(|token| format!("Bearer {token}"));
        Self { server, address, authorization }
    }

    /// The same address without a credential.
    pub(super) fn anonymous(&self) -> Self {
        Self { authorization: None, ..self.clone() }
    }

    /// Opens a connection from the caller's address.
    pub(super) fn connect(&self) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((self.address, 0)).into())?;
        socket.connect_timeout(&self.server.into(), TIMEOUT)?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(stream)
    }

    /// Sends a message on a new connection.
    pub(super) fn post(&self, headers: &[(&str, &str)], message: &Value) -> io::Result<Response> {
        let mut headers = headers.to_vec();
        if let Some(authorization) = &self.authorization {
            headers.push(("Authorization", authorization));
        }
        http::exchange(self.connect()?, &headers, message, TIMEOUT)
    }

    /// Requests a page.
    pub(super) fn get(&self, path: &str) -> io::Result<Response> {
        let mut stream = self.connect()?;
        write!(stream, "{}Connection: close\r\n\r\n", self.head("GET", path))?;
        Response::read(BufReader::new(stream))
    }

    /// The head of a request, without its last empty line.
    pub(super) fn head(&self, method: &str, path: &str) -> String {
        let authorization = self.authorization.as_deref();
        let authorization =
            authorization.map(|token| format!("Authorization: {token}\r\n")).unwrap_or_default();
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}")
    }

    /// Sends a request of 2026-07-28 and returns its final message.
    pub(super) fn modern(&self, method: &str, params: Value) -> io::Result<Value> {
        self.modern_with(method, params, json!({}))
    }

    /// The same with additional `_meta` members.
    pub(super) fn modern_with(
        &self,
        method: &str,
        params: Value,
        mut meta: Value,
    ) -> io::Result<Value> {
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({
            "elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}},
        });
        self.send(method, params, meta)
    }

    /// Sends a request of 2026-07-28 as a client without tasks, and returns its final message.
    pub(super) fn without_tasks(&self, method: &str, params: Value) -> io::Result<Value> {
        let meta = json!({"io.modelcontextprotocol/clientCapabilities": {}});
        self.send(method, params, meta)
    }

    fn send(&self, method: &str, mut params: Value, mut meta: Value) -> io::Result<Value> {
        meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "caller", "version": "1"});
        params["_meta"] = meta;
        let name = ["name", "taskId", "uri"].iter().find_map(|name| params[name].as_str());
        let name = name.unwrap_or_default().to_owned();
        let headers =
            [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method), ("Mcp-Name", &name)];
        last(self.post(&headers, &request(method, params))?)
    }

    /// Opens a session of 2025-11-25.
    pub(super) fn initialize(&self, client_info: &Value) -> io::Result<Option<String>> {
        let params = json!({
            "protocolVersion": LEGACY,
            "capabilities": {"elicitation": {}},
            "clientInfo": client_info,
        });
        let response = self.post(&[], &request("initialize", params))?;
        Ok(response.header("mcp-session-id").map(str::to_owned))
    }

    /// Sends a message in a session.
    pub(super) fn in_session(&self, session: &str, message: &Value) -> io::Result<Response> {
        let headers = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", LEGACY)];
        self.post(&headers, message)
    }
}

/// A request with a unique ID.
pub(super) fn request(method: &str, params: Value) -> Value {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
    request["params"] = params;
    request
}

/// Returns the final message of a response.
pub(super) fn last(mut response: Response) -> io::Result<Value> {
    while let Some(message) = response.message()? {
        if message.get("method").is_none() {
            return Ok(message);
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}
