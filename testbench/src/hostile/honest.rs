//! The honest caller: calls a fast tool continuously and sometimes runs a task.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::caller::Caller;

/// Time between two calls, and between two tasks.
const CALL_INTERVAL: Duration = Duration::from_millis(20);
const TASK_INTERVAL: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Timeout of a task.
const TASK_TIMEOUT: Duration = Duration::from_secs(30);

/// Measurements of the honest caller.
#[derive(Debug, Default)]
pub(super) struct Experience {
    pub(super) calls: Vec<Duration>,
    pub(super) tasks: Vec<Duration>,
    /// Errors of the server or the operating system.
    pub(super) failures: Vec<String>,
}

impl Experience {
    /// Returns a percentile of the call latencies.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let mut calls = self.calls.clone();
        calls.sort();
        let index = (calls.len() * percent / 100).min(calls.len().saturating_sub(1));
        calls.get(index).copied().unwrap_or_default()
    }

    pub(super) fn slowest_task(&self) -> Duration {
        self.tasks.iter().max().copied().unwrap_or_default()
    }
}

/// Calls until `end` from two threads, so that calls do not wait for tasks.
pub(super) fn run(caller: &Caller, end: Instant) -> Experience {
    thread::scope(|scope| {
        let tasks = scope.spawn(move || run_tasks(caller, end));
        let mut experience = run_calls(caller, end);
        match tasks.join() {
            Ok(other) => {
                experience.tasks = other.tasks;
                experience.failures.extend(other.failures);
            }
            Err(_) => experience.failures.push("the thread with the tasks panicked".to_owned()),
        }
        experience
    })
}

fn run_calls(caller: &Caller, end: Instant) -> Experience {
    let mut experience = Experience::default();
    while Instant::now() < end {
        let started = Instant::now();
        match call(caller, "echo") {
            Ok(message) if message["result"]["content"][0]["text"] == "hello" => {
                experience.calls.push(started.elapsed());
            }
            Ok(message) => experience.failures.push(format!("tools/call: {message}")),
            Err(error) => experience.failures.push(format!("tools/call: {error}")),
        }
        thread::sleep(CALL_INTERVAL);
    }
    experience
}

fn run_tasks(caller: &Caller, end: Instant) -> Experience {
    let mut experience = Experience::default();
    while Instant::now() < end {
        let started = Instant::now();
        match run_task(caller) {
            Ok(()) => experience.tasks.push(started.elapsed()),
            Err(error) => experience.failures.push(format!("task: {error:#}")),
        }
        thread::sleep(TASK_INTERVAL);
    }
    experience
}

fn run_task(caller: &Caller) -> Result<()> {
    let created = call(caller, "work")?;
    let id = created["result"]["taskId"].as_str().with_context(|| created.to_string())?;
    let started = Instant::now();
    loop {
        let task = caller.modern("tasks/get", json!({"taskId": id}))?;
        match task["result"]["status"].as_str() {
            Some("completed") => return Ok(()),
            Some("working") => {}
            _ => anyhow::bail!("{task}"),
        }
        ensure!(started.elapsed() < TASK_TIMEOUT, "{id} is not done after {TASK_TIMEOUT:?}");
        thread::sleep(POLL_INTERVAL);
    }
}

fn call(caller: &Caller, tool: &str) -> io::Result<Value> {
    caller.modern("tools/call", json!({"name": tool, "arguments": {"text": "hello"}}))
}
