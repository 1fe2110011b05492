//! A server whose messages are written by hand, for what a real server does not do.

use std::{
    collections::HashMap,
    fs::OpenOptions,
    io::{self, BufRead as _, Write as _},
};

use serde_json::{Value, json};

/// Serves one client. `notes` is a file that gets a line for each event.
pub(crate) fn serve(is_modern: bool, notes: Option<String>) -> io::Result<()> {
    let mut server = Raw { is_modern, notes, waiting: HashMap::new(), requests: 0, lists: 0 };
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        match message["method"].as_str() {
            Some(method) => server.handle(method, &message)?,
            None => server.responded(&message)?,
        }
    }
    Ok(())
}

struct Raw {
    is_modern: bool,
    notes: Option<String>,
    /// The call that a request to the client belongs to; `None` outside of calls.
    waiting: HashMap<String, Option<Value>>,
    requests: usize,
    lists: usize,
}

impl Raw {
    fn handle(&mut self, method: &str, message: &Value) -> io::Result<()> {
        let id = &message["id"];
        match method {
            "initialize" => self.respond(id, &json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "raw", "version": "1"}
            })),
            "server/discover" if self.is_modern => self.respond(id, &json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": true}}, "ttlMs": 0, "cacheScope": "private"
            })),
            "notifications/initialized" => self.request("roots/list", None),
            "notifications/roots/list_changed" => {
                self.note("roots changed")?;
                self.request("roots/list", None)
            }
            "ping" => self.respond(id, &json!({})),
            "tools/list" => self.list(id),
            "tools/call" => self.call(message),
            _ if id.is_null() => Ok(()),
            _ => write(&json!({
                "jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "method not found"}
            })),
        }
    }

    /// Lists one more tool each time.
    fn list(&mut self, id: &Value) -> io::Result<()> {
        self.note("list")?;
        self.lists += 1;
        let names = ["roots", "noise", "endless", "large", "withdraw"].map(str::to_owned);
        let more =
            (1..self.lists).filter(|_| self.is_modern).map(|number| format!("more_{number}"));
        let tools: Vec<Value> = names
            .into_iter()
            .chain(more)
            .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
            .collect();
        self.respond(
            id,
            &match self.is_modern {
                true => json!({
                    "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"
                }),
                false => json!({"tools": tools}),
            },
        )
    }

    fn call(&mut self, message: &Value) -> io::Result<()> {
        let id = &message["id"];
        match message["params"]["name"].as_str().unwrap_or_default() {
            "roots" => self.request("roots/list", Some(id.clone())),
            "noise" => (0..150).try_for_each(|_| writeln!(io::stdout(), "this is not a message")),
            "endless" => {
                let part = vec![b'x'; 1 << 20];
                let mut out = io::stdout();
                loop {
                    out.write_all(&part)?;
                }
            }
            "large" => {
                let bytes = message["params"]["arguments"]["bytes"].as_u64().unwrap_or_default();
                let text = "x".repeat(usize::try_from(bytes).unwrap_or_default());
                self.respond(id, &text_result(&text))
            }
            _ => {
                let params = json!({
                    "message": "Which color?", "requestedSchema": {"type": "object", "properties": {}}
                });
                write(&json!({
                    "jsonrpc": "2.0", "id": "withdrawn", "method": "elicitation/create",
                    "params": params
                }))?;
                std::thread::sleep(std::time::Duration::from_millis(500));
                write(&json!({
                    "jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": "withdrawn"}
                }))?;
                std::thread::sleep(std::time::Duration::from_millis(500));
                self.respond(id, &text_result("withdrawn"))
            }
        }
    }

    /// Sends a request to the client.
    fn request(&mut self, method: &str, call: Option<Value>) -> io::Result<()> {
        self.requests += 1;
        let id = format!("raw-{}", self.requests);
        self.waiting.insert(id.clone(), call);
        write(&json!({"jsonrpc": "2.0", "id": id, "method": method}))
    }

    fn responded(&mut self, message: &Value) -> io::Result<()> {
        let call = self.waiting.remove(message["id"].as_str().unwrap_or_default());
        let roots = message["result"]["roots"].as_array().map(Vec::len);
        match (call, roots) {
            (Some(Some(id)), Some(roots)) => {
                self.respond(&id, &text_result(&format!("{roots} roots")))
            }
            (Some(Some(id)), None) => self.respond(&id, &text_result("no roots")),
            (Some(None), Some(roots)) => self.note(&format!("{roots} roots")),
            _ => Ok(()),
        }
    }

    fn respond(&self, id: &Value, result: &Value) -> io::Result<()> {
        let mut result = result.clone();
        if self.is_modern {
            result["resultType"] = "complete".into();
        }
        write(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn note(&self, text: &str) -> io::Result<()> {
        let Some(notes) = &self.notes else { return Ok(()) };
        writeln!(OpenOptions::new().create(true).append(true).open(notes)?, "{text}")
    }
}

fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn write(message: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{message}")?;
    out.flush()
}
