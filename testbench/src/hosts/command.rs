//! The command: runs the campaigns, prints their rows, and fails if one misses its bar.

use std::fs;
use std::thread::{self, ScopedJoinHandle};

use anyhow::{Result, anyhow, bail};
use xtask::args::Args;

use super::bench::Bench;
use super::{answers, bytes, comparison, foreign, kills, large, long_calls};
use crate::row::Row;

/// Several rows that are measured together.
struct Campaign {
    name: &'static str,
    run: fn(&Bench) -> Result<Vec<Row>>,
    /// Whether the calls mostly wait. Such campaigns run beside the others in a short run, and also
    /// have a pass with real times in a full run.
    waits: bool,
}

const CAMPAIGNS: &[Campaign] = &[
    Campaign { name: long_calls::ROUNDS, run: long_calls::rounds, waits: true },
    Campaign { name: long_calls::PROGRESS, run: long_calls::progress, waits: true },
    Campaign { name: long_calls::PENDING, run: long_calls::pending, waits: true },
    Campaign { name: "kills", run: kills::run, waits: false },
    Campaign { name: "foreign", run: foreign::run, waits: false },
    Campaign { name: "answers", run: answers::run, waits: false },
    Campaign { name: "large", run: large::run, waits: false },
    Campaign { name: "bytes", run: bytes::run, waits: false },
    Campaign { name: "comparison", run: comparison::run, waits: false },
];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let only = args.values("--only")?;
    let is_json = args.flag("--json");
    let names: Vec<&str> = CAMPAIGNS.iter().map(|campaign| campaign.name).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("unknown row `{unknown}`; the rows are {}", names.join(", "));
    }
    let is_chosen =
        |campaign: &&Campaign| only.is_empty() || only.iter().any(|name| name == campaign.name);
    let chosen: Vec<&Campaign> = CAMPAIGNS.iter().filter(is_chosen).collect();
    let bench = Bench::new(args)?;
    let rows = measure(&bench, &chosen, is_json)?;
    if is_json {
        let rows: Vec<_> = rows.iter().map(|(campaign, row)| row.to_json(campaign)).collect();
        println!("{}", serde_json::to_string_pretty(&rows)?);
    }
    let missed = rows.iter().filter(|(_, row)| !row.is_met).count();
    if missed > 0 {
        bail!("{missed} rows miss their bar; the files are in {}", bench.folder().display());
    }
    fs::remove_dir_all(bench.folder())?;
    Ok(())
}

/// Runs the campaigns and prints their rows.
fn measure(
    bench: &Bench,
    chosen: &[&'static Campaign],
    is_json: bool,
) -> Result<Vec<(&'static str, Row)>> {
    let waiting: Vec<&'static Campaign> = chosen.iter().copied().filter(|it| it.waits).collect();
    let show = |name: &'static str, rows: Result<Vec<Row>>| {
        let rows = rows.unwrap_or_else(|error| vec![Row::failed(name, &error)]);
        rows.iter().filter(|_| !is_json).for_each(Row::print);
        rows.into_iter().map(move |row| (name, row))
    };
    thread::scope(|scope| {
        let mut beside: Vec<(&'static str, ScopedJoinHandle<'_, Result<Vec<Row>>>)> = Vec::new();
        if bench.is_short {
            for &campaign in &waiting {
                beside.push((campaign.name, scope.spawn(move || (campaign.run)(bench))));
            }
        } else if !waiting.is_empty() {
            let names: Vec<&str> = waiting.iter().map(|campaign| campaign.name).collect();
            beside.push(("real times", scope.spawn(move || long_calls::real(bench, &names))));
        }
        let mut rows = Vec::new();
        for campaign in chosen.iter().filter(|campaign| !(campaign.waits && bench.is_short)) {
            eprintln!("hosts: {}", campaign.name);
            rows.extend(show(campaign.name, (campaign.run)(bench)));
        }
        for (name, thread) in beside {
            let outcome = thread.join().map_err(|_| anyhow!("a thread panicked"))?;
            rows.extend(show(name, outcome));
        }
        Ok(rows)
    })
}
