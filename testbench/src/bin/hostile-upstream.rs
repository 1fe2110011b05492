//! A hostile MCP server on stdio, and an honest one: `hostile-upstream CASE [COUNT]`.
//!
//! It reads and writes lines without an SDK, because no SDK sends such messages. `COUNT` is the size
//! of the attack. Every server has the tool `echo`, whose calls start the attack.

use std::io::{self, BufRead, StdinLock, StdoutLock, Write};
use std::time::Duration;

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let case = words.next().unwrap_or_default();
    let count = words.next().and_then(|count| count.parse().ok()).unwrap_or(1);
    if case == "exit-in-handshake" {
        eprintln!("cannot open the attack");
        std::process::exit(3);
    }
    let mut peer =
        Peer { case, count, input: io::stdin().lock(), output: io::stdout().lock(), last: None };
    while let Some(message) = peer.read()? {
        peer.answer(&message)?;
    }
    Ok(())
}

/// The connection to the gateway.
struct Peer {
    case: String,
    /// Size of the attack.
    count: usize,
    input: StdinLock<'static>,
    output: StdoutLock<'static>,
    /// ID of the last call.
    last: Option<Value>,
}

impl Peer {
    fn read(&mut self) -> io::Result<Option<Value>> {
        let mut line = String::new();
        match self.input.read_line(&mut line)? {
            0 => Ok(None),
            _ => Ok(Some(serde_json::from_str(&line)?)),
        }
    }

    fn write(&mut self, message: &Value) -> io::Result<()> {
        writeln!(self.output, "{message}")?;
        self.output.flush()
    }

    fn respond(&mut self, id: &Value, result: Value) -> io::Result<()> {
        let mut result = result;
        if self.is_modern() && result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn is_modern(&self) -> bool {
        self.case == "endless-input-required"
    }

    fn answer(&mut self, message: &Value) -> io::Result<()> {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return Ok(());
        };
        match method {
            "initialize" => {
                let result = self.handshake(message);
                self.respond(id, result)
            }
            "server/discover" if self.is_modern() => {
                let versions = json!(["2026-07-28"]);
                let result = json!({"supportedVersions": versions, "capabilities": {"tools": {}}});
                self.respond(id, result)
            }
            "ping" => self.respond(id, json!({})),
            "tools/list" => self.list(message, id),
            "tools/call" => self.call(message, id),
            "tasks/get" => {
                let task = task();
                self.respond(id, task)
            }
            // The result of a task that never ends, and everything that the attack leaves open.
            "tasks/result" => Ok(()),
            _ => self.write(&json!({
                "jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "not found"},
            })),
        }
    }

    fn handshake(&self, message: &Value) -> Value {
        let asked = message["params"]["protocolVersion"].as_str().unwrap_or_default();
        let is_task = self.case == "endless-task";
        let version = if is_task { "2025-11-25" } else { asked.min("2025-06-18") };
        let mut capabilities = json!({"tools": {"listChanged": true}, "logging": {}});
        if is_task {
            capabilities["tasks"] =
                json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        }
        json!({
            "protocolVersion": version, "capabilities": capabilities,
            "serverInfo": {"name": "hostile", "version": "1"},
        })
    }

