//! A client of both wires, which goes to another server when one does not answer.

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

/// How long a client waits for an answer. Shorter than servers are frozen for.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Which revision a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Modern,
    Legacy,
}

/// What a client learns about a request.
#[derive(Debug)]
pub(crate) enum Answer {
    Result(Value),
    Error(Value),
    /// Nothing: it may have been done, or not.
    Nothing,
}

/// Calls any of the servers, as it likes.
pub(crate) struct Client<'f> {
    fleet: &'f Fleet,
    pub(crate) random: Random,
    /// Legacy sessions live in one process, and end with it.
    sessions: HashMap<SocketAddr, String>,
}

impl<'f> Client<'f> {
    pub(crate) fn new(fleet: &'f Fleet, random: Random) -> Self {
        Self { fleet, random, sessions: HashMap::new() }
    }

    /// Asks one server, once.
    pub(crate) fn ask(&mut self, wire: Wire, method: &str, params: Value) -> Answer {
        let Some(mut response) = self.open(wire, method, params) else { return Answer::Nothing };
        loop {
            match response.message() {
                // What comes before the answer is not meant for us.
                Ok(Some(message)) if message.get("method").is_some() => {}
                Ok(Some(message)) => return answer(message),
                Ok(None) | Err(_) => return Answer::Nothing,
            }
        }
    }

    /// Asks one server after the other until one answers, and not that it cannot just now. Only for
    /// what may be done twice. `None` if nobody does before `end`.
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
                // The store is down: that says nothing about the task.
                Answer::Error(error) if error["code"] == -32603 && is_outage(&error) => {}
                answer => return Some(answer),
            }
            thread::sleep(self.random.millis(10..60));
        }
        None
    }

    /// Waits for the result of a legacy task, and answers what it asks meanwhile.
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
                    // That it was taken does not say that it was stored; if not, it is asked again.
                    let _ = http::post(address, &headers, &reply, PATIENCE);
                    answered();
                }
                Ok(Some(message)) if message.get("method").is_some() => {}
                Ok(Some(message)) => return answer(message),
                Ok(None) | Err(_) => return Answer::Nothing,
            }
        }
    }

    /// Asks one server, once; what it says is still to be read.
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

    /// A server that is up, as far as is known.
    fn somewhere(&mut self) -> Option<SocketAddr> {
        let number = self.random.below(self.fleet.len());
        let found = self.fleet.address(number);
        if found.is_none() {
            thread::sleep(Duration::from_millis(5));
        }
        found
    }

    /// A server, and our session with it.
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

/// Sends a request of 2026-07-28, with everything it needs in headers and `_meta`.
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

/// What the last message of a response says.
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

/// Whether an error says nothing about what was asked for.
fn is_outage(error: &Value) -> bool {
    // The reason stays in the log of the server, and when to try again is all that is said. A task
    // that failed says more.
    error["data"].is_null() || error["data"].get("retryAfterMs").is_some()
}
