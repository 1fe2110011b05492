//! What workers write: what is most often written for many tasks in one statement, anything else task
//! by task.

use std::collections::HashSet;

use tokio::sync::oneshot;
use tokio_postgres::Row;

use super::{
    Shared,
    call::{Call, Query, values},
    clock::{millis, to_column},
    column::{array, count, get, owned, text, to_json},
    problem::Problem,
};
use crate::{
    Entry,
    store::{By, Changes, Lease, StoreError, TaskId, Then},
};

pub(super) const WRITE: &str =
    "SELECT write_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
     $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)";
/// As `WRITE` of one that goes on, and then it is kept.
pub(super) const KEEP: &str =
    "SELECT CASE WHEN write_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
     $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)
     THEN keep_task($1, $21, $22, $23) ELSE false END";
pub(super) const WRITE_ALL: &str =
    "SELECT record_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
pub(super) const LOCK: &str = "SELECT FROM task WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE";

/// What is to be written to a task.
pub(super) struct Writing {
    lease: Lease,
    changes: Changes,
    /// Key, whether it is an answer, and body.
    entries: Vec<(String, bool, String)>,
    then: Next,
}

/// What can be written together with others, and who waits for it.
pub(super) struct Waiting {
    pub(super) writing: Writing,
    pub(super) answer: oneshot::Sender<Result<(), StoreError>>,
}

/// What becomes of the task then, in columns.
enum Next {
    GoOn,
    Park { due: Option<i64>, seen: i64 },
    Keep { outcome: String, hold: i64 },
    End { outcome: String, retention: i64, unfinished: bool },
}

impl Writing {
    pub(super) fn new(lease: Lease, mut changes: Changes, then: &Then) -> Result<Self, StoreError> {
        // The first of a name counts, and the database wants each once.
        let mut names = HashSet::new();
        changes.asked.retain(|asked| names.insert(asked.name.clone()));
        let then = match then {
            Then::GoOn => Next::GoOn,
            Then::Park { due, seen } => Next::Park { due: due.map(to_column), seen: count(*seen) },
            Then::Keep { outcome, hold } => {
                Next::Keep { outcome: to_json(outcome)?, hold: millis(*hold) }
            }
            Then::End { outcome, retention } => Next::End {
                outcome: to_json(outcome)?,
                retention: millis(*retention),
                unfinished: outcome.is_unfinished(),
            },
        };
        let entries = changes.entries.iter().map(|(key, entry)| {
            Ok((owned(key), matches!(entry, Entry::Answer(_)), to_json(entry)?))
        });
        let entries = entries.collect::<Result<_, StoreError>>()?;
        Ok(Self { lease, changes, entries, then })
    }

    pub(super) fn task(&self) -> &TaskId {
        &self.lease.task
    }

    /// Whether it can be written together with others.
    pub(super) fn is_plain(&self) -> bool {
        let Changes { forgotten, segments, asked, withdrawn, .. } = &self.changes;
        let ends_well = match self.then {
            Next::GoOn => true,
            Next::End { unfinished, .. } => !unfinished,
            Next::Park { .. } | Next::Keep { .. } => false,
        };
        ends_well
            && forgotten.is_empty()
            && segments.is_empty()
            && asked.is_empty()
            && withdrawn.is_empty()
    }

    /// The statement that writes it by itself.
    pub(super) fn alone(&self, shared: &Shared) -> Result<Call, StoreError> {
        let Self { lease, changes, entries, .. } = self;
        let (segments, asked) = (&changes.segments, &changes.asked);
        let questions = asked.iter().map(|asked| asked.request.as_ref().map(to_json).transpose());
        let questions = questions.collect::<Result<Vec<_>, _>>()?;
        let (what, due, seen, outcome, retention) = match &self.then {
            Next::GoOn => (0, None, None, None, None),
            Next::Park { due, seen } => (1, *due, Some(*seen), None, None),
            Next::Keep { outcome, hold } => (0, None, None, Some(outcome.clone()), Some(*hold)),
            Next::End { outcome, retention, unfinished } => {
                (2 + i32::from(*unfinished), None, None, Some(outcome.clone()), Some(*retention))
            }
        };
        let names = |names: &[String]| array(names.iter().map(|name| owned(name)).collect());
        let sql = if matches!(self.then, Next::Keep { .. }) { KEEP } else { WRITE };
        Ok(Call::new(
            sql,
            values![
                owned(lease.task.as_str()),
                owned(lease.worker.as_str()),
                to_column(lease.epoch),
                changes.message.as_deref().map(owned),
                changes.progress.as_ref().map(|progress| progress.get().to_owned()),
                names(&changes.forgotten),
                array(entries.iter().map(|entry| entry.0.clone()).collect()),
                array(entries.iter().map(|entry| entry.1).collect()),
                array(entries.iter().map(|entry| entry.2.clone()).collect()),
                array(segments.iter().map(|segment| owned(&segment.scope)).collect()),
                array(segments.iter().map(|segment| i64::from(segment.ordinal)).collect()),
                array(segments.iter().map(|segment| segment.block.get().to_owned()).collect()),
                array(asked.iter().map(|asked| owned(&asked.name)).collect()),
                array(asked.iter().map(|asked| owned(&asked.key)).collect()),
                array(asked.iter().map(|asked| asked.due.map(to_column)).collect()),
                array(questions),
                names(&changes.withdrawn),
                what,
                due,
                seen,
                outcome,
                retention,
                shared.shift.get(),
            ],
        ))
    }
}

