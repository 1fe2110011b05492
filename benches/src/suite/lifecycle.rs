//! Whole task lifecycles over HTTP beside peers with tasks: created by a call, polled until
//! completion, result read. Then the same among many stored, ended tasks.
//!
//! Peers scan all their tasks on every operation, so they are measured twice: with a TTL of a
//! minute, the least a client would want, and, in their favor, with a TTL of a second. Our TTL is a
//! day.

use std::{cmp::Ordering, net::SocketAddr, time::Duration};

use anyhow::{Context, Result, bail};
use memchr::memmem;
use outlive_plots::data::{self, Kind, TaskRate};

use super::Plan;
use crate::{
    child::Server,
    load::{
        Loaded,
        talk::{Say, Talk, Talks},
    },
    machine::{Cores, pin, spread},
    messages::{CREATE_TASK_HEADERS, TEXT, create_task, get_task_at, http_request, task_id},
    peers::{Peer, Peers, Serves},
    place::{self, Folder, Place},
    report::{Bar, Report},
    serve,
    slices::{self, Series, Slice, Target},
};

const CONNECTIONS: usize = 256;

/// Poll interval of a client.
const PAUSE: Duration = Duration::from_millis(5);

/// TTL of the tasks of peers in milliseconds: for the bars, in their favor, and while they are
/// full.
const MINUTE: &str = "60000";
const SECOND: &str = "1000";
const HOUR: &str = "3600000";

const FEW: u64 = 1_000;

pub(super) fn measure(plan: &Plan, peers: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    report.title(&format!(
        "Task lifecycles over HTTP, {CONNECTIONS} connections, polled every {} ms",
        PAUSE.as_millis()
    ));
    let folder = Folder::make(plan.store)?;
    beside_peers(plan, peers, cores, &folder, report)?;
    let ours = stored(plan, cores, &folder, report)?;
    folder.clear()?;
    let theirs = peers_when_full(plan, peers, cores, report)?;
    match plan.store {
        place::Kind::Sqlite => report.plot(data::STORED_TASKS_SQLITE, &[ours, theirs].concat()),
        // Memory and peers do not depend on the store.
        place::Kind::Postgres => {
            report.plot(data::STORED_TASKS_POSTGRES, ours.get(2..).unwrap_or_default())
        }
    }
}

/// Compares two series by their median rate.
fn by_rate(one: &&Series, other: &&Series) -> Ordering {
    one.spread(rate).median.total_cmp(&other.spread(rate).median)
}

