//! Lists of a store with many tasks: every filter, at several depths, while callers create tasks.

use std::fmt::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio_postgres::NoTls;
use xtask::process;

use super::bench::Bench;
use super::people::{ADA, ANN};
use super::site::Site;
use super::visitor::{Visitor, encode};
use crate::crash::database::Database;
use crate::hosts::caller::Caller;
use crate::row::Row;

const CONFIG: &str = r#"
[tasks]
max_store = "64000 MiB"

[tools.echo]
description = "Prints a text."
command = ["echo", "{text}"]
arguments = { text = { type = "string" } }
task = "always"
"#;

/// Filters of the list of tasks: none, each alone, and several together.
const FILTERS: [&str; 20] = [
    "",
    "state=queued",
    "state=running",
    "state=input-required",
    "state=waiting",
    "state=quarantined",
    "state=completed",
    "state=failed",
    "state=cancelled",
    "state=expired",
    "tool=deploy",
    "tool=backup",
    "tool=unknown",
    "caller=person-7",
    "tag=order%3D30",
    "since=30d",
    "until=1m",
    "state=failed&tool=backup",
    "caller=person-7&state=failed",
    "tool=report&caller=person-9&since=30d",
];

/// Pages that are measured, and the rows of one.
const PAGES: [usize; 6] = [1, 2, 10, 100, 1_000, 10_000];
const ROWS: usize = 50;
/// Rows of a page of the API, which leads to the measured pages.
const STEP: usize = 200;
/// Measurements of each page.
const TIMES: usize = 10;

const BAR: Duration = Duration::from_millis(100);
/// The bar of a short run, which uses an unoptimized build on a busy machine.
const SHORT_BAR: Duration = Duration::from_secs(1);

/// Time between two calls of the load.
const LOAD: Duration = Duration::from_millis(50);

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &(store, _) in bench.stores() {
        let site = Site::new(bench, "lists", (store, 1), CONFIG)?;
        let count: usize = bench.choose(1_000_000, 5_000);
        let mut seed = Command::new(bench.program_beside("seed-store")?);
        process::run(seed.arg(site.database.url()).arg(count.to_string()).arg("--console"))?;
        site.launch_all()?;
        let scans = Scans::of(&site.database)?;
        rows.push(measure(bench, &site, store, count)?);
        if let Some(before) = scans {
            rows.push(before.row(&site.database)?);
        }
    }
    Ok(rows)
}

fn measure(bench: &Bench, site: &Site, store: &str, count: usize) -> Result<Row> {
    let ada = Visitor::sign_in(site.address(0)?, ADA.deciding)?;
    let over = AtomicBool::new(false);
    let (times, calls) = thread::scope(|scope| {
        let load = scope.spawn(|| load(site, &over));
        let times: Result<Vec<_>> =
            FILTERS.iter().map(|filter| Ok((*filter, of_filter(&ada, filter)?))).collect();
        over.store(true, Ordering::Relaxed);
        let calls = load.join().map_err(|_| anyhow!("the load panicked"))?;
        anyhow::Ok((times?, calls?))
    })?;
    let mut all: Vec<Duration> =
        times.iter().flat_map(|(_, pages)| pages).flat_map(|(_, times)| times.clone()).collect();
    let deepest = times.iter().flat_map(|(_, pages)| pages).map(|(page, _)| *page).max();
    all.sort();
    let at = |percent: usize| all[(all.len() * percent / 100).min(all.len() - 1)];
    let bar = bench.choose(BAR, SHORT_BAR);
    let mut figure = format!(
        "{count} tasks, {} filters up to page {}, {calls} calls beside: p50 {} ms, p99 {} ms",
        FILTERS.len(),
        deepest.unwrap_or(0),
        at(50).as_millis(),
        at(99).as_millis()
    );
    if let Some((filter, page, time)) = slowest(&times) {
        let _ = write!(figure, "; slowest: page {page} of `{filter}`, {} ms", time.as_millis());
    }
    let case = format!("lists of tasks, {store}");
    Ok(Row::new(case, figure, format!("p99 ≤ {} ms", bar.as_millis()), at(99) <= bar))
}

