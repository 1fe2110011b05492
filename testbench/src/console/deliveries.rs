//! Notifications: a receiver that verifies them with the npm package `standardwebhooks`, while servers are killed.
//!
//! The receiver (`conformance/console/receiver.mjs`) prints a line per message. Its paths behave differently: `hook`
//! accepts after a moment, `fails` rejects the first attempt of each message, `slow` does not respond in time, `moved`
//! redirects, and `gone` responds with 410.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::json;

use super::bench::Bench;
use super::packages::{Packages, output};
use super::people::{ADA, ANN};
use super::site::Site;
use crate::crash::random::Random;
use crate::hosts::caller::Caller;
use crate::row::Row;

/// Two secrets, as during a rotation. Each signs every message.
const SECRETS: &str =
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

const TOOLS: &str = r#"
[tasks]
max_tasks_per_caller = 5000

[tools.deploy]
description = "Deploys a version."
command = ["@RECORD@", "{key}"]
arguments = { key = { type = "string" } }
approve = { by = ["ada"], max_open = 5000 }
"#;

/// Time until every message must have arrived after the last kill: the lease of a sender ends, and
/// a failed attempt is repeated.
const ARRIVAL: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(50);

/// Addresses that a receiver on the public network must not have. `PORT` is that of the receiver.
const FORBIDDEN: &[(&str, &str)] = &[
    ("public", "http://127.0.0.1:PORT/ssrf"),
    ("public", "https://127.0.0.1:PORT/ssrf"),
    ("public", "https://localhost:PORT/ssrf"),
    ("public", "https://[::1]:PORT/ssrf"),
    ("public", "https://[::ffff:127.0.0.1]:PORT/ssrf"),
    ("public", "https://0.0.0.0:PORT/ssrf"),
    ("public", "https://10.0.0.1/ssrf"),
    ("public", "https://192.168.1.1/ssrf"),
    ("public", "https://100.64.0.1/ssrf"),
    ("public", "https://169.254.169.254/latest/meta-data"),
    ("public", "https://[fe80::1]/ssrf"),
    ("public", "https://[fd00::1]/ssrf"),
    ("local", "http://169.254.169.254/latest/meta-data"),
    ("local", "http://[fe80::1]/ssrf"),
    ("local", "ftp://127.0.0.1:PORT/ssrf"),
];

/// A message that the receiver got.
#[derive(Clone, Debug, Deserialize)]
struct Message {
    /// Path without the slash.
    path: String,
    /// `webhook-id`.
    id: String,
    /// Whether the signature is valid under both secrets.
    is_valid: bool,
    event: String,
    task: String,
    status: u16,
    /// Milliseconds since 1970 at which the response was sent.
    at: u64,
}

/// The receiver process.
struct Receiver {
    child: Child,
    /// The script ends with its standard input.
    _input: ChildStdin,
    port: u16,
    messages: Arc<Mutex<Vec<Message>>>,
}

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let packages = bench.packages()?;
    let mut rows = kills(bench, &packages)?;
    rows.extend(receivers(bench, &packages)?);
    rows.push(forbidden(bench, &packages)?);
    Ok(rows)
}

/// Kills the server between the commit of an event and the response of the receiver.
fn kills(bench: &Bench, packages: &Packages) -> Result<Vec<Row>> {
    let receiver = Receiver::start(packages, 0)?;
    let site = site(bench, "deliveries", &[receiver.target("hook", "hook", "local")])?;
    site.launch_all()?;
    let (target, mut random) = (bench.choose(1_000, 10), Random::new(bench.seed));
    let limit = bench.choose(Duration::from_secs(20 * 60), Duration::from_secs(60));
    let started = Instant::now();
    let (mut tasks, mut kills) = (Vec::new(), Vec::new());
    // Some messages are accepted before the kill, so there are more kills than needed.
    while kills.len() < target + target / 10 && started.elapsed() < limit {
        let task = call(&site, &format!("key-{}", tasks.len()))?;
        thread::sleep(random.millis(0..80));
        site.kill(0)?;
        kills.push((task.clone(), now()?));
        tasks.push(task);
        site.launch(0)?;
    }
    let is_complete = receiver.wait_for(&tasks, "hook", ARRIVAL);
    let messages = receiver.messages();
    let first = |task: &String| {
        let accepted = messages.iter().filter(|it| it.task == *task && it.status == 200);
        accepted.map(|message| message.at).min()
    };
    let inside = kills.iter().filter(|(task, at)| first(task).is_none_or(|first| first > *at));
    let inside = inside.count();
    let lost = tasks.iter().filter(|task| first(task).is_none()).count();
    let invalid = messages.iter().filter(|message| !message.is_valid).count();
    let mut ids: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for message in messages.iter() {
        ids.entry((&message.task, &message.event)).or_default().insert(&message.id);
    }
    let several = ids.values().filter(|ids| ids.len() > 1).count();
    let figure = format!(
        "{} kills, {inside} of them between the commit and the 2xx, in {} s: {lost} of {} lost",
        kills.len(),
        started.elapsed().as_secs(),
        tasks.len()
    );
    let is_met = is_complete && lost == 0 && inside >= target;
    let bar = format!("{target} kills between the commit and the 2xx, 0 lost");
    let lost = Row::new("deliveries: kill -9", figure, bar, is_met);
    let figure = format!(
        "{} messages: {invalid} with an invalid signature, {several} events with several IDs",
        messages.len()
    );
    let is_met = invalid + several == 0 && !messages.is_empty();
    let bar = "valid for `standardwebhooks` 1.1, duplicates only under one ID";
    Ok(vec![lost, Row::new("deliveries: signatures and duplicates", figure, bar, is_met)])
}

