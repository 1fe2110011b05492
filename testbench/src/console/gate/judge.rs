//! The verdict: what ran, compared with what people approved, and with the store.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::client::{Call, Ending};
use super::kinds::{Fate, Kind};
use super::ledger::{Acknowledged, Votes};
use crate::console::people::{self, ADA};
use crate::console::site::Site;
use crate::console::visitor::{Visitor, argument, encode, text};
use crate::row::Row;

/// Approvals that a call needs.
const COUNT: usize = 2;

/// States of an ended task.
const ENDED: [&str; 4] = ["completed", "failed", "cancelled", "expired"];

/// The calls of a campaign, and how it went.
pub(super) struct Outcome {
    pub(super) calls: Vec<Call>,
    pub(super) kills: usize,
    /// Kills of the point and kind with the fewest.
    pub(super) least: usize,
    /// Announced requests without a response.
    pub(super) lost: usize,
    pub(super) revisions: usize,
    pub(super) took: Duration,
}

/// The tasks of a campaign, as the store has them.
#[derive(Default)]
struct Stored {
    tasks: usize,
    /// Tasks whose last approval request has enough approvals, by the key of their call.
    approved: HashMap<String, usize>,
    /// Every vote in the store.
    votes: HashSet<Acknowledged>,
    /// Ended tasks by the number of `ended` events in the audit log: none, one, several.
    endings: [usize; 3],
    /// Tasks that have not ended.
    open: usize,
}

/// The executions that should not have happened.
#[derive(Debug, Default, PartialEq, Eq)]
struct Excess {
    unapproved: usize,
    twice: usize,
    /// Executions of words that fewer people approved than needed.
    other_words: usize,
}

pub(super) fn rows(
    site: &Site,
    store: &str,
    outcome: &Outcome,
    votes: &Votes,
    (calls, kills): (usize, usize),
) -> Result<Vec<Row>> {
    let stored = Stored::read(&site.visitor(0, ADA.deciding)?)?;
    let record = site.folder().join("record").display().to_string();
    let executions = site.executions.count()?;
    let excess = excess(&executions, &record, &stored.approved, votes);
    let lost = votes.acknowledged.iter().filter(|vote| !stored.votes.contains(*vote)).count();
    let missing = outcome.calls.iter().filter(|call| call.ending == Ending::Missing);
    let first = missing.clone().next().map(|call| format!("; first: {} {}", call.key, call.last));
    let missing = missing.count();
    let [none, one, several] = stored.endings;
    let case = |what: &str| format!("gated calls, {store}: {what}");
    let by_kind: Vec<String> = Kind::ALL
        .map(|kind| {
            let count = outcome.calls.iter().filter(|call| call.kind == kind).count();
            format!("{count} {}", kind.name())
        })
        .to_vec();
    let figure = format!(
        "{} calls ({}) in {} s, {} definitions, {} kills timed around writes, at least {} of each point and kind, {} lost responses",
        outcome.calls.len(),
        by_kind.join(", "),
        outcome.took.as_secs(),
        outcome.revisions,
        outcome.kills,
        outcome.least,
        outcome.lost,
    );
    let is_large = outcome.calls.len() >= calls && outcome.least >= kills;
    let bar = format!("≥ {calls} calls, ≥ {kills} kills of each point and kind");
    let mut rows = vec![Row::new(case("calls and kills"), figure, bar, is_large)];
    let Excess { unapproved, twice, other_words } = excess;
    let runs: usize = executions.values().sum();
    let figure = format!(
        "{runs} runs: {unapproved} unapproved, {twice} twice, {other_words} with other arguments or another definition"
    );
    let is_met = unapproved + twice + other_words == 0 && runs > 0;
    rows.push(Row::new(case("runs"), figure, "0 of each", is_met));
    let figure = format!("{lost} of {} lost", votes.acknowledged.len());
    let is_met = lost == 0 && !votes.acknowledged.is_empty();
    rows.push(Row::new(case("acknowledged votes"), figure, "0 lost", is_met));
    let figure = format!("{missing} calls without an ending{}", first.unwrap_or_default());
    let wrong = outcome.calls.iter().filter(|call| is_wrong(call.fate, call.ending)).count();
    let figure = format!("{figure}, {wrong} with the result of a call that was not approved");
    rows.push(Row::new(case("endings of clients"), figure, "0", missing + wrong == 0));
    let figure = format!(
        "{} tasks: {one} with one ending, {none} without, {several} with several, {} open",
        stored.tasks, stored.open
    );
    let is_met = none + several + stored.open == 0;
    rows.push(Row::new(case("endings in the audit log"), figure, "one for each task", is_met));
    Ok(rows)
}

