//! One job from the point of view of its client: start, follow, respond, cancel, read.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::client::{Answer, Client, Wire};
use super::oracle::Oracle;

/// Number of steps of most jobs.
const STEPS: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    /// Still runs on another server when a frozen one wakes up.
    Long,
    /// Elicits in the middle.
    Asking,
    /// Sleeps in the middle, sometimes longer than a server lives.
    Sleeping,
    /// Is cancelled in the middle.
    Cancelled,
    /// Usually ends before any failure.
    Fast,
    /// Starts inline and is promoted to a task.
    Soon,
}

const KINDS: [Kind; 11] = [
    Kind::Plain,
    Kind::Long,
    Kind::Long,
    Kind::Long,
    Kind::Long,
    Kind::Asking,
    Kind::Asking,
    Kind::Sleeping,
    Kind::Cancelled,
    Kind::Fast,
    Kind::Soon,
];

/// A task whose ID the client knows, with everything that the client learned about it.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) job: String,
    pub(super) task: String,
    pub(super) steps: u32,
    pub(super) cancelled: bool,
    /// The first acknowledged input response.
    pub(super) word: Option<String>,
    /// The keys of its input request.
    pub(super) questions: BTreeSet<String>,
    /// The first final status. `None` if it never ended.
    pub(super) end: Option<Value>,
    /// Violations that the client observed.
    pub(super) wrong: Vec<String>,
}

/// Starts a job and follows it to its end. Returns `None` if no server acknowledged it.
pub(super) fn live(
    client: &mut Client<'_>,
    oracle: &Oracle,
    job: &str,
    end: Instant,
) -> Result<Option<Known>> {
    let kind = KINDS[client.random.below(KINDS.len())];
    let legacy =
        matches!(kind, Kind::Plain | Kind::Long | Kind::Asking) && client.random.percent(25);
    let wire = if legacy { Wire::Legacy } else { Wire::Modern };
    let steps = if kind == Kind::Fast { 2 } else { STEPS };
    let Some(task) = begin(client, wire, kind, job, steps) else { return Ok(None) };
    oracle.note(job, &format!("told {kind:?} {wire:?} {task}"))?;
    let mut known = Known {
        job: job.to_owned(),
        task,
        steps,
        cancelled: kind == Kind::Cancelled,
        word: None,
        questions: BTreeSet::new(),
        end: None,
        wrong: Vec::new(),
    };
    if known.cancelled {
        thread::sleep(client.random.millis(0..700));
        cancel(client, oracle, &mut known, end)?;
    }
    match wire {
        Wire::Modern => follow_modern(client, oracle, &mut known, end)?,
        Wire::Legacy => follow_legacy(client, oracle, &mut known, end)?,
    }
    Ok(Some(known))
}

/// Calls the tool and returns the task ID, if the client gets one.
fn begin(client: &mut Client<'_>, wire: Wire, kind: Kind, job: &str, steps: u32) -> Option<String> {
    let random = &mut client.random;
    let middle = 1 + random.below(steps as usize - 1);
    let mut arguments = json!({
        "name": job,
        "steps": steps,
        "step_ms": random.below(60),
        "pause_ms": random.below(40),
    });
    match kind {
        Kind::Long => arguments["step_ms"] = json!(300 + random.below(300)),
        Kind::Asking => arguments["ask_at"] = json!(middle),
        Kind::Sleeping => {
            arguments["sleep_at"] = json!(middle);
            arguments["sleep_ms"] = json!(random.below(3_000));
        }
        Kind::Plain | Kind::Cancelled | Kind::Fast | Kind::Soon => {}
    }
    let tool = if kind == Kind::Soon { "soon" } else { "work" };
    let mut call = json!({"name": tool, "arguments": arguments});
    if wire == Wire::Legacy {
        call["task"] = json!({"ttl": 3_600_000});
    }
    let Answer::Result(result) = client.ask(wire, "tools/call", call) else { return None };
    let task = if wire == Wire::Legacy { &result["task"]["taskId"] } else { &result["taskId"] };
    task.as_str().map(str::to_owned)
}

fn cancel(client: &mut Client<'_>, oracle: &Oracle, known: &mut Known, end: Instant) -> Result<()> {
    let params = json!({"taskId": known.task});
    match client.insist(Wire::Modern, "tasks/cancel", &params, end) {
        Some(Answer::Result(_)) => oracle.note(&known.job, "cancelled")?,
        Some(Answer::Error(error)) => {
            known.wrong.push(format!("tasks/cancel was refused: {error}"))
        }
        Some(Answer::Nothing) | None => {}
    }
    Ok(())
}