/// Receivers that fail, are slow, redirect, stop or are killed.
fn receivers(bench: &Bench, packages: &Packages) -> Result<Vec<Row>> {
    let receiver = Receiver::start(packages, 0)?;
    let names = ["hook", "fails", "slow", "moved", "gone"];
    let targets = names.map(|name| receiver.target(name, name, "local"));
    let site = site(bench, "receivers", &targets)?;
    site.launch_all()?;
    let count = bench.choose(50, 10);
    let tasks = (0..count).map(|number| call(&site, &format!("key-{number}")));
    let tasks: Vec<String> = tasks.collect::<Result<_>>()?;
    let started = Instant::now();
    let is_quick = receiver.wait_for(&tasks, "hook", Duration::from_secs(15));
    let figure = format!("{count} messages to another receiver after {:?}", started.elapsed());
    let mut rows = vec![Row::new(
        "deliveries: a slow receiver delays no other",
        figure,
        "all within 15 s, the timeout of one attempt",
        is_quick,
    )];
    let is_repeated = receiver.wait_for(&tasks, "fails", Duration::from_secs(60));
    let messages = receiver.messages().clone();
    let attempts = |path: &str| messages.iter().filter(|it| it.path == path).count();
    let ids: BTreeSet<&str> =
        messages.iter().filter(|it| it.path == "fails").map(|it| it.id.as_str()).collect();
    let figure = format!("{} attempts, {} IDs for {count} events", attempts("fails"), ids.len());
    let is_met = is_repeated && ids.len() == count;
    rows.push(Row::new("deliveries: a receiver that fails once", figure, "all, same IDs", is_met));
    let figure = format!("{} requests to the target of the redirect", attempts("stolen"));
    let is_met = attempts("stolen") == 0 && attempts("moved") > 0;
    rows.push(Row::new("deliveries: a receiver that redirects", figure, "not followed", is_met));
    let figure = format!("{} attempts of {count} messages", attempts("gone"));
    let is_met = (1..=4).contains(&attempts("gone"));
    rows.push(Row::new("deliveries: a receiver with 410", figure, "stops, ≤ 4 at once", is_met));
    rows.push(killed_receiver(packages, &site, receiver)?);
    Ok(rows)
}

/// Kills the receiver, makes calls, and starts the receiver again on its port.
fn killed_receiver(packages: &Packages, site: &Site, receiver: Receiver) -> Result<Row> {
    let port = receiver.port;
    drop(receiver);
    let tasks = (0..10).map(|number| call(site, &format!("while down {number}")));
    let tasks: Vec<String> = tasks.collect::<Result<_>>()?;
    thread::sleep(Duration::from_secs(1));
    let receiver = Receiver::start(packages, port)?;
    let is_met = receiver.wait_for(&tasks, "hook", Duration::from_secs(30));
    let found = receiver.messages().iter().filter(|it| it.path == "hook").count();
    let figure = format!("{found} messages for {} events", tasks.len());
    Ok(Row::new("deliveries: a receiver that was killed", figure, "all after its return", is_met))
}