    fn list(&mut self, message: &Value, id: &Value) -> io::Result<()> {
        let page: usize =
            message["params"]["cursor"].as_str().and_then(|page| page.parse().ok()).unwrap_or(0);
        let result = match self.case.as_str() {
            // Empty pages, so that no limit of tools ends them.
            "endless-pages" => json!({"tools": [], "nextCursor": (page + 1).to_string()}),
            "many-tools" => {
                let tools: Vec<Value> =
                    (0..self.count).map(|number| tool(&format!("tool-{number}"), "")).collect();
                json!({"tools": tools})
            }
            "changing-tools" => {
                self.count += 1;
                let number = self.count;
                let changed = json!({
                    "jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                });
                let tools: Vec<Value> = (0..100)
                    .map(|tool_number| tool(&format!("tool-{number}-{tool_number}"), ""))
                    .chain([tool("echo", &format!("changed {number} times"))])
                    .collect();
                self.respond(id, json!({"tools": tools}))?;
                return self.write(&changed);
            }
            "endless-task" => {
                let mut echo = tool("echo", "");
                echo["execution"] = json!({"taskSupport": "required"});
                json!({"tools": [echo]})
            }
            _ => json!({"tools": [tool("echo", "")]}),
        };
        self.respond(id, result)
    }

    fn call(&mut self, message: &Value, id: &Value) -> io::Result<()> {
        let text = message["params"]["arguments"]["text"].as_str().unwrap_or_default().to_owned();
        let earlier = self.last.replace(id.clone());
        match self.case.as_str() {
            "invalid-json" => {
                for _ in 0..self.count {
                    writeln!(self.output, "{{this is not JSON")?;
                }
                self.output.flush()
            }
            "half-line" => {
                write!(self.output, r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"ty"#)?;
                self.output.flush()
            }
            "long-line" => self.long_line(id),
            "no-response" => Ok(()),
            "foreign-ids" => {
                for number in 0..self.count {
                    self.respond(&json!(1_000_000_000 + number), content("foreign"))?;
                }
                self.respond(id, content(&text))
            }
            "used-ids" => {
                for _ in 0..self.count {
                    if let Some(earlier) = &earlier {
                        self.respond(earlier, content("used"))?;
                    }
                }
                self.respond(id, content(&text))
            }
            "two-responses" => {
                self.respond(id, content(&text))?;
                self.respond(id, content("second"))
            }
            "notifications" => {
                self.flood(message)?;
                self.respond(id, content(&text))
            }
            "undeclared-input" => {
                let answer = self.ask()?;
                let code = answer["error"]["code"].clone();
                self.respond(id, content(&format!("{text} {code}")))
            }
            "endless-input-required" => self.respond(
                id,
                // Without input requests the gateway sends the next round by itself.
                json!({"resultType": "input_required", "requestState": "again"}),
            ),
            "endless-task" => self.respond(id, json!({"task": task()})),
            _ => self.respond(id, content(&text)),
        }
    }

    /// Writes a response whose line has `count` bytes.
    fn long_line(&mut self, id: &Value) -> io::Result<()> {
        let part = [b'a'; 1 << 16];
        write!(
            self.output,
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#
        )?;
        for _ in 0..self.count.div_ceil(part.len()) {
            self.output.write_all(&part)?;
        }
        writeln!(self.output, r#""}}]}}}}"#)?;
        self.output.flush()
    }

    /// Sends notifications of every kind, with and without a call.
    fn flood(&mut self, message: &Value) -> io::Result<()> {
        let token = message["params"]["_meta"]["progressToken"].clone();
        for number in 0..self.count {
            let notification = match number % 4 {
                0 if !token.is_null() => {
                    ("progress", json!({"progressToken": token, "progress": number}))
                }
                1 => ("resources/updated", json!({"uri": format!("note://{number}")})),
                2 => ("tools/list_changed", json!({})),
                _ => ("message", json!({"level": "error", "data": "x".repeat(100)})),
            };
            let (method, params) = notification;
            let method = format!("notifications/{method}");
            let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
            writeln!(self.output, "{message}")?;
        }
        self.output.flush()
    }

    /// Requests input, and returns the response.
    fn ask(&mut self) -> io::Result<Value> {
        let schema = json!({"type": "object", "properties": {}});
        self.write(&json!({
            "jsonrpc": "2.0", "id": "ask", "method": "elicitation/create",
            "params": {"message": "Your password?", "requestedSchema": schema},
        }))?;
        // Other requests of the gateway wait meanwhile.
        loop {
            match self.read()? {
                Some(message) if message["id"] == "ask" => return Ok(message),
                Some(_) => {}
                None => std::thread::sleep(Duration::from_secs(3600)),
            }
        }
    }
}

fn tool(name: &str, description: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    json!({"name": name, "description": description, "inputSchema": schema})
}

fn content(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A task of 2025-11-25 that never ends.
fn task() -> Value {
    json!({
        "taskId": "endless", "status": "working", "ttl": null, "pollInterval": 100,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
    })
}
