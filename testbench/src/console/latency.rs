//! Times across replicas: from a vote until the command starts, and until the badge of an open inbox changes.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::bench::Bench;
use super::people::{ADA, ANN};
use super::site::Site;
use super::visitor::{API, APPROVAL, Visitor};
use crate::hosts::caller::Caller;
use crate::row::Row;

const CONFIG: &str = r#"
[tools.deploy]
description = "Deploys a version."
shell = true
command = 'echo "$arg_key $(date +%s%N)" >> "$EXECUTIONS"'
arguments = { key = { type = "string" } }
env = { EXECUTIONS = "@EXECUTIONS@" }
approve = { by = ["ada"], max_open = 500 }
"#;

const BAR: Duration = Duration::from_secs(1);
/// The bar of a short run, which uses an unoptimized build on a busy machine.
const SHORT_BAR: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(2);

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &(store, replicas) in bench.stores() {
        let site = Site::start(bench, "latency", (store, replicas), CONFIG)?;
        let count = bench.choose(100, 10);
        let bar = bench.choose(BAR, SHORT_BAR);
        let (continued, badges) = measure(&site, replicas, count)?;
        rows.push(row(
            &format!("{store}: from the answer until the call continues"),
            continued,
            bar,
        ));
        rows.push(row(&format!("{store}: badge of an open inbox"), badges, bar));
    }
    Ok(rows)
}

fn row(case: &str, mut times: Vec<Duration>, bar: Duration) -> Row {
    times.sort();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    let figure = format!(
        "{} times: p50 {} ms, p99 {} ms",
        times.len(),
        at(50).as_millis(),
        at(99).as_millis()
    );
    Row::new(case, figure, format!("p99 ≤ {} ms", bar.as_millis()), at(99) <= bar)
}

/// Requests on one replica, votes on the next, and watches the inbox on the last.
fn measure(site: &Site, replicas: usize, count: usize) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let caller = Caller::with_tasks(site.address(0)?, Some(ANN.token));
    let voter = site.visitor(1 % replicas, ADA.deciding)?;
    let badges = watch(&site.visitor(2 % replicas, ADA.deciding)?)?;
    let (mut voted, mut shown) = (HashMap::new(), Vec::new());
    for number in 0..count {
        while badges.try_recv().is_ok() {}
        let key = format!("key-{number}");
        let started = Instant::now();
        let reply = caller.call("deploy", json!({"key": key}))?;
        let task = reply["result"]["taskId"].as_str();
        let task = task.with_context(|| format!("the call is not a task: {reply}"))?;
        let (at, _) = badges.recv_timeout(TIMEOUT).context("the inbox was not announced")?;
        shown.push(at.saturating_duration_since(started));
        let request = voter.read(&format!("inputs/{task}/{APPROVAL}"))?;
        voted.insert(key, now()?);
        let reply = voter.vote(&request, true)?;
        ensure!(reply.status == 200, "a vote was rejected with {}: {}", reply.status, reply.body);
        // The next badge counts from an empty inbox.
        thread::sleep(Duration::from_millis(700));
    }
    Ok((continued(site, &voted)?, shown))
}

/// Waits for all commands and returns their times since the votes.
fn continued(site: &Site, voted: &HashMap<String, u128>) -> Result<Vec<Duration>> {
    let started = Instant::now();
    loop {
        let lines = site.executions.count()?;
        if lines.len() >= voted.len() {
            return lines.keys().map(|line| since(line, voted)).collect();
        }
        if started.elapsed() > TIMEOUT {
            bail!("{} of {} approved calls ran", lines.len(), voted.len());
        }
        thread::sleep(POLL);
    }
}

/// Returns the time between a vote and the line that the command wrote: key and nanoseconds.
fn since(line: &str, voted: &HashMap<String, u128>) -> Result<Duration> {
    let (key, at) = line.split_once(' ').with_context(|| format!("`{line}` has no time"))?;
    let vote = voted.get(key).with_context(|| format!("{key} ran without a vote"))?;
    let nanos = at.parse::<u128>()?.saturating_sub(*vote);
    Ok(Duration::from_nanos(u64::try_from(nanos)?))
}

/// Reads the stream of hints. Returns the times at which the number of requests changed.
fn watch(visitor: &Visitor) -> Result<Receiver<(Instant, u64)>> {
    let mut stream = visitor.open("GET", &format!("{API}/stream"), &[], "")?;
    ensure!(stream.status == 200, "the stream was rejected with {}", stream.status);
    let (sender, receiver) = channel();
    thread::spawn(move || {
        // The thread ends with the server.
        while let Ok(Some(hint)) = stream.message() {
            let Some(count) = hint["count"].as_u64() else { continue };
            if count > 0 && sender.send((Instant::now(), count)).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

/// Nanoseconds since 1970.
fn now() -> Result<u128> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use super::since;

    #[test]
    fn time_of_line_counts_from_vote_of_its_key() {
        let voted = HashMap::from([("k-1".to_owned(), 1_000)]);
        assert_eq!(since("k-1 3500", &voted).unwrap(), Duration::from_nanos(2_500));
        assert!(since("k-2 3500", &voted).is_err());
    }
}
