//! Votes of people.

use tokio_postgres::Row;

use super::{
    clock::{millis, to_column},
    column::{count, get, owned, to_json},
    error::PostgresError,
    inbox::Observed,
    state::Shared,
    statement::{Call, CallResult, values},
};
use crate::{
    JournalEntry,
    store::{
        AuditEvent, ChangeSource, Decision, DecisionOutcome, StoreError, TaskId, ballot::Ballot,
    },
};

pub(super) const RECORD: &str =
    "SELECT record_vote($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";

/// Returns the outcome of a decision on an observed input request.
pub(super) fn outcome(observed: &Observed, decision: &Decision) -> DecisionOutcome {
    let item = &observed.detail.item;
    let ballot = Ballot {
        person: item.person.as_deref(),
        audience: &item.audience,
        binding: item.binding.as_ref(),
        state: item.state,
        due: item.due,
        votes: &observed.detail.votes,
    };
    ballot.outcome(decision, observed.now)
}

/// Returns the statement that records a vote, unless the request has changed since it was observed.
pub(super) fn record(
    shared: &Shared,
    observed: &Observed,
    decision: &Decision,
    settles: bool,
) -> Result<Call, StoreError> {
    let item = &observed.detail.item;
    let optional = |text: Option<&String>| text.map(|text| owned(text));
    let body = settles.then(|| to_json(&JournalEntry::Answer(decision.response.clone())));
    let audit = decision.audit.as_ref().map(|(event, retention)| {
        let AuditEvent { task, principal, action, reason, worker } = event;
        let texts = [Some(task), Some(principal), Some(action), reason.as_ref(), worker.as_ref()];
        (texts.map(optional).to_vec(), millis(*retention))
    });
    let (event, retention) = audit.unzip();
    Ok(Call::new(
        RECORD,
        values![
            owned(item.task.as_str()),
            owned(&item.name),
            observed.ordinal,
            count(observed.detail.votes.len()),
            optional(decision.person.as_ref()),
            decision.accepts,
            optional(decision.reason.as_ref()),
            owned(&decision.channel),
            decision.saw_definition,
            body.transpose()?,
            to_column(decision.max_bytes),
            event,
            retention,
            shared.shift.get(),
        ],
    ))
}

/// Reads the outcome of a vote; `None` if the request has changed since it was observed.
pub(super) fn read(
    rows: &[Row],
    task: &TaskId,
    outcome: DecisionOutcome,
) -> Result<CallResult<Option<DecisionOutcome>>, PostgresError> {
    let row = rows.first().ok_or(PostgresError::Silent)?;
    Ok(match get::<i32>(row, 0)? {
        0 => CallResult::new(None),
        1 => CallResult::changing(Some(outcome), task, ChangeSource::Other),
        _ => CallResult::new(Some(DecisionOutcome::BytesExceeded)),
    })
}
