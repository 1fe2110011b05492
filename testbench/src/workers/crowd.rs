//! 1,000 parallel calls in one process: each waits in its second step until all calls are there.

use std::collections::HashMap;
use std::fs;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use serde_json::json;

use super::bench::Bench;
use super::language::{BOTH, Language};
use super::site::{Server, Site};
use super::task;
use crate::row::Row;

const CALLS: usize = 1_000;
/// Threads that start and poll the calls.
const CALLERS: usize = 8;

const LIMITS: &str = "
[tasks]
max_running = 1000
max_running_per_caller = 1000
max_tasks_per_caller = 2000
";

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    BOTH.map(|language| row(bench, language)).into_iter().collect()
}

fn row(bench: &Bench, language: Language) -> Result<Row> {
    let site = Site::new(bench, &format!("crowd-{}", language.name()), None)?;
    let section = language.section(&site.executions(), &[], "max_concurrent = 1000");
    site.configure(&(section + LIMITS))?;
    let server = site.start(0)?;
    let started = Instant::now();
    let server = &server;
    let equal = thread::scope(|scope| {
        let callers: Vec<_> =
            (0..CALLERS).map(|caller| scope.spawn(move || calls(server, caller))).collect();
        let joined = callers.into_iter().map(|it| it.join().map_err(|_| anyhow!("a panic"))?);
        joined.sum::<Result<usize>>()
    })?;
    let text = fs::read_to_string(site.executions())?;
    let mut executions: HashMap<&str, usize> = HashMap::new();
    text.lines().for_each(|line| *executions.entry(line).or_default() += 1);
    let once = executions.values().filter(|&&count| count == 1).count();
    let figure = format!(
        "{equal} of {CALLS} results equal, {once} of {} steps executed once, {:.1} s",
        2 * CALLS,
        started.elapsed().as_secs_f64()
    );
    let is_met = equal == CALLS && once == 2 * CALLS && executions.len() == once;
    let case = format!("{CALLS} parallel calls in one process, {}", language.name());
    Ok(Row::new(case, figure, "all complete, each step once", is_met))
}

/// Starts every eighth call, waits for their results, and counts those that are as expected.
fn calls(server: &Server, caller: usize) -> Result<usize> {
    let numbers = (caller..CALLS).step_by(CALLERS);
    let client = server.caller();
    let start = |number: usize| {
        let key = format!("call-{number}");
        let id = task::start(&client, "crowd", json!({"key": key, "size": CALLS}))?;
        anyhow::Ok((key, id))
    };
    let tasks = numbers.map(start).collect::<Result<Vec<_>>>()?;
    let mut equal = 0;
    for (key, id) in tasks {
        let texts = task::texts(&client, &id).with_context(|| key.clone())?;
        equal += usize::from(texts == [key]);
    }
    Ok(equal)
}
