//! Tool workers that break the protocol, beside an honest one.
//!
//! `crates/workers/tests` has the messages that fail a call. Here are floods, endless lines and exits in
//! every state, with the time of honest calls and the memory of the server meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde_json::json;
use xtask::process;

use super::bench::Bench;
use super::language::Language;
use super::site::{Server, Site};
use super::task;
use crate::hosts::home::resident;
use crate::row::Row;

/// An attack, and what its call returns.
struct Attack {
    kind: &'static str,
    /// Text of the result or of the error.
    outcome: &'static str,
    /// Whether the attack ends only at the timeout of a ping.
    is_long: bool,
}

const fn survives(kind: &'static str) -> Attack {
    Attack { kind, outcome: "survived", is_long: false }
}

const ATTACKS: &[Attack] = &[
    survives("endless line"),
    survives("flood of output"),
    Attack { kind: "flood of log messages", outcome: "", is_long: false },
    survives("lines of unknown calls"),
    survives("invalid JSON"),
    Attack { kind: "values of 5 MB", outcome: "4 MiB", is_long: false },
    survives("exit at start"),
    survives("exit in a step"),
    survives("exit after a step"),
    survives("exit after its record"),
    survives("exit after a segment"),
    survives("exit in a timer"),
    survives("exit in a line"),
    Attack { kind: "silence", outcome: "survived", is_long: true },
    Attack { kind: "closed output", outcome: "survived", is_long: true },
];

/// Time of an honest call during an attack.
const BAR: Duration = Duration::from_secs(2);
/// The bar of a short run, which uses an unoptimized build on a busy machine.
const SHORT_BAR: Duration = Duration::from_secs(30);
const MAX_MEMORY: u64 = 300 << 20;

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let site = Site::new(bench, "hostile", None)?;
    let script = process::root().join("testbench/src/workers/tools/hostile.py");
    let honest = Language::Python.section(&site.executions(), &[], "");
    let script = script.display().to_string();
    site.configure(&format!("{honest}\n[workers.hostile]\ncommand = [\"python3\", {script:?}]\n"))?;
    let server = site.start(0)?;
    let chosen: Vec<&Attack> =
        ATTACKS.iter().filter(|attack| !(attack.is_long && bench.is_short)).collect();
    let is_over = AtomicBool::new(false);
    let (wrong, slowest) = thread::scope(|scope| {
        let honest = scope.spawn(|| honest_calls(&server, &is_over));
        let wrong = attack(&server, &chosen);
        is_over.store(true, Ordering::Relaxed);
        let slowest = honest.join().map_err(|_| anyhow!("a thread panicked"))?;
        anyhow::Ok((wrong?, slowest?))
    })?;
    let memory = resident(server.pid())?;
    let bar = bench.choose(BAR, SHORT_BAR);
    let mut figure = format!(
        "{} of {} as expected, slowest honest call {} ms, {} MiB of memory",
        chosen.len() - wrong.len(),
        chosen.len(),
        slowest.as_millis(),
        memory >> 20
    );
    if let Some(first) = wrong.first() {
        figure.push_str(&format!("; first: {first}"));
    }
    let is_met = wrong.is_empty() && slowest <= bar && memory <= MAX_MEMORY;
    let bar = format!(
        "every call ends as expected, honest calls ≤ {} s, ≤ {} MiB",
        bar.as_secs(),
        MAX_MEMORY >> 20
    );
    Ok(vec![Row::new("hostile tool worker beside an honest one", figure, bar, is_met)])
}

/// Runs all attacks. Returns a description of each unexpected outcome.
fn attack(server: &Server, attacks: &[&Attack]) -> Result<Vec<String>> {
    let caller = server.caller();
    let mut wrong = Vec::new();
    for attack in attacks {
        let id = task::start(&caller, "hostile", json!({"kind": attack.kind}))?;
        let outcome = match task::texts(&caller, &id) {
            Ok(texts) => texts.join("\n"),
            Err(error) => format!("{error:#}"),
        };
        if !outcome.contains(attack.outcome) {
            wrong.push(format!("{}: {outcome}", attack.kind));
        }
    }
    Ok(wrong)
}

/// Calls the honest tool worker until the attacks are over. Returns the longest time of a call.
fn honest_calls(server: &Server, is_over: &AtomicBool) -> Result<Duration> {
    let caller = server.caller();
    let (mut slowest, mut number) = (Duration::ZERO, 0);
    while !is_over.load(Ordering::Relaxed) {
        let started = Instant::now();
        let key = format!("honest-{number}");
        let id = task::start(&caller, "crowd", json!({"key": key, "size": 1}))?;
        task::texts(&caller, &id)?;
        slowest = slowest.max(started.elapsed());
        number += 1;
        thread::sleep(Duration::from_millis(20));
    }
    Ok(slowest)
}
