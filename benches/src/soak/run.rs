//! The run and its limits.

use super::mix;
use crate::soak::mix::{Caller, KINDS};
use crate::{
    child::Server,
    load::http::PATIENCE,
    machine::{Cores, allow_open_files, cpu_of, describe, load_average, pin, resident_bytes},
    place::{Folder, Kind},
};
use anyhow::{Context, Result, bail, ensure};
use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout},
};

/// Allowed memory growth from the first to the last minute: a tenth, plus allocator slack.
pub(super) const GROWTH: f64 = 1.1;

pub(super) const SLACK: f64 = 4.0;

/// Open files for other purposes.
pub(super) const OTHER_FILES: u64 = 200;

/// Number of connections that are opened concurrently.
pub(super) const AT_ONCE: usize = 64;

pub(super) struct Options {
    connections: usize,
    rate: f64,
    length: Duration,
}

/// Applies the load of the options.
///
/// # Errors
///
/// Returns an error if the options are invalid or the server cannot start.
#[expect(clippy::print_stdout, reason = "the report is the output of the program")]
pub fn run(words: &[&str]) -> Result<ExitCode> {
    let options = options(words)?;
    let files = options.connections as u64 + OTHER_FILES;
    // Before the start of the server, which inherits the limit.
    let room = allow_open_files(files);
    ensure!(room >= files, "{files} files must be open, {room} may be; `ulimit -n` raises it");
    let cores = Cores::choose()?;
    let folder = Folder::make(Kind::Sqlite)?;
    let (server, address) = Server::keeping("outlive-soak", &folder.place("soak"), cores)?;
    pin(cores.generator)?;
    println!("{}; load average {} at the start.\n", describe()?, load_average()?);
    println!(
        "{} connections, {} requests a second for {:?}; the server on core {}, clients on core {}.\n",
        options.connections, options.rate, options.length, cores.server, cores.generator
    );
    println!("The mix, by turns on every connection:\n\n{}", mix::shown());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let held = runtime.block_on(hold(&options, address, server.pid()))?;
    println!("{}", tell(&options, &held));
    println!("Load average {} at the end.\n", load_average()?);
    let verdicts = held.verdicts(&options);
    for (name, is_kept) in &verdicts {
        println!("- {}  {name}", if *is_kept { "PASS" } else { "FAIL" });
    }
    Ok(match verdicts.iter().all(|(_, is_kept)| *is_kept) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

pub(super) fn options(words: &[&str]) -> Result<Options> {
    let mut options =
        Options { connections: 8_000, rate: 2_000.0, length: Duration::from_secs(600) };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().with_context(|| format!("`{word}` needs a number"))?;
            let number = text.parse::<f64>().ok().filter(|number| *number > 0.0);
            number.with_context(|| format!("`{text}` is not a number above zero"))
        };
        match *word {
            "--connections" => options.connections = number()? as usize,
            "--rate" => options.rate = number()?,
            "--minutes" => options.length = Duration::from_secs_f64(60.0 * number()?),
            _ => bail!("unknown argument `{word}`; use --connections N, --rate N or --minutes N"),
        }
    }
    ensure!(options.connections > 0, "`--connections` must be at least 1");
    Ok(options)
}

/// Counters of all connections.
#[derive(Default)]
pub(super) struct Counts {
    answered: [AtomicU64; KINDS.len()],
    errors: AtomicU64,
}

/// The results of a run.
pub(super) struct Held {
    answered: [u64; KINDS.len()],
    errors: u64,
    first_errors: Vec<String>,
    /// Microseconds since each request was due, sorted.
    delays: Vec<u32>,
    /// Resident memory of the server in MiB, every second.
    memory: Vec<f64>,
    /// Share of a core that the server used.
    busy: f64,
    /// Number of open connections at the end.
    open: usize,
}

pub(super) async fn hold(
    options: &Options,
    address: std::net::SocketAddr,
    pid: u32,
) -> Result<Held> {
    let mut callers = Vec::with_capacity(options.connections);
    let mut opening = JoinSet::new();
    for number in 0..options.connections {
        opening.spawn(async move {
            let stream = timeout(PATIENCE, TcpStream::connect(address)).await??;
            let mut caller = Caller::new(number, stream)?;
            timeout(PATIENCE, caller.greet()).await??;
            anyhow::Ok(caller)
        });
        if opening.len() >= AT_ONCE {
            callers.extend(opening.join_next().await.transpose()?.transpose()?);
        }
    }
    while let Some(caller) = opening.join_next().await {
        callers.push(caller??);
    }
    eprintln!("{} connections are open", callers.len());
    let counts = Arc::new(Counts::default());
    let begun = Instant::now();
    let end = begun + options.length;
    let cpu = cpu_of(pid)?;
    let each = Duration::from_secs_f64(options.connections as f64 / options.rate);
    let mut running = JoinSet::new();
    for (place, caller) in callers.into_iter().enumerate() {
        let first = begun + each.mul_f64(place as f64 / options.connections as f64);
        running.spawn(call(caller, first, each, end, Arc::clone(&counts)));
    }
    let memory = watch(pid, end).await?;
    let (mut delays, mut first_errors, mut open) = (Vec::new(), Vec::new(), 0);
    while let Some(ended) = running.join_next().await {
        let (one, error) = ended?;
        delays.extend(one);
        open += usize::from(error.is_none());
        first_errors.extend(error.filter(|_| first_errors.len() < 5));
    }
    delays.sort_unstable();
    let elapsed = begun.elapsed();
    Ok(Held {
        answered: counts.answered.each_ref().map(|count| count.load(Ordering::Relaxed)),
        errors: counts.errors.load(Ordering::Relaxed),
        first_errors,
        delays,
        memory,
        busy: (cpu_of(pid)? - cpu).as_secs_f64() / elapsed.as_secs_f64(),
        open,
    })
}

