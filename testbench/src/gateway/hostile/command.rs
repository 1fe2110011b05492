//! The command: every case alone, then all at once.

use std::fs;
use std::time::Duration;

use anyhow::{Result, bail};
use xtask::args::Args;

use super::attack::{self, Observed};
use super::cases::{CASES, Case};
use crate::gateway::setting::Setting;
use crate::row::Row;

const MIB: u64 = 1 << 20;

/// Limits of the measurements.
struct Bars {
    memory: u64,
    honest_p99: Duration,
    /// Time of a call of a hostile upstream.
    call: Duration,
}

/// With an optimized program.
const FULL: Bars = Bars {
    memory: 64 * MIB,
    honest_p99: Duration::from_millis(250),
    call: Duration::from_secs(20),
};

/// With an unoptimized program, and all cases at once.
const SHORT: Bars =
    Bars { memory: 160 * MIB, honest_p99: Duration::from_secs(5), call: Duration::from_secs(40) };

pub(crate) fn run(mut args: Args) -> Result<()> {
    let only = args.values("--only")?;
    let setting = Setting::new(&mut args, "gateway-hostile")?;
    args.finish()?;
    let unknown = only.iter().find(|name| !CASES.iter().any(|case| case.name == **name));
    if let Some(unknown) = unknown {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        bail!("unknown case `{unknown}`; the cases are {}", names.join(", "));
    }
    let is_chosen = |case: &&Case| only.is_empty() || only.iter().any(|name| name == case.name);
    let chosen: Vec<&'static Case> = CASES.iter().filter(is_chosen).collect();
    let mut rows = Vec::new();
    if !setting.is_short {
        for case in &chosen {
            rows.extend(judge(&setting, case.name, &[case]));
        }
    }
    if chosen.len() > 1 {
        rows.extend(judge(&setting, "all-at-once", &chosen));
    }
    rows.iter().for_each(Row::print);
    let missed = rows.iter().filter(|row| !row.is_met).count();
    if missed > 0 {
        bail!("{missed} rows miss their bar; the files are in {}", setting.folder().display());
    }
    Ok(fs::remove_dir_all(setting.folder())?)
}

/// Runs cases at once, and returns a row for each and one for the honest upstream.
fn judge(setting: &Setting, name: &str, cases: &[&'static Case]) -> Vec<Row> {
    eprintln!("hostile-upstreams: {name}");
    match attack::run(setting, name, cases) {
        Ok(observed) => rows(name, &observed, &setting.choose(FULL, SHORT)),
        Err(error) => vec![Row::failed(name, &error)],
    }
}

fn rows(name: &str, observed: &Observed, bars: &Bars) -> Vec<Row> {
    let mut rows = Vec::new();
    for outcome in &observed.cases {
        let mut figure = format!("calls end within {:.1} s", outcome.slowest.as_secs_f64());
        outcome.failures.iter().for_each(|failure| figure.push_str(&format!("; {failure}")));
        let is_met = outcome.failures.is_empty() && outcome.slowest <= bars.call;
        let bar = format!("expected results, named in the status, ≤ {} s", bars.call.as_secs());
        rows.push(Row::new(format!("{name}: {}", outcome.name), figure, bar, is_met));
    }
    let honest = &observed.honest;
    let first = honest.failures.first().map(|failure| format!("; first: {failure}"));
    let figure = format!(
        "{} calls, p99 {} ms, {} failed{}; memory grows by {:.1} MiB; {} processes left",
        honest.calls.len(),
        honest.p99().as_millis(),
        honest.failures.len(),
        first.unwrap_or_default(),
        observed.memory as f64 / MIB as f64,
        observed.orphans,
    );
    let bar = format!(
        "p99 ≤ {} ms, 0 failed; ≤ {} MiB; 0 left",
        bars.honest_p99.as_millis(),
        bars.memory / MIB
    );
    let is_met = honest.failures.is_empty()
        && !honest.calls.is_empty()
        && honest.p99() <= bars.honest_p99
        && observed.memory <= bars.memory
        && observed.orphans == 0;
    rows.push(Row::new(format!("{name}: the honest upstream"), figure, bar, is_met));
    rows
}
