//! Tasks of a raw caller.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::hosts::caller::Caller;

/// Maximum time of one task. Only a failing run waits this long.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(5);

/// Calls a tool that is always a task, and returns the ID of the task.
pub(super) fn start(caller: &Caller, tool: &str, arguments: Value) -> Result<String> {
    let reply = caller.call(tool, arguments).with_context(|| format!("no response of {tool}"))?;
    let id = reply["result"]["taskId"].as_str();
    Ok(id.with_context(|| format!("a task was expected: {reply}"))?.to_owned())
}

/// Polls a task until it is completed, accepts its input requests, and returns its texts.
pub(super) fn texts(caller: &Caller, id: &str) -> Result<Vec<String>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let reply = caller.request("tasks/get", json!({"taskId": id}))?;
        let task = &reply["result"];
        match task["status"].as_str() {
            Some("completed") => return texts_of(&task["result"]),
            Some("working") => {}
            Some("input_required") => accept(caller, id, task)?,
            _ => bail!("task {id} is not completed: {reply}"),
        }
        if Instant::now() > deadline {
            bail!("task {id} is not completed after {} s: {task}", PATIENCE.as_secs());
        }
        thread::sleep(POLL);
    }
}

/// Accepts every open input request with `yes`.
fn accept(caller: &Caller, id: &str, task: &Value) -> Result<()> {
    let requests = task["inputRequests"].as_object().cloned().unwrap_or_default();
    let accepted = json!({"action": "accept", "content": {"yes": true}});
    let responses: Map<String, Value> =
        requests.into_iter().map(|(key, _)| (key, accepted.clone())).collect();
    if !responses.is_empty() {
        caller.request("tasks/update", json!({"taskId": id, "inputResponses": responses}))?;
    }
    Ok(())
}

fn texts_of(result: &Value) -> Result<Vec<String>> {
    let content = result["content"].as_array();
    let content = content.with_context(|| format!("content was expected: {result}"))?;
    Ok(content.iter().filter_map(|block| Some(block["text"].as_str()?.to_owned())).collect())
}
