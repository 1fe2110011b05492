//! Cost of the console: task lifecycles per CPU second with its columns and indexes, and open streams.

use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use outlive::store::{
    self, Changes, CreateOutcome, JournalEntry, NewTask, RecordedEntry, Store, TaskId, TaskOutcome,
    Transition, WorkerId,
};
use serde_json::value::RawValue;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use xtask::process;

use super::bench::Bench;
use super::people::{GUESTS, guest_token};
use super::site::Site;
use super::visitor::{API, Visitor};
use crate::crash::database::Database;
use crate::crash::http::Response;
use crate::hosts::home::resident;
use crate::row::Row;

/// Concurrent lifecycles: enough for every store to group its commits.
const CONCURRENCY: u64 = 64;
const LEASE: Duration = Duration::from_secs(600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Streams of one session, and sessions of one person.
const STREAMS: usize = 8;
const SESSIONS: usize = 8;

const MAX_STREAM_BYTES: u64 = 8 << 10;
/// Part of a core that open streams may use.
const MAX_STREAM_CPU: f64 = 0.02;

const CONFIG: &str = r#"
[tools.echo]
description = "Prints a text."
command = ["echo", "{text}"]
arguments = { text = { type = "string" } }
"#;

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    // An unoptimized build on a busy machine has no meaningful cost.
    if bench.is_short {
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for &(store, _) in bench.stores() {
        let bar = if store == "sqlite" { 0.75 } else { 0.85 };
        rows.push(lifecycles(bench, store, bar)?);
    }
    rows.extend(streams(bench)?);
    rows.push(instructions());
    Ok(rows)
}

/// Counts instructions without console and gate, and compares them with the recorded counts.
fn instructions() -> Row {
    let counted = process::run(&mut process::cargo(&["xtask", "instructions"]));
    let figure = match &counted {
        Ok(()) => "unchanged".to_owned(),
        Err(error) => format!("{error:#}"),
    };
    let case = "instruction counts, console and gate off";
    Row::new(case, figure, "those that are recorded", counted.is_ok())
}

/// Runs lifecycles in turns with and without the columns of the console.
fn lifecycles(bench: &Bench, store: &str, bar: f64) -> Result<Row> {
    let folder = bench.folder().join(format!("cost-{store}"));
    fs::create_dir_all(&folder)?;
    let database = Database::start(store, &folder)?;
    let runtime = Runtime::new()?;
    let opened = runtime.block_on(store::open(&database.url()))?;
    let (turns, tasks) = (10, 2_000);
    let mut spent = [Duration::ZERO; 2];
    let mut number = 0;
    // The first turn of each warms the caches.
    for turn in 0..=turns {
        for is_on in [false, true] {
            let before = cpu(&database)?;
            runtime.block_on(run_tasks(&opened, number, tasks, is_on))?;
            number += tasks;
            if turn > 0 {
                spent[usize::from(is_on)] += cpu(&database)?.saturating_sub(before);
            }
        }
    }
    let per_second = |is_on: bool| {
        let seconds = spent[usize::from(is_on)].as_secs_f64();
        (turns * tasks) as f64 / seconds.max(f64::EPSILON)
    };
    let ratio = per_second(true) / per_second(false);
    let figure = format!(
        "{:.0} per CPU second with the console, {:.0} without: {ratio:.2}",
        per_second(true),
        per_second(false)
    );
    // Without the server around it, so the share of the console is larger than in a server.
    let case = format!("task lifecycles in the store, without gate and metrics, {store}");
    Ok(Row::new(case, figure, format!("≥ {bar}"), ratio >= bar))
}

async fn run_tasks(store: &Arc<dyn Store>, first: u64, count: u64, is_on: bool) -> Result<()> {
    let mut running = JoinSet::new();
    for worker in 0..CONCURRENCY {
        let store = Arc::clone(store);
        running.spawn(async move {
            for number in (first + worker..first + count).step_by(CONCURRENCY as usize) {
                lifecycle(&*store, number, is_on).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}

/// Creates a task under a lease, commits three steps and ends it.
async fn lifecycle(store: &dyn Store, number: u64, is_on: bool) -> Result<()> {
    let id = TaskId::new(format!("{number:032x}"));
    let principal = format!("name:person-{}", number % 256);
    let request = raw(r#"{"name":"deploy","arguments":{"region":"north"}}"#)?;
    let mut task = NewTask::new(id, principal, "deploy", "2026-07-28", request)
        .ttl(Some(DAY))
        .max_ttl(DAY)
        .worker(Some((WorkerId::new("cost"), LEASE)));
    if is_on {
        task = task.indexed(true).person(Some(format!("person-{}", number % 256)));
    }
    let CreateOutcome::Created { lease: Some(lease), .. } = store.create(task).await? else {
        bail!("the store created no task under a lease");
    };
    for step in 0..3 {
        let entry = JournalEntry::Value(raw(r#"{"image":"shop:1.4.2"}"#)?);
        let mut entry = RecordedEntry::new(format!("step-{step}"), entry);
        if is_on {
            entry = entry.duration(Some(Duration::from_millis(12)));
        }
        let changes = Changes::default().entries(vec![entry]);
        store.commit(&lease, &changes, &Transition::Continue).await?;
    }
    let result = raw(r#"{"content":[{"type":"text","text":"done"}]}"#)?;
    let end = Transition::End { outcome: TaskOutcome::Result(result), retention: DAY };
    store.commit(&lease, &Changes::default(), &end).await?;
    Ok(())
}

fn raw(json: &str) -> Result<Box<RawValue>> {
    Ok(RawValue::from_string(json.to_owned())?)
}

/// Opens streams of many sessions and measures the server.
fn streams(bench: &Bench) -> Result<Vec<Row>> {
    let site = Site::start(bench, "streams", ("sqlite", 1), CONFIG)?;
    let (server, process) = (site.address(0)?, site.process(0)?);
    let (count, span) = (1_000, Duration::from_secs(30));
    let sessions = count / STREAMS;
    ensure!(sessions <= GUESTS * SESSIONS, "{count} streams need more guests");
    let guests: Vec<Visitor> = (0..sessions)
        .map(|number| Visitor::sign_in(server, &guest_token(number / SESSIONS)))
        .collect::<Result<_>>()?;
    thread::sleep(Duration::from_secs(2));
    let idle = cpu_during(process, span)?;
    let before = resident(process)?;
    let mut open: Vec<Response> = Vec::new();
    for (number, guest) in (0_u32..).zip(&guests) {
        let [.., high, low] = number.to_be_bytes();
        let guest = guest.at_address(Ipv4Addr::new(127, 2, high, low.max(1)));
        for _ in 0..STREAMS {
            let stream = guest.open("GET", &format!("{API}/stream"), &[], "")?;
            ensure!(stream.status == 200, "a stream was rejected with {}", stream.status);
            open.push(stream);
        }
    }
    thread::sleep(Duration::from_secs(2));
    let each = resident(process)?.saturating_sub(before) / open.len().max(1) as u64;
    let busy = cpu_during(process, span)?;
    let share = (busy - idle).max(0.0);
    let (is_small, is_idle) = (each <= MAX_STREAM_BYTES, share <= MAX_STREAM_CPU);
    let bytes = format!("{:.1} KiB each of {} streams", each as f64 / 1024.0, open.len());
    let part = format!("{:.2} % of a core for {} streams", share * 100.0, open.len());
    Ok(vec![
        Row::new("memory of an idle open console", bytes, "≤ 8 KiB", is_small),
        Row::new("CPU of open streams", part, "≤ 2 % of a core for 1,000", is_idle),
    ])
}

/// Returns the part of a core that a process uses.
fn cpu_during(process: u32, span: Duration) -> Result<f64> {
    let before = cpu_of(process)?;
    thread::sleep(span);
    Ok(cpu_of(process)?.saturating_sub(before).as_secs_f64() / span.as_secs_f64())
}

/// Processor time of this process and of the processes of the database.
fn cpu(database: &Database) -> Result<Duration> {
    let mut sum = cpu_of(std::process::id())?;
    let Database::Postgres(postgres) = database else { return Ok(sum) };
    sum += cpu_of(postgres.id())?;
    for entry in fs::read_dir("/proc")? {
        let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process may exit while it is read.
        let Ok(stat) = fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        if fields(&stat).nth(1) == Some(postgres.id().to_string().as_str()) {
            sum += spent(&stat)?;
        }
    }
    Ok(sum)
}

fn cpu_of(process: u32) -> Result<Duration> {
    spent(&fs::read_to_string(format!("/proc/{process}/stat"))?)
}

/// The fields of `/proc/PID/stat` after the name: state, parent, …
fn fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace()
}

/// User and system time of a process. The unit is a hundredth of a second on Linux.
fn spent(stat: &str) -> Result<Duration> {
    let times = fields(stat).skip(11).take(2).map(str::parse::<u64>);
    let ticks: u64 = times.collect::<Result<Vec<_>, _>>().context("no times")?.iter().sum();
    Ok(Duration::from_millis(ticks * 10))
}

#[cfg(test)]
mod tests {
    use super::{Duration, fields, spent};

    #[test]
    fn stat_of_process_has_parent_and_times() {
        let stat = "7 (a b) c) S 3 7 7 0 -1 4194304 1 2 3 4 150 50 6 7 20 0";
        assert_eq!(fields(stat).nth(1), Some("3"));
        assert_eq!(spent(stat).unwrap(), Duration::from_secs(2));
    }
}
