//! Commits of workers that are combined for many tasks in one statement. They are the most frequent
//! ones. `commit_alone` executes all others.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use tokio::sync::oneshot;
use tokio_postgres::Row;

use super::{
    clock::{millis, to_column},
    column::{array, count, get, owned, text, to_json},
    commit_alone::{Alone, statement},
    error::PostgresError,
    journal::{Recorded, bytes_of, recorded},
    state::Shared,
    statement::{Call, Query, values},
    transition::Next,
};
use crate::store::{
    ChangeSource, Changes, Charge, Lease, StoreError, TaskId, Transition, budget::outcome_need,
};

pub(super) const RECORD: &str = "SELECT record_steps($1, $2, $3, $4, $5, $6, $7, $8, $9,
     $10, $11)";
pub(super) const END: &str = "SELECT end_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
pub(super) const WRITE_ALL: &str =
    "SELECT commit_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
     $14, $15, $16, $17)";
pub(super) const LOCK: &str = "SELECT FROM task WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE";

/// A commit that can be combined with others.
pub(super) struct Writing {
    lease: Lease,
    message: Option<String>,
    progress: Option<String>,
    entries: Vec<Recorded>,
    end: Option<End>,
    charge: Option<Charge>,
}

/// Outcome of a task that ends without a cleanup, in columns.
struct End {
    outcome: String,
    kind: i16,
    retention: i64,
}

/// A commit that can be combined with others, and the caller that waits for it.
pub(super) struct QueuedWrite {
    pub(super) writing: Writing,
    pub(super) answer: oneshot::Sender<Result<(), StoreError>>,
}

/// Statement for a combined commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteKind {
    /// Only records steps.
    Record,
    /// Only ends the task.
    End,
    /// Any changes that can be combined.
    Any,
}

impl Writing {
    /// Creates a combinable commit; `None` if these changes cannot be combined.
    pub(super) fn of(
        lease: &Lease,
        changes: &Changes,
        then: &Transition,
    ) -> Result<Option<Self>, StoreError> {
        let Changes {
            entries,
            segments,
            input_requests: asked,
            withdrawn,
            invalidated: forgotten,
            tags,
            status_message: message,
            progress,
            result_parts,
            charge,
        } = changes;
        let is_plain = segments.is_empty()
            && asked.is_empty()
            && withdrawn.is_empty()
            && forgotten.is_empty()
            && tags.is_empty()
            && result_parts.is_empty();
        let end = match then {
            Transition::Continue => None,
            Transition::End { outcome, retention } if !outcome.needs_cleanup() => {
                let (kind, retention) = (outcome.kind().column(), millis(*retention));
                Some(End { outcome: to_json(outcome)?, kind, retention })
            }
            Transition::End { .. } | Transition::Park { .. } | Transition::Quarantine { .. } => {
                return Ok(None);
            }
        };
        if !is_plain {
            return Ok(None);
        }
        Ok(Some(Self {
            lease: lease.clone(),
            message: message.as_deref().map(owned),
            progress: progress.as_ref().map(|progress| progress.get().to_owned()),
            entries: recorded(entries)?,
            end,
            charge: charge.clone(),
        }))
    }

    pub(super) fn task(&self) -> &TaskId {
        &self.lease.task
    }

    pub(super) fn kind(&self) -> WriteKind {
        let says = self.message.is_some() || self.progress.is_some();
        match &self.end {
            None if !says && !self.entries.is_empty() => WriteKind::Record,
            Some(_) if !says && self.entries.is_empty() => WriteKind::End,
            _ => WriteKind::Any,
        }
    }

    /// Returns the number of bytes that the commit stores at most.
    fn need(&self) -> usize {
        let end = self.end.as_ref().map_or(0, |end| outcome_need(end.outcome.len()));
        bytes_of(&self.entries) + end
    }

    /// Returns the statement that executes this commit alone.
    pub(super) fn alone(&self, shared: &Shared) -> Result<Call, StoreError> {
        let next = match &self.end {
            None => Next::GoOn,
            Some(end) => Next::End {
                outcome: end.outcome.clone(),
                kind: end.kind,
                retention: end.retention,
                unfinished: false,
            },
        };
        let changes = Changes { charge: self.charge.clone(), ..Changes::default() };
        let alone = Alone {
            lease: &self.lease,
            message: self.message.clone(),
            progress: self.progress.clone(),
            entries: &self.entries,
            changes: &changes,
        };
        statement(alone, next, shared)
    }
}

