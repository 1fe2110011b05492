//! `cargo xtask streams`: the segments that a reader gets when servers are killed in the middle of
//! a stream.
//!
//! A tool emits inside and between its steps. One run is not disturbed. In the others the worker of
//! the task is killed repeatedly, and the reader resumes on another server. All runs must end with
//! the same segments, in the same order, with the same numbers, and none twice.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::client::{Answer, Client, Wire};
use super::database::Database;
use super::fleet::{Fleet, Setting};
use super::oracle::Event;
use super::random::Random;
use super::{
    setting::{LEASE, folder, in_folder, number, server},
    table,
};
use xtask::args::Args;

const STEPS: u64 = 100;
const INSIDE: u64 = 60;
const BETWEEN: u64 = 40;
const SEGMENTS: u64 = STEPS * (INSIDE + BETWEEN);
/// Duration of a step: long enough for a kill in its middle.
const STEP_MS: u64 = 20;
/// Maximum duration of a run.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn run(mut args: Args) -> Result<()> {
    let store = args.value("--store")?.unwrap_or_else(|| "sqlite".to_owned());
    let replicas = number(&mut args, "--replicas")?.unwrap_or(2) as usize;
    let streams = number(&mut args, "--streams")?.unwrap_or(3);
    let kills = number(&mut args, "--kills")?.unwrap_or(3);
    let program = server(&mut args)?;
    args.finish()?;
    if replicas < 2 {
        bail!("`--replicas` must be at least 2: another server must continue");
    }
    let folder = folder("streams")?;
    let (alone, seen) = in_folder(&folder, || {
        let database = Database::start(&store, &folder)?;
        let store = database.url();
        let setting = Setting { program, folder: folder.clone(), store, lease: LEASE, more: &[] };
        let fleet = Fleet::start(setting, replicas)?;
        let alone = follow(&fleet, "alone", 0)?;
        let hurt = (1..=streams).map(|number| follow(&fleet, &format!("hurt-{number}"), kills));
        Ok((alone, hurt.collect::<Result<Vec<_>>>()?))
    })?;
    println!("streams: {replicas} servers on {store}, {SEGMENTS} segments each");
    let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum::<u64>().to_string();
    table::print(&[
        ("streams", seen.len().to_string()),
        ("kills during the stream", sum(|seen| seen.kills)),
        ("disconnects of the reader", sum(|seen| seen.cuts)),
        ("messages read", sum(|seen| seen.messages)),
        ("segments of an uninterrupted run", alone.segments.to_string()),
        ("  their hash", format!("{:016x}", alone.hash)),
        ("hashes of the others", seen.iter().map(|seen| format!("{:016x} ", seen.hash)).collect()),
    ]);
    for seen in &seen {
        ensure!(seen.segments == SEGMENTS, "{} segments instead of {SEGMENTS}", seen.segments);
        ensure!(
            seen.hash == alone.hash,
            "an interrupted stream differs from the uninterrupted one"
        );
        ensure!(seen.kills == kills, "only {} of {kills} kills hit a running task", seen.kills);
    }
    Ok(())
}

/// The outcome of a reader.
#[derive(Debug, Default)]
struct Seen {
    segments: u64,
    hash: u64,
    kills: u64,
    cuts: u64,
    messages: u64,
}

/// State of a reader.
#[derive(Default)]
struct Reader {
    task: Option<String>,
    /// Number of the last segment.
    last: u64,
    hash: DefaultHasher,
    complete: bool,
    messages: u64,
}

impl Reader {
    /// Processes a response. Every segment must be the next one.
    fn take(&mut self, result: &Value) -> Result<()> {
        self.messages += 1;
        let related = &result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"];
        self.task = self.task.take().or_else(|| related.as_str().map(str::to_owned));
        for block in result["partial-content"].as_array().into_iter().flatten() {
            let number = block["seqNr"].as_u64().context("a segment without a number")?;
            ensure!(number == self.last + 1, "segment {number} came after {}", self.last);
            (number, block["text"].as_str()).hash(&mut self.hash);
            self.last = number;
        }
        ensure!(result["isError"] != true, "the task failed: {result}");
        self.complete |= result["isComplete"] == true;
        Ok(())
    }
}

/// Starts a stream, kills its worker `kills` times, and reads to the end.
fn follow(fleet: &Fleet, job: &str, kills: u64) -> Result<Seen> {
    let mut client = Client::new(fleet, Random::new(kills + 1));
    let end = Instant::now() + PATIENCE;
    let arguments = json!({
        "name": job, "steps": STEPS, "inside": INSIDE, "between": BETWEEN, "step_ms": STEP_MS,
    });
    let task = json!({"ttl": 600_000, "responseModes": ["streaming"]});
    let call = json!({"name": "lines", "arguments": arguments, "task": task});
    let (mut reader, mut seen) = (Reader::default(), Seen::default());
    let mut response = client.open(Wire::Legacy, "tools/call", call);
    ensure!(response.is_some(), "no server accepts the call");
    // One kill in each part of the stream, except the last.
    let due = |seen: &Seen| (seen.kills + 1) * SEGMENTS / (kills + 1);
    while !reader.complete {
        ensure!(Instant::now() < end, "the stream does not end; {} segments arrived", reader.last);
        if seen.kills < kills && reader.last + INSIDE >= due(&seen) {
            let killed = owner(fleet, job)?.context("no server runs the task")?;
            let number = fleet.number(&killed).context("the server is already gone")?;
            fleet.kill(number)?;
            seen.kills += 1;
            // Waits until another process runs the task, then restarts the killed one.
            while owner(fleet, job)?.as_deref() == Some(&killed) {
                ensure!(Instant::now() < end, "no server continues the task");
                thread::sleep(Duration::from_millis(5));
            }
            fleet.start_one(number)?;
        }
        match response.as_mut().map(|response| response.message()) {
            Some(Ok(Some(message))) if message.get("method").is_some() => {}
            Some(Ok(Some(message))) => {
                ensure!(message.get("result").is_some(), "the stream broke: {message}");
                reader.take(&message["result"])?;
            }
            Some(_) => {
                seen.cuts += 1;
                response = None;
            }
            None => resume(&mut client, &mut reader)?,
        }
    }
    seen.segments = reader.last;
    seen.hash = reader.hash.finish();
    seen.messages = reader.messages;
    Ok(seen)
}

/// Returns the process that started a run of the job last.
fn owner(fleet: &Fleet, job: &str) -> Result<Option<String>> {
    let lines = fleet.oracle().read()?;
    let begun = lines.iter().rfind(|line| line.job == job && line.event == Event::Run);
    Ok(begun.map(|line| line.process().to_owned()))
}

/// Requests the segments after the last one from any server.
fn resume(client: &mut Client<'_>, reader: &mut Reader) -> Result<()> {
    let task = reader.task.clone().context("the stream was cut before its first response")?;
    let params = json!({"taskId": task, "lastSeqNr": reader.last.max(1)});
    match client.ask(Wire::Legacy, "tasks/result", params) {
        Answer::Result(result) => reader.take(&result)?,
        Answer::Error(error) => bail!("the remaining segments were rejected: {error}"),
        Answer::Nothing => {}
    }
    thread::sleep(Duration::from_millis(5));
    Ok(())
}
