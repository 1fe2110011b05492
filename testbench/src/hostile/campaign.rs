//! One round: a server under attack, measured by an honest caller.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::caller::Caller;
use super::honest::Experience;
use super::results::{HonestResult, Probe};
use super::server::{
    ALL_CORES, ATTACKER_CORE, HONEST_TOKEN, HOSTILE_TOKEN, MAX_PROCESSES, Memory, SERVER_CORE,
    Server, pinned,
};
use super::stored::StoredBytes;
use super::{attacks, honest, server};
use crate::crash::database::Database;
use xtask::args::Args;
use xtask::process::{self, Build};

const HONEST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
const HOSTILE_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Another address of the hostile caller, whose connections the attacks do not use up.
const PROBE_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 4);

const MIB: u64 = 1 << 20;
const MAX_STORE_GROWTH: u64 = 64 * MIB;
/// `max_store_bytes_per_caller`, and what `docs/limits.md` allows beyond it: 1 KiB for each of 1,000
/// open tasks, and one result of 1 MiB for each write connection to PostgreSQL.
const MAX_CALLER_BYTES: u64 = 48 * MIB + MIB + 4 * MIB;

/// Limits of the measurements.
#[derive(Clone, Copy, Debug)]
struct Bars {
    memory_growth: u64,
    call_p99: Duration,
    task: Duration,
}

/// The limits of a full run with an optimized build.
const FULL: Bars = Bars {
    memory_growth: 64 * MIB,
    call_p99: Duration::from_millis(250),
    task: Duration::from_secs(5),
};

/// The limits of a short run, which is part of the tests and uses an unoptimized build. It finds
/// growth and blocking; only a full run measures latency.
const SHORT: Bars = Bars {
    memory_growth: 96 * MIB,
    call_p99: Duration::from_secs(10),
    task: Duration::from_secs(20),
};

const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);
const WARM_UP: Duration = Duration::from_secs(2);

struct Options {
    stores: Vec<String>,
    callers: Vec<Kind>,
    length: Duration,
    tasks: u64,
    bars: Bars,
    program: PathBuf,
}

/// Whether the hostile caller has a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Named,
    Anonymous,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Named, Self::Anonymous];

    fn name(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Anonymous => "anonymous",
        }
    }
}

/// The largest values during the attacks.
#[derive(Debug, Default)]
struct Peaks {
    memory: Memory,
    supervisors: usize,
    /// Bytes that the store has for the hostile caller.
    caller_bytes: u64,
}

pub(crate) fn run(mut args: Args) -> Result<()> {
    if args.flag("--attack") {
        return attack(args);
    }
    let options = Options::read(args)?;
    let mut broken = Vec::new();
    for store in &options.stores {
        for &caller in &options.callers {
            let who = caller.name();
            println!(
                "hostile: {who} caller, {store}, {} tasks stored, {} s",
                options.tasks,
                options.length.as_secs()
            );
            let found = round(&options, store, caller)?;
            broken.extend(found.into_iter().map(|limit| format!("{store}, {who}: {limit}")));
        }
    }
    if !broken.is_empty() {
        bail!("a hostile caller affects others:\n  {}", broken.join("\n  "));
    }
    Ok(())
}

/// One hostile caller against one server. Returns the exceeded limits.
fn round(options: &Options, store: &str, caller: Kind) -> Result<Vec<String>> {
    let named = caller == Kind::Named;
    let name = format!("outlive-hostile-{}-{store}-{}", std::process::id(), caller.name());
    let folder = env::temp_dir().join(name);
    fs::create_dir_all(&folder)?;
    let database = Database::start(store, &folder)?;
    let seed = options.program.with_file_name("seed-store");
    process::run(
        std::process::Command::new(seed).arg(database.url()).arg(options.tasks.to_string()),
    )?;
    if let Database::Postgres(postgres) = &database {
        server::move_to(SERVER_CORE, postgres.id());
    }
    let server = Server::start(&options.program, &folder, &database, named)?;
    let honest = Caller::new(server.address, HONEST_ADDRESS, named.then_some(HONEST_TOKEN));
    let warm = honest::run(&honest, Instant::now() + WARM_UP);
    if let Some(failure) = warm.failures.first() {
        bail!("the server fails even without an attack: {failure}");
    }
    // For anonymous callers, the task ID is the credential.
    let result = named.then(|| HonestResult::store(&honest)).transpose()?;
    let hostile = StoredBytes::open(&database.url(), named.then_some("hostile"))?;
    let (memory, stored) = (server.memory()?, server.store_bytes(&database)?);
    let itself = std::process::id();
    server::move_to(SERVER_CORE, itself);
    let seen = under_attack(&server, &honest, &hostile, result.as_ref(), options.length)?;
    server::move_to(ALL_CORES, itself);
    let grown = Measured {
        memory: seen.peaks.memory.since(memory),
        store: server.store_bytes(&database)?.saturating_sub(stored),
        caller_bytes: seen.peaks.caller_bytes,
        supervisors: seen.peaks.supervisors,
        lease_warnings: server.lease_warnings()?,
        experience: seen.experience,
        probe: seen.probe,
        failed_reads: result.map(|result| result.failed_reads(&honest)).unwrap_or_default(),
    };
    server.stop()?;
    println!("{}", seen.attempts);
    let broken = grown.report(options.bars);
    if broken.is_empty() {
        fs::remove_dir_all(&folder)?;
    } else {
        eprintln!("hostile: the files of the run stay in {}", folder.display());
    }
    Ok(broken)
}

