//! What shares a transaction, and what came of it.

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

/// How many operations share a commit. More would save nothing and keep others waiting.
const MOST: usize = 512;

/// From how many new tasks on a batch is on its way while the one before it is committed. With fewer a
/// commit costs more than the waiting.
pub(super) const WORTH_A_COMMIT: usize = 96;

#[derive(Default)]
pub(super) struct Batch {
    #[expect(clippy::vec_box, reason = "they come in boxes, and are sorted")]
    pub(super) creations: Vec<Box<Creation>>,
    /// Each of another task.
    #[expect(clippy::vec_box, reason = "they come in boxes, and are sorted")]
    writes: Vec<Box<QueuedWrite>>,
    calls: Vec<Queued>,
}

/// What came of each.
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

    /// Takes what there is, as far as it fits; returns what does not.
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

    /// Whether there is another way to do it: what is written together can be written alone.
    pub(super) fn can_be_done_apart(&self) -> bool {
        self.len() > 1 || !self.writes.is_empty()
    }

    /// Whether it is of nothing but tasks that can be copied into their table.
    pub(super) fn can_be_copied(&self) -> bool {
        self.len() == self.creations.len() && self.creations.iter().all(|one| one.is_plain())
    }

    /// Leaves half of the tasks that are to be made for another batch, if each is worth a commit.
    pub(super) fn halve(&mut self) -> Option<Self> {
        let half = self.creations.len() / 2;
        let is_worth_it = half >= WORTH_A_COMMIT;
        is_worth_it.then(|| Self { creations: self.creations.split_off(half), ..Self::default() })
    }

    /// The statements that come before the calls: one for everything that can be done together.
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

    /// Locks the tasks of writes and of calls in one order, if there are both.
    fn lock(&self) -> Option<Call> {
        let mut called = self.calls.iter().filter_map(|queued| queued.order.task()).peekable();
        if self.writes.is_empty() || called.peek().is_none() {
            return None;
        }
        let written = self.writes.iter().map(|waiting| waiting.writing.task());
        let all = written.chain(called).map(|task| owned(task.as_str()));
        Some(commit::lock(all.collect()))
    }

    /// One statement for each that could be done together.
    pub(super) fn each(&self, shared: &Shared) -> Result<Vec<Query<'_>>, PostgresError> {
        let creations = self.creations.chunks(1);
        let mut each: Vec<_> = creations.map(|creation| create::call(creation, shared)).collect();
        for waiting in &self.writes {
            each.push(waiting.writing.alone(shared)?);
        }
        Ok(each)
    }

    /// What came of it when it was done together.
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

    /// What came of it when its tasks were copied.
    pub(super) fn copied(&self, at: i64) -> Outcome {
        let created = self.creations.iter().map(|creation| Ok(creation.made(at))).collect();
        Outcome { created, ..Outcome::default() }
    }

    /// Answers everybody, and tells which tasks were changed, and by whom.
    pub(super) fn answer(
        self,
        outcome: Outcome,
        place: &str,
        mut tell: impl FnMut(TaskId, ChangeSource),
    ) {
        let mut is_queued = false;
        for (creation, created) in self.creations.into_iter().zip(outcome.created) {
            // That something is queued is told by one of them: nobody knows any of them by name.
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
    /// What came of it when each was done by itself.
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

/// What the operations of a batch are about, by hashes: two names that share one are only not done
/// together.
#[derive(Default)]
struct Names {
    /// Tasks that are made, and keys under which some are.
    made: HashSet<u64>,
    /// Tasks that something is done to.
    tasks: HashSet<u64>,
    hasher: RandomState,
}

impl Names {
    /// Whether this can be in the batch, too. Two that want to make the same must see each other; and
    /// writes are done before calls, so none may have come after a call for the same task.
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