/// Charged principals, their new bytes and their byte limits. Each principal occurs once.
type Charged<'a> = (Option<Vec<Cow<'a, str>>>, Option<Vec<i64>>, Option<Vec<i64>>);

fn charged<'a>(each: impl Iterator<Item = &'a Writing>) -> Charged<'a> {
    let mut all: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for writing in each {
        if let (Some(Charge { principal, max_bytes }), need @ 1..) =
            (&writing.charge, writing.need())
        {
            let (bytes, most) = all.entry(principal).or_insert((0, *max_bytes));
            *bytes += need;
            *most = (*most).min(*max_bytes);
        }
    }
    (
        array(all.keys().map(|principal| text(principal)).collect()),
        array(all.values().map(|(bytes, _)| count(*bytes)).collect()),
        array(all.values().map(|(_, most)| to_column(*most)).collect()),
    )
}

impl QueuedWrite {
    /// Notifies listeners of a visible change, then replies to the caller.
    pub(super) fn answer(
        self,
        written: Result<(), StoreError>,
        place: &str,
        tell: impl FnOnce(TaskId, ChangeSource),
    ) {
        let written = written.map_err(|error| match place {
            "" => error,
            place => PostgresError::Store(error).with(place),
        });
        let Writing { lease, message, progress, end, .. } = self.writing;
        // Recorded steps are not visible to readers.
        let is_seen = message.is_some() || progress.is_some() || end.is_some();
        if written.is_ok() && is_seen {
            // Before the reply, because the worker may no longer have the task afterwards.
            tell(lease.task, ChangeSource::Worker);
        }
        // The caller may have been dropped. The commit has taken effect in any case.
        let _ = self.answer.send(written);
    }
}

/// Returns the statement that can execute all of these commits.
fn common_way(waiting: &[Box<QueuedWrite>]) -> WriteKind {
    let same = |one: &QueuedWrite, other: &QueuedWrite| {
        one.writing.kind() == other.writing.kind()
            && one.writing.lease.worker == other.writing.lease.worker
    };
    match waiting {
        [first, rest @ ..] if rest.iter().all(|other| same(first, other)) => first.writing.kind(),
        _ => WriteKind::Any,
    }
}

/// Returns the statement that executes these commits. Each belongs to another task, in the order of
/// task IDs.
pub(super) fn together<'a>(waiting: &'a [Box<QueuedWrite>], shared: &Shared) -> Query<'a> {
    let each = || waiting.iter().map(|waiting| &waiting.writing);
    match common_way(waiting) {
        WriteKind::Record => record(each, shared),
        WriteKind::End => end(each, shared),
        WriteKind::Any => any(each, shared),
    }
}

/// Returns the worker that has all of these tasks.
fn worker<'a>(mut each: impl Iterator<Item = &'a Writing>) -> Cow<'a, str> {
    text(each.next().map_or("", |writing| writing.lease.worker.as_str()))
}

/// Returns a statement with one row per entry.
fn record<'a, I>(each: impl Fn() -> I, shared: &Shared) -> Query<'a>
where
    I: Iterator<Item = &'a Writing>,
{
    let entries =
        || each().flat_map(|writing| writing.entries.iter().map(move |entry| (writing, entry)));
    let (charged, bytes, max_bytes) = charged(each());
    Query::new(
        RECORD,
        values![
            worker(each()),
            entries().map(|(writing, _)| text(writing.task().as_str())).collect::<Vec<_>>(),
            entries().map(|(writing, _)| to_column(writing.lease.epoch)).collect::<Vec<_>>(),
            entries().map(|(_, entry)| entry.key.as_str()).collect::<Vec<_>>(),
            entries().map(|(_, entry)| entry.is_input).collect::<Vec<_>>(),
            entries().map(|(_, entry)| entry.body.as_str()).collect::<Vec<_>>(),
            durations(&each),
            charged,
            bytes,
            max_bytes,
            shared.shift.get(),
        ],
    )
}

/// Returns a statement with one row per task.
fn end<'a, I>(each: impl Fn() -> I, shared: &Shared) -> Query<'a>
where
    I: Iterator<Item = &'a Writing>,
{
    let ends = || each().map(|writing| writing.end.as_ref());
    let (charged, bytes, max_bytes) = charged(each());
    Query::new(
        END,
        values![
            worker(each()),
            each().map(|writing| text(writing.task().as_str())).collect::<Vec<_>>(),
            each().map(|writing| to_column(writing.lease.epoch)).collect::<Vec<_>>(),
            ends().map(|end| Some(end?.outcome.as_str())).collect::<Vec<_>>(),
            ends().map(|end| Some(end?.kind)).collect::<Vec<_>>(),
            ends().map(|end| Some(end?.retention)).collect::<Vec<_>>(),
            charged,
            bytes,
            max_bytes,
            shared.shift.get(),
        ],
    )
}