fn beside_peers(
    plan: &Plan,
    peers: &Peers,
    cores: Cores,
    folder: &Folder,
    report: &mut Report,
) -> Result<()> {
    let durably = plan.store;
    let memory = Server::keeping("outlive-lifecycle", &Place::memory(0), cores)?;
    let durable = Server::keeping("outlive-lifecycle", &folder.place("lifecycle"), cores)?;
    let started = |ttl: &str| {
        let words = |_: &Peer| Some(vec!["tasks".to_owned(), ttl.to_owned()]);
        peers.start(Serves::Tasks, "2026-07-28", words, cores)
    };
    let others = [(MINUTE, started(MINUTE)), (SECOND, started(SECOND))];
    let mut targets: Vec<Box<dyn Target>> = vec![
        Box::new(open("Outlive, memory", &memory.0, memory.1, "/mcp")?),
        Box::new(
            open(&format!("Outlive, {durably}"), &durable.0, durable.1, "/mcp")?
                .with_helpers(durably.has_helpers()),
        ),
    ];
    let mut in_rust = Vec::new();
    for (ttl, other) in others.iter().flat_map(|(ttl, all)| all.iter().map(move |it| (*ttl, it))) {
        // Peers with an external store are as fast with many tasks.
        if other.peer.has_helpers && ttl == SECOND {
            continue;
        }
        let name = match (other.peer.has_helpers, ttl) {
            (true, _) => other.name.clone(),
            (false, SECOND) => format!("{}, memory, TTL one second", other.name),
            (false, _) => format!("{}, memory", other.name),
        };
        let mut opened = open(&name, &other.server, other.address, &other.peer.path);
        // One lifecycle each; a peer that fails is skipped.
        let tried = opened.as_mut().map(|lives| lives.load(Duration::ZERO).map(drop));
        if let Ok(Err(error)) = tried {
            opened = Err(error);
        }
        let Some(target) = peers.keep(&other.name, opened) else { continue };
        if other.peer.is_rust() && ttl == MINUTE {
            in_rust.push(targets.len());
        }
        targets.push(Box::new(target.of(other.peer)));
    }
    eprintln!("measuring task lifecycles");
    let series = slices::take(&mut targets, plan.rounds.div_ceil(2), plan.slice * 2)?;
    let [memory, durable, theirs @ ..] = &series[..] else { return Ok(()) };
    for peer in theirs {
        for ours in [memory, durable] {
            let name = format!("{} / {} (lifecycles/s)", ours.name, peer.name);
            report.ratio(&name, ours.ratio(peer, rate));
        }
    }
    report.ratio(&format!("{} / memory (lifecycles/s)", durable.name), durable.ratio(memory, rate));
    report.series(&series);
    let best = in_rust.iter().filter_map(|at| series.get(*at)).max_by(by_rate);
    let name = best.map_or("none", |best| best.name.as_str());
    report.say(format!("The best Rust peer with a TTL of one minute: {name}."));
    let times = |ours: &Series| best.map(|best| ours.ratio(best, rate).spread.median);
    if best.is_some() {
        let bar = "task lifecycles in memory, relative to the best Rust peer in memory";
        report.bar(Bar::at_least(bar, times(memory), 5.0, "x"));
        let bar = format!("task lifecycles on {durably}, relative to the best Rust peer in memory");
        report.bar(Bar::at_least(&bar, times(durable), 1.0, "x"));
    }
    Ok(())
}

/// Our server among few and among many tasks: two rows in memory, then two rows in the store.
fn stored(
    plan: &Plan,
    cores: Cores,
    folder: &Folder,
    report: &mut Report,
) -> Result<Vec<TaskRate>> {
    let many = plan.stored;
    let mut places = [FEW, many].map(Place::memory).to_vec();
    // Filling uses both cores.
    spread(cores)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for count in [FEW, many] {
        eprintln!("storing {count} ended tasks");
        let place = folder.place(&format!("lifecycle-{count}"));
        runtime.block_on(async { serve::fill(&place.open().await?, count).await })?;
        places.push(place);
    }
    drop(runtime);
    pin(cores.generator)?;
    let durably = plan.store.to_string();
    let names = ["memory", "memory", &durably, &durably];
    let mut servers = Vec::new();
    let mut targets: Vec<Box<dyn Target>> = Vec::new();
    for ((place, kind), count) in places.iter().zip(names).zip([FEW, many].iter().cycle()) {
        let (server, address) = Server::keeping("outlive-lifecycle", place, cores)?;
        let name = format!("Outlive, {kind}, {count} stored");
        let helped = place.schema().is_some();
        targets.push(Box::new(open(&name, &server, address, "/mcp")?.with_helpers(helped)));
        servers.push(server);
    }
    eprintln!("measuring task lifecycles among {FEW} and {many}");
    let series = slices::take(&mut targets, plan.rounds.div_ceil(2), plan.slice * 2)?;
    for (pair, kind) in series.chunks_exact(2).zip(["memory", &durably]) {
        let ratio = pair[1].ratio(&pair[0], rate);
        report.ratio(&format!("Outlive, {kind}, {many} stored / {FEW} (lifecycles/s)"), ratio);
        let name = format!("task lifecycles among {many}, {kind}, relative to {FEW}");
        report.bar(Bar::at_least(&name, Some(ratio.spread.median * 100.0), 80.0, "%"));
    }
    report.series(&series);
    let rows = series.iter().zip(names).zip([FEW, many].into_iter().cycle());
    Ok(rows
        .map(|((series, store), stored)| {
            task_rate(&format!("Outlive, {store}"), Kind::Outlive, stored, series)
        })
        .collect())
}

