//! What must hold for a call whose client was killed.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::phase::{Phase, is_shown};
use crate::crash::oracle::{Event, Line};

/// A call, the kill of its client, and what the next process has made of it.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) job: String,
    pub(super) steps: u32,
    pub(super) phase: Phase,
    /// There was neither a handle nor a result.
    pub(super) was_calling: bool,
    pub(super) outcome: Outcome,
}

/// What the next process says of the call.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The result, as the tool has it.
    Result(Value),
    /// It may have been executed, and nobody knows.
    Maybe,
}

impl Outcome {
    pub(super) fn read(outcome: Option<&Value>) -> Result<Self> {
        let outcome = outcome.context("the second process has left no outcome")?;
        match (outcome["result"].as_str(), outcome.get("maybe")) {
            (Some(report), None) => Ok(Self::Result(serde_json::from_str(report)?)),
            (None, Some(_)) => Ok(Self::Maybe),
            _ => bail!("what is this outcome? {outcome}"),
        }
    }
}

/// Holds a run against what was promised.
pub(super) fn judge(run: &Run, lines: &[Line], has_keys: bool) -> Result<()> {
    let own: Vec<&Line> = lines.iter().filter(|line| line.job == run.job).collect();
    let words = words(&own);
    for step in 0..run.steps {
        let executed = own.iter().filter(|line| is_begun(line, step)).count();
        ensure!(executed <= 1, "step {step} was executed {executed} times");
    }
    ensure!(words.len() <= 1, "its question was answered by {words:?}");
    let shown = [".1", ".2"].map(|process| {
        own.iter().filter(|line| is_shown(line) && line.who.ends_with(process)).count()
    });
    ensure!(shown[0] <= 1 && shown[1] <= 1, "one process showed its question twice");
    // What had been answered is not asked again, whoever goes on.
    let was_answered = matches!(run.phase, Phase::Answered | Phase::End);
    ensure!(
        !was_answered || shown[1] == 0,
        "an answer was there, and the question was asked again"
    );

    let may_be_unknown = !has_keys && run.was_calling && run.phase != Phase::End;
    let Outcome::Result(report) = &run.outcome else {
        ensure!(may_be_unknown, "it is said to be unknown whether it was executed");
        ensure!(shown[1] == 0, "a call that was given up asks something");
        return Ok(());
    };
    ensure!(!may_be_unknown, "a call was made again that may have been executed");
    let whose = if was_answered { "1" } else { "2" };
    let word = format!("{}.{whose}", run.job);
    ensure!(report["answer"] == word.as_str(), "the answer of {word} is not in {report}");
    ensure!(words == BTreeSet::from([word.as_str()]), "the tool was told {words:?}");
    let steps = report["steps"].as_array().context("a result without steps")?;
    ensure!(steps.len() == run.steps as usize, "{} steps in the result", steps.len());
    for (step, token) in steps.iter().enumerate() {
        let has_run = own.iter().any(|line| match &line.event {
            Event::Begin { step: begun, token: made } => {
                *begun as usize == step && *token == **made
            }
            _ => false,
        });
        ensure!(has_run, "nobody has executed what the result has as step {step}: {token}");
    }
    Ok(())
}

fn is_begun(line: &Line, step: u32) -> bool {
    matches!(line.event, Event::Begin { step: begun, .. } if begun == step)
}

/// The answers that a tool was told.
fn words<'l>(lines: &[&'l Line]) -> BTreeSet<&'l str> {
    let told = lines.iter().filter_map(|line| match &line.event {
        Event::Other(event) => event.strip_prefix("answered "),
        _ => None,
    });
    told.collect()
}

/// How many answers came to a tool, each counted once.
pub(super) fn answers(runs: &[Run], lines: &[Line]) -> usize {
    let of = |run: &Run| {
        words(&lines.iter().filter(|line| line.job == run.job).collect::<Vec<_>>()).len()
    };
    runs.iter().map(of).sum()
}

/// How many questions lost their user before the answer was written down.
pub(super) fn cut_off(runs: &[Run]) -> usize {
    runs.iter().filter(|run| run.phase == Phase::Shown).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Line, Outcome, Phase, Run, judge};

    fn lines(text: &str) -> Vec<Line> {
        text.lines().map(|line| line.trim().parse().unwrap()).collect()
    }

    fn run(phase: Phase, was_calling: bool, outcome: Outcome) -> Run {
        Run { job: "r1".into(), steps: 1, phase, was_calling, outcome }
    }

    fn report(word: &str) -> Outcome {
        Outcome::Result(json!({"answer": word, "steps": ["s#0:0"]}))
    }

    const ONCE: &str = "1 r1.1 r1 shown task
        2 s#0 r1 answered r1.1
        3 s#0 r1 begin 0 s#0:0";

    #[test]
    fn a_call_that_was_answered_once_and_done_once_is_fine() {
        judge(&run(Phase::Answered, false, report("r1.1")), &lines(ONCE), true).unwrap();
    }

    #[test]
    fn what_must_not_happen_is_found() {
        let asked_again = format!("{ONCE}\n4 r1.2 r1 shown task");
        let answered_twice = format!("{ONCE}\n4 s#0 r1 answered r1.2");
        let done_twice = format!("{ONCE}\n4 s#1 r1 begin 0 s#1:0");
        for (text, complaint) in [
            (asked_again, "asked again"),
            (answered_twice, "answered by"),
            (done_twice, "2 times"),
            (ONCE.replace("s#0:0", "s#9:0"), "nobody has executed"),
            (ONCE.replace("answered r1.1", "answered x"), "was told"),
        ] {
            let found = judge(&run(Phase::Answered, false, report("r1.1")), &lines(&text), true);
            assert!(found.unwrap_err().to_string().contains(complaint), "{complaint}");
        }
    }

    #[test]
    fn unknown_is_an_answer_where_there_are_no_keys_and_no_handle() {
        let begun = "1 s#0 r1 begin 0 s#0:0";
        let maybe = |phase, was_calling| run(phase, was_calling, Outcome::Maybe);
        judge(&maybe(Phase::Sent, true), &lines(begun), false).unwrap();
        judge(&maybe(Phase::Sent, true), &lines(begun), true).unwrap_err();
        judge(&maybe(Phase::Handle, false), &lines(begun), false).unwrap_err();
        let again = run(Phase::Answered, true, report("r1.1"));
        judge(&again, &lines(ONCE), false).unwrap_err();
    }
}