/// Configures every forbidden address: the server must not start, or must not connect.
fn forbidden(bench: &Bench, packages: &Packages) -> Result<Row> {
    let receiver = Receiver::start(packages, 0)?;
    let (mut at_start, mut at_connect, mut wrong) = (0, 0, Vec::new());
    for (number, (network, url)) in FORBIDDEN.iter().enumerate() {
        let url = url.replace("PORT", &receiver.port.to_string());
        let target = format!(
            "[notify.hook]\nurl = \"{url}\"\nsecret_env = \"HOOK_SECRET\"\nnetwork = \"{network}\"\n"
        );
        let site = site(bench, &format!("forbidden-{number}"), &[target])?;
        if site.launch(0).is_err() {
            at_start += 1;
            continue;
        }
        let task = call(&site, "key")?;
        let failed = failed_delivery(&site, &task)?;
        // An address may also fail to respond, so the error must name the policy.
        if failed.contains("network policy") {
            at_connect += 1;
        } else {
            wrong.push(format!("{url}: {failed}"));
        }
    }
    let reached = receiver.messages().len();
    let mut figure = format!(
        "{} addresses: {at_start} rejected at the start, {at_connect} at the connection, {reached} reached",
        FORBIDDEN.len()
    );
    if let Some(first) = wrong.first() {
        figure.push_str(&format!("; first: {first}"));
    }
    let is_met = reached == 0 && wrong.is_empty();
    Ok(Row::new("deliveries: forbidden addresses", figure, "every one rejected", is_met))
}

/// Waits for the first failed attempt of a delivery and returns its error.
fn failed_delivery(site: &Site, task: &str) -> Result<String> {
    let operator = site.visitor(0, ADA.deciding)?;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(20) {
        let deliveries = operator.read("deliveries")?;
        let all = deliveries["deliveries"].as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(delivery) = all.iter().find(|delivery| delivery["task"] == task) {
            return Ok(delivery.to_string());
        }
        thread::sleep(POLL);
    }
    Ok("no attempt after 20 s".to_owned())
}

/// A site with these receivers, which is not started.
fn site(bench: &Bench, name: &str, targets: &[String]) -> Result<Site> {
    let config = format!("{}\n{TOOLS}", targets.join("\n"));
    let mut site = Site::new(bench, name, ("sqlite", 1), &config)?;
    site.set_variable("HOOK_SECRET", SECRETS.to_owned());
    Ok(site)
}

/// Makes a gated call, whose commit has the event, and returns its task.
fn call(site: &Site, key: &str) -> Result<String> {
    let caller = Caller::with_tasks(site.address(0)?, Some(ANN.token));
    let reply = caller.call("deploy", json!({"key": key}))?;
    let task = reply["result"]["taskId"].as_str();
    Ok(task.with_context(|| format!("the call is not a task: {reply}"))?.to_owned())
}

/// Milliseconds since 1970.
fn now() -> Result<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(u64::try_from(now.as_millis())?)
}

impl Receiver {
    /// Starts the receiver. Port 0 is a free one.
    fn start(packages: &Packages, port: u16) -> Result<Self> {
        let mut script = packages.command("receiver.mjs");
        script.arg(port.to_string()).arg(SECRETS).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = script.spawn().context("could not start node")?;
        let input = child.stdin.take().context("the receiver has a standard input")?;
        let mut lines = BufReader::new(output(&mut child)?).lines();
        let Some(first) = lines.next() else { bail!("the receiver did not start") };
        let port = first?.parse().context("the receiver printed no port")?;
        let messages: Arc<Mutex<Vec<Message>>> = Arc::default();
        let received = Arc::clone(&messages);
        // The thread ends with the receiver.
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(message) => lock(&received).push(message),
                    Err(error) => eprintln!("receiver: {error}: {line}"),
                }
            }
        });
        Ok(Self { child, _input: input, port, messages })
    }

    /// The section of a receiver in the configuration.
    fn target(&self, name: &str, path: &str, network: &str) -> String {
        format!(
            "[notify.{name}]\nurl = \"http://127.0.0.1:{}/{path}\"\nsecret_env = \"HOOK_SECRET\"\n\
             network = \"{network}\"\nevents = [\"input_request.opened\"]\n",
            self.port
        )
    }

    fn messages(&self) -> MutexGuard<'_, Vec<Message>> {
        lock(&self.messages)
    }

    /// Waits until a path has accepted a message of every task.
    fn wait_for(&self, tasks: &[String], path: &str, timeout: Duration) -> bool {
        let started = Instant::now();
        loop {
            let accepted: BTreeSet<String> = self
                .messages()
                .iter()
                .filter(|message| message.path == path && message.status == 200)
                .map(|message| message.task.clone())
                .collect();
            if tasks.iter().all(|task| accepted.contains(task)) {
                return true;
            }
            if started.elapsed() > timeout {
                return false;
            }
            thread::sleep(POLL);
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A poisoned lock is usable: each change is one insertion.
fn lock(messages: &Mutex<Vec<Message>>) -> MutexGuard<'_, Vec<Message>> {
    messages.lock().unwrap_or_else(PoisonError::into_inner)
}