fn task_rate(target: &str, kind: Kind, stored: u64, series: &Series) -> TaskRate {
    let (target, per_second) = (target.to_owned(), data::rounded(series.spread(rate).median));
    TaskRate { target, kind, stored, per_second }
}

/// Peers that keep their tasks, beside the same peers with few tasks: two rows per peer.
fn peers_when_full(
    plan: &Plan,
    peers: &Peers,
    cores: Cores,
    report: &mut Report,
) -> Result<Vec<TaskRate>> {
    let started = |ttl: &'static str| {
        let words =
            move |peer: &Peer| peer.is_rust().then(|| vec!["tasks".to_owned(), ttl.to_owned()]);
        peers.start(Serves::Tasks, "2026-07-28", words, cores)
    };
    let (empty, full) = (started(SECOND), started(HOUR));
    let (mut targets, mut names): (Vec<Box<dyn Target>>, Vec<String>) = (Vec::new(), Vec::new());
    for (empty, full) in empty.iter().zip(&full) {
        eprintln!("filling {} with {} tasks", full.name, plan.filled);
        let pair = || {
            let path = &full.peer.path;
            let mut filled = open(
                &format!("{}, {} stored", full.name, plan.filled),
                &full.server,
                full.address,
                path,
            )?;
            let mut made = 0;
            while made < plan.filled {
                made += filled.load(Duration::from_millis(500))?;
            }
            let name = format!("{}, tasks of one second", empty.name);
            Ok([open(&name, &empty.server, empty.address, path)?, filled])
        };
        let Some(pair) = peers.keep(&full.name, pair()) else { continue };
        names.push(full.name.clone());
        for one in pair {
            targets.push(Box::new(one));
        }
    }
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    let series = slices::take(&mut targets, plan.rounds.div_ceil(2), plan.slice * 2)?;
    for pair in series.chunks_exact(2) {
        let ratio = pair[1].ratio(&pair[0], rate);
        report.ratio(&format!("{} / {} (lifecycles/s)", pair[1].name, pair[0].name), ratio);
    }
    report.series(&series);
    let rows = series.chunks_exact(2).zip(names).flat_map(|(pair, name)| {
        // With a TTL of one second, a peer stores as many tasks as it creates in a second.
        let few = pair[0].spread(rate).median.round() as u64;
        let row = |stored, series| task_rate(&name, Kind::Peer, stored, series);
        [row(few, &pair[0]), row(plan.filled, &pair[1])]
    });
    Ok(rows.collect())
}

fn rate(slice: &Slice) -> f64 {
    slice.rate
}

/// One client: creates a task and polls it until completion.
struct Client {
    path: String,
    task: Option<String>,
}

impl Talk for Client {
    fn next(&mut self, answer: Option<&[u8]>) -> Result<Say> {
        let Some(answer) = answer else {
            let create = http_request("POST", &self.path, CREATE_TASK_HEADERS, &create_task());
            return Ok(Say::Now(create));
        };
        let shown = || String::from_utf8_lossy(answer);
        let has = |part: &str| memmem::find(answer, part.as_bytes()).is_some();
        let task = match self.task.take() {
            None => task_id(answer).with_context(|| format!("not a task: {}", shown()))?,
            Some(_) if has(r#""status":"completed""#) => {
                return if has(TEXT) {
                    Ok(Say::Done)
                } else {
                    bail!("not the result: {}", shown())
                };
            }
            Some(task) if has(r#""status":"working""#) => task,
            Some(_) => bail!("neither working nor completed: {}", shown()),
        };
        let look = get_task_at(&self.path, &task);
        self.task = Some(task);
        Ok(Say::Later(look))
    }
}

/// A server whose tasks are created and polled.
fn open(name: &str, server: &Server, at: SocketAddr, path: &str) -> Result<Loaded<Talks<Client>>> {
    let clients = (0..CONNECTIONS).map(|_| Client { path: path.to_owned(), task: None });
    Ok(Loaded::new(name, server, Talks::open(at, PAUSE, clients)?))
}