/// Returns a statement with one row per task, and one per entry.
fn any<'a, I>(each: impl Fn() -> I, shared: &Shared) -> Query<'a>
where
    I: Iterator<Item = &'a Writing>,
{
    let ends = || each().map(|writing| writing.end.as_ref());
    let entries = || {
        (1..).zip(each()).flat_map(|(place, writing): (i64, &'a Writing)| {
            writing.entries.iter().map(move |entry| (place, entry))
        })
    };
    let (charged, bytes, max_bytes) = charged(each());
    Query::new(
        WRITE_ALL,
        values![
            each().map(|writing| text(writing.task().as_str())).collect::<Vec<_>>(),
            each().map(|writing| text(writing.lease.worker.as_str())).collect::<Vec<_>>(),
            each().map(|writing| to_column(writing.lease.epoch)).collect::<Vec<_>>(),
            each().map(|writing| writing.message.as_deref()).collect::<Vec<_>>(),
            each().map(|writing| writing.progress.as_deref()).collect::<Vec<_>>(),
            ends().map(|end| Some(end?.outcome.as_str())).collect::<Vec<_>>(),
            ends().map(|end| Some(end?.kind)).collect::<Vec<_>>(),
            ends().map(|end| Some(end?.retention)).collect::<Vec<_>>(),
            array(entries().map(|(place, _)| place).collect()),
            array(entries().map(|(_, entry)| entry.key.as_str()).collect()),
            array(entries().map(|(_, entry)| entry.is_input).collect()),
            array(entries().map(|(_, entry)| entry.body.as_str()).collect()),
            durations(&each),
            charged,
            bytes,
            max_bytes,
            shared.shift.get(),
        ],
    )
}

/// Reads the outcome of each combined commit. A commit with a lost lease has written nothing. A
/// commit whose principal may be over its byte limit must be executed alone.
pub(super) fn read_together(
    waiting: &[Box<QueuedWrite>],
    rows: &[Row],
) -> Vec<Result<(), StoreError>> {
    let told = rows.first().map_or(Err(PostgresError::Silent), |row| get(row, 0));
    let told: HashSet<i64> = match told {
        // NULL means that all were written.
        Ok(None) => return waiting.iter().map(|_| Ok(())).collect(),
        Ok(Some(told)) => Vec::into_iter(told).collect(),
        Err(problem) => return waiting.iter().map(|_| Err(problem.with(""))).collect(),
    };
    let refused = if told.contains(&0) { StoreError::BytesExceeded } else { StoreError::LeaseLost };
    let way = common_way(waiting);
    let mut place = 1;
    let each = waiting.iter().map(|waiting| {
        let is_told = told.contains(&place);
        // A recorded step has one row per entry.
        place += if way == WriteKind::Record { count(waiting.writing.entries.len()) } else { 1 };
        // `record_steps` and `end_tasks` return the written rows. `commit_tasks` returns the
        // rejected ones.
        let is_written = is_told == (way != WriteKind::Any);
        is_written.then_some(()).ok_or_else(|| refused.clone())
    });
    each.collect()
}

/// Returns the durations of all entries; `None` if no entry has one.
fn durations<'a, I>(each: impl Fn() -> I) -> Option<Vec<Option<i64>>>
where
    I: Iterator<Item = &'a Writing>,
{
    let durations =
        || each().flat_map(|writing| writing.entries.iter().map(|entry| entry.duration));
    durations().any(|duration| duration.is_some()).then(|| durations().collect())
}

/// Reads the outcome of a commit that was executed alone.
pub(super) fn read(rows: &[Row]) -> Result<(), StoreError> {
    match rows.first().map(|row| get::<Option<bool>>(row, 0)).transpose() {
        Ok(Some(Some(true))) => Ok(()),
        Ok(Some(None)) => Err(StoreError::BytesExceeded),
        Ok(_) => Err(StoreError::LeaseLost),
        Err(problem) => Err(problem.with("")),
    }
}

/// Returns a statement that locks these tasks in the order of their IDs.
pub(super) fn lock(tasks: Vec<String>) -> Call {
    Call::new(LOCK, values![tasks])
}
