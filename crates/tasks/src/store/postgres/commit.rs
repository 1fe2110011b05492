//! Commits of workers. The most frequent kinds are combined for many tasks in one statement. All
//! others are committed one by one.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use tokio::sync::oneshot;
use tokio_postgres::Row;

use super::{
    clock::{millis, to_column},
    column::{array, count, get, owned, text, to_json},
    error::PostgresError,
    result_part,
    state::Shared,
    statement::{Call, Query, values},
};
use crate::{
    JournalEntry,
    store::{
        ChangeSource, Changes, Charge, Lease, StoreError, TaskId, Transition,
        budget::{input_request, outcome_need, result_parts, segment},
    },
};

pub(super) const WRITE: &str =
    "SELECT commit_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
     $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28)";
/// Commits the changes like `WRITE`, then quarantines the task.
pub(super) const KEEP: &str =
    "SELECT CASE WHEN commit_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
     $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28)
     THEN quarantine_task($1, $21, $22, $27) ELSE false END";
pub(super) const RECORD: &str = "SELECT record_steps($1, $2, $3, $4, $5, $6, $7, $8, $9,
     $10)";
pub(super) const END: &str = "SELECT end_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
pub(super) const WRITE_ALL: &str =
    "SELECT commit_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
     $14, $15, $16)";
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

/// A journal entry, in columns.
struct Recorded {
    key: String,
    answer: bool,
    body: String,
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
            status_message: message,
            progress,
            result_parts,
            charge,
        } = changes;
        let is_plain = segments.is_empty()
            && asked.is_empty()
            && withdrawn.is_empty()
            && forgotten.is_empty()
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
        let (message, progress) = (self.message.clone(), self.progress.clone());
        let changes = Changes { charge: self.charge.clone(), ..Changes::default() };
        statement(&self.lease, message, progress, &self.entries, &changes, next, shared)
    }
}

fn recorded(entries: &[(String, JournalEntry)]) -> Result<Vec<Recorded>, StoreError> {
    let mut all = Vec::with_capacity(entries.len());
    for (key, entry) in entries {
        let answer = matches!(entry, JournalEntry::Answer(_));
        all.push(Recorded { key: owned(key), answer, body: to_json(entry)? });
    }
    Ok(all)
}

fn bytes_of(entries: &[Recorded]) -> usize {
    entries.iter().map(|entry| entry.key.len() + entry.body.len()).sum()
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

/// Transition of a task, in columns.
enum Next {
    GoOn,
    Park { due: Option<i64>, seen: i64 },
    Keep { outcome: String, hold: i64 },
    End { outcome: String, kind: i16, retention: i64, unfinished: bool },
}

impl Next {
    /// Returns the statement that writes it.
    fn sql(&self, has_parts: bool) -> &'static str {
        match self {
            Self::Keep { .. } => KEEP,
            Self::End { .. } if has_parts => result_part::WRITE,
            _ => WRITE,
        }
    }

    /// Returns its columns: the transition, when it is due, the number of seen responses, the
    /// outcome and the retention.
    fn into_columns(self) -> (i32, Option<i64>, Option<i64>, Option<String>, Option<i64>) {
        match self {
            Self::GoOn => (0, None, None, None, None),
            Self::Park { due, seen } => (1, due, Some(seen), None, None),
            Self::Keep { outcome, hold } => (0, None, None, Some(outcome), Some(hold)),
            Self::End { outcome, retention, unfinished, .. } => {
                (2 + i32::from(unfinished), None, None, Some(outcome), Some(retention))
            }
        }
    }
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
    statement(lease, message, progress, &recorded(&changes.entries)?, changes, next, shared)
}

/// Returns the statement for one task. `changes` supplies the parts that are not yet in columns.
fn statement(
    lease: &Lease,
    message: Option<String>,
    progress: Option<String>,
    entries: &[Recorded],
    changes: &Changes,
    next: Next,
    shared: &Shared,
) -> Result<Call, StoreError> {
    let segments = &changes.segments;
    // The first request with a wire key counts, because the statement requires unique keys.
    let mut seen_names = HashSet::new();
    let asked: Vec<_> =
        changes.input_requests.iter().filter(|asked| seen_names.insert(&asked.name)).collect();
    let requests = asked.iter().map(|asked| asked.request.as_ref().map(to_json).transpose());
    let requests = requests.collect::<Result<Vec<_>, _>>()?;
    let parts = &changes.result_parts;
    let sql = next.sql(!parts.is_empty());
    let kind = match &next {
        Next::End { kind, .. } => Some(*kind),
        _ => None,
    };
    let ends = match &next {
        Next::End { outcome, .. } => outcome_need(outcome.len()) + result_parts(parts),
        _ => 0,
    };
    let emitted: usize = segments.iter().map(segment).sum();
    let asking: usize = asked.iter().map(|asked| input_request(asked)).sum();
    let most = bytes_of(entries) + emitted + asking + ends;
    let max_bytes = changes.charge.as_ref().map(|charge| to_column(charge.max_bytes));
    let (what, due, seen, outcome, retention) = next.into_columns();
    let names = |names: &[String]| array(names.iter().map(|name| owned(name)).collect());
    let mut call = Call::new(
        sql,
        values![
            owned(lease.task.as_str()),
            owned(lease.worker.as_str()),
            to_column(lease.epoch),
            message,
            progress,
            names(&changes.invalidated),
            array(entries.iter().map(|entry| entry.key.clone()).collect()),
            array(entries.iter().map(|entry| entry.answer).collect()),
            array(entries.iter().map(|entry| entry.body.clone()).collect()),
            array(segments.iter().map(|segment| owned(&segment.scope)).collect()),
            array(segments.iter().map(|segment| i64::from(segment.ordinal)).collect()),
            array(segments.iter().map(|segment| segment.block.get().to_owned()).collect()),
            array(asked.iter().map(|asked| owned(&asked.name)).collect()),
            array(asked.iter().map(|asked| owned(&asked.key)).collect()),
            array(asked.iter().map(|asked| asked.due.map(to_column)).collect()),
            array(requests),
            names(&changes.withdrawn),
            what,
            due,
            seen,
            outcome,
            retention,
            kind,
            count(ends),
            count(most),
            max_bytes,
            shared.shift.get(),
            array(asked.iter().map(|asked| asked.audience.column()).collect()),
        ],
    );
    if sql == result_part::WRITE {
        call.values.extend(result_part::columns(parts));
    }
    Ok(call)
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
            entries().map(|(_, entry)| entry.answer).collect::<Vec<_>>(),
            entries().map(|(_, entry)| entry.body.as_str()).collect::<Vec<_>>(),
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
            array(entries().map(|(_, entry)| entry.answer).collect()),
            array(entries().map(|(_, entry)| entry.body.as_str()).collect()),
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
