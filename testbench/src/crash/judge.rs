//! Checks the lines of a campaign against the guarantees of the engine.
//!
//! Only the order of lines is observable. A step's `have` line is written after its result was
//! committed, its `begin` line before. This gives the following rules, without knowledge of leases:
//!
//! - All runs have the same result of a step. A `have` line with another token is a changed record.
//! - A run that starts a step that another run has recorded has lost its lease, or a record was lost.
//!   A run without a lease makes no progress: if it gets a `have` line or starts another step, a
//!   write without a lease succeeded.
//! - No run of a cancelled job begins, except by a slow process that had claimed the job before.
//! - A step body runs once, plus once for each failure that hit a process with a run of the job or
//!   that stopped all processes, such as a stall of the machine, during which no lease is renewed.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::job::Known;
use super::oracle::{Event, Line};
use super::stall;

/// Maximum time of a process from claiming a task to starting it, in milliseconds.
const SLOW: u64 = 2_000;

/// A violation of a guarantee.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) job: String,
    pub(super) what: String,
}

/// The result of the checks.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) violations: Vec<Violation>,
    /// Number of executions of step bodies.
    pub(super) executions: usize,
    /// Number of repeated executions.
    pub(super) repeated: usize,
    /// Number of executions by a worker without a lease.
    pub(super) in_vain: usize,
    /// Number of failures that hit a process with a running task, by kind.
    pub(super) hits: BTreeMap<String, usize>,
    /// Times from a kill to the next line of another process, in milliseconds, sorted.
    pub(super) takeovers: Vec<u64>,
}

/// Checks the lines of all jobs. `holds_up` lists the kinds of failures that may block every process.
pub(super) fn judge_lines(lines: &[Line], holds_up: &[&str]) -> Findings {
    let mut findings = Findings::default();
    let mut jobs: BTreeMap<&str, Job<'_>> = BTreeMap::new();
    let mut thawed: HashMap<&str, u64> = HashMap::new();
    // Processes that were sent a signal and do not run on, with the kind of the failure.
    let mut signalled: HashMap<&str, &str> = HashMap::new();
    // Whether the machine stalls, and when the last stall ended.
    let (mut stalls, mut flowed) = (false, None);
    for line in lines {
        if let Event::Fault { kind, name } = &line.event {
            match kind.as_str() {
                "freeze" | "kill" | "restart" => drop(signalled.insert(name, kind)),
                "thaw" => {
                    signalled.remove(name.as_str());
                    thawed.insert(name, line.at);
                }
                stall::BEGINS => stalls = true,
                stall::ENDS => (stalls, flowed) = (false, Some(line.at)),
                _ => {}
            }
            let of_all = matches!(kind.as_str(), stall::BEGINS | stall::ENDS)
                || holds_up.contains(&kind.as_str());
            let mut hit = false;
            for job in jobs.values_mut() {
                hit |= job.hit(kind, name, line.at);
                if of_all || job.processes.contains(&name.as_str()) {
                    job.suffer(kind, name, line.at);
                }
            }
            *findings.hits.entry(kind.clone()).or_default() += usize::from(hit);
            continue;
        }
        let job = jobs.entry(&line.job).or_default();
        if matches!(line.event, Event::Run)
            && let Some(kind) = signalled.get(line.process())
        {
            // The signal was under way when the run started, so it hits one of its steps.
            job.suffer(kind, line.process(), line.at);
        }
        let since = |at: Option<u64>| at.map_or(u64::MAX, |at| line.at.saturating_sub(at));
        let awake = Awake {
            itself: since(thawed.get(line.process()).copied()),
            machine: if stalls { 0 } else { since(flowed) },
        };
        if let Err(what) = job.line(line, awake, &mut findings) {
            findings.violations.push(Violation { job: line.job.clone(), what });
        }
    }
    findings.takeovers.sort_unstable();
    findings
}

/// Milliseconds since a process, and its machine, were last frozen or stalled.
#[derive(Clone, Copy)]
struct Awake {
    itself: u64,
    machine: u64,
}

/// State of a job at one line.
#[derive(Default)]
struct Job<'l> {
    /// The process that runs the job, as far as visible, and whether it does more than wait.
    owner: Option<(&'l str, bool)>,
    /// Processes that started a run of the job.
    processes: Vec<&'l str>,
    faults: usize,
    /// Frozen processes and database outages since the job started.
    lasting: Vec<&'l str>,
    /// When processes that affected the job were thawed.
    thawed: HashMap<&'l str, u64>,
    executions: HashMap<u32, usize>,
    /// The token of each step's recorded result.
    records: HashMap<u32, &'l str>,
    /// Runs that started a step that another run had recorded.
    former: HashMap<&'l str, u32>,
    /// Time of the cancellation.
    cancelled: Option<u64>,
    /// Time of the kill of its worker, until another process continues.
    killed: Option<u64>,
}

