//! The server on stdio: one process for each principal.

use std::collections::HashMap;
use std::io::{self, BufRead, StdoutLock, Write};

use serde_json::{Value, json};

use super::messages::{URI, confirmed, form, handshake, mark_of, not_found, response, text, tools};

/// Protocol of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// 2025-06-18.
    Legacy,
    /// 2025-11-25, with tasks.
    Tasks,
    /// 2026-07-28.
    Modern,
}

/// Serves until standard input ends.
pub(super) fn serve(kind: Kind) -> io::Result<()> {
    let mut server = Server {
        kind,
        output: io::stdout().lock(),
        remembered: "nothing".to_owned(),
        asked: HashMap::new(),
        marks: Vec::new(),
    };
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        server.take(&message)?;
    }
    Ok(())
}

struct Server {
    kind: Kind,
    output: StdoutLock<'static>,
    /// The mark that the process remembers.
    remembered: String,
    /// The call and the mark of each open input request, by its ID.
    asked: HashMap<u64, (Value, String)>,
    /// Marks of the tasks, by number.
    marks: Vec<String>,
}

impl Server {
    fn write(&mut self, message: &Value) -> io::Result<()> {
        writeln!(self.output, "{message}")?;
        self.output.flush()
    }

    fn respond(&mut self, id: &Value, mut result: Value) -> io::Result<()> {
        if self.kind == Kind::Modern && result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        self.write(&response(id, &result))
    }

    fn notify(&mut self, method: &str, params: Value) -> io::Result<()> {
        let mut message = json!({"jsonrpc": "2.0", "method": format!("notifications/{method}")});
        message["params"] = params;
        self.write(&message)
    }

    fn take(&mut self, message: &Value) -> io::Result<()> {
        let Some(id) = message.get("id").cloned() else { return Ok(()) };
        let Some(method) = message["method"].as_str() else { return self.input(&id, message) };
        match method {
            "initialize" => {
                let tasks = self.kind == Kind::Tasks;
                self.respond(&id, handshake(if tasks { "2025-11-25" } else { "2025-06-18" }))
            }
            "server/discover" if self.kind == Kind::Modern => self.respond(
                &id,
                json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
            ),
            "ping" | "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => {
                self.respond(&id, json!({}))
            }
            "tools/list" => {
                let names: &[&str] = match self.kind {
                    Kind::Legacy => &["echo", "remember", "recall", "form", "slow"],
                    Kind::Tasks => &["work"],
                    Kind::Modern => &["rounds"],
                };
                self.respond(&id, tools(names))
            }
            "resources/list" if self.kind == Kind::Legacy => {
                self.respond(&id, json!({"resources": [{"uri": URI, "name": "same"}]}))
            }
            "resources/read" => {
                let contents = json!([{"uri": URI, "text": self.remembered}]);
                self.respond(&id, json!({"contents": contents}))
            }
            "tools/call" => self.call(&id, message),
            "tasks/get" => {
                let task = task(message["params"]["taskId"].as_str().unwrap_or_default());
                self.respond(&id, task)
            }
            "tasks/result" => {
                let number = message["params"]["taskId"]
                    .as_str()
                    .and_then(|id| id.strip_prefix("task-")?.parse::<usize>().ok()?.checked_sub(1));
                let mark = number.and_then(|number| self.marks.get(number).cloned());
                self.respond(&id, text(&mark.unwrap_or_default()))
            }
            _ => self.write(&not_found(&id)),
        }
    }

    fn call(&mut self, id: &Value, message: &Value) -> io::Result<()> {
        let mark = mark_of(message).to_owned();
        match message["params"]["name"].as_str().unwrap_or_default() {
            "remember" => {
                self.remembered.clone_from(&mark);
                self.notify("resources/updated", json!({"uri": URI}))?;
                self.respond(id, text(&mark))
            }
            "recall" => {
                let remembered = self.remembered.clone();
                self.respond(id, text(&remembered))
            }
            "form" => {
                // Every process counts from zero, so that principals have the same IDs.
                let ask = self.asked.len() as u64;
                self.write(&json!({
                    "jsonrpc": "2.0", "id": ask, "method": "elicitation/create",
                    "params": form(&mark),
                }))?;
                self.asked.insert(ask, (id.clone(), mark));
                Ok(())
            }
            "slow" => {
                let token = message["params"]["_meta"]["progressToken"].clone();
                for step in 1..=3 {
                    if !token.is_null() {
                        let progress = json!({
                            "progressToken": token, "progress": step, "message": mark,
                        });
                        self.notify("progress", progress)?;
                    }
                    self.notify("message", json!({"level": "error", "data": mark}))?;
                }
                self.respond(id, text(&mark))
            }
            "work" => {
                self.marks.push(mark);
                let task = task(&format!("task-{}", self.marks.len()));
                self.respond(id, json!({"task": task}))
            }
            "rounds" => match message["params"]["inputResponses"].get("same") {
                Some(response) => self.respond(id, confirmed(&mark, response)),
                None => self.respond(
                    id,
                    json!({
                        "resultType": "input_required", "requestState": "the same state",
                        "inputRequests": {
                            "same": {"method": "elicitation/create", "params": form(&mark)},
                        },
                    }),
                ),
            },
            _ => self.respond(id, text(&mark)),
        }
    }

    /// Takes the response to an input request.
    fn input(&mut self, id: &Value, message: &Value) -> io::Result<()> {
        let known = id.as_u64().and_then(|id| self.asked.get(&id).cloned());
        let Some((call, mark)) = known else { return Ok(()) };
        self.respond(&call, confirmed(&mark, &message["result"]))
    }
}

/// A task that has ended.
fn task(id: &str) -> Value {
    json!({
        "taskId": id, "status": "completed", "ttl": 60_000, "pollInterval": 100,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
    })
}
