//! Operations of operators on a store. Each method of [`Store`] takes a principal; an operator sees
//! the tasks of all principals.

use std::collections::BTreeMap;

use outlive_wire::{InputRequest, RawJson};

use super::{
    Audience, ListCursor, OutcomeKind, Phase, Store, StoreFuture, TaskId, TaskOutcome, TaskRecord,
    UnixMillis, WorkerId,
};
use crate::{JournalEntry, setters::setters};

/// A store with operations for operators, which also work while servers use the store. Never expose
/// it to the callers of a server.
pub trait OperatorStore: Store {
    /// Returns tasks of all principals, including unlisted ones, newest first, from before a
    /// cursor. May scan all tasks.
    fn tasks<'a>(
        &'a self,
        filter: &'a TaskFilter,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskSummary>>;

    /// Returns all data of a task, read in one transaction.
    fn inspect<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<TaskDetail>>;

    /// Queues a quarantined task. The task continues from its journal, with a crash count of zero
    /// and a new TTL. A task in another phase does not change, because ended tasks never change and
    /// all others continue without an operator.
    fn retry<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<RetryOutcome>>;

    /// Deletes a task and all its data in one transaction. Without `force`, deletes only an ended
    /// task whose cleanup is done. With `force`, the worker of a running task loses its lease, and
    /// the client gets an error for an unknown task.
    fn purge<'a>(&'a self, task: &'a TaskId, force: bool) -> StoreFuture<'a, Option<PurgeOutcome>>;

    /// Deletes at most `limit` tasks that ended before a time and need no cleanup. Returns the
    /// deleted tasks with their principals.
    fn purge_ended(
        &self,
        before: UnixMillis,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(String, TaskId)>>;

    /// Returns at most `limit` unexpired key-value entries whose key starts with `prefix`, by key.
    /// May scan all entries.
    fn key_values<'a>(
        &'a self,
        prefix: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, RawJson)>>;
}

/// A filter for tasks. A task matches if all given conditions hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskFilter {
    /// Phase of the task.
    pub phase: Option<Phase>,
    /// Outcome of the task.
    pub outcome: Option<OutcomeKind>,
    /// Tool of the task.
    pub tool: Option<String>,
    /// Principal of the task.
    pub principal: Option<String>,
    /// Time before which the task was created.
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
    /// The record that the principal sees.
    pub view: TaskRecord,
    /// Principal of the task.
    pub principal: String,
    /// Worker that runs the task or its cleanup.
    pub owner: Option<WorkerId>,
    /// Number of claims.
    pub epoch: u64,
    /// Whether the task has run.
    pub started: bool,
    /// Number of crashes in a row without a new journal entry.
    pub crash_count: u32,
    /// When a worker must claim the task.
    pub due_at: Option<UnixMillis>,
    /// Outcome of a quarantined task if no operator retries it.
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

/// All data of a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskDetail {
    /// Summary of the task.
    pub task: TaskSummary,
    /// Call that the task executes.
    pub request: RawJson,
    /// Journal entries, including input responses.
    pub entries: BTreeMap<String, JournalEntry>,
    /// Input requests, in the order of their issue.
    pub input_requests: Vec<InputRequestRecord>,
    /// Number of emitted segments.
    pub segments: u64,
    /// Person of the task; `None` for an anonymous caller.
    pub person: Option<String>,
    /// Task that this one runs again.
    pub rerun_of: Option<TaskId>,
    /// Tags, as `key=value`, sorted.
    pub tags: Vec<String>,
}

impl TaskDetail {
    /// Creates the detail of a task with an empty journal.
    pub fn new(task: TaskSummary, request: RawJson) -> Self {
        Self {
            task,
            request,
            entries: BTreeMap::new(),
            input_requests: Vec::new(),
            segments: 0,
            person: None,
            rerun_of: None,
            tags: Vec::new(),
        }
    }
}

setters!(TaskDetail {
    entries: BTreeMap<String, JournalEntry>,
    input_requests: Vec<InputRequestRecord>,
    segments: u64,
    person: Option<String>,
    rerun_of: Option<TaskId>,
    tags: Vec<String>,
});

/// An input request, and its state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputRequestRecord {
    /// Journal key, under which the response is recorded.
    pub key: String,
    /// Wire key.
    pub name: String,
    /// Request to the client; `None` if another system responds.
    pub request: Option<InputRequest>,
    /// Parties that may respond.
    pub audience: Audience,
    /// When the request times out.
    pub due: Option<UnixMillis>,
    /// State of the request.
    pub state: InputRequestState,
    /// When the request was opened.
    pub opened_at: UnixMillis,
    /// When the request got its response or was withdrawn.
    pub settled_at: Option<UnixMillis>,
}

impl InputRequestRecord {
    /// Creates the record of an input request without a timeout.
    pub fn new(
        key: impl Into<String>,
        name: impl Into<String>,
        request: Option<InputRequest>,
        state: InputRequestState,
    ) -> Self {
        let (audience, key, name) = (Audience::Client, key.into(), name.into());
        let (opened_at, settled_at) = (0, None);
        Self { key, name, request, audience, due: None, state, opened_at, settled_at }
    }
}

setters!(InputRequestRecord {
    audience: Audience,
    due: Option<UnixMillis>,
    opened_at: UnixMillis,
    settled_at: Option<UnixMillis>,
});

/// State of an input request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum InputRequestState {
    /// The request waits for a response.
    Open,
    /// The request has a response.
    Answered,
    /// The request was withdrawn.
    Withdrawn,
}

/// Result of [`OperatorStore::retry`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum RetryOutcome {
    /// The task waits for a worker. The value is its principal.
    Queued(String),
    /// The task is not quarantined. The value is its phase.
    NotQuarantined(Phase),
}

/// Result of [`OperatorStore::purge`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum PurgeOutcome {
    /// The task was deleted. The values are its principal and its former phase.
    Purged(String, Phase),
    /// The task has not ended. The value is its phase.
    NotEnded(Phase),
    /// The task needs a cleanup, or a worker executes its cleanup.
    CleanupPending,
}
