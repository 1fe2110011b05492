//! The cost of reading a task and of creating one, among a thousand and among a million.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use memchr::memmem;
use outlive_protocol::Principal;
use outlive_tasks::store::{CreateOutcome, MemoryStore, Store, TaskId};

use super::{Bench, rate};
use crate::{
    child::Server,
    load::{
        Loaded,
        talk::{Say, Talk, Talks},
    },
    machine::{pin, spread},
    messages::get_task,
    place::{Place, each_number, fresh_id, mixed, new_task, numbered_id},
    report::{Bar, Report},
    slices::{self, Slice, Target},
};

const FEW: u64 = 1_000;
const CONNECTIONS: usize = 64;

/// Duration of a slice of creations.
const MAKING: Duration = Duration::from_millis(50);

pub(super) fn measure(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let counts = [FEW, bench.plan.stored];
    let places = counts.map(|count| bench.folder.place(&format!("polls-{count}")));
    for (place, count) in places.iter().zip(counts) {
        bench.runtime.block_on(async { fill(&place.open().await?, count).await })?;
    }
    let [few, many] = counts;
    report.title(&format!("Reading a random task and creating one, among {few} and {many}"));
    over_http(bench, report, &places, counts)?;
    let mut stores = Vec::new();
    for place in &places {
        stores.push(bench.runtime.block_on(place.open())?);
    }
    at_the_stores(bench, report, &bench.plan.store.to_string(), &stores, counts)?;
    if bench.is_postgres() {
        return Ok(());
    }
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for count in counts {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        bench.runtime.block_on(fill(&store, count))?;
        stores.push(store);
    }
    at_the_stores(bench, report, "memory", &stores, counts)
}

async fn fill(store: &Arc<dyn Store>, count: u64) -> Result<()> {
    each_number(store, count, |store, number| create(store, numbered_id(number))).await
}

async fn create(store: Arc<dyn Store>, id: String) -> Result<()> {
    match store.create(new_task(id, Principal::ANONYMOUS.key().to_owned())).await? {
        CreateOutcome::Created { .. } => Ok(()),
        other => bail!("not created: {other:?}"),
    }
}

fn over_http(
    bench: &Bench<'_>,
    report: &mut Report,
    places: &[Place; 2],
    counts: [u64; 2],
) -> Result<()> {
    let mut servers = Vec::new();
    for place in places {
        servers.push(Server::keeping("outlive-tasks-idle", place, bench.cores)?);
    }
    pin(bench.cores.generator)?;
    let mut targets: Vec<Box<dyn Target>> = Vec::new();
    for ((server, address), among) in servers.iter().zip(counts) {
        let pollers =
            (0..CONNECTIONS).map(|seed| Poller { seed: seed as u64, among, asked: String::new() });
        let talks = Talks::open(*address, Duration::ZERO, pollers)?;
        let name = format!("tasks/get, {among} tasks");
        let helped = bench.plan.store.has_helpers();
        targets.push(Box::new(Loaded::new(&name, server, talks).with_helpers(helped)));
    }
    let series = bench.take(&mut targets)?;
    spread(bench.cores)?;
    let [few, many] = &series[..] else { return Ok(()) };
    let ratio = many.ratio(few, |slice: &Slice| slice.cpu);
    report.ratio("tasks/get over HTTP, many / few (CPU)", ratio);
    report.series(&series);
    let name = "a poll over HTTP among many tasks, CPU relative to few";
    report.bar(Bar::at_most(name, Some(ratio.spread.median), 1.5, "x"));
    Ok(())
}

/// Reads, and then creations, without a server.
fn at_the_stores(
    bench: &Bench<'_>,
    report: &mut Report,
    kind: &str,
    stores: &[Arc<dyn Store>],
    counts: [u64; 2],
) -> Result<()> {
    let (mut looks, mut makers) = (Vec::new(), Vec::new());
    for (store, count) in stores.iter().zip(counts) {
        let (seed, looked) = (Arc::new(AtomicU64::new(0)), Arc::clone(store));
        let name = format!("Store::get, {kind}, {count} tasks");
        looks.push(bench.callers(&name, CONNECTIONS, move |_| {
            let store = Arc::clone(&looked);
            let number = mixed(seed.fetch_add(1, Ordering::Relaxed)) % count;
            Box::pin(async move { view(&*store, number).await })
        }));
        let store = Arc::clone(store);
        let name = format!("Store::create, {kind}, {count} tasks");
        makers.push(bench.callers(&name, CONNECTIONS, move |_| {
            Box::pin(create(Arc::clone(&store), fresh_id()))
        }));
    }
    let rounds = bench.plan.rounds.div_ceil(2);
    // Short, so that few tasks are still few in the last round.
    let made = |targets: &mut Vec<_>| slices::take(targets, rounds, MAKING);
    for (name, series) in [("get", bench.take(&mut looks)?), ("create", made(&mut makers)?)] {
        let [few, many] = &series[..] else { continue };
        let ratio = few.ratio(many, rate);
        report.ratio(&format!("Store::{name}, {kind}, few / many (tasks/s)"), ratio);
        report.series(&series);
    }
    Ok(())
}

async fn view(store: &dyn Store, number: u64) -> Result<()> {
    let id = TaskId::new(numbered_id(number));
    let seen = store.get(Principal::ANONYMOUS.key(), &id).await?;
    seen.map(drop).context("a created task is missing")
}

/// A client that polls random tasks.
struct Poller {
    seed: u64,
    among: u64,
    asked: String,
}

impl Talk for Poller {
    fn next(&mut self, answer: Option<&[u8]>) -> Result<Say> {
        if let Some(answer) = answer {
            return match memmem::find(answer, self.asked.as_bytes()) {
                Some(_) => Ok(Say::Done),
                None => bail!("not the task: {}", String::from_utf8_lossy(answer)),
            };
        }
        self.seed = mixed(self.seed);
        self.asked = numbered_id(self.seed % self.among);
        Ok(Say::Now(get_task(&self.asked)))
    }
}
