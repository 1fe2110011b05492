//! The command: principals in parallel, and the count of foreign bytes.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use xtask::args::Args;

use super::operations::{self, KINDS, Kind, Loot};
use super::principal::Principal;
use crate::crash::random::Random;
use crate::gateway::serving::{Home, MARKED, PRINCIPALS};
use crate::gateway::setting::Setting;
use crate::row::Row;

/// Threads of each principal.
const THREADS: usize = 3;

/// Time for the upstream over HTTP to listen.
const PATIENCE: Duration = Duration::from_secs(20);

/// Observations of the principals.
#[derive(Debug, Default)]
struct Observed {
    operations: usize,
    foreign_bytes: usize,
    by_kind: BTreeMap<Kind, usize>,
    failures: Vec<String>,
}

pub(crate) fn run(mut args: Args) -> Result<()> {
    let setting = Setting::new(&mut args, "gateway-isolation")?;
    args.finish()?;
    let target = setting.choose(10_000, 600);
    let program = setting.program_beside("marking-upstream")?;
    let http = Http::start(&program, &setting)?;
    let upstream =
        |name: &str, target: &str, keys: &str| format!("[upstreams.{name}]\n{target}\n{keys}\n");
    let command = |mode: &str| format!("command = [\"{}\", \"{mode}\"]", program.display());
    let file = [
        "[tasks]\nmax_tasks_per_caller = 100000\n".to_owned(),
        // On stdio, an input request names no call. With one call at a time, each has its own.
        upstream("legacy", &command("legacy"), &format!("{MARKED}\nmax_concurrent = 1")),
        upstream("tasks", &command("tasks"), &format!("{MARKED}\ntask = \"always\"")),
        upstream(
            "modern",
            &command("modern"),
            &format!("{MARKED}\nprotocol_version = \"2026-07-28\""),
        ),
        upstream("http", &format!("url = \"{}\"", http.url), "protocol_version = \"2025-06-18\""),
    ];
    let home = Home::new(&setting, "gateway", &file.concat())?;
    let mut gateway = home.start()?;
    let principals: Vec<Principal> = (0..PRINCIPALS.len())
        .map(|number| Principal::new(number, gateway.address))
        .collect::<Result<_>>()?;
    let observed = work(&setting, &principals, target)?;
    gateway.check()?;
    gateway.stop()?;
    let row = verdict(&observed, target);
    row.print();
    if !row.is_met {
        bail!("a row misses its bar; the files are in {}", setting.folder().display());
    }
    drop(home);
    Ok(fs::remove_dir_all(setting.folder())?)
}

/// Runs operations of all principals at once.
fn work(setting: &Setting, principals: &[Principal], target: usize) -> Result<Observed> {
    let (next, loot) = (AtomicUsize::new(0), Loot::default());
    let random = Random::new(setting.seed);
    let thread = |number: usize| {
        let principal = &principals[number % principals.len()];
        let others: Vec<usize> =
            (0..principals.len()).filter(|other| *other != principal.number).collect();
        let mut random = random.fork(number as u64);
        let mut observed = Observed::default();
        while next.fetch_add(1, Ordering::Relaxed) < target {
            let kind = KINDS[random.below(KINDS.len())];
            let other = &principals[others[random.below(others.len())]];
            let other = std::slice::from_ref(other);
            let lane = number / principals.len();
            let ran = operations::run(kind, principal, other, &loot, lane, &mut random);
            observed.operations += 1;
            *observed.by_kind.entry(kind).or_default() += 1;
            match ran {
                Ok(messages) => observed.foreign_bytes += principal.foreign_bytes(&messages),
                Err(error) => observed.failures.push(format!("{kind:?}: {error:#}")),
            }
        }
        observed
    };
    thread::scope(|scope| {
        let thread = &thread;
        let threads: Vec<_> = (0..principals.len() * THREADS)
            .map(|number| scope.spawn(move || thread(number)))
            .collect();
        let mut sum = Observed::default();
        for thread in threads {
            let observed = thread.join().map_err(|_| anyhow!("a principal panicked"))?;
            sum.operations += observed.operations;
            sum.foreign_bytes += observed.foreign_bytes;
            sum.failures.extend(observed.failures);
            for (kind, count) in observed.by_kind {
                *sum.by_kind.entry(kind).or_default() += count;
            }
        }
        Ok(sum)
    })
}

fn verdict(observed: &Observed, target: usize) -> Row {
    let Observed { operations, foreign_bytes, by_kind, failures } = observed;
    let kinds: Vec<String> =
        by_kind.iter().map(|(kind, count)| format!("{kind:?} {count}")).collect();
    let mut figure = format!(
        "{operations} operations ({}): {foreign_bytes} foreign bytes, {} wrong",
        kinds.join(", "),
        failures.len()
    );
    if let Some(first) = failures.first() {
        figure.push_str(&format!("; first: {first}"));
    }
    let is_met = *operations >= target && *foreign_bytes == 0 && failures.is_empty();
    let case = "three principals with the same upstream IDs, states, URIs and sessions";
    let bar = format!("{target} operations: 0 foreign bytes, 0 wrong");
    Row::new(case, figure, bar, is_met)
}

/// The upstream that all principals share, killed on drop.
struct Http {
    child: Child,
    url: String,
}

impl Http {
    fn start(program: &std::path::Path, setting: &Setting) -> Result<Self> {
        let file = setting.folder().join("port");
        let mut command = Command::new(program);
        command.arg("http").arg(&file).stdin(Stdio::piped());
        let child = command.spawn().context("could not start the upstream over HTTP")?;
        let mut http = Self { child, url: String::new() };
        let started = Instant::now();
        while http.url.is_empty() {
            ensure!(started.elapsed() < PATIENCE, "the upstream over HTTP does not listen");
            match fs::read_to_string(&file) {
                Ok(port) => http.url = format!("http://127.0.0.1:{port}/mcp"),
                Err(_) => thread::sleep(Duration::from_millis(10)),
            }
        }
        Ok(http)
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
