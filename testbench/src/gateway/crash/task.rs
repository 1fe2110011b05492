//! A task as its client sees it.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::site::Site;
use crate::hosts::caller::Caller;

/// Time between two polls.
const POLL: Duration = Duration::from_millis(20);

/// Time for a task to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls a tool whose call becomes a task. Returns the ID of the task.
pub(super) fn create(caller: &Caller, tool: &str, arguments: Value) -> Result<String> {
    let created = caller.call(tool, arguments)?;
    let id = created["result"]["taskId"].as_str();
    Ok(id.with_context(|| format!("{tool} did not become a task: {created}"))?.to_owned())
}

/// Returns the current state of a task.
pub(super) fn get(caller: &Caller, id: &str) -> io::Result<Value> {
    let message = caller.request("tasks/get", json!({"taskId": id}))?;
    match message.get("result") {
        Some(result) => Ok(result.clone()),
        None => Err(io::Error::other(format!("tasks/get got {message}"))),
    }
}

/// Waits until the state satisfies a condition, or the task has ended. Returns the state.
pub(super) fn until(
    site: &Site<'_>,
    caller: &Caller,
    id: &str,
    is_it: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let caller = site.at(caller)?;
    let begun = Instant::now();
    loop {
        let state = get(&caller, id)?;
        if has_ended(&state) || is_it(&state) {
            return Ok(state);
        }
        if begun.elapsed() > PATIENCE {
            bail!("the task does not end: {state}");
        }
        thread::sleep(POLL);
    }
}

pub(super) fn has_ended(state: &Value) -> bool {
    matches!(state["status"].as_str(), Some("completed" | "failed" | "cancelled"))
}

/// The text of the result of an ended task, or its error.
pub(super) fn outcome(state: &Value) -> String {
    match state["result"]["content"][0]["text"].as_str() {
        Some(text) => text.to_owned(),
        None => state.to_string(),
    }
}

/// Responds to the open input requests of a task.
pub(super) fn respond(caller: &Caller, id: &str, state: &Value, word: &str) -> Result<()> {
    let requests = state["inputRequests"].as_object().context("no input request is open")?;
    let response = json!({"action": "accept", "content": {"word": word}});
    let responses: Value = requests.keys().map(|key| (key.clone(), response.clone())).collect();
    let params = json!({"taskId": id, "inputResponses": responses});
    let reply = caller.request("tasks/update", params)?;
    ensure!(reply.get("result").is_some(), "the input response was rejected: {reply}");
    Ok(())
}
