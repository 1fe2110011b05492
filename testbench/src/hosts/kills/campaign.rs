//! The campaign: clients, kills, and the verdict.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde_json::json;

use super::client::{Client, Run};
use super::site::Site;
use crate::crash::random::Random;
use crate::hosts::bench::Bench;
use crate::hosts::caller::{Caller, text};
use crate::hosts::home::{ALICE, Home};
use crate::row::Row;

const CLIENTS: u64 = 24;
/// Time between the start of a server and its kill, in milliseconds.
const LIFETIME: std::ops::Range<u64> = 800..3_000;

const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:0"
token_file = "@TOKENS@"

[tasks]
max_running = 1000
max_running_per_caller = 1000

[hosts]
call_timeout = "4s"

[tools.render]
description = "Renders the frames of a film."
shell = true
command = '''
echo "$arg_key" >> "$EXECUTIONS"
for frame in 1 2 3 4 5 6 7 8 9 10; do
  sleep "$arg_step"
done
echo "rendered $arg_key"
'''
arguments.key = { type = "string" }
arguments.step = { type = "number" }
env.EXECUTIONS = "@EXECUTIONS@"
task_after = "100ms"
max_concurrent = 1000
"#;

pub(in crate::hosts) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let home = Home::new(bench, "kills", CONFIG)?;
    let site = Site::start(&home)?;
    let pairs = equal_calls(&site, &home, bench.choose(50, 5))?;
    let target = bench.choose(1_000, 30);
    let limit = bench.choose(Duration::from_secs(15 * 60), Duration::from_secs(60));
    let (runs, kills) = kill_until(&site, bench.seed, target, limit)?;
    let mut rows = verdict(&runs, kills, target, &home)?;
    rows.push(pairs);
    Ok(rows)
}

/// Calls the tool twice at once with equal arguments, several times.
fn equal_calls(site: &Site<'_>, home: &Home, pairs: usize) -> Result<Row> {
    let (_, address) = site.current().ok_or_else(|| anyhow!("the server is down"))?;
    let caller = Caller::modern(address, Some(ALICE));
    let mut wrong = 0;
    for pair in 0..pairs {
        let key = format!("pair-{pair}");
        let arguments = json!({"key": key, "step": 0.03});
        let barrier = Barrier::new(2);
        let call = || {
            barrier.wait();
            caller.call_in_rounds("render", &arguments)
        };
        let results =
            thread::scope(|scope| [scope.spawn(call), scope.spawn(call)].map(|call| call.join()));
        let has_result = results.into_iter().all(|result| {
            result.is_ok_and(|result| result.is_ok_and(|it| text(&it).contains("rendered")))
        });
        let executions = home.executions.count()?.get(&key).copied().unwrap_or(0);
        wrong += usize::from(!has_result || executions != 2);
    }
    let figure = format!("{} of {pairs} pairs with 2 results and 2 executions", pairs - wrong);
    Ok(Row::new("two equal calls at once", figure, "2 executions each", wrong == 0))
}

/// Kills the server until enough runs were interrupted inside. Returns the runs, and the number of
/// kills.
fn kill_until(
    site: &Site<'_>,
    seed: u64,
    target: usize,
    limit: Duration,
) -> Result<(Vec<Run>, usize)> {
    let (end, inside, next) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let random = Random::new(seed);
    let work = |number: u64| {
        let mut client = Client::new(site, random.fork(number), number.is_multiple_of(2));
        let mut runs = Vec::new();
        while !end.load(Ordering::Relaxed) {
            let key = format!("run-{}", next.fetch_add(1, Ordering::Relaxed));
            let run = client.run(key);
            inside.fetch_add(usize::from(run.is_inside()), Ordering::Relaxed);
            runs.push(run);
        }
        runs
    };
    let started = Instant::now();
    let is_over = || inside.load(Ordering::Relaxed) >= target || started.elapsed() > limit;
    thread::scope(|scope| {
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| scope.spawn(move || work(number))).collect();
        let mut random = random.fork(CLIENTS);
        let mut kills = 0;
        let killed = loop {
            thread::sleep(random.millis(LIFETIME));
            if is_over() {
                break Ok(());
            }
            if let Err(error) = site.kill() {
                break Err(error);
            }
            kills += 1;
        };
        end.store(true, Ordering::Relaxed);
        let runs = clients
            .into_iter()
            .map(|client| client.join().map_err(|_| anyhow!("a client panicked")));
        let runs: Vec<Vec<Run>> = runs.collect::<Result<_>>()?;
        killed.map(|()| (runs.into_iter().flatten().collect(), kills))
    })
}

fn verdict(runs: &[Run], kills: usize, target: usize, home: &Home) -> Result<Vec<Row>> {
    let executions = home.executions.count()?;
    let executed = |run: &Run| executions.get(&run.key).copied().unwrap_or(0);
    let inside: Vec<&Run> = runs.iter().filter(|run| run.is_inside()).collect();
    let results = inside.iter().filter(|run| run.error.is_none()).count();
    let once = inside.iter().filter(|run| executed(run) == 1).count();
    let sum = |count: fn(&Run) -> usize| inside.iter().map(|run| count(run)).sum::<usize>();
    let mut figure = format!(
        "{} runs, interrupted by {} kills (of {kills} servers) and {} timeouts: {results} results, {once} with 1 execution",
        inside.len(),
        sum(|run| run.interruptions.kills),
        sum(|run| run.interruptions.timeouts),
    );
    if let Some(run) = inside.iter().find(|run| run.error.is_some() || executed(run) != 1) {
        let error = run.error.as_deref().unwrap_or_default();
        figure.push_str(&format!("; first: {}, {} executions {error}", run.key, executed(run)));
    }
    let is_met = inside.len() >= target && results == inside.len() && once == inside.len();
    let case = "timeouts, repeats and kill -9 from the promoting commit until the reply is flushed";
    let first = Row::new(case, figure, format!("≥ {target} runs, 1 execution each"), is_met);
    let others: Vec<&Run> = runs.iter().filter(|run| !run.is_inside()).collect();
    let excess = |run: &&&Run| run.error.is_some() || executed(run) > 1 + run.interruptions.outside;
    let wrong = others.iter().filter(excess).count();
    let outside: usize = others.iter().map(|run| run.interruptions.outside).sum();
    let most = |is_counted: fn(usize) -> bool| {
        let counted = others.iter().filter(|run| is_counted(run.interruptions.outside));
        counted.map(|run| executed(run)).max().unwrap_or(0)
    };
    let mut figure = format!(
        "{} runs, {outside} interruptions: at most {} executions of a run without one, {} with one, {} with more",
        others.len(),
        most(|outside| outside == 0),
        most(|outside| outside == 1),
        most(|outside| outside > 1),
    );
    if let Some(run) = others.iter().find(excess) {
        figure.push_str(&format!("; {wrong} wrong, first: {run:?}, {} executions", executed(run)));
    }
    let case = "runs without an interruption, or with an earlier or later one";
    let bar = "1 execution, 1 more for each earlier or later interruption";
    Ok(vec![first, Row::new(case, figure, bar, wrong == 0)])
}
