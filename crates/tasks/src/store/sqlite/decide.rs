//! Votes of people, and the decisions that they make.

use rusqlite::Row;

use super::{
    audit,
    batch::Batch,
    clock::{from_column, to_column},
    column::{audience, count, from_json, request_state},
    delivery::Subject,
    error::SqliteError,
    input_request::Closed,
    respond,
    statement::{one, run},
    vote::{self, votes},
};
use crate::{
    JournalEntry,
    store::{
        Binding, ChangeSource, Decision, DecisionOutcome, TaskId, UnixMillis, ballot::Ballot,
        budget,
    },
};

pub(super) const BALLOT: &str = concat!(
    "SELECT number, principal, person, phase, indexed, notify, journal_key, state,
     input_request.due_at, audience, people, binding, in_inbox, ",
    votes!(),
    " FROM task JOIN input_request ON input_request.task = task.number
     WHERE task.id = ?1 AND wire_key = ?2 AND is_external = 0"
);
pub(super) const SETTLE: &str =
    "UPDATE input_request SET state = 1, settled_at = ?3 WHERE task = ?1 AND wire_key = ?2";

/// Records a vote, and the response if the vote settles the request. The transaction orders
/// concurrent votes, cancellations and ends of the task.
pub(super) fn decide(
    batch: &mut Batch<'_>,
    task: &TaskId,
    name: &str,
    decision: &Decision,
) -> Result<DecisionOutcome, SqliteError> {
    let found = one(batch.connection, BALLOT, (task.as_str(), name), BallotRow::read)?;
    let Some(row) = found else { return Ok(DecisionOutcome::Unknown) };
    let now = batch.now();
    let outcome = row.outcome(decision, from_column(now))?;
    if !outcome.is_recorded() {
        return Ok(outcome);
    }
    let settles = outcome == DecisionOutcome::Settled;
    let vote = decision.to_vote(from_column(now));
    let vote_bytes = count(vote.as_ref().map_or(0, budget::vote));
    let response = settles.then(|| JournalEntry::Answer(decision.response.clone()));
    let key = row.journal_key.as_str();
    let response_bytes = response.map_or(0, |response| budget::journal_entry(key, &response));
    let growth = vote_bytes + count(response_bytes);
    let left = to_column(decision.max_bytes) - batch.stored_bytes(&row.principal)?;
    if growth > 0 && growth > left {
        return Ok(DecisionOutcome::BytesExceeded);
    }
    if let Some(vote) = &vote {
        vote::insert(batch.connection, (row.number, name), vote)?;
        batch.count_bytes(&row.principal, vote_bytes)?;
    }
    if settles {
        row.settle(batch, task, (name, decision), now)?;
    }
    if let Some((event, retention)) = &decision.audit {
        audit::insert(batch, std::slice::from_ref(event), *retention)?;
    }
    batch.changed(row.number, task, ChangeSource::Other);
    Ok(outcome)
}

/// Row of an input request and its task at the moment of a vote.
struct BallotRow {
    number: i64,
    principal: String,
    person: Option<String>,
    phase: i64,
    is_indexed: bool,
    notify: Option<String>,
    journal_key: String,
    state: i64,
    due: Option<i64>,
    audience: i16,
    people: Option<String>,
    binding: Option<String>,
    in_inbox: bool,
    votes: String,
}

impl BallotRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get(0)?,
            principal: row.get(1)?,
            person: row.get(2)?,
            phase: row.get(3)?,
            is_indexed: row.get(4)?,
            notify: row.get(5)?,
            journal_key: row.get(6)?,
            state: row.get(7)?,
            due: row.get(8)?,
            audience: row.get(9)?,
            people: row.get(10)?,
            binding: row.get(11)?,
            in_inbox: row.get(12)?,
            votes: row.get(13)?,
        })
    }

    fn outcome(
        &self,
        decision: &Decision,
        now: UnixMillis,
    ) -> Result<DecisionOutcome, SqliteError> {
        let audience = audience(self.audience, self.people.as_deref())?;
        let binding = self.binding.as_deref().map(|binding| from_json("binding", binding));
        let (binding, votes): (Option<Binding>, _) =
            (binding.transpose()?, vote::read(&self.votes)?);
        let ballot = Ballot {
            person: self.person.as_deref(),
            audience: &audience,
            binding: binding.as_ref(),
            state: request_state(self.state),
            due: self.due.map(from_column),
            votes: &votes,
        };
        Ok(ballot.outcome(decision, now))
    }

    /// Stores the response, and queues a parked task.
    fn settle(
        &self,
        batch: &mut Batch<'_>,
        task: &TaskId,
        (name, decision): (&str, &Decision),
        now: i64,
    ) -> Result<(), SqliteError> {
        let Self { number, principal, phase, is_indexed, notify, journal_key, .. } = self;
        run(batch.connection, SETTLE, (number, name, now))?;
        let (audience, in_inbox) = (self.audience, self.in_inbox);
        let subject = Subject { number: *number, task, notify: notify.as_deref() };
        Closed { name: name.to_owned(), audience, in_inbox }.announce(batch, &subject)?;
        let response = (journal_key.as_str(), &decision.response);
        let bytes = respond::record(batch, *number, *is_indexed, response)?;
        batch.count_bytes(principal, count(bytes))?;
        respond::wake(batch, *number, *phase, 1)
    }
}
