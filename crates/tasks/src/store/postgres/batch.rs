//! [`Batch`]: operations that share one transaction, and their outcomes.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
};

use tokio_postgres::Row;

use super::{
    column::owned,
    commit::{self, QueuedWrite},
    create::{self, Creation},
    error::PostgresError,
    queue::{Queued, Work},
    state::Shared,
    statement::{Call, Query},
};
use crate::store::{ChangeSource, CreateOutcome, StoreError, TaskId};

/// Maximum number of operations per commit. A larger batch saves little and delays other callers.
const MOST: usize = 512;

/// Minimum number of new tasks for a batch that is sent while the previous one commits. For fewer
/// tasks, another commit costs more than waiting.
pub(super) const WORTH_A_COMMIT: usize = 96;

#[derive(Default)]
pub(super) struct Batch {
    #[expect(clippy::vec_box, reason = "the queue contains boxes, and sorting moves them")]
    pub(super) creations: Vec<Box<Creation>>,
    /// Writes, each to a different task.
    #[expect(clippy::vec_box, reason = "the queue contains boxes, and sorting moves them")]
    writes: Vec<Box<QueuedWrite>>,
    calls: Vec<Queued>,
}

/// Outcome of each operation of a batch.
#[derive(Default)]
pub(super) struct Outcome {
    created: Vec<Result<CreateOutcome, StoreError>>,
    written: Vec<Result<(), StoreError>>,
    called: Vec<Result<Vec<Row>, StoreError>>,
}

impl Batch {
    pub(super) fn of(work: Work) -> Self {
        let mut batch = Self::default();
        batch.push(work);
        batch
    }

    /// Takes operations as long as they fit. Returns the first operation that does not fit.
    pub(super) fn fill(
        &mut self,
        first: Work,
        mut more: impl FnMut() -> Option<Work>,
    ) -> Option<Work> {
        let mut names = Names::default();
        let (mut next, mut left) = (Some(first), None);
        while let Some(work) = next {
            let alone = work.is_alone();
            if !names.take(&work) || (alone && self.len() > 0) {
                left = Some(work);
                break;
            }
            self.push(work);
            next = if alone || self.len() >= MOST { None } else { more() };
        }
        self.calls.sort_by(|one, other| one.order.cmp(&other.order));
        self.creations.sort_by(|one, other| one.task.principal.cmp(&other.task.principal));
        self.writes.sort_by(|one, other| one.writing.task().cmp(other.writing.task()));
        left
    }

    fn push(&mut self, work: Work) {
        match work {
            Work::Create(creation) => self.creations.push(creation),
            Work::Write(waiting) => self.writes.push(waiting),
            Work::Call(queued) => self.calls.push(queued),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.creations.len() + self.writes.len() + self.calls.len()
    }

    pub(super) fn calls<'a>(&'a self) -> impl Iterator<Item = &'a Query<'a>> {
        self.calls.iter().map(|queued| -> &Query<'a> { &queued.call })
    }

    /// Returns whether the batch can be executed one by one: a combined write can be split.
    pub(super) fn can_be_done_apart(&self) -> bool {
        self.len() > 1 || !self.writes.is_empty()
    }

    /// Returns whether the batch contains only tasks that `COPY` can insert.
    pub(super) fn can_be_copied(&self) -> bool {
        self.len() == self.creations.len() && self.creations.iter().all(|one| one.is_plain())
    }

    /// Splits off half of the new tasks for another batch, if each half is large enough for a
    /// commit.
    pub(super) fn halve(&mut self) -> Option<Self> {
        let half = self.creations.len() / 2;
        let is_worth_it = half >= WORTH_A_COMMIT;
        is_worth_it.then(|| Self { creations: self.creations.split_off(half), ..Self::default() })
    }

    /// Returns the statements before the calls: one per kind of combined operation.
    pub(super) fn together(&self, shared: &Shared) -> Vec<Query<'_>> {
        let mut together = Vec::new();
        if !self.creations.is_empty() {
            together.push(create::call(&self.creations, shared));
        }
        together.extend(self.lock());
        if !self.writes.is_empty() {
            together.push(commit::together(&self.writes, shared));
        }
        together
    }

    /// Returns a statement that locks the tasks of writes and calls in one order; `None` if only
    /// one kind is present.
    fn lock(&self) -> Option<Call> {
        let mut called = self.calls.iter().filter_map(|queued| queued.order.task()).peekable();
        if self.writes.is_empty() || called.peek().is_none() {
            return None;
        }
        let written = self.writes.iter().map(|waiting| waiting.writing.task());
        let all = written.chain(called).map(|task| owned(task.as_str()));
        Some(commit::lock(all.collect()))
    }

