//! What shares a transaction, and what came of it.

use std::collections::HashSet;

use tokio_postgres::Row;

use super::{
    Shared,
    call::Call,
    creating::{self, Creation},
    problem::Problem,
    writer::{Order, Queued, Work},
};
use crate::store::{By, Created, StoreError, TaskId};

/// How many operations share a commit. More would save nothing and keep others waiting.
const MOST: usize = 512;

#[derive(Default)]
pub(super) struct Batch {
    pub(super) creations: Vec<Creation>,
    calls: Vec<Queued>,
}

/// What came of each.
#[derive(Default)]
pub(super) struct Outcome {
    created: Vec<Result<Created, StoreError>>,
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
        // Two that want the same name or key must see each other.
        let mut names: HashSet<(bool, String)> = HashSet::new();
        let (mut next, mut left) = (Some(first), None);
        while let Some(work) = next {
            let fits = match &work {
                Work::Call(queued) if queued.order == Order::Alone => self.len() == 0,
                Work::Call(_) => true,
                Work::Create(creation) => {
                    let task = &creation.task;
                    let key =
                        task.once.as_ref().map(|once| format!("{}\0{}", task.principal, once.key));
                    names.insert((false, task.id.as_str().to_owned()))
                        && key.is_none_or(|key| names.insert((true, key)))
                }
            };
            if !fits {
                left = Some(work);
                break;
            }
            let alone = matches!(&work, Work::Call(queued) if queued.order == Order::Alone);
            self.push(work);
            next = if alone || self.len() >= MOST { None } else { more() };
        }
        self.calls.sort_by(|one, other| one.order.cmp(&other.order));
        self.creations.sort_by(|one, other| one.task.principal.cmp(&other.task.principal));
        left
    }

    fn push(&mut self, work: Work) {
        match work {
            Work::Create(creation) => self.creations.push(*creation),
            Work::Call(queued) => self.calls.push(queued),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.creations.len() + self.calls.len()
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().map(|queued| &queued.call)
    }

    /// One statement for all creations, if there are any.
    pub(super) fn create_all(&self, shared: &Shared) -> Option<Call> {
        (!self.creations.is_empty()).then(|| creating::call(&self.creations, shared))
    }

    /// One statement for each creation.
    pub(super) fn create_each(&self, shared: &Shared) -> Vec<Call> {
        self.creations.chunks(1).map(|creation| creating::call(creation, shared)).collect()
    }

    /// What came of it when it was done together.
    pub(super) fn read(&self, mut rows: Vec<Vec<Row>>) -> Outcome {
        let created = match self.creations.is_empty() {
            true => Vec::new(),
            false => creating::read(&self.creations, &rows.remove(0)),
        };
        Outcome { created, called: rows.into_iter().map(Ok).collect() }
    }

    /// Answers everybody, and returns the tasks that were changed, and by whom.
    pub(super) fn answer(self, outcome: Outcome, place: &str) -> Vec<(TaskId, By)> {
        let mut changed = Vec::new();
        for (creation, created) in self.creations.into_iter().zip(outcome.created) {
            if let Ok(Created::New { lease, .. }) = &created {
                let by = if lease.is_some() { By::Worker } else { By::Anybody };
                changed.push((creation.task.id.clone(), by));
            }
            creation.answer(created, place);
        }
        for (queued, rows) in self.calls.into_iter().zip(outcome.called) {
            changed.extend((queued.reply)(rows, place));
        }
        changed
    }

    pub(super) fn refuse(self, error: &StoreError) {
        for creation in self.creations {
            creation.answer(Err(error.clone()), "");
        }
        for queued in self.calls {
            (queued.reply)(Err(error.clone()), "");
        }
    }

    pub(super) fn refuse_calls(&mut self, error: &StoreError) {
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
            let mut created = creating::read(creation, &rows?);
            created.pop().unwrap_or_else(|| Err(Problem::Silent.with("")))
        });
        Self { created: created.collect(), called: all.collect() }
    }
}