impl Waiting {
    /// Tells who listens that the task has changed, if it has, and then who waits.
    pub(super) fn answer(
        self,
        written: Result<(), StoreError>,
        place: &str,
        tell: impl FnOnce(TaskId, By),
    ) {
        let written = written.map_err(|error| match place {
            "" => error,
            place => Problem::Store(error).with(place),
        });
        let Writing { lease, changes, then, .. } = self.writing;
        let is_seen = changes.are_seen() || !matches!(then, Next::GoOn);
        if written.is_ok() && is_seen {
            // Before its worker goes on, which may not have the task any more then.
            tell(lease.task, By::Worker);
        }
        // Nobody may wait any more; it is done all the same.
        let _ = self.answer.send(written);
    }
}

/// What is written in one row: an entry of a task, if it has any.
struct Line<'a> {
    writing: &'a Writing,
    entry: Option<&'a (String, bool, String)>,
}

/// As many rows as it takes to write all of these.
fn lines(waiting: &[Waiting]) -> Vec<Line<'_>> {
    let mut lines = Vec::with_capacity(waiting.len());
    for Waiting { writing, .. } in waiting {
        match &writing.entries[..] {
            [] => lines.push(Line { writing, entry: None }),
            entries => lines.extend(entries.iter().map(|it| Line { writing, entry: Some(it) })),
        }
    }
    lines
}

/// The statement that writes all of these, each of another task, in the order of their names.
pub(super) fn together<'a>(waiting: &'a [Waiting], shared: &Shared) -> Query<'a> {
    let lines = lines(waiting);
    let each = || lines.iter().map(|line| line.writing);
    let ends = || {
        each().map(|writing| match &writing.then {
            Next::End { outcome, retention, .. } => (Some(outcome.as_str()), Some(*retention)),
            Next::GoOn | Next::Park { .. } | Next::Keep { .. } => (None, None),
        })
    };
    let entries = || lines.iter().map(|line| line.entry);
    let progress = |writing: &'a Writing| Some(writing.changes.progress.as_ref()?.get());
    Query::new(
        WRITE_ALL,
        values![
            each().map(|writing| text(writing.lease.task.as_str())).collect::<Vec<_>>(),
            each().map(|writing| text(writing.lease.worker.as_str())).collect::<Vec<_>>(),
            each().map(|writing| to_column(writing.lease.epoch)).collect::<Vec<_>>(),
            each().map(|writing| writing.changes.message.as_deref().map(text)).collect::<Vec<_>>(),
            each().map(progress).collect::<Vec<_>>(),
            ends().map(|(outcome, _)| outcome).collect::<Vec<_>>(),
            ends().map(|(_, retention)| retention).collect::<Vec<_>>(),
            entries().map(|entry| Some(entry?.0.as_str())).collect::<Vec<_>>(),
            entries().map(|entry| Some(entry?.1)).collect::<Vec<_>>(),
            entries().map(|entry| Some(entry?.2.as_str())).collect::<Vec<_>>(),
            shared.shift.get(),
        ],
    )
}

/// What became of each that was written together: whoever has lost the task has written nothing.
pub(super) fn read_together(waiting: &[Waiting], rows: &[Row]) -> Vec<Result<(), StoreError>> {
    let written = rows.first().map_or(Err(Problem::Silent), |row| get(row, 0));
    let written: Vec<i64> = match written {
        Ok(Some(written)) => written,
        Ok(None) => return waiting.iter().map(|_| Ok(())).collect(),
        Err(problem) => return waiting.iter().map(|_| Err(problem.with(""))).collect(),
    };
    let written: HashSet<i64> = written.into_iter().collect();
    let mut place = 1;
    let each = waiting.iter().map(|waiting| {
        let first = place;
        place += count(waiting.writing.entries.len().max(1));
        written.contains(&first).then_some(()).ok_or(StoreError::Lost)
    });
    each.collect()
}

/// What became of one that was written by itself.
pub(super) fn read(rows: &[Row]) -> Result<(), StoreError> {
    match rows.first().map(|row| get::<bool>(row, 0)).transpose() {
        Ok(Some(true)) => Ok(()),
        Ok(_) => Err(StoreError::Lost),
        Err(problem) => Err(problem.with("")),
    }
}

/// Locks these tasks, in the order of their names.
pub(super) fn lock(tasks: Vec<String>) -> Call {
    Call::new(LOCK, values![tasks])
}
