//! The campaign: clients, people and kills on each store.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::approvers::Approver;
use super::client::Client;
use super::judge::{self, Outcome};
use super::killer::{Killer, Orders};
use super::kinds::Kind;
use super::ledger::Ledger;
use super::shared::Shared;
use crate::console::bench::Bench;
use crate::console::people::{ADA, BEN, CID, DAN};
use crate::console::site::Site;
use crate::crash::random::Random;
use crate::row::Row;

/// Clients of each kind at the same time.
const CLIENTS: usize = 5;

const CONFIG: &str = r#"
[tasks]
max_running = 500
max_running_per_caller = 500
max_store_bytes_per_caller = "1024 MiB"
max_audit_events = 10000000

[hosts]
call_timeout = "4s"

[tools.deploy]
description = "Deploys a version."
command = ["@RECORD@", "{key}", "{value}", "revision-1"]
arguments = { key = { type = "string" }, value = { type = "string" } }
task_after = "100ms"
max_concurrent = 100
approve = { by = ["ada", "ben", "cid", "dan"], count = 2, max_open = 500, decision_timeout = "1h" }

[tools.release]
description = "Releases a version."
command = ["@RECORD@", "{key}", "{value}", "revision-1"]
arguments = { key = { type = "string" }, value = { type = "string" } }
task = "never"
max_concurrent = 100
approve = { by = ["ada", "ben", "cid", "dan"], count = 2, max_open = 500, decision_timeout = "1h" }

[tools.brief_deploy]
description = "Deploys a version, if people decide soon."
command = ["@RECORD@", "{key}", "{value}", "revision-1"]
arguments = { key = { type = "string" }, value = { type = "string" } }
task_after = "100ms"
max_concurrent = 100
approve = { by = ["ada", "ben", "cid", "dan"], count = 2, max_open = 500, decision_timeout = "3s" }

[tools.brief_release]
description = "Releases a version, if people decide soon."
command = ["@RECORD@", "{key}", "{value}", "revision-1"]
arguments = { key = { type = "string" }, value = { type = "string" } }
task = "never"
max_concurrent = 100
approve = { by = ["ada", "ben", "cid", "dan"], count = 2, max_open = 500, decision_timeout = "3s" }
"#;

/// Time in which all calls, kills and verdicts of a full run must be over.
const BAR: Duration = Duration::from_secs(30 * 60);
/// Time of a run in which clients make calls. The last calls and the last verdict follow.
const CALLS: Duration = Duration::from_secs(27 * 60);
const SHORT_CALLS: Duration = Duration::from_secs(60);
/// Time for the last tasks.
const SETTLE: Duration = Duration::from_secs(30);
/// Time between two reports of the progress.
const REPORT: Duration = Duration::from_secs(10);

/// The size of a campaign on one store.
struct Size {
    calls: usize,
    /// Kills of each point and kind.
    kills: usize,
    limit: Duration,
    /// Time between two changes of the tool's definition.
    revision: Duration,
}

/// Runs the campaign on each store. The stores share the calls, the kills and the time.
pub(in crate::console) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let (stores, started) = (bench.stores(), Instant::now());
    let (calls, kills): (usize, usize) = bench.choose((10_000, 20), (60, 1));
    let time = bench.choose(CALLS, SHORT_CALLS);
    let revision = Duration::from_secs(bench.choose(20, 5));
    let (mut rows, mut made, mut least) = (Vec::new(), 0, 0);
    for (left, &(store, replicas)) in (1..=stores.len() as u32).rev().zip(stores) {
        let size = Size {
            calls: calls / stores.len(),
            kills: kills / stores.len(),
            limit: time.saturating_sub(started.elapsed()) / left,
            revision,
        };
        let site = Site::start(bench, "gate", (store, replicas), CONFIG)?;
        let (ledger, random) = (Ledger::default(), Random::new(bench.seed));
        let outcome = measure(&site, &ledger, &size, &random)?;
        (made, least) = (made + outcome.calls.len(), least + outcome.least);
        let size = (size.calls, size.kills);
        rows.extend(judge::rows(&site, store, &outcome, &ledger.into_votes(), size)?);
    }
    if stores.len() > 1 {
        let took = started.elapsed();
        let figure = format!(
            "{made} calls, at least {least} kills of each point and kind, in {} s with verdicts",
            took.as_secs()
        );
        let bar = format!(
            "≥ {calls} calls, ≥ {kills} kills of each point and kind, within {} minutes",
            BAR.as_secs() / 60
        );
        let is_met = made >= calls && least >= kills && took <= BAR;
        rows.push(Row::new("gated calls, all stores", figure, bar, is_met));
    }
    Ok(rows)
}

