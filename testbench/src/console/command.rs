//! The command: runs the campaigns, prints their rows, and fails if one misses its bar.

use std::fs;
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow, bail, ensure};
use xtask::args::Args;

use super::bench::Bench;
use super::{
    answer_page, attacks, cost, deliveries, gate, histories, latency, lists, lookups, oauth,
    pictures, screens, script, sizes, terminal, tokens, unavailable,
};
use crate::row::Row;

/// Several rows that are measured together.
struct Campaign {
    name: &'static str,
    run: fn(&Bench) -> Result<Vec<Row>>,
    turn: Turn,
}

/// When a campaign runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// First, because it measures times. Nothing else runs, except in a short run.
    Alone,
    /// After another one.
    Next,
    /// Beside the others, because it mostly waits.
    Beside,
}

const CAMPAIGNS: &[Campaign] = &[
    Campaign { name: "script", run: script::run, turn: Turn::Next },
    Campaign { name: "answer-page", run: answer_page::run, turn: Turn::Next },
    Campaign { name: "screens", run: screens::run, turn: Turn::Alone },
    Campaign { name: "oauth", run: oauth::run, turn: Turn::Next },
    Campaign { name: "sizes", run: sizes::run, turn: Turn::Next },
    Campaign { name: "tokens", run: tokens::run, turn: Turn::Next },
    Campaign { name: "terminal", run: terminal::run, turn: Turn::Next },
    Campaign { name: "attacks", run: attacks::run, turn: Turn::Next },
    Campaign { name: "lookups", run: lookups::run, turn: Turn::Next },
    Campaign { name: "latency", run: latency::run, turn: Turn::Alone },
    Campaign { name: "deliveries", run: deliveries::run, turn: Turn::Beside },
    Campaign { name: "gate", run: gate::run, turn: Turn::Next },
    Campaign { name: "unavailable", run: unavailable::run, turn: Turn::Next },
    Campaign { name: "lists", run: lists::run, turn: Turn::Alone },
    Campaign { name: "cost", run: cost::run, turn: Turn::Alone },
    Campaign { name: "histories", run: histories::run, turn: Turn::Next },
];

/// Runs instead of the others if `--pictures` names a folder.
static PICTURES: Campaign = Campaign { name: "pictures", run: pictures::run, turn: Turn::Alone };

pub(crate) fn run(mut args: Args) -> Result<()> {
    let only = args.values("--only")?;
    let is_json = args.flag("--json");
    let names: Vec<&str> = CAMPAIGNS.iter().map(|campaign| campaign.name).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("unknown campaign `{unknown}`; the campaigns are {}", names.join(", "));
    }
    let is_chosen =
        |campaign: &&Campaign| only.is_empty() || only.iter().any(|name| name == campaign.name);
    let mut chosen: Vec<&Campaign> = CAMPAIGNS.iter().filter(is_chosen).collect();
    let bench = Bench::new(args)?;
    if bench.pictures.is_some() {
        ensure!(only.is_empty(), "`--pictures` runs no other campaign; remove `--only`");
        chosen = vec![&PICTURES];
    }
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
    let run = |campaign: &'static Campaign| {
        let Campaign { name, run, .. } = campaign;
        let started = Instant::now();
        let rows = run(bench).unwrap_or_else(|error| vec![Row::failed(name, &error)]);
        eprintln!("console: {name}: {} s", started.elapsed().as_secs());
        rows.iter().filter(|_| !is_json).for_each(Row::print);
        rows.into_iter().map(|row| (*name, row)).collect::<Vec<_>>()
    };
    let is_short = bench.is_short;
    let of = |turn: Turn| {
        let is_next = move |campaign: &&Campaign| campaign.turn(is_short) == turn;
        chosen.iter().copied().filter(is_next)
    };
    let run = &run;
    let mut rows: Vec<_> = of(Turn::Alone).flat_map(run).collect();
    thread::scope(|scope| {
        let beside: Vec<_> =
            of(Turn::Beside).map(|campaign| scope.spawn(move || run(campaign))).collect();
        rows.extend(of(Turn::Next).flat_map(run));
        for thread in beside {
            rows.extend(thread.join().map_err(|_| anyhow!("a thread panicked"))?);
        }
        Ok(rows)
    })
}

impl Campaign {
    fn turn(&self, is_short: bool) -> Turn {
        match self.turn {
            Turn::Alone if is_short => Turn::Next,
            turn => turn,
        }
    }
}
