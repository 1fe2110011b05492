//! Results of 5 MB in five kinds, for a client without tasks.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::bench::Bench;
use super::caller::{Caller, text};
use super::home::{ALICE, resident};
use crate::crash::random::Random;
use crate::crash::table::percentile;
use crate::row::Row;

/// The tools of `large-server`.
const KINDS: [&str; 5] = ["log", "json", "base64", "images", "structured"];

const MIB: u64 = 1 << 20;
/// The default of `max_store_bytes_per_caller`.
const DEFAULT_BUDGET: u64 = 48 * MIB;
/// A budget that has no room for one result.
const SMALL_BUDGET: u64 = 4 * MIB;
const RAISED_BUDGET: u64 = 1 << 30;
const LIMIT_NAME: &str = "max_store_bytes_per_caller";
const RANGE: u64 = 64 << 10;
/// Growth of resident memory that counts as flat.
const FLAT: u64 = 16 * MIB;

/// Latency of a range: the 99th percentile in an optimized build, and the median in a short run,
/// which only finds ranges that read the whole result.
const FULL_P99: Duration = Duration::from_millis(5);
const SHORT_P50: Duration = Duration::from_millis(50);

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = default_budget(bench)?;
    rows.push(small_budget(bench)?);
    rows.extend(raised_budget(bench)?);
    Ok(rows)
}

/// Delivers more results than the default budget holds.
fn default_budget(bench: &Bench) -> Result<Vec<Row>> {
    let server = LargeServer::start(bench, "default", DEFAULT_BUDGET)?;
    let caller = Caller::legacy(server.address, Some(ALICE))?;
    let results = bench.choose(50, 15);
    let mut delivered = Vec::new();
    for number in 0..results {
        delivered.push(Delivered::call(&caller, number));
    }
    let failed = delivered.iter().filter(|result| result.is_err()).count();
    let links: Vec<&str> = delivered.iter().flatten().map(|it| it.uri.as_str()).collect();
    let mut figure = format!("{results} results of 5 MB: {failed} failed");
    if let Some(error) = delivered.iter().find_map(|result| result.as_ref().err()) {
        figure.push_str(&format!("; first: {error:#}"));
    }
    let row = Row::new("5 MB results, default budget", figure, "no call fails", failed == 0);
    let is_read = |uri: &&&str| read(&caller, uri).is_ok();
    let stored = links.iter().filter(is_read).count();
    let has_newest = links.last().is_some_and(|uri| read(&caller, uri).is_ok());
    let has_oldest = links.first().is_some_and(|uri| read(&caller, uri).is_ok());
    let figure =
        format!("{stored} of {} readable; oldest: {has_oldest}, newest: {has_newest}", links.len());
    let is_met = stored < links.len() && has_newest && !has_oldest;
    let bar = "the oldest delivered results are evicted, the newest is readable";
    Ok(vec![row, Row::new("eviction, default budget", figure, bar, is_met)])
}

/// Delivers results that the budget cannot hold.
fn small_budget(bench: &Bench) -> Result<Row> {
    let server = LargeServer::start(bench, "small", SMALL_BUDGET)?;
    let caller = Caller::legacy(server.address, Some(ALICE))?;
    let mut named = 0;
    let mut first = String::new();
    for kind in KINDS {
        let message = caller.call(kind, json!({"number": 0}))?;
        let is_named = message["result"]["isError"] != true && text(&message).contains(LIMIT_NAME);
        named += usize::from(is_named);
        if !is_named && first.is_empty() {
            first = format!("; {kind}: {}", shown(&message));
        }
    }
    let figure = format!("{named} of {} texts name the limit{first}", KINDS.len());
    let case = "5 MB results that exceed the budget";
    let bar = format!("no call fails, and the text names `{LIMIT_NAME}`");
    Ok(Row::new(case, figure, bar, named == KINDS.len()))
}

