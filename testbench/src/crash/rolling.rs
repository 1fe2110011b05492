//! `cargo xtask rolling`: every server is terminated and replaced, one after the other, under load.
//!
//! Clients try another server only when a connection is refused. Every accepted call must get a
//! response, and every started task must finish.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::client::{self, Answer};
use super::database::Database;
use super::fleet::{Fleet, Setting};
use super::http::NoAnswer;
use super::random::Random;
use super::{
    setting::{LEASE, folder, in_folder, number, server},
    table,
};
use xtask::args::Args;

const CLIENTS: u64 = 8;
/// Time between two restarts, so that every server has work when it is replaced.
const PAUSE: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Counts {
    over: AtomicBool,
    calls: AtomicUsize,
    tasks: AtomicUsize,
    elsewhere: AtomicUsize,
    failed: Mutex<Vec<String>>,
}

pub(crate) fn run(mut args: Args) -> Result<()> {
    let store = args.value("--store")?.unwrap_or_else(|| "sqlite".to_owned());
    let replicas = number(&mut args, "--replicas")?.unwrap_or(3) as usize;
    let rounds = number(&mut args, "--rounds")?.unwrap_or(3);
    let program = server(&mut args)?;
    args.finish()?;
    if replicas < 2 {
        bail!("`--replicas` must be at least 2: another server must respond meanwhile");
    }
    let counts = Counts::default();
    let folder = folder("rolling")?;
    in_folder(&folder, || {
        let database = Database::start(&store, &folder)?;
        let url = database.url();
        let setting =
            Setting { program, folder: folder.clone(), store: url, lease: LEASE, more: &[] };
        let fleet = Fleet::start(setting, replicas)?;
        thread::scope(|scope| {
            for number in 0..CLIENTS {
                let (fleet, counts) = (&fleet, &counts);
                scope.spawn(move || traffic(fleet, number, counts));
            }
            let rolled = (0..rounds).try_for_each(|_| roll(&fleet));
            counts.over.store(true, Ordering::Relaxed);
            rolled
        })?;
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed).to_string();
        let failed = counts.failed.lock().map_err(|_| anyhow::anyhow!("a client panicked"))?;
        println!("rolling: {replicas} servers on {store}, each replaced {rounds} times");
        table::print(&[
            ("calls", count(&counts.calls)),
            ("  sent to another server", count(&counts.elsewhere)),
            ("  failed", failed.len().to_string()),
            ("tasks finished", count(&counts.tasks)),
        ]);
        match failed.first() {
            None => Ok(()),
            Some(first) => bail!("{} calls failed; the first: {first}", failed.len()),
        }
    })
}

fn roll(fleet: &Fleet) -> Result<()> {
    for number in 0..fleet.len() {
        thread::sleep(PAUSE);
        fleet.restart(number)?;
    }
    Ok(())
}

fn traffic(fleet: &Fleet, number: u64, counts: &Counts) {
    let mut random = Random::new(number);
    for count in 0.. {
        if counts.over.load(Ordering::Relaxed) {
            return;
        }
        let job = format!("r{number}-{count}");
        let one = if random.percent(20) {
            task(fleet, &mut random, &job, counts)
        } else {
            call(fleet, &mut random, &job, counts)
        };
        if let (Err(error), Ok(mut failed)) = (one, counts.failed.lock()) {
            failed.push(format!("{job}: {error:#}"));
        }
    }
}

fn call(fleet: &Fleet, random: &mut Random, job: &str, counts: &Counts) -> Result<()> {
    let arguments = json!({"name": job, "steps": 0, "step_ms": random.below(150)});
    let params = json!({"name": "quick", "arguments": arguments});
    let result = ask(fleet, random, "tools/call", &params, counts)?;
    if result["content"][0]["text"] != job {
        bail!("the response is {result}");
    }
    Ok(())
}

fn task(fleet: &Fleet, random: &mut Random, job: &str, counts: &Counts) -> Result<()> {
    let arguments = json!({"name": job, "steps": 10, "step_ms": random.below(50)});
    let params = json!({"name": "work", "arguments": arguments});
    let made = ask(fleet, random, "tools/call", &params, counts)?;
    let params = json!({"taskId": made["taskId"]});
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let view = ask(fleet, random, "tasks/get", &params, counts)?;
        match view["status"].as_str() {
            Some("completed") => {
                counts.tasks.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            Some("working") => thread::sleep(Duration::from_millis(50)),
            _ => bail!("the task is {view}"),
        }
    }
    bail!("the task has not ended after {} s", PATIENCE.as_secs())
}

/// Retries until a server accepts the connection, and then sends the request once.
fn ask(
    fleet: &Fleet,
    random: &mut Random,
    method: &str,
    params: &Value,
    counts: &Counts,
) -> Result<Value> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let Some(address) = fleet.address(random.below(fleet.len())) else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        match client::modern(address, method, params.clone(), PATIENCE) {
            Err(NoAnswer::Refused) => {
                counts.elsewhere.fetch_add(1, Ordering::Relaxed);
            }
            Err(lost) => bail!("{method}: {lost}"),
            Ok(mut response) => {
                counts.calls.fetch_add(1, Ordering::Relaxed);
                let status = response.status;
                let message =
                    response.message().with_context(|| format!("{method}: truncated response"))?;
                let message = message.with_context(|| format!("{method}: HTTP {status}"))?;
                return match client::answer(message) {
                    Answer::Result(result) => Ok(result),
                    Answer::Error(error) => bail!("{method}: HTTP {status}: {error}"),
                    Answer::Nothing => bail!("{method}: HTTP {status}: no response"),
                };
            }
        }
    }
    bail!("{method}: connection refused")
}