/// Observations during the attacks.
struct Seen {
    /// The table of attempts.
    attempts: String,
    experience: Experience,
    peaks: Peaks,
    probe: Option<Probe>,
}

/// Runs all attacks while the honest caller works. `result` is the result of an honest caller with a
/// token; the hostile caller then has a token, too.
fn under_attack(
    server: &Server,
    honest: &Caller,
    hostile: &StoredBytes,
    result: Option<&HonestResult>,
    length: Duration,
) -> Result<Seen> {
    let over = AtomicBool::new(false);
    let other = Caller::new(server.address, PROBE_ADDRESS, Some(HOSTILE_TOKEN));
    thread::scope(|scope| {
        let attacker =
            scope.spawn(|| attack_from_other_core(server.address, result.is_some(), length));
        let watcher = scope.spawn(|| watch(server, hostile, &over));
        let prober = scope.spawn(|| result.map(|result| result.probe(&other, &over)));
        let experience = honest::run(honest, Instant::now() + length);
        let attempts = attacker.join();
        over.store(true, Ordering::Relaxed);
        let attempts = attempts.map_err(|_| anyhow::anyhow!("the attacker panicked"))??;
        let peaks = watcher.join().map_err(|_| anyhow::anyhow!("the watcher panicked"))??;
        let probe = prober.join().map_err(|_| anyhow::anyhow!("the prober panicked"))?;
        Ok(Seen { attempts, experience, peaks, probe })
    })
}

struct Measured {
    memory: Memory,
    store: u64,
    /// Bytes that the store has for the hostile caller, at most.
    caller_bytes: u64,
    supervisors: usize,
    lease_warnings: Vec<String>,
    experience: Experience,
    probe: Option<Probe>,
    /// Failed reads of the honest caller's own result, after the attacks.
    failed_reads: Vec<String>,
}

/// A name, a value, its limit, and whether the value is within the limit.
type Row = (&'static str, String, String, bool);

impl Measured {
    /// Prints the measurements of the honest caller.
    fn print_experience(&self) {
        let percentile = |percent| self.experience.percentile(percent).as_millis();
        println!(
            "  {} honest calls (p50 {} ms, p90 {} ms, slowest {} ms), {} honest tasks",
            self.experience.calls.len(),
            percentile(50),
            percentile(90),
            percentile(100),
            self.experience.tasks.len()
        );
    }

    /// Returns the rows about the result of the honest caller.
    fn isolation(&self) -> Vec<Row> {
        let Some(Probe { responses, foreign_bytes }) = &self.probe else { return Vec::new() };
        let found = format!("{foreign_bytes} in {responses} responses");
        let is_isolated = *foreign_bytes == 0 && *responses > 0;
        let first = self.failed_reads.first().map(String::as_str).unwrap_or_default();
        let failed = format!("{} {first:.400}", self.failed_reads.len());
        vec![
            ("foreign bytes", found, "0".to_owned(), is_isolated),
            ("honest reads that fail", failed, "0".to_owned(), self.failed_reads.is_empty()),
        ]
    }

    /// Returns every value with its limit.
    fn rows(&self, bars: Bars) -> Vec<Row> {
        let Self { memory, experience, .. } = self;
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / MIB as f64);
        let millis = |time: Duration| format!("{} ms", time.as_millis());
        let first = |texts: &[String]| texts.first().cloned().unwrap_or_default();
        let mut rows = vec![
            (
                "memory grows by",
                format!("{}, anonymous {}", mib(memory.resident), mib(memory.anonymous)),
                mib(bars.memory_growth),
                memory.resident <= bars.memory_growth,
            ),
            (
                "store grows by",
                mib(self.store),
                mib(MAX_STORE_GROWTH),
                self.store <= MAX_STORE_GROWTH,
            ),
            (
                "bytes of the caller",
                mib(self.caller_bytes),
                mib(MAX_CALLER_BYTES),
                self.caller_bytes <= MAX_CALLER_BYTES,
            ),
            (
                "jobs at once",
                self.supervisors.to_string(),
                MAX_PROCESSES.to_string(),
                self.supervisors <= MAX_PROCESSES,
            ),
            (
                "honest call, p99",
                millis(experience.percentile(99)),
                millis(bars.call_p99),
                experience.percentile(99) <= bars.call_p99,
            ),
            (
                "honest task, slowest",
                millis(experience.slowest_task()),
                millis(bars.task),
                experience.slowest_task() <= bars.task,
            ),
            (
                "honest failures",
                format!("{} {}", experience.failures.len(), first(&experience.failures)),
                "0".to_owned(),
                experience.failures.is_empty(),
            ),
            (
                "lease warnings",
                format!("{} {}", self.lease_warnings.len(), first(&self.lease_warnings)),
                "0".to_owned(),
                self.lease_warnings.is_empty(),
            ),
        ];
        rows.extend(self.isolation());
        rows
    }

    /// Prints every value with its limit and returns the exceeded ones.
    fn report(&self, bars: Bars) -> Vec<String> {
        let (rows, experience) = (self.rows(bars), &self.experience);
        self.print_experience();
        for (name, value, limit, _) in &rows {
            println!("  {name:<22} {value} (at most {limit})");
        }
        let broken = rows.into_iter().filter(|(.., holds)| !holds);
        let mut broken: Vec<_> = broken
            .map(|(name, value, limit, _)| format!("{name} {value}, at most {limit}"))
            .collect();
        if experience.calls.is_empty() || experience.tasks.is_empty() {
            broken.push("the honest caller did not complete a single call or task".to_owned());
        }
        broken
    }
}

