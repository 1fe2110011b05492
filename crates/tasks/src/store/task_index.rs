//! Lists of tasks by state, tool, person, tag and time, and the times of journal entries.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    id::{TaskId, UnixMillis},
    operator::TaskSummary,
    outcome::OutcomeKind,
    task::{ListCursor, Phase},
    traits::StoreFuture,
};
use crate::{JournalEntry, setters::setters};

/// Maximum number of rows that one page reads to check conditions without an index.
pub const MAX_SEARCHED: usize = 20_000;

/// Lists of tasks for the console. No statement scans all tasks.
pub trait TaskIndex: Send + Sync + 'static {
    /// Returns the tasks that match a query, newest first, from before a cursor. Reads at most
    /// [`MAX_SEARCHED`] rows.
    ///
    /// A query by tool, person or tag finds only tasks that were created with
    /// [`NewTask::indexed`](super::NewTask::indexed).
    fn page<'a>(
        &'a self,
        query: &'a TaskQuery,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, TaskPage>;

    /// Returns the number of tasks that match a query, at most `limit`. Reads at most
    /// [`MAX_SEARCHED`] rows.
    fn count<'a>(&'a self, query: &'a TaskQuery, limit: usize) -> StoreFuture<'a, TaskCount>;

    /// Returns a task by its ID, whether it is indexed or not. Reads no journal and no long body, so
    /// that a caller can check cheaply who may read the task.
    fn task<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<IndexedTask>>;

    /// Returns journal entries of a task in the order of their commits, after a cursor. Returns an
    /// empty page for an unknown task.
    fn journal<'a>(
        &'a self,
        task: &'a TaskId,
        after: Option<&'a JournalCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<JournalItem>>;

    /// Returns key, kind and times of all journal entries of a task, in the order of their commits,
    /// at most `limit`. Does not read long bodies.
    fn timeline<'a>(
        &'a self,
        task: &'a TaskId,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TimelineEntry>>;
}

/// State of a task, as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "every state has its own name and color")]
pub enum TaskState {
    /// The task waits for a worker.
    Queued,
    /// A worker runs the task.
    Running,
    /// The task waits for an input response.
    InputRequired,
    /// The task waits for a timer or an external event.
    Waiting,
    /// The task waits for an operator.
    Quarantined,
    /// The task ended with a result.
    Completed,
    /// The task ended with an error.
    Failed,
    /// The task was cancelled.
    Cancelled,
    /// The task expired.
    Expired,
}

impl TaskState {
    /// All states, in the order of menus.
    pub const ALL: [Self; 9] = [
        Self::Queued,
        Self::Running,
        Self::InputRequired,
        Self::Waiting,
        Self::Quarantined,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
    ];

    /// Returns the state of a task. `input_required` is whether a request to the client or to people
    /// is open; external events do not count.
    pub fn new(phase: Phase, outcome: Option<OutcomeKind>, input_required: bool) -> Self {
        match (phase, outcome) {
            (Phase::Queued, _) => Self::Queued,
            (Phase::Running | Phase::Parked, _) if input_required => Self::InputRequired,
            (Phase::Running, _) => Self::Running,
            (Phase::Parked, _) => Self::Waiting,
            (Phase::Quarantined, _) => Self::Quarantined,
            (Phase::Ended, Some(OutcomeKind::Failed)) => Self::Failed,
            (Phase::Ended, Some(OutcomeKind::Cancelled)) => Self::Cancelled,
            (Phase::Ended, Some(OutcomeKind::Expired)) => Self::Expired,
            (Phase::Ended, Some(OutcomeKind::Completed) | None) => Self::Completed,
        }
    }

    /// Returns the name in addresses and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::InputRequired => "input-required",
            Self::Waiting => "waiting",
            Self::Quarantined => "quarantined",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }

    /// Returns the state with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

