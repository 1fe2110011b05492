//! What workers write: what is most often written for many tasks in one statement, anything else task
//! by task.

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
    state::Shared,
    statement::{Call, Query, values},
};
use crate::{
    JournalEntry,
    store::{
        ChangeSource, Changes, Charge, Lease, StoreError, TaskId, Transition,
        budget::{input_request, outcome_need, segment},
    },
};

pub(super) const WRITE: &str =
    "SELECT commit_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
     $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)";
/// As `WRITE` of one that goes on, and then it is kept.
pub(super) const KEEP: &str =
    "SELECT CASE WHEN commit_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
     $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)
     THEN quarantine_task($1, $21, $22, $27) ELSE false END";
pub(super) const RECORD: &str = "SELECT record_steps($1, $2, $3, $4, $5, $6, $7, $8, $9,
     $10)";
pub(super) const END: &str = "SELECT end_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
pub(super) const WRITE_ALL: &str =
    "SELECT commit_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
     $14, $15, $16)";
pub(super) const LOCK: &str = "SELECT FROM task WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE";

/// What is to be written to a task, if it can be written together with others.
pub(super) struct Writing {
    lease: Lease,
    message: Option<String>,
    progress: Option<String>,
    entries: Vec<Recorded>,
    end: Option<End>,
    charge: Option<Charge>,
}

/// An entry of a journal, in columns.
struct Recorded {
    key: String,
    answer: bool,
    body: String,
}

/// How a task ends whose work is done, in columns.
struct End {
    outcome: String,
    kind: i16,
    retention: i64,
}

/// What can be written together with others, and who waits for it.
pub(super) struct QueuedWrite {
    pub(super) writing: Writing,
    pub(super) answer: oneshot::Sender<Result<(), StoreError>>,
}

/// How something is written for many tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteKind {
    /// It records steps, and nothing else.
    Record,
    /// It ends, and has nothing else to say.
    End,
    /// All that is written together can be written so.
    Any,
}

impl Writing {
    /// `None` if it cannot be written together with others.
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
            charge,
        } = changes;
        let is_plain =
            segments.is_empty() && asked.is_empty() && withdrawn.is_empty() && forgotten.is_empty();
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

    /// How many bytes it needs room for.
    fn need(&self) -> usize {
        let end = self.end.as_ref().map_or(0, |end| outcome_need(end.outcome.len()));
        bytes_of(&self.entries) + end
    }

    /// The statement that writes it by itself.
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

/// Those who are charged for what is written: who, how many bytes, and how many they may have. Each
/// stands there once.
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

/// What becomes of the task then, in columns.
enum Next {
    GoOn,
    Park { due: Option<i64>, seen: i64 },
    Keep { outcome: String, hold: i64 },
    End { outcome: String, kind: i16, retention: i64, unfinished: bool },
}

/// The statement that writes anything, by itself.
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

/// Of `changes`, what is not in columns yet.
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
    // The first of a name counts, and the database wants each once.
    let mut seen_names = HashSet::new();
    let asked: Vec<_> =
        changes.input_requests.iter().filter(|asked| seen_names.insert(&asked.name)).collect();
    let requests = asked.iter().map(|asked| asked.request.as_ref().map(to_json).transpose());
    let requests = requests.collect::<Result<Vec<_>, _>>()?;
    let sql = if matches!(next, Next::Keep { .. }) { KEEP } else { WRITE };
    let kind = match &next {
        Next::End { kind, .. } => Some(*kind),
        _ => None,
    };
    let ends = match &next {
        Next::End { outcome, .. } => outcome_need(outcome.len()),
        _ => 0,
    };
    let emitted: usize = segments.iter().map(segment).sum();
    let asking: usize = asked.iter().map(|asked| input_request(asked)).sum();
    let most = bytes_of(entries) + emitted + asking + ends;
    let max_bytes = changes.charge.as_ref().map(|charge| to_column(charge.max_bytes));
    let (what, due, seen, outcome, retention) = match next {
        Next::GoOn => (0, None, None, None, None),
        Next::Park { due, seen } => (1, due, Some(seen), None, None),
        Next::Keep { outcome, hold } => (0, None, None, Some(outcome), Some(hold)),
        Next::End { outcome, retention, unfinished, .. } => {
            (2 + i32::from(unfinished), None, None, Some(outcome), Some(retention))
        }
    };
    let names = |names: &[String]| array(names.iter().map(|name| owned(name)).collect());
    Ok(Call::new(
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
        ],
    ))
}

impl QueuedWrite {
    /// Tells who listens that the task has changed, if it has, and then who waits.
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
        // That a step was recorded, nobody sees.
        let is_seen = message.is_some() || progress.is_some() || end.is_some();
        if written.is_ok() && is_seen {
            // Before its worker goes on, which may not have the task any more then.
            tell(lease.task, ChangeSource::Worker);
        }
        // Nobody may wait any more; it is done all the same.
        let _ = self.answer.send(written);
    }
}

/// How all of these can be written in one statement.
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

/// The statement that writes all of these, each of another task, in the order of their names.
pub(super) fn together<'a>(waiting: &'a [Box<QueuedWrite>], shared: &Shared) -> Query<'a> {
    let each = || waiting.iter().map(|waiting| &waiting.writing);
    match common_way(waiting) {
        WriteKind::Record => record(each, shared),
        WriteKind::End => end(each, shared),
        WriteKind::Any => any(each, shared),
    }
}

/// The worker that has all of these.
fn worker<'a>(mut each: impl Iterator<Item = &'a Writing>) -> Cow<'a, str> {
    text(each.next().map_or("", |writing| writing.lease.worker.as_str()))
}

/// One row for each entry.
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

/// One row for each task.
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

/// One row for each task, and one for each entry.
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

/// What became of each that was written together: whoever has lost the task has written nothing. Whose
/// principal may have no room is to be written by itself.
pub(super) fn read_together(
    waiting: &[Box<QueuedWrite>],
    rows: &[Row],
) -> Vec<Result<(), StoreError>> {
    let told = rows.first().map_or(Err(PostgresError::Silent), |row| get(row, 0));
    let told: HashSet<i64> = match told {
        // Nobody is told of if all were written.
        Ok(None) => return waiting.iter().map(|_| Ok(())).collect(),
        Ok(Some(told)) => Vec::into_iter(told).collect(),
        Err(problem) => return waiting.iter().map(|_| Err(problem.with(""))).collect(),
    };
    let refused = if told.contains(&0) { StoreError::BytesExceeded } else { StoreError::LeaseLost };
    let way = common_way(waiting);
    let mut place = 1;
    let each = waiting.iter().map(|waiting| {
        let is_told = told.contains(&place);
        // Who records has a row for each entry.
        place += if way == WriteKind::Record { count(waiting.writing.entries.len()) } else { 1 };
        // The short ways tell of those that were written, the other one of those that were not.
        let is_written = is_told == (way != WriteKind::Any);
        is_written.then_some(()).ok_or_else(|| refused.clone())
    });
    each.collect()
}

/// What became of one that was written by itself.
pub(super) fn read(rows: &[Row]) -> Result<(), StoreError> {
    match rows.first().map(|row| get::<Option<bool>>(row, 0)).transpose() {
        Ok(Some(Some(true))) => Ok(()),
        Ok(Some(None)) => Err(StoreError::BytesExceeded),
        Ok(_) => Err(StoreError::LeaseLost),
        Err(problem) => Err(problem.with("")),
    }
}

/// Locks these tasks, in the order of their names.
pub(super) fn lock(tasks: Vec<String>) -> Call {
    Call::new(LOCK, values![tasks])
}