/// One connection: sends requests when they are due, until the end or an error.
pub(super) async fn call(
    mut caller: Caller,
    mut due: Instant,
    each: Duration,
    end: Instant,
    counts: Arc<Counts>,
) -> (Vec<u32>, Option<String>) {
    let mut delays = Vec::new();
    while due < end {
        sleep_until(due).await;
        match timeout(PATIENCE, caller.call()).await {
            Ok(Ok(kind)) => {
                counts.answered[kind].fetch_add(1, Ordering::Relaxed);
                delays.push(due.elapsed().as_micros().try_into().unwrap_or(u32::MAX));
            }
            failed => {
                counts.errors.fetch_add(1, Ordering::Relaxed);
                let why = match failed {
                    Ok(Err(error)) => format!("{error:#}"),
                    _ => format!("no response within {PATIENCE:?}"),
                };
                return (delays, Some(why));
            }
        }
        due += each;
    }
    (delays, None)
}

/// Memory of the server, every second until the end.
pub(super) async fn watch(pid: u32, end: Instant) -> Result<Vec<f64>> {
    let mut memory = Vec::new();
    let mut ticks = interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() < end {
        ticks.tick().await;
        memory.push(resident_bytes(pid)? as f64 / f64::from(1 << 20));
    }
    Ok(memory)
}

impl Held {
    /// Responses per second of due time. Requests that are due at the end get their response later;
    /// a server that falls behind causes errors, not a longer time.
    fn rate(&self, options: &Options) -> f64 {
        self.answered.iter().sum::<u64>() as f64 / options.length.as_secs_f64()
    }

    /// The samples of the first and the last minute, or of thirds in a short run.
    fn windows(&self) -> (&[f64], &[f64]) {
        let length = 60.min(self.memory.len() / 3).max(1).min(self.memory.len());
        (&self.memory[..length], &self.memory[self.memory.len() - length..])
    }

    fn verdicts(&self, options: &Options) -> Vec<(String, bool)> {
        let (first, last) = self.windows();
        let (first, last) = (mean(first), mean(last));
        let asked = options.rate;
        vec![
            (format!("{} errors, none allowed", self.errors), self.errors == 0),
            (
                format!("{} of {} connections held to the end", self.open, options.connections),
                self.open == options.connections,
            ),
            (
                format!("{:.1} requests a second, at least {asked}", self.rate(options)),
                // One request less is allowed because of rounding.
                self.rate(options) >= asked - 1.0 / options.length.as_secs_f64(),
            ),
            (
                format!("memory {first:.1} MiB, then {last:.1} MiB, at most a tenth more"),
                last <= first * GROWTH + SLACK,
            ),
        ]
    }
}

pub(super) fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len().max(1) as f64
}

pub(super) fn tell(options: &Options, held: &Held) -> String {
    let percentile = |share: f64| {
        let at = (held.delays.len() as f64 * share) as usize;
        let delay = held.delays.get(at).or(held.delays.last()).copied().unwrap_or_default();
        f64::from(delay) / 1_000.0
    };
    let (first, last) = held.windows();
    let most = |samples: &[f64]| samples.iter().copied().fold(0.0, f64::max);
    let what = if options.length.as_secs() >= 180 { "minute" } else { "third" };
    let mut text = "| requests | answered |\n|---|---:|\n".to_owned();
    for (kind, answered) in KINDS.iter().zip(held.answered) {
        text.push_str(&format!("| {} | {answered} |\n", kind.about));
    }
    text.push_str(&format!(
        "| all | {} |\n\n| figure | value |\n|---|---:|\n\
         | requests a second | {:.0} |\n| errors | {} |\n\
         | answered after, p50 | {:.2} ms |\n| p99 | {:.2} ms |\n| p99.9 | {:.2} ms |\n\
         | longest | {:.2} ms |\n| server, share of a core | {:.0} % |\n\
         | server's memory, first {what}, mean (most) | {:.1} MiB ({:.1}) |\n\
         | server's memory, last {what}, mean (most) | {:.1} MiB ({:.1}) |\n",
        held.answered.iter().sum::<u64>(),
        held.rate(options),
        held.errors,
        percentile(0.5),
        percentile(0.99),
        percentile(0.999),
        percentile(1.0),
        held.busy * 100.0,
        mean(first),
        most(first),
        mean(last),
        most(last),
    ));
    for error in &held.first_errors {
        text.push_str(&format!("\nerror: {error}\n"));
    }
    text
}