fn follow_modern(
    client: &mut Client<'_>,
    oracle: &Oracle,
    known: &mut Known,
    end: Instant,
) -> Result<()> {
    while Instant::now() < end {
        let Some(view) = look(client, known, end) else { return Ok(()) };
        match view["status"].as_str() {
            Some("working") => {}
            Some("input_required") => {
                let names: Vec<String> = view["inputRequests"]
                    .as_object()
                    .map(|asked| asked.keys().cloned().collect())
                    .unwrap_or_default();
                known.questions.extend(names.iter().cloned());
                if let (Some(name), None) = (names.first(), &known.word) {
                    reply(client, oracle, known, name, end)?;
                }
            }
            _ => {
                oracle.note(&known.job, &format!("ended {}", view["status"]))?;
                known.end = Some(view);
                return Ok(());
            }
        }
        thread::sleep(client.random.millis(20..200));
    }
    Ok(())
}

/// Responds to an input request, and sometimes a second time, which must have no effect.
fn reply(
    client: &mut Client<'_>,
    oracle: &Oracle,
    known: &mut Known,
    name: &str,
    end: Instant,
) -> Result<()> {
    let word = format!("first-{}", known.job);
    let params = |word: &str| {
        let accepted = json!({"action": "accept", "content": {"word": word}});
        json!({"taskId": known.task, "inputResponses": {name: accepted}})
    };
    let (first, same, other) = (params(&word), params(&word), params("another"));
    // Some users take time to respond; the task is parked meanwhile.
    if client.random.percent(40) {
        thread::sleep(client.random.millis(100..900));
    }
    match client.insist(Wire::Modern, "tasks/update", &first, end) {
        Some(Answer::Result(_)) => {
            oracle.note(&known.job, &format!("acknowledged {word}"))?;
            known.word = Some(word);
        }
        Some(Answer::Error(error)) => {
            known.wrong.push(format!("an input response was rejected: {error}"))
        }
        Some(Answer::Nothing) | None => {}
    }
    match client.random.below(4) {
        0 => drop(client.ask(Wire::Modern, "tasks/update", same)),
        1 => drop(client.ask(Wire::Modern, "tasks/update", other)),
        _ => {}
    }
    Ok(())
}

fn follow_legacy(
    client: &mut Client<'_>,
    oracle: &Oracle,
    known: &mut Known,
    end: Instant,
) -> Result<()> {
    let word = format!("legacy-{}", known.job);
    let mut answered = false;
    while Instant::now() < end {
        let params = json!({"taskId": known.task});
        match client.insist(Wire::Legacy, "tasks/get", &params, end) {
            Some(Answer::Error(error)) => {
                known.wrong.push(format!("tasks/get was refused: {error}"));
                return Ok(());
            }
            Some(Answer::Result(_)) => {}
            Some(Answer::Nothing) | None => return Ok(()),
        }
        let task = known.task.clone();
        let result = client.legacy_result(&task, &word, || answered = true);
        if let Answer::Result(result) = result {
            oracle.note(&known.job, "ended, says tasks/result")?;
            known.word = answered.then_some(word);
            // The modern era shows the same task with its result.
            known.end = look(client, known, end);
            let same = known.end.as_ref().map(|view| &view["result"]["content"]);
            if same.is_some_and(|same| *same != result["content"]) {
                known.wrong.push(format!("tasks/result says {result}, tasks/get says {same:?}"));
            }
            return Ok(());
        }
        thread::sleep(client.random.millis(20..200));
    }
    Ok(())
}

/// Returns the task from any server. `None` if no server responds; an unexpected error is recorded
/// as a violation.
pub(super) fn look(client: &mut Client<'_>, known: &mut Known, end: Instant) -> Option<Value> {
    let params = json!({"taskId": known.task});
    match client.insist(Wire::Modern, "tasks/get", &params, end)? {
        Answer::Result(view) => Some(view),
        Answer::Error(error) => {
            known.wrong.push(format!("tasks/get was refused: {error}"));
            None
        }
        Answer::Nothing => None,
    }
}

/// Reads an ended task again, which must be unchanged.
pub(super) fn look_again(client: &mut Client<'_>, known: &mut Known, patience: Duration) {
    let Some(before) = known.end.clone() else { return };
    let Some(now) = look(client, known, Instant::now() + patience) else { return };
    if now != before {
        known.wrong.push(format!("it ended as {before} and is now {now}"));
    }
}
