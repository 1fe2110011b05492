//! A tool of ten steps whose processes are killed in the fifth.
//!
//! The first execution of the fifth step lasts until its process is killed, so every kill is in that
//! step. A run has 11 executions: each step once, and the fifth twice.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::bench::Bench;
use super::language::{BOTH, Language};
use super::site::{Server, Site};
use super::task::{self, PATIENCE};
use crate::postgres::{Postgres, Programs};
use crate::row::Row;

const MAX_EXECUTIONS: usize = 11;
const BAR: Duration = Duration::from_secs(2);
/// The bar of a short run, which uses an unoptimized build on a busy machine.
const SHORT_BAR: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(2);

/// The processes that are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    ToolWorker,
    Server,
    Both,
    /// The server and its tool worker, with another replica on the same store.
    Machine,
}

const VICTIMS: [Victim; 4] = [Victim::ToolWorker, Victim::Server, Victim::Both, Victim::Machine];

impl Victim {
    fn name(self) -> &'static str {
        match self {
            Self::ToolWorker => "tool worker killed, SQLite",
            Self::Server => "server killed, SQLite",
            Self::Both => "server and tool worker killed, SQLite",
            Self::Machine => "server and tool worker killed, another replica on PostgreSQL",
        }
    }

    /// Time from which the task must continue: the kill, or the restart.
    fn since(self) -> &'static str {
        match self {
            Self::ToolWorker | Self::Machine => "the kill",
            Self::Server | Self::Both => "the restart",
        }
    }
}

/// One execution of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Execution {
    step: u32,
    pid: u32,
    /// Milliseconds since 1970.
    pub(super) at: u128,
}

/// One task and its kill.
struct Outcome {
    executions: usize,
    /// Time until the first execution after the kill.
    continued: Duration,
    is_equal: bool,
}

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let postgres = Postgres::start(&Programs::find()?)?;
    let mut rows = Vec::new();
    for language in BOTH {
        for victim in VICTIMS {
            rows.push(row(bench, language, victim, &postgres)?);
        }
    }
    Ok(rows)
}

fn row(bench: &Bench, language: Language, victim: Victim, postgres: &Postgres) -> Result<Row> {
    let runs = bench.choose(100, 3);
    let name = format!("kills-{}-{victim:?}", language.name());
    let is_machine = victim == Victim::Machine;
    let site = Site::new(bench, &name, is_machine.then(|| postgres.url()))?;
    site.configure(&language.section(&site.executions(), &[], ""))?;
    let replicas = if is_machine { 2 } else { 1 };
    let mut servers = (0..replicas).map(|number| site.start(number)).collect::<Result<Vec<_>>>()?;
    let mut outcomes = Vec::new();
    for number in 0..runs {
        // The languages share a database, and a task has a unique key.
        let key = format!("{}-{number}", language.name());
        let outcome = one(&site, &mut servers, victim, &key);
        outcomes.push(outcome.with_context(|| format!("run {number} of {name}"))?);
    }
    let bar = bench.choose(BAR, SHORT_BAR);
    Ok(verdict(language, victim, &mut outcomes, bar))
}

fn verdict(language: Language, victim: Victim, outcomes: &mut [Outcome], bar: Duration) -> Row {
    outcomes.sort_by_key(|outcome| outcome.continued);
    let at = |percent: usize| {
        outcomes[(outcomes.len() * percent / 100).min(outcomes.len() - 1)].continued
    };
    let executions = outcomes.iter().map(|outcome| outcome.executions).max().unwrap_or(0);
    let equal = outcomes.iter().filter(|outcome| outcome.is_equal).count();
    let figure = format!(
        "{equal} of {} results equal, at most {executions} executions, continues after p50 {} ms, p99 {} ms",
        outcomes.len(),
        at(50).as_millis(),
        at(99).as_millis()
    );
    let bar_text = format!(
        "every result, ≤ {MAX_EXECUTIONS} executions, ≤ {} s after {} (p99)",
        bar.as_secs(),
        victim.since()
    );
    let is_met = equal == outcomes.len() && executions <= MAX_EXECUTIONS && at(99) <= bar;
    let case = format!("ten steps in {}: {}", language.name(), victim.name());
    Row::new(case, figure, bar_text, is_met)
}