fn measure(site: &Site, ledger: &Ledger, size: &Size, random: &Random) -> Result<Outcome> {
    let (killer, orders) = Killer::new(size.kills);
    let shared = Shared::new(site, ledger, &killer);
    let (made, closed, stopped) =
        (AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(false));
    let started = Instant::now();
    let is_enough = || {
        let is_done = made.load(Ordering::Relaxed) >= size.calls && killer.is_done();
        is_done || stopped.load(Ordering::Relaxed) || started.elapsed() > size.limit
    };
    let report = || report(size, started.elapsed(), made.load(Ordering::Relaxed), &killer);
    let work = |number: usize| {
        let kind = Kind::ALL[number % Kind::ALL.len()];
        let mut client = Client::new(&shared, kind, random.fork(number as u64));
        let mut calls = Vec::new();
        while !closed.load(Ordering::Relaxed) {
            calls.push(client.run(made.fetch_add(1, Ordering::Relaxed)));
        }
        calls
    };
    thread::scope(|scope| {
        let (shared, work, stopped) = (&shared, &work, &stopped);
        let count = CLIENTS * Kind::ALL.len();
        let clients: Vec<_> = (0..count).map(|number| scope.spawn(move || work(number))).collect();
        for (number, person) in (1_000..).zip([ADA, BEN, CID, DAN]) {
            let random = random.fork(number);
            scope.spawn(move || Approver::new(shared, person, person == ADA, random).work());
        }
        let killer = scope.spawn(move || kill(shared, &orders, stopped));
        let revisions = change_definitions(site, size.revision, is_enough, report);
        // Calls that wait get their decision without further kills.
        stopped.store(true, Ordering::Relaxed);
        closed.store(true, Ordering::Relaxed);
        let killed = killer.join();
        let calls = clients
            .into_iter()
            .map(|client| client.join().map_err(|_| anyhow!("a client panicked")))
            .collect::<Result<Vec<_>>>();
        let settled = settle(site);
        // People end before an error is returned, because the scope waits for them.
        shared.end();
        killed.map_err(|_| anyhow!("the killer panicked"))??;
        settled?;
        let ((kills, least), lost) = (shared.killer.summary(), shared.killer.lost());
        let calls = calls?.into_iter().flatten().collect();
        Ok(Outcome { calls, kills, least, lost, revisions: revisions?, took: started.elapsed() })
    })
}

/// Kills servers until `stopped`. A server that cannot be killed or started stops the campaign.
fn kill(shared: &Shared<'_>, orders: &Orders, stopped: &AtomicBool) -> Result<()> {
    let killed = shared.killer.work(orders, shared.site, || stopped.load(Ordering::Relaxed));
    stopped.store(true, Ordering::Relaxed);
    killed
}

/// Waits until no task is open. A call that was made again after a lost response has several tasks,
/// and its client waits for the last one.
fn settle(site: &Site) -> Result<()> {
    let operator = site.visitor(0, ADA.deciding)?;
    let started = Instant::now();
    // The verdict reports tasks that are open after this time.
    while started.elapsed() < SETTLE {
        let mut is_open = false;
        for state in ["queued", "running", "input-required", "waiting"] {
            let page = operator.read(&format!("tasks?state={state}&limit=1"))?;
            is_open |= page["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty());
        }
        if !is_open {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Prints the progress.
fn report(size: &Size, took: Duration, made: usize, killer: &Killer) {
    let (kills, least) = killer.summary();
    eprintln!(
        "console: gate: {} of at most {} s: {made} of {} calls, {kills} kills, at least {least} of {} of each point and kind",
        took.as_secs(),
        size.limit.as_secs(),
        size.calls,
        size.kills
    );
}

/// Changes the words of the commands from time to time, until the campaign has enough. Returns the
/// number of definitions.
fn change_definitions(
    site: &Site,
    every: Duration,
    is_enough: impl Fn() -> bool,
    report: impl Fn(),
) -> Result<usize> {
    let (mut revision, mut changed, mut reported) = (1, Instant::now(), Instant::now());
    while !is_enough() {
        thread::sleep(Duration::from_millis(100));
        if reported.elapsed() >= REPORT {
            report();
            reported = Instant::now();
        }
        if changed.elapsed() < every {
            continue;
        }
        let (old, new) =
            (format!("\"revision-{revision}\""), format!("\"revision-{}\"", revision + 1));
        site.change_config(|text| text.replace(&old, &new))?;
        (revision, changed) = (revision + 1, Instant::now());
    }
    Ok(revision)
}
