//! The campaign: traffic, failures, recovery, and the verdict.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use super::client::Client;
use super::database::Database;
use super::fleet::{Fleet, Setting};
use super::job::Known;
use super::judge::{Findings, Violation};
use super::oracle::Line;
use super::plan::{Action, Event, Terms};
use super::random::Random;
use super::setting::{LEASE, folder, in_folder, number, server};
use super::{job, judge, oracle, plan, stall, table};
use xtask::args::Args;

/// Maximum time until every job has ended after the last failure. The backoff of a repeatedly crashed
/// task is up to a minute.
const HEALING: Duration = Duration::from_secs(150);
/// Number of concurrent jobs.
const CLIENTS: u64 = 16;

/// Command-line options.
struct Options {
    store: String,
    replicas: usize,
    length: Duration,
    seed: u64,
    server: PathBuf,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let options = Options::read(args)?;
    println!(
        "crash: {} servers on {} for {} s; --seed {} repeats the plan",
        options.replicas,
        options.store,
        options.length.as_secs(),
        options.seed
    );
    let folder = folder("crash")?;
    in_folder(&folder, || run_in(&folder, &options))
}

fn run_in(folder: &Path, options: &Options) -> Result<()> {
    let mut database = Database::start(&options.store, folder)?;
    let setting = Setting {
        program: options.server.clone(),
        folder: folder.to_owned(),
        store: database.url(),
        lease: LEASE,
        more: &[],
    };
    let fleet = Fleet::start(setting, options.replicas)?;
    let terms = Terms {
        length: options.length,
        replicas: options.replicas,
        lease: fleet.lease(),
        database: database.can_fall(),
    };
    let plan = plan::plan(options.seed, terms);
    let begun = Instant::now();
    let known = Mutex::new(Vec::new());
    let (stop, end) = (begun + options.length, begun + options.length + HEALING);
    let is_terminal = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| tell_minutes(begun, options.length));
        let watching =
            scope.spawn(|| stall::watch(folder, fleet.oracle(), fleet.lease(), &is_terminal));
        let random = Random::new(options.seed);
        let clients: Vec<_> = (1..=CLIENTS)
            .map(|number| {
                let client = Client::new(&fleet, random.fork(number));
                let (known, fleet) = (&known, &fleet);
                scope.spawn(move || traffic(client, fleet, number, stop, end, known))
            })
            .collect();
        // The clients stop on their own, even if the plan fails.
        let time = Time { begun, last: stop - fleet.lease() };
        let hurt = hurt(&fleet, &mut database, &plan, time);
        let ended: Vec<_> = clients.into_iter().map(ScopedJoinHandle::join).collect();
        is_terminal.store(true, Ordering::Relaxed);
        for client in ended {
            client.map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        watching.join().map_err(|_| anyhow::anyhow!("the disk monitor panicked"))??;
        hurt
    })?;
    let mut known = known.into_inner().context("a client panicked")?;
    let mut client = Client::new(&fleet, Random::new(options.seed));
    for known in &mut known {
        job::look_again(&mut client, known, HEALING);
    }
    let lines = fleet.oracle().read()?;
    let mut findings = judge::judge_lines(&lines, database.holds_up());
    findings.violations.extend(known.iter().flat_map(|known| judge::judge_known(known, &lines)));
    print_table(&lines, &known, &findings, begun.elapsed());
    verdict(&fleet, &lines, &plan, &known, &findings)
}

/// Prints the elapsed minutes of a long run.
fn tell_minutes(begun: Instant, length: Duration) {
    let minutes = length.as_secs() / 60;
    for minute in 1..minutes {
        wait_until(begun + Duration::from_secs(minute * 60));
        eprintln!("crash: {minute} of {minutes} minutes");
    }
}

