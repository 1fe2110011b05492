//! A client of both eras that tries another server when one does not respond.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fleet::Fleet;
use super::http::{self, NoAnswer, Response};
use super::random::Random;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// Timeout of a response. Shorter than the time servers are frozen.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// The protocol version of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Modern,
    Legacy,
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    Result(Value),
    Error(Value),
    /// No response: the request may or may not have been executed.
    Nothing,
}

/// A client that sends each request to a random server.
pub(crate) struct Client<'f> {
    fleet: &'f Fleet,
    pub(crate) random: Random,
    /// Legacy sessions by server process.
    sessions: HashMap<SocketAddr, String>,
}

impl<'f> Client<'f> {
    pub(crate) fn new(fleet: &'f Fleet, random: Random) -> Self {
        Self { fleet, random, sessions: HashMap::new() }
    }

    /// Sends a request to one server, once.
    pub(crate) fn ask(&mut self, wire: Wire, method: &str, params: Value) -> Answer {
        let Some(mut response) = self.open(wire, method, params) else { return Answer::Nothing };
        loop {
            match response.message() {
                // Skip notifications and requests before the response.
                Ok(Some(message)) if message.get("method").is_some() => {}
                Ok(Some(message)) => return answer(message),
                Ok(None) | Err(_) => return Answer::Nothing,
            }
        }
    }

    /// Sends a request to one server after the other until one responds without an outage error.
    /// Only for idempotent requests. Returns `None` if no server responds before `end`.
    pub(crate) fn insist(
        &mut self,
        wire: Wire,
        method: &str,
        params: &Value,
        end: Instant,
    ) -> Option<Answer> {
        while Instant::now() < end {
            match self.ask(wire, method, params.clone()) {
                Answer::Nothing => {}
                // The store is unavailable, which says nothing about the task.
                Answer::Error(error) if error["code"] == -32603 && is_outage(&error) => {}
                answer => return Some(answer),
            }
            thread::sleep(self.random.millis(10..60));
        }
        None
    }

    /// Waits for the result of a legacy task and responds to its input requests.
    pub(crate) fn legacy_result(
        &mut self,
        task: &str,
        word: &str,
        mut answered: impl FnMut(),
    ) -> Answer {
        let params = json!({"taskId": task});
        let Some((address, session)) = self.session() else { return Answer::Nothing };
        let headers = legacy_headers(&session);
        let message = request("tasks/result", &params);
        let Ok(mut response) = http::post(address, &headers, &message, PATIENCE) else {
            return Answer::Nothing;
        };
        if response.status == 404 {
            self.sessions.remove(&address);
            return Answer::Nothing;
        }
        loop {
            match response.message() {
                Ok(Some(message)) if message["method"] == "elicitation/create" => {
                    let result = json!({"action": "accept", "content": {"word": word}});
                    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                    // A 202 does not mean that the response was stored. If it was not, the server
                    // sends the input request again.
                    let _ = http::post(address, &headers, &reply, PATIENCE);
                    answered();
                }
                Ok(Some(message)) if message.get("method").is_some() => {}
                Ok(Some(message)) => return answer(message),
                Ok(None) | Err(_) => return Answer::Nothing,
            }
        }
    }

    /// Sends a request to one server; the caller reads the response.
    pub(crate) fn open(&mut self, wire: Wire, method: &str, params: Value) -> Option<Response> {
        match wire {
            Wire::Modern => modern(self.somewhere()?, method, params, PATIENCE).ok(),
            Wire::Legacy => {
                let (address, session) = self.session()?;
                let headers = legacy_headers(&session);
                let asked = http::post(address, &headers, &request(method, &params), PATIENCE);
                let response = asked.ok()?;
                if response.status == 404 {
                    self.sessions.remove(&address);
                    return None;
                }
                Some(response)
            }
        }
    }

    /// Returns the address of a server that is probably running.
    fn somewhere(&mut self) -> Option<SocketAddr> {
        let number = self.random.below(self.fleet.len());
        let found = self.fleet.address(number);
        if found.is_none() {
            thread::sleep(Duration::from_millis(5));
        }
        found
    }

    /// Returns a server and the session with it.
    fn session(&mut self) -> Option<(SocketAddr, String)> {
        let address = self.somewhere()?;
        if let Some(session) = self.sessions.get(&address) {
            return Some((address, session.clone()));
        }
        let hello = json!({
            "protocolVersion": LEGACY,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "crash", "version": "1"},
        });
        let response = http::post(address, &[], &request("initialize", &hello), PATIENCE).ok()?;
        let session = response.header("mcp-session-id")?.to_owned();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        http::post(address, &legacy_headers(&session), &ready, PATIENCE).ok()?;
        self.sessions.insert(address, session.clone());
        Some((address, session))
    }
}

/// Sends a request of 2026-07-28 with all headers and `_meta` keys.
pub(crate) fn modern(
    address: SocketAddr,
    method: &str,
    mut params: Value,
    patience: Duration,
) -> Result<Response, NoAnswer> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "crash", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        },
    });
    let name = params.get("name").or_else(|| params.get("taskId"));
    let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
    let headers =
        [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method), ("Mcp-Name", name.as_str())];
    http::post(address, &headers, &request(method, &params), patience)
}

/// Converts the last message of a response.
pub(crate) fn answer(mut message: Value) -> Answer {
    match (message.get_mut("result").map(Value::take), message.get_mut("error").map(Value::take)) {
        (Some(result), _) => Answer::Result(result),
        (None, Some(error)) => Answer::Error(error),
        (None, None) => Answer::Nothing,
    }
}

fn legacy_headers(session: &str) -> [(&str, &str); 2] {
    [("Mcp-Session-Id", session), ("MCP-Protocol-Version", LEGACY)]
}

fn request(method: &str, params: &Value) -> Value {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Whether an error says nothing about the task.
fn is_outage(error: &Value) -> bool {
    // An outage error has no data or only a retry delay. The error of a failed task has more.
    error["data"].is_null() || error["data"].get("retryAfterMs").is_some()
}
