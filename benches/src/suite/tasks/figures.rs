//! The list of figures and its execution.

use super::bench::Bench;
use super::{creations, http, lives, parked, polls, streams};
use crate::suite::Plan;
use crate::{
    machine::{Cores, load_average, pin, spread},
    peers::Peers,
    place::{Folder, Kind},
    report::Report,
};
use anyhow::{Context, Result, bail};
use std::sync::Arc;

/// A figure, and its stores.
pub(super) struct Figure {
    name: &'static str,
    sqlite_only: bool,
    measure: fn(&Bench<'_>, &mut Report) -> Result<()>,
}

pub(super) const FIGURES: &[Figure] = &[
    Figure { name: "creations", sqlite_only: false, measure: creations::measure },
    Figure { name: "lives", sqlite_only: false, measure: lives::measure },
    Figure { name: "journals", sqlite_only: false, measure: lives::journals },
    Figure { name: "http", sqlite_only: true, measure: http::measure },
    Figure { name: "polls", sqlite_only: false, measure: polls::measure },
    Figure { name: "parked", sqlite_only: false, measure: parked::measure },
    Figure { name: "stream", sqlite_only: true, measure: streams::throughput },
    Figure { name: "streams", sqlite_only: true, measure: streams::many },
];

pub(crate) fn measure(plan: &Plan, _: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    if let Some(wanted) = &plan.figure
        && !FIGURES.iter().any(|figure| figure.name == *wanted)
    {
        let names: Vec<_> = FIGURES.iter().map(|figure| figure.name).collect();
        bail!("unknown figure `--figure {wanted}`; use one of {}", names.join(", "));
    }
    let folder = Folder::make(plan.store)?;
    spread(cores)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let bench = Bench { plan, cores, folder: &folder, runtime: Arc::new(runtime?) };
    for figure in FIGURES {
        let is_wanted = plan.figure.as_ref().is_none_or(|wanted| wanted == figure.name);
        if !is_wanted || (figure.sqlite_only && plan.store != Kind::Sqlite) {
            continue;
        }
        eprintln!("measuring tasks: {}", figure.name);
        (figure.measure)(&bench, report).with_context(|| figure.name)?;
        report.say(format!("Load average {} after `{}`.", load_average()?, figure.name));
    }
    folder.clear()?;
    pin(cores.generator)
}