/// One client: runs one job after the other, and sometimes reads an ended one again.
fn traffic(
    mut client: Client<'_>,
    fleet: &Fleet,
    number: u64,
    stop: Instant,
    end: Instant,
    all: &Mutex<Vec<Known>>,
) -> Result<()> {
    let mut mine: Vec<Known> = Vec::new();
    for count in 0.. {
        if Instant::now() >= stop {
            break;
        }
        let job = format!("c{number}-{count}");
        mine.extend(job::live(&mut client, fleet.oracle(), &job, end)?);
        if !mine.is_empty() && client.random.percent(30) {
            let ended = client.random.below(mine.len());
            job::look_again(&mut client, &mut mine[ended], Duration::from_secs(5));
        }
    }
    if let Ok(mut all) = all.lock() {
        all.extend(mine);
    }
    Ok(())
}

/// Start of the plan, and time of the last failure.
#[derive(Clone, Copy)]
struct Time {
    begun: Instant,
    last: Instant,
}

/// Executes the plan and leaves every process alive. Each process has its own thread, so that a
/// server that cannot start does not delay the thaw of a frozen one.
fn hurt(fleet: &Fleet, database: &mut Database, plan: &[Event], time: Time) -> Result<()> {
    thread::scope(|scope| {
        let mut threads: Vec<_> = (0..fleet.len())
            .map(|number| {
                scope.spawn(move || {
                    let own = plan.iter().filter(|event| event.action.victim() == Some(number));
                    follow(own, time, |action| hurt_server(fleet, action))
                })
            })
            .collect();
        threads.push(scope.spawn(|| {
            let others = plan.iter().filter(|event| event.action.victim().is_none());
            follow(others, time, |action| hurt_database(fleet, database, action))
        }));
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a thread of the plan panicked"))??;
        }
        Ok(())
    })
}

/// Executes one event after the other. A delay shifts all later events: otherwise a slow event,
/// such as a start while the database is down, would leave no time for work before the next failure.
fn follow<'e>(
    events: impl Iterator<Item = &'e Event>,
    time: Time,
    mut act: impl FnMut(Action) -> Result<()>,
) -> Result<()> {
    let mut late = Duration::ZERO;
    for event in events {
        let due = time.begun + event.at + late;
        // A process that is down or frozen is recovered, however late.
        if due > time.last && !event.action.heals() {
            break;
        }
        wait_until(due);
        act(event.action)?;
        late += due.elapsed().saturating_sub(plan::REST);
    }
    Ok(())
}

fn hurt_server(fleet: &Fleet, action: Action) -> Result<()> {
    match action {
        Action::Kill(number) => fleet.kill(number).map(drop),
        Action::Start(number) => fleet.start_one(number),
        Action::Restart(number) => fleet.restart(number),
        Action::Freeze(number) => fleet.freeze(number),
        Action::Thaw(number) => fleet.thaw(number),
        Action::Database(_) => Ok(()),
    }
}

fn hurt_database(fleet: &Fleet, database: &mut Database, action: Action) -> Result<()> {
    if let Action::Database(down) = action {
        fleet.oracle().fault("database", NO_PROCESS)?;
        database.kill()?;
        thread::sleep(down);
        database.restart()?;
        fleet.oracle().fault("recovery", NO_PROCESS)?;
    }
    Ok(())
}

fn wait_until(time: Instant) {
    thread::sleep(time.saturating_duration_since(Instant::now()));
}

/// The name of the database in failure lines.
const NO_PROCESS: &str = "database";

/// Fails if there is a violation, or a planned failure that never hit a task.
fn verdict(
    fleet: &Fleet,
    lines: &[Line],
    plan: &[Event],
    known: &[Known],
    findings: &Findings,
) -> Result<()> {
    if let Some(Violation { job, what }) = findings.violations.first() {
        let text = fs::read_to_string(fleet.oracle().path())?;
        let story = table::story(lines, &text, job);
        for Violation { job, what } in &findings.violations {
            eprintln!("crash: {job}: {what}");
        }
        bail!("{} violations; the first: {job}: {what}\n{story}", findings.violations.len());
    }
    if known.is_empty() {
        bail!("no server ran a job; see the server logs");
    }
    let missed = idle_faults(plan, findings);
    if !missed.is_empty() {
        bail!("these failures never hit a running task: {}; run longer", missed.join(", "));
    }
    Ok(())
}