/// Runs one task and kills processes in its fifth step.
fn one(site: &Site, servers: &mut Vec<Server>, victim: Victim, key: &str) -> Result<Outcome> {
    let caller = servers[0].caller();
    let id = task::start(&caller, "ten", json!({"key": key}))?;
    let fifth = until_step(&site.executions(), key, 5, PATIENCE)?;
    let since = kill(site, servers, victim, fifth.pid)?;
    let texts = task::texts(&servers[0].caller(), &id)?;
    let executions = executions(&site.executions(), key)?;
    let next = executions.iter().skip_while(|execution| execution.step != 5).nth(1);
    let next = next.context("no step was executed after the kill")?;
    let continued = u64::try_from(next.at.saturating_sub(since))?;
    Ok(Outcome {
        executions: executions.len(),
        continued: Duration::from_millis(continued),
        is_equal: texts == [format!("{key} 55")],
    })
}

/// Kills the processes of a victim. Returns the time from which the task must continue.
fn kill(site: &Site, servers: &mut Vec<Server>, victim: Victim, tool_worker: u32) -> Result<u128> {
    let owner = parent(tool_worker)?;
    let owner = servers.iter().position(|server| server.pid() == owner);
    let owner = owner.context("the tool worker is not a child of a server")?;
    if victim == Victim::ToolWorker {
        let since = now();
        end(tool_worker);
        return Ok(since);
    }
    let mut server = servers.remove(owner);
    let killed = now();
    server.kill()?;
    if victim != Victim::Server {
        // The server is gone, so no other process continues the task before this kill.
        end(tool_worker);
    }
    let restarted = now();
    // A killed machine comes back with another name, so it starts last and serves the next task.
    servers.push(site.start(server.number)?);
    Ok(if victim == Victim::Machine { killed } else { restarted })
}

/// Waits until a step of a task executes.
pub(super) fn until_step(
    file: &Path,
    key: &str,
    step: u32,
    patience: Duration,
) -> Result<Execution> {
    let deadline = Instant::now() + patience;
    loop {
        let found = executions(file, key)?.into_iter().find(|execution| execution.step == step);
        if let Some(found) = found {
            return Ok(found);
        }
        if Instant::now() > deadline {
            bail!("step {step} of {key} does not start; see {}", file.display());
        }
        thread::sleep(POLL);
    }
}

/// Returns the executions of a task, in order.
pub(super) fn executions(file: &Path, key: &str) -> Result<Vec<Execution>> {
    let text = fs::read_to_string(file).unwrap_or_default();
    // A line may be incomplete while it is written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let of_task = whole.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    of_task.map(|line| execution(line).with_context(|| format!("invalid line `{line}`"))).collect()
}

fn execution(line: &str) -> Option<Execution> {
    let mut words = line.split(' ');
    let (step, pid) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Execution { step, pid, at: words.next()?.parse().ok()? })
}

/// Returns the parent of a process.
fn parent(pid: u32) -> Result<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let rest = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    let parent = rest.split(' ').nth(1).context("the process has no parent")?;
    Ok(parent.parse()?)
}

/// Kills a process with `kill -9`. It may have ended with its server.
fn end(pid: u32) {
    let _ = Command::new("kill").args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
}

/// Milliseconds since 1970.
pub(super) fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

#[cfg(test)]
mod tests {
    use super::{Execution, execution};

    #[test]
    fn execution_of_line_is_read() {
        let read = execution("5 4711 1790000000000");
        assert_eq!(read, Some(Execution { step: 5, pid: 4711, at: 1_790_000_000_000 }));
        assert_eq!(execution("5 4711"), None);
    }
}