impl<'l> Job<'l> {
    /// Counts a failure that may have cost the job its worker. A lasting failure counts once: at its
    /// start, or at its end if the job started in between.
    fn suffer(&mut self, kind: &str, name: &'l str, at: u64) {
        match kind {
            "freeze" | "database" | stall::BEGINS => self.lasting.push(name),
            "thaw" | "recovery" | stall::ENDS => {
                self.thawed.insert(name, at);
                if let Some(known) = self.lasting.iter().position(|lasting| *lasting == name) {
                    self.lasting.remove(known);
                    return;
                }
            }
            _ => {}
        }
        self.faults += 1;
    }

    /// Handles a failure of a process or of the database. Returns whether it hit the running job.
    fn hit(&mut self, kind: &str, name: &str, at: u64) -> bool {
        let Some((owner, works)) = self.owner else { return false };
        if !works || (owner != name && !matches!(kind, "database" | "recovery")) {
            return false;
        }
        if kind == "kill" {
            self.killed = Some(at);
            self.owner = None;
        }
        true
    }

    /// Checks a line against the earlier ones.
    fn line(
        &mut self,
        line: &'l Line,
        awake: Awake,
        findings: &mut Findings,
    ) -> Result<(), String> {
        let (run, process) = (line.who.as_str(), line.process());
        match &line.event {
            Event::Run => {
                self.processes.push(process);
                self.owner = Some((process, true));
                // The process had claimed the job and was frozen before it could start it.
                let thawed = line.at.saturating_sub(awake.itself);
                if awake.itself <= SLOW && self.thawed.insert(process, thawed) != Some(thawed) {
                    self.faults += 1;
                }
                let since = self.cancelled.map_or(0, |at| line.at.saturating_sub(at));
                if since > SLOW && awake.itself.min(awake.machine) > SLOW {
                    return Err(format!("run {run} started {since} ms after the cancellation"));
                }
            }
            Event::Waits => self.owner = Some((process, false)),
            Event::End => self.owner = None,
            Event::Cancelled => self.cancelled = Some(line.at),
            Event::Begin { step, token: _ } => {
                findings.executions += 1;
                let executions = self.executions.entry(*step).or_default();
                *executions += 1;
                findings.repeated += usize::from(*executions > 1);
                if *executions > 1 + self.faults {
                    return Err(format!(
                        "step {step} ran {executions} times, but only {} failures hit it",
                        self.faults
                    ));
                }
                if let Some(&before) = self.former.get(run) {
                    return Err(format!(
                        "run {run} started step {step} after losing step {before}"
                    ));
                }
                if self.records.contains_key(step) {
                    findings.in_vain += 1;
                    self.former.insert(run, *step);
                    return Ok(());
                }
                self.owner = Some((process, true));
                if let Some(killed) = self.killed.take() {
                    findings.takeovers.push(line.at.saturating_sub(killed));
                }
            }
            Event::Have { step, token } => {
                if let Some(lost) = self.former.get(run) {
                    return Err(format!(
                        "run {run} has step {step}, but another run had recorded step {lost} before"
                    ));
                }
                let recorded = self.records.entry(*step).or_insert(token);
                if recorded != token {
                    return Err(format!("step {step} is recorded as {recorded} and as {token}"));
                }
            }
            Event::Fault { .. } | Event::Other(_) => {}
        }
        Ok(())
    }
}

/// Checks the observations of clients against the recorded lines.
pub(super) fn judge_known(known: &Known, lines: &[Line]) -> Vec<Violation> {
    let mut wrong = known.wrong.clone();
    match &known.end {
        None => wrong.push("the task was acknowledged and never ended".to_owned()),
        Some(end) => wrong.extend(wrong_end(known, end, lines).err()),
    }
    if known.questions.len() > 1 {
        wrong.push(format!("its input request had several keys: {:?}", known.questions));
    }
    wrong.into_iter().map(|what| Violation { job: known.job.clone(), what }).collect()
}

fn wrong_end(known: &Known, end: &Value, lines: &[Line]) -> Result<(), String> {
    match end["status"].as_str() {
        Some("cancelled") if known.cancelled => return Ok(()),
        Some("completed") => {}
        _ => return Err(format!("the task ended as {end}")),
    }
    let text = end["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let report: Value =
        serde_json::from_str(text).map_err(|_| format!("its result is not a report: {end}"))?;
    if report["job"] != known.job.as_str() {
        return Err(format!("its result belongs to another job: {report}"));
    }
    if report["answer"].as_str() != known.word.as_deref() {
        return Err(format!(
            "the first input response was {:?}, but the result has {report}",
            known.word
        ));
    }
    let steps = report["steps"].as_array().map_or(&[][..], Vec::as_slice);
    if steps.len() != known.steps as usize {
        return Err(format!("the job has {} steps, but the result has {report}", known.steps));
    }
    let of_job = || lines.iter().filter(|line| line.job == known.job);
    for (step, token) in steps.iter().enumerate() {
        let recorded = of_job().any(|line| match &line.event {
            Event::Have { step: had, token: as_token } => {
                *had as usize == step && token == as_token
            }
            _ => false,
        });
        if !recorded {
            return Err(format!("no run has recorded step {step} as {token}"));
        }
    }
    match of_job().any(|line| line.event == Event::End && report["by"] == line.who.as_str()) {
        true => Ok(()),
        false => Err(format!("{} did not end it", report["by"])),
    }
}

#[cfg(test)]
mod tests;
