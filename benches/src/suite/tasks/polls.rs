//! What a look at a task costs, among a thousand and among a million.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use memchr::memmem;
use outlive_protocol::Principal;
use outlive_tasks::store::{Created, Store, TaskId};

use super::{Bench, rate};
use crate::{
    child::Server,
    load::talk::{Say, Talk, Talks},
    machine::{pin, spread},
    messages::get_task,
    place::{Place, each_number, mixed, new_task, numbered_id},
    report::{Bar, Report},
    slices::{Slice, Target},
};

const FEW: u64 = 1_000;
const CONNECTIONS: usize = 64;

pub(super) fn measure(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let many = bench.plan.stored;
    let places = [FEW, many].map(|count| bench.folder.place(&format!("polls-{count}")));
    for (place, count) in places.iter().zip([FEW, many]) {
        bench.runtime.block_on(fill(place, count))?;
    }
    let title = format!("a look at a random task, among {FEW} and among {many}");
    report.title(&title);
    over_http(bench, report, &places, many)?;
    at_the_store(bench, report, &places, many)
}

async fn fill(place: &Place, count: u64) -> Result<()> {
    each_number(&place.open().await?, count, |store, number| async move {
        let principal = Principal::ANONYMOUS.key().to_owned();
        match store.create(new_task(numbered_id(number), principal)).await? {
            Created::New { .. } => Ok(()),
            other => bail!("not made: {other:?}"),
        }
    })
    .await
}

fn over_http(bench: &Bench<'_>, report: &mut Report, places: &[Place; 2], many: u64) -> Result<()> {
    let mut servers = Vec::new();
    for place in places {
        servers.push(Server::keeping("outlive-tasks-idle", place, bench.cores)?);
    }
    pin(bench.cores.generator)?;
    let mut targets: Vec<Box<dyn Target>> = Vec::new();
    for ((server, address), count) in servers.iter().zip([FEW, many]) {
        targets.push(Box::new(Polls::open(server, *address, count)?));
    }
    let series = bench.take(&mut targets)?;
    spread(bench.cores)?;
    let [few, many] = &series[..] else { return Ok(()) };
    let ratio = many.ratio(few, |slice: &Slice| slice.cpu);
    report.ratio("tasks/get over HTTP, many / few (CPU)", ratio);
    report.series(&series);
    let name = "a look over HTTP among many tasks, CPU of one among few";
    report.bar(Bar::at_most(name, Some(ratio.spread.median), 1.5, "x"));
    Ok(())
}

fn at_the_store(
    bench: &Bench<'_>,
    report: &mut Report,
    places: &[Place; 2],
    many: u64,
) -> Result<()> {
    let mut targets = Vec::new();
    for (place, count) in places.iter().zip([FEW, many]) {
        let store = bench.runtime.block_on(place.open())?;
        let seed = Arc::new(AtomicU64::new(0));
        let name = format!("Store::view, {count} tasks");
        targets.push(bench.callers(&name, CONNECTIONS, move |_| {
            let store = Arc::clone(&store);
            let number = mixed(seed.fetch_add(1, Ordering::Relaxed)) % count;
            Box::pin(async move { view(&*store, number).await })
        }));
    }
    let series = bench.take(&mut targets)?;
    let [few, many] = &series[..] else { return Ok(()) };
    report.ratio("Store::view, 64 callers, few / many (looks/s)", few.ratio(many, rate));
    report.series(&series);
    Ok(())
}

async fn view(store: &dyn Store, number: u64) -> Result<()> {
    let id = TaskId::new(numbered_id(number));
    let seen = store.view(Principal::ANONYMOUS.key(), &id).await?;
    seen.map(drop).context("a task that was made is not there")
}

/// A client that looks at one random task after the other.
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

struct Polls {
    name: String,
    pid: u32,
    talks: Talks<Poller>,
}

impl Polls {
    fn open(server: &Server, address: SocketAddr, among: u64) -> Result<Self> {
        let pollers =
            (0..CONNECTIONS).map(|seed| Poller { seed: seed as u64, among, asked: String::new() });
        let talks = Talks::open(address, Duration::ZERO, pollers)?;
        Ok(Self { name: format!("tasks/get, {among} tasks"), pid: server.pid(), talks })
    }
}

impl Target for Polls {
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn load(&mut self, time: Duration) -> Result<u64> {
        self.talks.run(time)
    }
}