    /// Returns one statement per combined operation.
    pub(super) fn each(&self, shared: &Shared) -> Result<Vec<Query<'_>>, PostgresError> {
        let creations = self.creations.chunks(1);
        let mut each: Vec<_> = creations.map(|creation| create::call(creation, shared)).collect();
        for waiting in &self.writes {
            each.push(waiting.writing.alone(shared)?);
        }
        Ok(each)
    }

    /// Reads the outcome of a combined execution.
    pub(super) fn read(&self, rows: Vec<Vec<Row>>) -> Outcome {
        let mut rows = rows.into_iter();
        let mut outcome = Outcome::default();
        if !self.creations.is_empty() {
            outcome.created = create::read(&self.creations, &rows.next().unwrap_or_default());
        }
        if self.lock().is_some() {
            rows.next();
        }
        if !self.writes.is_empty() {
            let rows = rows.next().unwrap_or_default();
            outcome.written = commit::read_together(&self.writes, &rows);
        }
        outcome.called = rows.map(Ok).collect();
        outcome
    }

    /// Returns the outcome of a batch that was inserted with `COPY`.
    pub(super) fn copied(&self, at: i64) -> Outcome {
        let created = self.creations.iter().map(|creation| Ok(creation.made(at))).collect();
        Outcome { created, ..Outcome::default() }
    }

    /// Replies to all callers, and reports the changed tasks with the source of the change.
    pub(super) fn answer(
        self,
        outcome: Outcome,
        place: &str,
        mut tell: impl FnMut(TaskId, ChangeSource),
    ) {
        let mut is_queued = false;
        for (creation, created) in self.creations.into_iter().zip(outcome.created) {
            // One queued task is reported for all of them, because no reader knows the IDs of new
            // tasks yet.
            if let Ok(CreateOutcome::Created { lease: None, .. }) = &created
                && !is_queued
            {
                is_queued = true;
                tell(creation.task.id.clone(), ChangeSource::Other);
            }
            creation.answer(created, place);
        }
        for (waiting, written) in self.writes.into_iter().zip(outcome.written) {
            waiting.answer(written, place, &mut tell);
        }
        for (queued, rows) in self.calls.into_iter().zip(outcome.called) {
            (queued.reply)(rows, place).into_iter().for_each(|(task, by)| tell(task, by));
        }
    }

    pub(super) fn refuse(mut self, error: &StoreError) {
        self.refuse_all_but_creations(error);
        for creation in self.creations {
            creation.answer(Err(error.clone()), "");
        }
    }

    pub(super) fn refuse_all_but_creations(&mut self, error: &StoreError) {
        for waiting in self.writes.drain(..) {
            waiting.answer(Err(error.clone()), "", |_, _| {});
        }
        for queued in self.calls.drain(..) {
            (queued.reply)(Err(error.clone()), "");
        }
    }
}

impl Outcome {
    /// Reads the outcome of an execution one by one.
    pub(super) fn each(batch: &Batch, all: Vec<Result<Vec<Row>, StoreError>>) -> Self {
        let mut all = all.into_iter();
        let created = batch.creations.chunks(1).zip(all.by_ref()).map(|(creation, rows)| {
            let mut created = create::read(creation, &rows?);
            created.pop().unwrap_or_else(|| Err(PostgresError::Silent.with("")))
        });
        let created = created.collect();
        let written = all.by_ref().take(batch.writes.len());
        let written = written.map(|rows| commit::read(&rows?)).collect();
        Self { created, written, called: all.collect() }
    }
}

/// Hashes of the task IDs and idempotency keys of a batch. A hash collision only separates two
/// operations into different batches.
#[derive(Default)]
struct Names {
    /// IDs of new tasks, and their idempotency keys.
    made: HashSet<u64>,
    /// IDs of existing tasks that an operation changes.
    tasks: HashSet<u64>,
    hasher: RandomState,
}

impl Names {
    /// Returns whether the batch can take this operation. Two creations of the same task must run
    /// in different transactions. Writes precede calls, so a write must not follow a call on the
    /// same task.
    fn take(&mut self, work: &Work) -> bool {
        match work {
            Work::Create(creation) => {
                let task = &creation.task;
                self.made.insert(self.hasher.hash_one(&task.id))
                    && task.idempotency.as_ref().is_none_or(|once| {
                        self.made.insert(self.hasher.hash_one((&task.principal, &once.key)))
                    })
            }
            Work::Write(waiting) => self.tasks.insert(self.hasher.hash_one(waiting.writing.task())),
            Work::Call(queued) => {
                self.tasks.extend(queued.order.task().map(|task| self.hasher.hash_one(task)));
                true
            }
        }
    }
}