/// Whether a client got a result although people did not approve its call.
fn is_wrong(fate: Fate, ending: Ending) -> bool {
    fate != Fate::Approve && ending == Ending::Result
}

/// Compares the executions with the approvals. A line of the file has the words of a command but
/// the first; the value of an argument contains spaces.
fn excess(
    executions: &HashMap<String, usize>,
    record: &str,
    approved: &HashMap<String, usize>,
    votes: &Votes,
) -> Excess {
    let mut excess = Excess::default();
    let mut runs: HashMap<&str, usize> = HashMap::new();
    for (line, count) in executions {
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        *runs.entry(key).or_insert(0) += count;
        let (value, revision) = rest.rsplit_once(' ').unwrap_or((rest, ""));
        let words = [record, key, value, revision].map(str::to_owned);
        if votes.approvals(&words) < COUNT {
            excess.other_words += count;
        }
    }
    for (key, count) in runs {
        match approved.get(key).copied().unwrap_or(0) {
            0 => excess.unapproved += count,
            approved => excess.twice += count.saturating_sub(approved),
        }
    }
    excess
}

impl Stored {
    /// Reads all tasks with their votes and audit events.
    fn read(operator: &Visitor) -> Result<Self> {
        let mut stored = Self::default();
        let mut next = String::new();
        loop {
            let page = operator.read(&format!("tasks?limit=200{next}"))?;
            for task in page["tasks"].as_array().context("the list has no tasks")? {
                stored.add(operator, task)?;
            }
            match page["next"].as_str() {
                Some(cursor) => next = format!("&after={}", encode(cursor)),
                None => return Ok(stored),
            }
        }
    }

    fn add(&mut self, operator: &Visitor, task: &Value) -> Result<()> {
        let id = text(&task["id"]);
        self.tasks += 1;
        self.add_votes(operator, id)?;
        if !ENDED.contains(&text(&task["state"])) {
            self.open += 1;
            return Ok(());
        }
        let audit = operator.read(&format!("tasks/{id}/audit"))?;
        let events = audit["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        // The commit that ends a task writes this event. Others follow in the background.
        let ended = events.iter().filter(|event| event["action"] == "ended");
        self.endings[ended.count().min(2)] += 1;
        Ok(())
    }

    /// Reads every approval request of a task. The last one decides.
    fn add_votes(&mut self, operator: &Visitor, task: &str) -> Result<()> {
        let detail = operator.read(&format!("tasks/{task}"))?;
        let requests = detail["inputs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names = requests.iter().map(|request| text(&request["key"]));
        let mut last: Option<(String, usize)> = None;
        for name in names.filter(|name| name.starts_with("#approval")) {
            let request = operator.read(&format!("inputs/{task}/{}", encode(name)))?;
            let votes = request["votes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let accepts = votes.iter().filter(|vote| vote["action"] == "accept").count();
            self.votes.extend(votes.iter().filter_map(|vote| {
                let name_of = text(&vote["person"]);
                let person = people::ALL.into_iter().find(|person| person.name == name_of)?;
                Some(Acknowledged {
                    task: task.to_owned(),
                    request: name.to_owned(),
                    person: person.name,
                    accepts: vote["action"] == "accept",
                })
            }));
            last = Some((argument(&request, "key").to_owned(), accepts));
        }
        if let Some((key, _)) = last.filter(|(_, accepts)| *accepts >= COUNT) {
            *self.approved.entry(key).or_insert(0) += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::ledger::Ledger;
    use super::{Excess, excess};

    fn check(line: &str, count: usize, approved: usize, expected: &Excess) {
        let ledger = Ledger::default();
        let words = ["./record", "k-1", "a b", "revision-1"].map(str::to_owned).to_vec();
        ledger.approves(words.clone(), "ada");
        ledger.approves(words, "ben");
        let executions = HashMap::from([(line.to_owned(), count)]);
        let approved = HashMap::from([("k-1".to_owned(), approved)]);
        let found = excess(&executions, "./record", &approved, &ledger.into_votes());
        assert_eq!(&found, expected, "{line}");
    }

    #[test]
    fn execution_is_compared_with_approved_words_and_tasks() {
        check("k-1 a b revision-1", 1, 1, &Excess::default());
        check("k-1 a b revision-1", 2, 1, &Excess { twice: 1, ..Excess::default() });
        check("k-1 a b revision-2", 1, 1, &Excess { other_words: 1, ..Excess::default() });
        check("k-1 c revision-1", 1, 1, &Excess { other_words: 1, ..Excess::default() });
        check("k-1 a b revision-1", 1, 0, &Excess { unapproved: 1, ..Excess::default() });
    }
}
