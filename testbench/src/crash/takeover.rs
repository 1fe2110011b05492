//! `cargo xtask takeover`: how long a task stops when its server is killed.
//!
//! One task at a time runs on several idle servers. Its server is killed in the middle of a step.
//! The measured time ends when another process starts the next step body.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use outlive_plots::data::{self, Takeover};
use serde_json::json;

use super::client::{self, Answer, Client, Wire};
use super::database::Database;
use super::fleet::{Fleet, Setting};
use super::oracle::Event;
use super::random::Random;
use super::{
    setting::{LEASE, folder, in_folder, number, server},
    table,
};
use xtask::{args::Args, process};

/// Limit of the 99th percentile in milliseconds. Both stores notice a dead process before its
/// leases expire.
const BAR: u64 = 2_000;
/// Timeout of one measurement.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(mut args: Args) -> Result<()> {
    let store = args.value("--store")?.unwrap_or_else(|| "sqlite".to_owned());
    let replicas = number(&mut args, "--replicas")?.unwrap_or(3) as usize;
    let kills = number(&mut args, "--kills")?.unwrap_or(100);
    let write = args.flag("--write");
    let program = server(&mut args)?;
    args.finish()?;
    if replicas < 2 {
        bail!("`--replicas` must be at least 2: another server must continue");
    }
    let folder = folder("takeover")?;
    let mut took = in_folder(&folder, || {
        let database = Database::start(&store, &folder)?;
        let store = database.url();
        let setting = Setting { program, folder: folder.clone(), store, lease: LEASE, more: &[] };
        let fleet = Fleet::start(setting, replicas)?;
        let mut client = Client::new(&fleet, Random::new(kills));
        (0..kills).map(|kill| take_over(&fleet, &mut client, kill)).collect::<Result<Vec<_>>>()
    })?;
    took.sort_unstable();
    let p99 = table::percentile(&took, 99);
    println!("takeover: {replicas} servers on {store}, leases of {} ms", LEASE.as_millis());
    table::print(&[
        ("kills", took.len().to_string()),
        ("p50", table::shown(table::percentile(&took, 50))),
        ("p99", table::shown(p99)),
        ("longest", table::shown(took.last().copied())),
    ]);
    if write {
        write_figure(&store, replicas, took)?;
    }
    if p99.is_none_or(|p99| p99 > BAR) {
        bail!("the 99th percentile is above {BAR} ms");
    }
    Ok(())
}

/// Writes the figure of the plot.
fn write_figure(store: &str, replicas: usize, stopped_ms: Vec<u64>) -> Result<()> {
    let (file, store) = match store {
        "postgres" => (data::TAKEOVER_POSTGRES, "PostgreSQL"),
        _ => (data::TAKEOVER_SQLITE, "SQLite"),
    };
    let figure = Takeover {
        store: store.to_owned(),
        replicas: replicas as u64,
        lease_ms: LEASE.as_millis() as u64,
        max_p99_ms: BAR,
        stopped_ms,
    };
    data::write(process::root(), file, &figure)
}

/// Kills the worker of a task and returns how many milliseconds the task stopped.
fn take_over(fleet: &Fleet, client: &mut Client<'_>, kill: u64) -> Result<u64> {
    let job = format!("kill-{kill}");
    let mut lines = fleet.oracle().tail()?;
    let task = begin(client, &job)?;
    look_everywhere(fleet, &task);
    let begun = |line: &super::oracle::Line| {
        line.job == job && matches!(line.event, Event::Begin { step: 2.., .. })
    };
    let line = lines.find(PATIENCE, begun)?.context("the task has not started")?;
    let owner = line.process().to_owned();
    let number = fleet.number(&owner).context("a process that is gone has started a step")?;
    let killed = super::oracle::now();
    fleet.kill(number)?;
    let next = lines.find(PATIENCE, |line| begun(line) && line.process() != owner)?;
    let next = next.with_context(|| format!("no server continues {job}"))?;
    let params = json!({"taskId": task});
    let end = std::time::Instant::now() + PATIENCE;
    client
        .insist(Wire::Modern, "tasks/cancel", &params, end)
        .context("no server cancels the task")?;
    fleet.start_one(number)?;
    Ok(next.at.saturating_sub(killed))
}

fn begin(client: &mut Client<'_>, job: &str) -> Result<String> {
    let arguments = json!({"name": job, "steps": 1_000_000, "step_ms": 20});
    let call = json!({"name": "work", "arguments": arguments});
    match client.ask(Wire::Modern, "tools/call", call) {
        Answer::Result(task) => Ok(task["taskId"].as_str().context("no task")?.to_owned()),
        other => bail!("could not start a task: {other:?}"),
    }
}

/// Reads the task from every server, as clients behind a load balancer do.
fn look_everywhere(fleet: &Fleet, task: &str) {
    for address in (0..fleet.len()).filter_map(|number| fleet.address(number)) {
        let _ = client::modern(address, "tasks/get", json!({"taskId": task}), PATIENCE);
    }
}
