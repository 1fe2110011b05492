//! Bridged calls of which every round reaches another replica, on PostgreSQL, with random kills.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::python;
use crate::crash::database::Database;
use crate::crash::random::Random;
use crate::gateway::serving::{Gateway, Home, MARKED, PRINCIPALS};
use crate::gateway::setting::Setting;
use crate::hosts::caller::{Caller, text};
use crate::hosts::home::write_private;
use crate::row::Row;

const REPLICAS: usize = 3;
const CALLERS: usize = 6;

/// Time for a call with all of its rounds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Time between two kills, in milliseconds.
const BETWEEN_KILLS: std::ops::Range<u64> = 1_000..3_000;

/// The replicas that run. Each has its own data folder.
struct Fleet<'h> {
    homes: &'h [Home],
    running: Vec<Mutex<Option<Gateway<'h>>>>,
}

impl<'h> Fleet<'h> {
    fn start(homes: &'h [Home]) -> Result<Self> {
        let started = homes.iter().map(|home| Ok(Mutex::new(Some(home.start()?))));
        Ok(Self { homes, running: started.collect::<Result<_>>()? })
    }

    /// Returns the address of a replica if it runs.
    fn address(&self, number: usize) -> Option<SocketAddr> {
        lock(&self.running[number]).as_ref().map(|gateway| gateway.address)
    }

    /// Kills a replica with `kill -9`, and starts it again.
    fn kill(&self, number: usize) -> Result<()> {
        let mut running = lock(&self.running[number]);
        running.take().context("the replica is down")?.kill()?;
        *running = Some(self.homes[number].start()?);
        Ok(())
    }
}

/// Ends of the calls.
#[derive(Debug, Default)]
struct Calls {
    rounds: usize,
    /// The keys of the calls with a result.
    results: Vec<String>,
    lost: Vec<String>,
}

pub(super) fn run(setting: &Setting) -> Result<Vec<Row>> {
    let target = setting.choose(1_000, 30);
    let database = Database::start("postgres", setting.folder())?;
    let seal_key = setting.folder().join("seal.key");
    // A key of 32 bytes, as `openssl rand -base64 32` prints one.
    write_private(&seal_key, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n")?;
    let executions = setting.folder().join("replica-executions");
    fs::write(&executions, "")?;
    let command =
        python::command(setting)?.replace("@FOLDER@/executions", &executions.display().to_string());
    let file = format!(
        "seal_key_file = \"{}\"\n[upstreams.studio]\ncommand = {command}\n{MARKED}\n\
         protocol_version = \"2025-06-18\"\n",
        seal_key.display()
    );
    let homes: Vec<Home> = (0..REPLICAS)
        .map(|number| {
            let home = Home::new(setting, &format!("replica-{number}"), &file)?;
            Ok(home.with_store(&database.url()))
        })
        .collect::<Result<_>>()?;
    let fleet = Fleet::start(&homes)?;
    let (calls, kills) = work(setting, &fleet, target)?;
    let mut counts: HashMap<String, usize> = HashMap::new();
    for key in fs::read_to_string(&executions)?.lines() {
        *counts.entry(key.to_owned()).or_default() += 1;
    }
    drop(fleet);
    Ok(vec![verdict(&calls, kills, target, &counts)])
}

/// Calls until enough rounds have reached other replicas.
fn work(setting: &Setting, fleet: &Fleet<'_>, target: usize) -> Result<(Calls, usize)> {
    let (rounds, next, is_over) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let random = Random::new(setting.seed);
    let caller = |number: usize| {
        let mut random = random.fork(number as u64);
        let mut calls = Calls::default();
        while rounds.load(Ordering::Relaxed) < target {
            let key = format!("round-{}", next.fetch_add(1, Ordering::Relaxed));
            match call(fleet, number, &key, &mut random) {
                Ok(made) => {
                    rounds.fetch_add(made, Ordering::Relaxed);
                    calls.rounds += made;
                    calls.results.push(key);
                }
                Err(error) => calls.lost.push(format!("{key}: {error:#}")),
            }
            // A campaign that loses everything ends, too.
            if calls.lost.len() > 20 {
                break;
            }
        }
        calls
    };
    thread::scope(|scope| {
        let (caller, is_over) = (&caller, &is_over);
        let callers: Vec<_> =
            (0..CALLERS).map(|number| scope.spawn(move || caller(number))).collect();
        let mut killer = random.fork(CALLERS as u64);
        let kills = scope.spawn(move || {
            let mut kills = 0;
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(killer.millis(BETWEEN_KILLS));
                fleet.kill(killer.below(REPLICAS))?;
                kills += 1;
            }
            anyhow::Ok(kills)
        });
        let mut sum = Calls::default();
        for caller in callers {
            let calls = caller.join().map_err(|_| anyhow!("a caller panicked"))?;
            sum.rounds += calls.rounds;
            sum.results.extend(calls.results);
            sum.lost.extend(calls.lost);
        }
        is_over.store(true, Ordering::Relaxed);
        let kills = kills.join().map_err(|_| anyhow!("the killer panicked"))??;
        Ok((sum, kills))
    })
}

/// Calls a tool with an input request. Every request goes to a random replica; one without a
/// response is sent again. Returns the number of rounds after the first.
fn call(fleet: &Fleet<'_>, number: usize, key: &str, random: &mut Random) -> Result<usize> {
    let token = PRINCIPALS[number % PRINCIPALS.len()].1;
    let begun = Instant::now();
    let mut params = json!({
        "name": "studio__confirm", "arguments": {"key": key},
        // The first request may be executed although its response is lost.
        "_meta": {"dev.outlive/idempotencyKey": key},
    });
    let mut rounds = 0;
    loop {
        ensure!(begun.elapsed() < PATIENCE, "no result after {} s", PATIENCE.as_secs());
        let Some(address) = fleet.address(random.below(REPLICAS)) else { continue };
        let caller = Caller::with_input(address, Some(token));
        let Ok(reply) = caller.request("tools/call", params.clone()) else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        let result = &reply["result"];
        if result["resultType"] == "input_required" {
            rounds += 1;
            let response = json!({"action": "accept", "content": {"word": "yes"}});
            let requests = result["inputRequests"].as_object();
            let keys = requests.into_iter().flat_map(|requests| requests.keys());
            let responses: Value = keys.map(|key| (key.clone(), response.clone())).collect();
            params["inputResponses"] = responses;
            params["requestState"] = result["requestState"].clone();
            continue;
        }
        ensure!(text(&reply) == format!("{key} is yes"), "another result: {reply}");
        return Ok(rounds);
    }
}

fn verdict(calls: &Calls, kills: usize, target: usize, executions: &HashMap<String, usize>) -> Row {
    let times = |key: &String| executions.get(key).copied().unwrap_or(0);
    let doubled: Vec<&String> = calls.results.iter().filter(|key| times(key) != 1).collect();
    let mut figure = format!(
        "{} rounds of {} calls, {kills} kills: {} lost, {} doubled",
        calls.rounds,
        calls.results.len(),
        calls.lost.len(),
        doubled.len()
    );
    calls.lost.first().into_iter().for_each(|lost| figure.push_str(&format!("; first: {lost}")));
    if let Some(key) = doubled.first() {
        figure.push_str(&format!("; {key} has {} executions", times(key)));
    }
    let is_met = calls.rounds >= target && kills > 0 && calls.lost.is_empty() && doubled.is_empty();
    let case = "rounds on other replicas, on PostgreSQL, with random kills";
    Row::new(case, figure, format!("{target} rounds, 0 lost, 0 doubled"), is_met)
}

/// A poisoned lock is usable: a replica that could not be started is absent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
