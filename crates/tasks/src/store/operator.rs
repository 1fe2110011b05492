//! What operators do with a store. A server names a principal in every call of [`Store`]; an
//! operator names none, because it sees all.

use std::collections::BTreeMap;

use outlive_wire::{InputRequest, RawJson};

use super::{
    ListCursor, OutcomeKind, Phase, Store, StoreFuture, TaskId, TaskOutcome, TaskRecord,
    UnixMillis, WorkerId,
};
use crate::{JournalEntry, setters::setters};

/// A store that operators look after, also while servers use it. Never give it to a server's callers.
pub trait OperatorStore: Store {
    /// Tasks of all principals, those that nobody can list among them: the newest first, from
    /// before a place on. It may look through all there are.
    fn tasks<'a>(
        &'a self,
        filter: &'a TaskFilter,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskSummary>>;

    /// All that is known of a task, in one consistent piece.
    fn inspect<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<TaskDetail>>;

    /// Queues a task that is kept. It goes on from its journal, the workers that it has lost are
    /// forgotten, and its time begins anew. One that is not kept stays as it is: what has ended
    /// never changes, and all others go on by themselves.
    fn retry<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<RetryOutcome>>;

    /// Forgets a task, and all that belongs to it, in one piece. One that has not ended, or is owed
    /// a clean-up, only if it is forced to: whoever runs it has lost it then, and its client is told
    /// that there is no such task.
    fn purge<'a>(&'a self, task: &'a TaskId, force: bool) -> StoreFuture<'a, Option<PurgeOutcome>>;

    /// Forgets tasks that have ended before a time and are owed nothing, so many at most, and says
    /// which, and whose they were.
    fn purge_ended(
        &self,
        before: UnixMillis,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(String, TaskId)>>;
}

/// Which tasks an operator wants to see: those that all of this is true for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskFilter {
    /// How far it is.
    pub phase: Option<Phase>,
    /// How it has ended.
    pub outcome: Option<OutcomeKind>,
    /// What it does.
    pub tool: Option<String>,
    /// Whom it belongs to.
    pub principal: Option<String>,
    /// It was made before this time.
    pub before: Option<UnixMillis>,
}

setters!(TaskFilter {
    phase: Option<Phase>,
    outcome: Option<OutcomeKind>,
    tool: Option<String>,
    principal: Option<String>,
    before: Option<UnixMillis>,
});

/// A task as an operator sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskSummary {
    /// What its owner sees.
    pub view: TaskRecord,
    /// Whom it belongs to.
    pub principal: String,
    /// Who runs it, or cleans up after it.
    pub owner: Option<WorkerId>,
    /// How often it was claimed.
    pub epoch: u64,
    /// Whether it has run.
    pub started: bool,
    /// How many workers were lost in a row without a new entry in the journal.
    pub crash_count: u32,
    /// When somebody must look at it.
    pub due_at: Option<UnixMillis>,
    /// How it ends if it is kept and nobody has it tried again.
    pub kept: Option<TaskOutcome>,
}

impl TaskSummary {
    /// Creates the summary of a task that has not started.
    pub fn new(view: TaskRecord, principal: impl Into<String>, epoch: u64) -> Self {
        Self {
            view,
            principal: principal.into(),
            owner: None,
            epoch,
            started: false,
            crash_count: 0,
            due_at: None,
            kept: None,
        }
    }
}

setters!(TaskSummary {
    owner: Option<WorkerId>,
    started: bool,
    crash_count: u32,
    due_at: Option<UnixMillis>,
    kept: Option<TaskOutcome>,
});

/// All that is known of a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskDetail {
    /// What stands in a list.
    pub task: TaskSummary,
    /// The request that it answers.
    pub request: RawJson,
    /// What it has recorded, and was answered.
    pub entries: BTreeMap<String, JournalEntry>,
    /// What it has asked, in that order.
    pub input_requests: Vec<InputRequestRecord>,
    /// How many blocks it has emitted.
    pub segments: u64,
}

impl TaskDetail {
    /// Creates the detail of a task with an empty journal.
    pub fn new(task: TaskSummary, request: RawJson) -> Self {
        let (entries, input_requests) = (BTreeMap::new(), Vec::new());
        Self { task, request, entries, input_requests, segments: 0 }
    }
}

setters!(TaskDetail {
    entries: BTreeMap<String, JournalEntry>,
    input_requests: Vec<InputRequestRecord>,
    segments: u64,
});

/// An input request, and its state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputRequestRecord {
    /// Its key in the journal, under which an answer is recorded.
    pub key: String,
    /// Its name on the wire.
    pub name: String,
    /// What the client was asked; `None` if it is not the client that answers.
    pub request: Option<InputRequest>,
    /// When it is over.
    pub due: Option<UnixMillis>,
    /// What became of it.
    pub state: InputRequestState,
}

impl InputRequestRecord {
    /// Creates the record of an input request without a timeout.
    pub fn new(
        key: impl Into<String>,
        name: impl Into<String>,
        request: Option<InputRequest>,
        state: InputRequestState,
    ) -> Self {
        Self { key: key.into(), name: name.into(), request, due: None, state }
    }
}

setters!(InputRequestRecord { due: Option<UnixMillis> });

/// State of an input request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum InputRequestState {
    /// It waits for an answer.
    Open,
    /// It was answered.
    Answered,
    /// It is not asked any more.
    Withdrawn,
}

/// What became of [`OperatorStore::retry`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum RetryOutcome {
    /// It waits for a worker. It belongs to this principal.
    Queued(String),
    /// It is not kept, but like this.
    NotQuarantined(Phase),
}

/// What became of [`OperatorStore::purge`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum PurgeOutcome {
    /// It is gone. It belonged to this principal, and was like this.
    Purged(String, Phase),
    /// It has not ended.
    NotEnded(Phase),
    /// It is owed a clean-up, or somebody is at it.
    CleanupPending,
}