/// Planned kinds of failures that hit no task. Such a failure tests nothing.
fn idle_faults(plan: &[Event], findings: &Findings) -> Vec<&'static str> {
    let database = plan.iter().any(|event| matches!(event.action, Action::Database(_)));
    let needed = ["kill", "freeze", "restart"].into_iter().chain(database.then_some("database"));
    needed.filter(|kind| findings.hits.get(*kind).is_none_or(|hits| *hits == 0)).collect()
}

fn print_table(lines: &[Line], known: &[Known], findings: &Findings, took: Duration) {
    let faults = |wanted: &str| {
        let is_wanted = |line: &&Line| match &line.event {
            oracle::Event::Fault { kind, .. } => kind == wanted,
            _ => false,
        };
        lines.iter().filter(is_wanted).count().to_string()
    };
    let hits = |kind: &str| findings.hits.get(kind).copied().unwrap_or(0).to_string();
    let answered = known.iter().filter(|known| known.word.is_some()).count();
    let cancelled = known.iter().filter(|known| known.cancelled).count();
    let takeover = |percent| table::shown(table::percentile(&findings.takeovers, percent));
    table::print(&[
        ("seconds", took.as_secs().to_string()),
        ("tasks", known.len().to_string()),
        ("  answered", answered.to_string()),
        ("  cancelled", cancelled.to_string()),
        ("kills", faults("kill")),
        ("  that hit a task", hits("kill")),
        ("freezes", faults("freeze")),
        ("  that hit a task", hits("freeze")),
        ("restarts", faults("restart")),
        ("  that hit a task", hits("restart")),
        ("database kills", faults("database")),
        ("  that hit a task", hits("database")),
        ("stalls of the machine", faults(stall::BEGINS)),
        ("step executions", findings.executions.to_string()),
        ("  repeated", findings.repeated.to_string()),
        ("  by a worker without a lease", findings.in_vain.to_string()),
        ("reclaims after a kill", findings.takeovers.len().to_string()),
        ("  p50", takeover(50)),
        ("  p99", takeover(99)),
        ("violations", findings.violations.len().to_string()),
    ]);
}

impl Options {
    fn read(mut args: Args) -> Result<Self> {
        let store = args.value("--store")?.unwrap_or_else(|| "sqlite".to_owned());
        let replicas = number(&mut args, "--replicas")?.unwrap_or(3);
        let minutes = number(&mut args, "--minutes")?.map(|minutes| minutes * 60);
        let seconds = number(&mut args, "--seconds")?;
        let seed = number(&mut args, "--seed")?;
        let server = server(&mut args)?;
        args.finish()?;
        if replicas == 0 {
            bail!("`--replicas` must be at least 1");
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            store,
            replicas: replicas as usize,
            length: Duration::from_secs(minutes.or(seconds).unwrap_or(60)),
            // Short enough to type.
            seed: seed.unwrap_or(now.as_millis() as u64 % 1_000_000),
            server,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Action, Event, Time, follow};

    #[test]
    fn plan_recovers_every_process_and_adds_no_fault_at_the_end() {
        let actions = [Action::Kill(0), Action::Start(0), Action::Freeze(0), Action::Thaw(0)];
        let plan: Vec<Event> = (0..)
            .zip(actions)
            .map(|(at, action)| Event { at: Duration::from_millis(at), action })
            .collect();
        let (now, mut done) = (Instant::now(), Vec::new());
        let act = |action| {
            done.push(action);
            Ok(())
        };
        follow(plan.iter(), Time { begun: now, last: now }, act).unwrap();
        assert_eq!(done, [Action::Kill(0), Action::Start(0)]);
    }
}
