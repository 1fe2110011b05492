//! Commits of workers that are executed alone: any changes of one task.

use super::{
    clock::{millis, to_column},
    column::{array, count, owned, to_json},
    input_request::Inputs,
    journal::{Recorded, bytes_of, recorded},
    result_part,
    state::Shared,
    statement::{Call, values},
    transition::Next,
};
use crate::store::{
    Changes, Lease, StoreError, Transition,
    budget::{self, outcome_need, result_parts, segment},
};

/// Changes of one task. `changes` supplies the parts that are not in columns yet.
pub(super) struct Alone<'a> {
    pub(super) lease: &'a Lease,
    pub(super) message: Option<String>,
    pub(super) progress: Option<String>,
    pub(super) entries: &'a [Recorded],
    pub(super) changes: &'a Changes,
}

/// Returns the statement that commits any changes of one task.
pub(super) fn alone(
    lease: &Lease,
    changes: &Changes,
    then: &Transition,
    shared: &Shared,
) -> Result<Call, StoreError> {
    let next = match then {
        Transition::Continue => Next::GoOn,
        Transition::Park { due_at: due, responses_seen: seen } => {
            Next::Park { due: due.map(to_column), seen: count(*seen) }
        }
        Transition::Quarantine { outcome, ttl } => {
            Next::Keep { outcome: to_json(outcome)?, hold: millis(*ttl) }
        }
        Transition::End { outcome, retention } => Next::End {
            outcome: to_json(outcome)?,
            kind: outcome.kind().column(),
            retention: millis(*retention),
            unfinished: outcome.needs_cleanup(),
        },
    };
    let message = changes.status_message.as_deref().map(owned);
    let progress = changes.progress.as_ref().map(|progress| progress.get().to_owned());
    let entries = &recorded(&changes.entries)?;
    statement(Alone { lease, message, progress, entries, changes }, next, shared)
}

/// Returns the statement for one task.
pub(super) fn statement(alone: Alone<'_>, next: Next, shared: &Shared) -> Result<Call, StoreError> {
    let Alone { lease, message, progress, entries, changes } = alone;
    let (segments, parts) = (&changes.segments, &changes.result_parts);
    let inputs = Inputs::new(&changes.input_requests)?;
    let sql = next.sql(!parts.is_empty());
    let (kind, ends) = match &next {
        Next::End { kind, outcome, .. } => {
            (Some(*kind), outcome_need(outcome.len()) + result_parts(parts))
        }
        _ => (None, 0),
    };
    let emitted: usize = segments.iter().map(segment).sum();
    let asked = inputs.as_ref().map_or(0, |inputs| inputs.bytes);
    let tags = text_array(&changes.tags);
    let tagged = budget::tags(tags.iter().flatten().map(String::as_str));
    let most = bytes_of(entries) + emitted + asked + tagged + ends;
    let is_measured = entries.iter().any(|entry| entry.duration.is_some());
    let (what, due, seen, outcome, retention) = next.into_columns();
    let mut call = Call::new(
        sql,
        values![
            owned(lease.task.as_str()),
            owned(lease.worker.as_str()),
            to_column(lease.epoch),
            message,
            progress,
            text_array(&changes.invalidated),
            array(entries.iter().map(|entry| entry.key.clone()).collect()),
            array(entries.iter().map(|entry| entry.is_input).collect()),
            array(entries.iter().map(|entry| entry.body.clone()).collect()),
            is_measured.then(|| entries.iter().map(|entry| entry.duration).collect::<Vec<_>>()),
            array(segments.iter().map(|segment| owned(&segment.scope)).collect()),
            array(segments.iter().map(|segment| i64::from(segment.ordinal)).collect()),
            array(segments.iter().map(|segment| segment.block.get().to_owned()).collect()),
            inputs.map(|inputs| inputs.json),
            text_array(&changes.withdrawn),
            tags,
            what,
            due,
            seen,
            outcome,
            retention,
            kind,
            count(ends),
            count(most),
            changes.charge.as_ref().map(|charge| to_column(charge.max_bytes)),
            shared.shift.get(),
        ],
    );
    if sql == result_part::WRITE {
        call.values.extend(result_part::columns(parts));
    }
    Ok(call)
}

/// Converts texts to an array value.
fn text_array(texts: &[String]) -> Option<Vec<String>> {
    array(texts.iter().map(|text| owned(text)).collect())
}
