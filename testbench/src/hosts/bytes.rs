//! Clients with tasks, and servers without bridging: the same messages as before bridging.
//!
//! A scripted session is recorded. For a client with tasks, a server with bridging must send the
//! messages of a server without. For a client without tasks, a server without bridging must send the
//! messages of `unbridged.json`, which a server from before bridging sent.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use xtask::process;

use super::bench::Bench;
use super::caller::Caller;
use super::home::{Home, Server};
use crate::row::Row;

const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:0"

[hosts]
fallback = @BRIDGED@

[tools.echo]
description = "Prints a text."
command = ["echo", "{text}"]
arguments.text = { type = "string" }

[tools.slow]
description = "Takes its time."
shell = true
command = '''
sleep 1
echo "{\"done\": \"$arg_text\"}"
'''
arguments.text = { type = "string" }
output = "json"
output_schema = '{"type": "object", "properties": {"done": {"type": "string"}}}'
task_after = "200ms"

[tools.always]
description = "Runs as a task."
command = ["echo", "{text}"]
arguments.text = { type = "string" }
task = "always"

[tools.fail]
description = "Fails."
shell = true
command = "echo broken >&2; exit 3"
"#;

/// Members that differ between two equal sessions.
const VARIABLE: &[&str] = &["id", "taskId", "createdAt", "lastUpdatedAt", "ttl"];
/// Time until a task ends.
const TASK: Duration = Duration::from_secs(20);

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let config = |bridged: &str| CONFIG.replace("@BRIDGED@", bridged);
    let with = Home::new(bench, "bytes-on", &config("true"))?;
    let without = Home::new(bench, "bytes-off", &config("false"))?;
    let (with, without) = (with.start()?, without.start()?);
    let mut rows = Vec::new();
    for (name, connect) in WITH_TASKS {
        let (on, off) = (session(&connect(&with)?)?, session(&connect(&without)?)?);
        let bar = "the same as from a server without bridging";
        rows.push(compared(&format!("{name}: messages of a server with bridging"), &off, &on, bar));
    }
    let without_tasks = [
        ("2026-07-28", Caller::modern(without.address, None)),
        ("2025-11-25", Caller::legacy(without.address, None)?),
    ];
    if bench.records {
        record(&without_tasks)?;
    }
    let recorded: Value = serde_json::from_str(&fs::read_to_string(recording())?)?;
    for (name, caller) in without_tasks {
        let now = session(&caller)?;
        let before = recorded[name].as_array().context("`unbridged.json` has every version")?;
        let bar = "the same as from a server before bridging";
        let case = format!("client without tasks, {name}: messages of a server without bridging");
        rows.push(compared(&case, before, &now, bar));
    }
    Ok(rows)
}

type Connect = fn(&Server<'_>) -> Result<Caller>;

/// Clients that declare tasks.
const WITH_TASKS: [(&str, Connect); 2] = [
    ("client with tasks, 2026-07-28", |server| Ok(Caller::with_tasks(server.address, None))),
    ("client with tasks, 2025-11-25", |server| {
        let tasks = json!({"tasks": {"list": {}, "cancel": {}, "requests": {}}});
        Caller::legacy_with(server.address, None, tasks)
    }),
];

/// The recorded messages of a server from before bridging.
fn recording() -> PathBuf {
    process::root().join("testbench/src/hosts/unbridged.json")
}

/// Writes the recording.
fn record(callers: &[(&str, Caller)]) -> Result<()> {
    let mut versions = Map::new();
    for (name, caller) in callers {
        versions.insert((*name).to_owned(), json!(session(caller)?));
    }
    let text = serde_json::to_string_pretty(&Value::Object(versions))?;
    Ok(fs::write(recording(), text + "\n")?)
}

/// Plays the script and returns every normalized message.
fn session(caller: &Caller) -> Result<Vec<Value>> {
    let mut seen = Vec::new();
    let mut ask = |method: &str, params: Value| -> Result<Value> {
        let (status, messages) = caller.exchange(method, params)?;
        let last = messages.last().cloned().unwrap_or_default();
        let messages: Vec<Value> = messages.into_iter().map(normal).collect();
        seen.push(json!({"method": method, "status": status, "messages": messages}));
        Ok(last)
    };
    if !caller.is_legacy() {
        ask("server/discover", json!({}))?;
    }
    ask("tools/list", json!({}))?;
    ask("resources/list", json!({}))?;
    ask("resources/templates/list", json!({}))?;
    let mut tasks = Vec::new();
    // The tool `task_result` exists only with bridging, unlisted for clients with tasks.
    let unknown = if caller.has_tasks() { "no_such_tool" } else { "task_result" };
    for tool in ["echo", "slow", "always", "fail", unknown] {
        let arguments = if tool == "fail" { json!({}) } else { json!({"text": "hello"}) };
        let mut params = json!({"name": tool, "arguments": arguments});
        // A legacy client with tasks requests one.
        if caller.is_legacy() && caller.has_tasks() && tool != unknown {
            params["task"] = json!({"ttl": 60_000});
        }
        let reply = ask("tools/call", params)?;
        let result = &reply["result"];
        let task = result["taskId"].as_str().or_else(|| result["task"]["taskId"].as_str());
        tasks.extend(task.map(str::to_owned));
    }
    ask("tasks/get", json!({"taskId": "0123456789abcdef0123456789abcdef"}))?;
    for task in tasks {
        let ended = end(caller, &task)?;
        seen.push(json!({"method": "tasks/get", "ended": normal(ended)}));
    }
    Ok(seen)
}

/// Polls a task until it ends and returns the last response.
fn end(caller: &Caller, task: &str) -> Result<Value> {
    let started = Instant::now();
    loop {
        let state = caller.request("tasks/get", json!({"taskId": task}))?;
        if state["result"]["status"] != "working" {
            return Ok(state);
        }
        ensure!(started.elapsed() < TASK, "{task} still runs");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Replaces IDs and times.
fn normal(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let replace = |(name, value): (String, Value)| {
                let is_variable = VARIABLE.contains(&name.as_str()) && !value.is_object();
                let value = if is_variable { json!(format!("a {name}")) } else { normal(value) };
                (name, value)
            };
            Value::Object(members.into_iter().map(replace).collect::<Map<_, _>>())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(normal).collect()),
        other => other,
    }
}

fn compared(case: &str, expected: &[Value], found: &[Value], bar: &str) -> Row {
    let different = expected.iter().zip(found).find(|(expected, found)| expected != found);
    let is_met = different.is_none() && expected.len() == found.len();
    let mut figure = format!("{} of {} exchanges", found.len(), expected.len());
    match different {
        Some((expected, found)) => {
            let short = |value: &Value| value.to_string().chars().take(1_500).collect::<String>();
            figure.push_str(&format!("; first difference: {} | {}", short(expected), short(found)));
        }
        None => figure.push_str(", all equal"),
    }
    Row::new(case, figure, bar, is_met)
}

#[cfg(test)]
mod tests {
    use super::{json, normal};

    #[test]
    fn normal_message_has_no_ids() {
        let message = json!({"id": 7, "result": {"taskId": "5f1d", "status": "working"}});
        let expected = json!({"id": "a id", "result": {"taskId": "a taskId", "status": "working"}});
        assert_eq!(normal(message), expected);
    }
}
