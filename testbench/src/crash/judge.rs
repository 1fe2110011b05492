//! Holds what has happened against what may.
//!
//! What is observable is the order of lines. A step's line `have` is written after its record was
//! committed, its line `begin` before. From that follows, without knowing who held which lease:
//!
//! - All runs have the same record of a step: a `have` with another token is a changed record.
//! - A run that begins a step after another run had it has lost the task, or a record was lost.
//!   In the first case it gets no further: if its own execution is recorded too, or it begins
//!   anything else, somebody wrote who must not.
//! - Nobody begins a job anew that was cancelled, except who had claimed it before and is slow.
//! - A body runs once, and once more for each fault that hit a process with a run of the job, or
//!   held up everybody, as a machine does that stands still: nobody can renew a lease then.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::job::Known;
use super::oracle::{Event, Line};
use super::stall;

/// How long a process may take, in milliseconds, from claiming a task to beginning it.
const SLOW: u64 = 2_000;

/// Something that must never happen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) job: String,
    pub(super) what: String,
}

/// What the lines of a run come to.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) violations: Vec<Violation>,
    /// How often a body has run.
    pub(super) executions: usize,
    /// How often one has run that had run before.
    pub(super) repeated: usize,
    /// How often a former owner has run a body, in vain.
    pub(super) in_vain: usize,
    /// How many faults have hit a process while it had work, by their kind.
    pub(super) hits: BTreeMap<String, usize>,
    /// From a kill to the next line of another process, in milliseconds, sorted.
    pub(super) takeovers: Vec<u64>,
}

/// Judges the lines of all jobs. `holds_up` says which kinds of faults may hold up everybody.
pub(super) fn judge_lines(lines: &[Line], holds_up: &[&str]) -> Findings {
    let mut findings = Findings::default();
    let mut jobs: BTreeMap<&str, Job<'_>> = BTreeMap::new();
    let mut thawed: HashMap<&str, u64> = HashMap::new();
    let mut frozen: HashSet<&str> = HashSet::new();
    // Whether the machine stands still, and when it last went on.
    let (mut stalls, mut flowed) = (false, None);
    for line in lines {
        if let Event::Fault { kind, name } = &line.event {
            match kind.as_str() {
                "freeze" => drop(frozen.insert(name)),
                "thaw" => {
                    frozen.remove(name.as_str());
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
        if matches!(line.event, Event::Run) && frozen.contains(line.process()) {
            // The signal was on its way when the run began: it is frozen in its first step.
            job.suffer("freeze", line.process(), line.at);
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

/// For how long, in milliseconds, neither a process nor its machine has stood still.
#[derive(Clone, Copy)]
struct Awake {
    itself: u64,
    machine: u64,
}

/// What is known of a job at one line.
#[derive(Default)]
struct Job<'l> {
    /// Which process runs it, as far as can be seen, and whether it does more than wait.
    owner: Option<(&'l str, bool)>,
    /// Processes that have begun a run of it.
    processes: Vec<&'l str>,
    faults: usize,
    /// What is frozen or down since the job began.
    lasting: Vec<&'l str>,
    /// When processes that it has suffered from were thawed.
    thawed: HashMap<&'l str, u64>,
    executions: HashMap<u32, usize>,
    /// The token that each step is recorded with.
    records: HashMap<u32, &'l str>,
    /// Runs that have begun a step which was recorded by another.
    former: HashMap<&'l str, u32>,
    /// When it was cancelled.
    cancelled: Option<u64>,
    /// When its owner was killed, until somebody else goes on.
    killed: Option<u64>,
}

impl<'l> Job<'l> {
    /// Counts a fault that may have cost the job its worker. What lasts is counted once: when it
    /// begins, or when it ends if the job has come in between.
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

    /// Something happens to a process, or to the database of all; `true` if the job was running
    /// there.
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

    /// Holds a line against those before it.
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
                // Its process had claimed it, and was frozen before it could begin.
                let thawed = line.at.saturating_sub(awake.itself);
                if awake.itself <= SLOW && self.thawed.insert(process, thawed) != Some(thawed) {
                    self.faults += 1;
                }
                let since = self.cancelled.map_or(0, |at| line.at.saturating_sub(at));
                if since > SLOW && awake.itself.min(awake.machine) > SLOW {
                    return Err(format!("run {run} began {since} ms after it was cancelled"));
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
                        "step {step} ran {executions} times, though only {} faults hit it",
                        self.faults
                    ));
                }
                if let Some(&before) = self.former.get(run) {
                    return Err(format!("run {run} began step {step} after losing step {before}"));
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
                        "run {run} has step {step}, though another had done step {lost} before it began that"
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

/// Judges what clients were told, by the records that the lines show.
pub(super) fn judge_known(known: &Known, lines: &[Line]) -> Vec<Violation> {
    let mut wrong = known.wrong.clone();
    match &known.end {
        None => wrong.push("it was acknowledged and never ended".to_owned()),
        Some(end) => wrong.extend(wrong_end(known, end, lines).err()),
    }
    if known.questions.len() > 1 {
        wrong.push(format!("its question had several names: {:?}", known.questions));
    }
    wrong.into_iter().map(|what| Violation { job: known.job.clone(), what }).collect()
}

fn wrong_end(known: &Known, end: &Value, lines: &[Line]) -> Result<(), String> {
    match end["status"].as_str() {
        Some("cancelled") if known.cancelled => return Ok(()),
        Some("completed") => {}
        _ => return Err(format!("it ended as {end}")),
    }
    let text = end["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let report: Value =
        serde_json::from_str(text).map_err(|_| format!("its result is no report: {end}"))?;
    if report["job"] != known.job.as_str() {
        return Err(format!("its result is another job's: {report}"));
    }
    if report["answer"].as_str() != known.word.as_deref() {
        return Err(format!("the first answer was {:?}, its result says {report}", known.word));
    }
    let steps = report["steps"].as_array().map_or(&[][..], Vec::as_slice);
    if steps.len() != known.steps as usize {
        return Err(format!("it has {} steps, its result says {report}", known.steps));
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
            return Err(format!("nobody has recorded step {step} as {token}"));
        }
    }
    match of_job().any(|line| line.event == Event::End && report["by"] == line.who.as_str()) {
        true => Ok(()),
        false => Err(format!("{} has not ended it", report["by"])),
    }
}

#[cfg(test)]
mod tests;