fn watch(server: &Server, hostile: &StoredBytes, over: &AtomicBool) -> Result<Peaks> {
    let mut peaks = Peaks::default();
    while !over.load(Ordering::Relaxed) {
        peaks.memory = peaks.memory.max(server.memory()?);
        peaks.supervisors = peaks.supervisors.max(server.supervisors()?);
        peaks.caller_bytes = peaks.caller_bytes.max(hostile.since_open()?);
        thread::sleep(SAMPLE_INTERVAL);
    }
    Ok(peaks)
}

/// Runs this program again as the attacker and returns its table of attempts.
fn attack_from_other_core(server: SocketAddr, named: bool, length: Duration) -> Result<String> {
    let mut attacker = pinned(ATTACKER_CORE, &env::current_exe()?);
    attacker.args(["hostile", "--attack", "--server", &server.to_string()]);
    attacker.args(["--seconds", &length.as_secs().to_string()]);
    if named {
        attacker.arg("--named");
    }
    let output = attacker.output().context("could not start the attacker")?;
    if !output.status.success() {
        bail!("the attacker failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// The attacker process.
fn attack(mut args: Args) -> Result<()> {
    let named = args.flag("--named");
    let server = args.value("--server")?.context("--server ADDRESS is missing")?.parse()?;
    let seconds = args.value("--seconds")?.context("--seconds N is missing")?.parse()?;
    args.finish()?;
    let caller = Caller::new(server, HOSTILE_ADDRESS, named.then_some(HOSTILE_TOKEN));
    for (name, attempts) in attacks::run(&caller, Instant::now() + Duration::from_secs(seconds)) {
        println!("  {attempts:>8} × {name}");
    }
    Ok(())
}

impl Options {
    fn read(mut args: Args) -> Result<Self> {
        let build = Build::wanted(&mut args);
        let short = args.flag("--short");
        let stores = match args.values("--store")? {
            none if none.is_empty() => vec!["sqlite".to_owned(), "postgres".to_owned()],
            some => some,
        };
        let callers = match args.value("--caller")? {
            None => Kind::ALL.to_vec(),
            Some(name) => match Kind::ALL.into_iter().find(|kind| kind.name() == name) {
                Some(kind) => vec![kind],
                None => bail!("--caller must be named or anonymous, not {name}"),
            },
        };
        let number = |value: Option<String>, default: u64| {
            value.map_or(Ok(default), |value| value.parse().context("expected a number"))
        };
        let seconds = number(args.value("--seconds")?, if short { 15 } else { 60 })?;
        let tasks = number(args.value("--tasks")?, if short { 100_000 } else { 1_000_000 })?;
        let program = args.value("--program")?.map(PathBuf::from);
        args.finish()?;
        let program = match program {
            Some(program) => program,
            None => built(build)?,
        };
        let bars = if short { SHORT } else { FULL };
        Ok(Self { stores, callers, length: Duration::from_secs(seconds), tasks, bars, program })
    }
}

/// Builds the program and `seed-store` into one folder.
fn built(build: Build) -> Result<PathBuf> {
    let program = process::built("outlive-cli", "outlive", build)?;
    let seed: &Path = &program.with_file_name("seed-store");
    if !seed.exists() {
        bail!("{} is missing; `cargo build --workspace --bins` builds it", seed.display());
    }
    Ok(program)
}