/// The times of the pages of a filter.
type Times = Vec<(usize, Vec<Duration>)>;

fn slowest<'f>(times: &[(&'f str, Times)]) -> Option<(&'f str, usize, Duration)> {
    let pages = times.iter().flat_map(|(filter, pages)| {
        pages.iter().map(move |(page, times)| (*filter, *page, times.iter().max().copied()))
    });
    let pages = pages.filter_map(|(filter, page, time)| Some((filter, page, time?)));
    pages.max_by_key(|(_, _, time)| *time)
}

/// Walks through a filter and measures the pages that exist.
fn of_filter(visitor: &Visitor, filter: &str) -> Result<Times> {
    let (mut times, mut position, mut cursor) = (Vec::new(), 0, None::<String>);
    for page in PAGES {
        let start = (page - 1) * ROWS;
        while position < start {
            let limit = STEP.min(start - position);
            let path = address("tasks", filter, &format!("limit={limit}"), cursor.as_deref());
            let list = visitor.read(&path)?;
            position += list["tasks"].as_array().context("the list has no tasks")?.len();
            let Some(next) = list["next"].as_str() else { return Ok(times) };
            cursor = Some(next.to_owned());
        }
        let path = format!("/console/{}", address("tasks", filter, "", cursor.as_deref()));
        let mut measured = Vec::new();
        for _ in 0..TIMES {
            let started = Instant::now();
            let reply = visitor.get(&path)?;
            measured.push(started.elapsed());
            ensure!(reply.status == 200, "{path} returned {}: {}", reply.status, reply.body);
        }
        times.push((page, measured));
    }
    Ok(times)
}

/// The address of a list with a filter and a cursor.
fn address(list: &str, filter: &str, limit: &str, cursor: Option<&str>) -> String {
    let after = cursor.map(|cursor| format!("after={}", encode(cursor))).unwrap_or_default();
    let parts = [filter, limit, &after];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{list}?{}", parts.join("&"))
}

/// Creates tasks until `over`. Returns their number.
fn load(site: &Site, over: &AtomicBool) -> Result<usize> {
    let caller = Caller::with_tasks(site.address(0)?, Some(ANN.token));
    let mut calls = 0;
    while !over.load(Ordering::Relaxed) {
        caller.call("echo", json!({"text": format!("text {calls}")}))?;
        calls += 1;
        thread::sleep(LOAD);
    }
    Ok(calls)
}

/// Sequential scans of the table of tasks, which PostgreSQL counts. The plans of SQLite are checked
/// by the tests of the store.
struct Scans(i64);

impl Scans {
    /// Reads the number so far. `None` for SQLite.
    fn of(database: &Database) -> Result<Option<Self>> {
        let Database::Postgres(postgres) = database else { return Ok(None) };
        let url = postgres.url();
        let count = Runtime::new()?.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
            let connection = tokio::spawn(connection);
            let sum = "SELECT COALESCE(SUM(seq_scan), 0)::bigint FROM pg_stat_user_tables WHERE relname = 'task'";
            let count: i64 = client.query_one(sum, &[]).await?.get(0);
            drop(client);
            connection.await??;
            anyhow::Ok(count)
        })?;
        Ok(Some(Self(count)))
    }

    fn row(self, database: &Database) -> Result<Row> {
        // The database publishes its counts after a while.
        thread::sleep(Duration::from_secs(2));
        let after = Self::of(database)?.context("the database is PostgreSQL")?;
        let scans = after.0 - self.0;
        let figure = format!("{scans} sequential scans of the tasks");
        Ok(Row::new("plans of the lists, postgres", figure, "0 scans", scans == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn address_of_list_has_filter_limit_and_cursor() {
        assert_eq!(address("tasks", "", "", None), "tasks?");
        assert_eq!(
            address("tasks", "state=failed", "limit=5", Some("a+b")),
            "tasks?state=failed&limit=5&after=a%2Bb"
        );
    }
}