/// Conditions of a list. A task matches if all given conditions hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskQuery {
    /// State of the task.
    pub state: Option<TaskState>,
    /// Tool of the task.
    pub tool: Option<String>,
    /// Person of the task.
    pub person: Option<String>,
    /// Tag of the task, as `key=value`.
    pub tag: Option<String>,
    /// Time since which the task was created, inclusive.
    pub since: Option<UnixMillis>,
    /// Time before which the task was created, exclusive.
    pub until: Option<UnixMillis>,
}

setters!(TaskQuery {
    state: Option<TaskState>,
    tool: Option<String>,
    person: Option<String>,
    tag: Option<String>,
    since: Option<UnixMillis>,
    until: Option<UnixMillis>,
});

/// A task in a list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IndexedTask {
    /// Summary of the task.
    pub summary: TaskSummary,
    /// State of the task.
    pub state: TaskState,
    /// Person of the task; `None` for an anonymous caller.
    pub person: Option<String>,
}

impl IndexedTask {
    /// Creates a task in a list.
    pub fn new(summary: TaskSummary, state: TaskState, person: Option<String>) -> Self {
        Self { summary, state, person }
    }
}

/// A page of a list.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TaskPage {
    /// Matching tasks, newest first.
    pub tasks: Vec<IndexedTask>,
    /// Position to continue from; `None` at the end of the list.
    pub next: Option<ListCursor>,
    /// Creation time of the oldest checked task, if the page ended because of [`MAX_SEARCHED`].
    pub searched_to: Option<UnixMillis>,
}

/// Number of tasks that match a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskCount {
    /// Number of matching tasks that were found.
    pub count: usize,
    /// Whether more tasks may match.
    pub more: bool,
}

/// Position in a journal: the last entry of the previous page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JournalCursor {
    /// When that entry was recorded.
    pub recorded_at: UnixMillis,
    /// Key of that entry.
    pub key: String,
}

impl JournalCursor {
    /// Creates a cursor after an entry.
    pub fn new(recorded_at: UnixMillis, key: impl Into<String>) -> Self {
        Self { recorded_at, key: key.into() }
    }
}

/// A journal entry with its times.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JournalItem {
    /// Journal key.
    pub key: String,
    /// The entry.
    pub entry: JournalEntry,
    /// When the store recorded the entry.
    pub recorded_at: UnixMillis,
    /// Duration of the step, as its worker measured it.
    pub duration: Option<Duration>,
}

impl JournalItem {
    /// Creates an entry with its times.
    pub fn new(
        key: impl Into<String>,
        entry: JournalEntry,
        recorded_at: UnixMillis,
        duration: Option<Duration>,
    ) -> Self {
        Self { key: key.into(), entry, recorded_at, duration }
    }
}

/// Times of a journal entry, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimelineEntry {
    /// Journal key.
    pub key: String,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// When the store recorded the entry.
    pub recorded_at: UnixMillis,
    /// Duration of the step, as its worker measured it.
    pub duration: Option<Duration>,
}

impl TimelineEntry {
    /// Creates the times of an entry.
    pub fn new(
        key: impl Into<String>,
        kind: EntryKind,
        recorded_at: UnixMillis,
        duration: Option<Duration>,
    ) -> Self {
        Self { key: key.into(), kind, recorded_at, duration }
    }
}

/// Kind of a journal entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "every kind has its own lane or mark")]
pub enum EntryKind {
    /// A step succeeded.
    Step,
    /// A step failed.
    FailedStep,
    /// An input request got a response, or failed.
    Input,
    /// A timer or another entry without work of a handler.
    Timer,
}

impl EntryKind {
    /// Returns the kind of an entry.
    pub fn new(entry: &JournalEntry) -> Self {
        match entry {
            JournalEntry::Value(_) | JournalEntry::Secret(_) => Self::Step,
            JournalEntry::Failed(_) => Self::FailedStep,
            JournalEntry::Answer(_) | JournalEntry::Unanswered(_) => Self::Input,
            JournalEntry::Due(_) | JournalEntry::Begun | JournalEntry::State(_) => Self::Timer,
        }
    }
}
