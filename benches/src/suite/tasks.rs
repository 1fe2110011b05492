//! Durable tasks: what they cost beside bare commits of the same bytes, and what waits for nothing.
//!
//! Engines and stores run in this process, on both cores; servers run in their own, on one.

mod creations;
mod http;
mod lives;
mod parked;
mod polls;
mod streams;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use outlive_tasks::{
    engine::{StartError, TaskRun, TaskRunner},
    store::{ClaimedTask, TaskOutcome},
};
use tokio::{runtime::Runtime, task::JoinSet, time::Instant};

use super::Plan;
use crate::{
    machine::{Cores, load_average, own_pid, pin, spread},
    peers::Peers,
    place::{Folder, Kind},
    report::Report,
    slices::{self, Series, Slice, Target},
};

/// How many callers there are at once, and how many principals they belong to.
const CALLERS: usize = 256;

/// How many connections write to PostgreSQL, in our store and in the control.
const LANES: usize = 2;

/// A figure, and which stores it is taken of.
struct Figure {
    name: &'static str,
    sqlite_only: bool,
    measure: fn(&Bench<'_>, &mut Report) -> Result<()>,
}

const FIGURES: &[Figure] = &[
    Figure { name: "creations", sqlite_only: false, measure: creations::measure },
    Figure { name: "lives", sqlite_only: false, measure: lives::measure },
    Figure { name: "journals", sqlite_only: false, measure: lives::journals },
    Figure { name: "http", sqlite_only: true, measure: http::measure },
    Figure { name: "polls", sqlite_only: false, measure: polls::measure },
    Figure { name: "parked", sqlite_only: false, measure: parked::measure },
    Figure { name: "stream", sqlite_only: true, measure: streams::throughput },
    Figure { name: "streams", sqlite_only: true, measure: streams::many },
];

/// What a figure is taken with.
struct Bench<'a> {
    plan: &'a Plan,
    cores: Cores,
    folder: &'a Folder,
    /// Runs on both cores.
    runtime: Arc<Runtime>,
}

pub(super) fn measure(plan: &Plan, _: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    if let Some(wanted) = &plan.figure
        && !FIGURES.iter().any(|figure| figure.name == *wanted)
    {
        let names: Vec<_> = FIGURES.iter().map(|figure| figure.name).collect();
        bail!("`--figure {wanted}`: there are {}", names.join(", "));
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
        report.say(format!("load average {}", load_average()?));
    }
    folder.clear()?;
    pin(cores.generator)
}

impl Bench<'_> {
    /// Gives every target a slice in every round, long enough for a disk to find its pace.
    fn take(&self, targets: &mut [Box<dyn Target>]) -> Result<Vec<Series>> {
        slices::take(targets, self.plan.rounds.div_ceil(2), self.plan.slice * 3)
    }

    /// Many callers that do something again and again, in this process.
    fn callers<F>(&self, name: &str, callers: usize, work: F) -> Box<dyn Target>
    where
        F: Fn(usize) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync + 'static,
    {
        let (runtime, work) = (Arc::clone(&self.runtime), Arc::new(work));
        let has_helpers = self.plan.store.has_helpers();
        Box::new(Callers { name: name.to_owned(), callers, runtime, work, has_helpers })
    }

    fn is_postgres(&self) -> bool {
        self.plan.store == Kind::Postgres
    }
}

struct Callers<F> {
    name: String,
    callers: usize,
    runtime: Arc<Runtime>,
    work: Arc<F>,
    has_helpers: bool,
}

impl<F> Target for Callers<F>
where
    F: Fn(usize) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> u32 {
        own_pid()
    }

    fn has_helpers(&self) -> bool {
        self.has_helpers
    }

    fn load(&mut self, time: Duration) -> Result<u64> {
        let end = Instant::now() + time;
        self.runtime.block_on(async {
            let mut all = JoinSet::new();
            for caller in 0..self.callers {
                let work = Arc::clone(&self.work);
                all.spawn(async move {
                    let mut done = 0;
                    while Instant::now() < end {
                        work(caller).await?;
                        done += 1;
                    }
                    anyhow::Ok(done)
                });
            }
            let mut sum = 0;
            while let Some(done) = all.join_next().await {
                sum += done??;
            }
            Ok(sum)
        })
    }
}

fn rate(slice: &Slice) -> f64 {
    slice.rate
}

/// Begins nothing: tasks stay where they are.
struct Nothing;

impl TaskRunner for Nothing {
    fn start(&self, _: ClaimedTask) -> Result<TaskRun, StartError> {
        Err(StartError { outcome: TaskOutcome::Cancelled, keep: false })
    }
}