/// Stores many results, and reads ranges of them.
fn raised_budget(bench: &Bench) -> Result<Vec<Row>> {
    let server = LargeServer::start(bench, "raised", RAISED_BUDGET)?;
    let caller = Caller::legacy(server.address, Some(ALICE))?;
    let results = bench.choose(100, 40);
    let mut delivered = Vec::new();
    // The first results of each kind fill caches and the heaps of all threads.
    let (warm_up, mut warm) = (20, 0);
    for number in 0..results {
        delivered.push(Delivered::call(&caller, number)?);
        if number + 1 == warm_up {
            warm = resident(server.child.id())?;
        }
    }
    let grown = resident(server.child.id())?.saturating_sub(warm);
    let figure = format!(
        "{:.1} MiB after {warm_up}, {:.1} MiB more after {results}",
        warm as f64 / MIB as f64,
        grown as f64 / MIB as f64
    );
    let bar = format!("grows by ≤ {} MiB", FLAT / MIB);
    let memory =
        Row::new("resident memory, 5 MB results, raised budget", figure, bar, grown <= FLAT);
    let mut random = Random::new(bench.seed);
    let mut times = Vec::new();
    for _ in 0..bench.choose(2_000, 200) {
        let result = &delivered[random.below(delivered.len())];
        let last = usize::try_from(result.bytes.saturating_sub(RANGE))?;
        let uri = format!("{}?from={}&bytes={RANGE}", result.uri, random.below(last + 1));
        times.push(read(&caller, &uri).with_context(|| uri.clone())?);
    }
    times.sort_unstable();
    let micros: Vec<u64> = times.iter().map(|time| time.as_micros() as u64).collect();
    let p99 = Duration::from_micros(percentile(&micros, 99).context("ranges were read")?);
    let p50 = Duration::from_micros(percentile(&micros, 50).context("ranges were read")?);
    let (name, time, limit) = bench.choose(("p99", p99, FULL_P99), ("p50", p50, SHORT_P50));
    let figure = format!(
        "{} ranges of 64 KiB: p50 {:.1} ms, p99 {:.1} ms",
        times.len(),
        p50.as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3
    );
    let bar = format!("{name} ≤ {} ms", limit.as_millis());
    let ranges = Row::new("ranges of 5 MB results, raised budget", figure, bar, time <= limit);
    Ok(vec![memory, ranges])
}

/// A cut result and its link.
struct Delivered {
    uri: String,
    bytes: u64,
}

impl Delivered {
    fn call(caller: &Caller, number: usize) -> Result<Self> {
        let kind = KINDS[number % KINDS.len()];
        let message = caller.call(kind, json!({"number": number}))?;
        let result = &message["result"];
        ensure!(
            result["isError"] != true && message.get("error").is_none(),
            "{kind} failed: {}",
            shown(&message)
        );
        let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let link = blocks.iter().find(|block| block["type"] == "resource_link");
        let link = link.with_context(|| format!("{kind} has no link: {}", shown(&message)))?;
        let uri = link["uri"].as_str().context("a link has a URI")?.to_owned();
        let bytes = link["size"].as_u64().context("a link has a size")?;
        Ok(Self { uri, bytes })
    }
}

/// Reads a resource and returns the time until its last byte.
fn read(caller: &Caller, uri: &str) -> Result<Duration> {
    let message = caller.framed("resources/read", json!({"uri": uri}));
    let started = Instant::now();
    let mut response = caller.send(&message, Duration::from_secs(30))?;
    let body = response.text()?;
    let time = started.elapsed();
    ensure!(body.contains(r#""contents""#), "{}", body.chars().take(300).collect::<String>());
    Ok(time)
}

fn shown(message: &Value) -> String {
    message.to_string().chars().take(400).collect()
}

/// The program `large-server`, killed on drop.
struct LargeServer {
    child: Child,
    address: SocketAddr,
}

impl LargeServer {
    fn start(bench: &Bench, name: &str, budget: u64) -> Result<Self> {
        let store = bench.folder().join(format!("large-{name}.db"));
        let mut command = Command::new(bench.program_beside("large-server")?);
        command.arg(format!("sqlite:{}", store.display())).arg(budget.to_string()).arg(ALICE);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("the server has a standard output")?;
        let mut server = Self { child, address: SocketAddr::from(([0; 4], 0)) };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        server.address = line.trim().parse().context("the server printed no address")?;
        Ok(server)
    }
}

impl Drop for LargeServer {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
