//! The command: runs the campaigns, prints their rows, and fails if one misses its bar.

use std::fs;
use std::thread;

use anyhow::{Result, anyhow, bail};
use xtask::args::Args;

use super::bench::Bench;
use super::{compared, cost, crowd, fastmcp, hostile, kills, packages, random, tutorials, types};
use crate::row::Row;

/// Several rows that are measured together.
struct Campaign {
    name: &'static str,
    run: fn(&Bench) -> Result<Vec<Row>>,
    /// Whether the campaign runs beside the others in a short run. It measures no times.
    is_beside: bool,
}

const CAMPAIGNS: &[Campaign] = &[
    Campaign { name: "kills", run: kills::run, is_beside: false },
    Campaign { name: "fastmcp", run: fastmcp::run, is_beside: false },
    Campaign { name: "crowd", run: crowd::run, is_beside: false },
    Campaign { name: "cost", run: cost::run, is_beside: false },
    Campaign { name: "random", run: random::run, is_beside: false },
    Campaign { name: "hostile", run: hostile::run, is_beside: false },
    Campaign { name: "compared", run: compared::run, is_beside: false },
    Campaign { name: "packages", run: packages::run, is_beside: true },
    Campaign { name: "types", run: types::run, is_beside: true },
    Campaign { name: "tutorials", run: tutorials::run, is_beside: true },
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
    let is_beside = |campaign: &Campaign| bench.is_short && campaign.is_beside;
    let show = |campaign: &'static Campaign, rows: Result<Vec<Row>>| {
        let rows = rows.unwrap_or_else(|error| vec![Row::failed(campaign.name, &error)]);
        rows.iter().filter(|_| !is_json).for_each(Row::print);
        rows.into_iter().map(|row| (campaign.name, row))
    };
    thread::scope(|scope| {
        let (beside, first): (Vec<_>, Vec<_>) =
            chosen.iter().copied().partition(|campaign| is_beside(campaign));
        // One after the other, because they install packages into the same environments.
        let beside = scope.spawn(move || {
            beside.into_iter().map(|campaign| (campaign, (campaign.run)(bench))).collect::<Vec<_>>()
        });
        let mut rows = Vec::new();
        for campaign in first {
            eprintln!("workers: {}", campaign.name);
            rows.extend(show(campaign, (campaign.run)(bench)));
        }
        for (campaign, measured) in beside.join().map_err(|_| anyhow!("a thread panicked"))? {
            rows.extend(show(campaign, measured));
        }
        Ok(rows)
    })
}
