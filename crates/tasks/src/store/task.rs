//! Records of what a server does with a task on behalf of a principal.

use std::time::Duration;

use outlive_wire::{InputRequest, RawJson};
use serde::{Deserialize, Serialize};

use super::{
    id::{Lease, TaskId, UnixMillis, WorkerId},
    outcome::TaskOutcome,
};
use crate::{JournalSnapshot, setters::setters};

/// A task to create.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewTask {
    /// Its ID.
    pub id: TaskId,
    /// The principal that it belongs to.
    pub principal: String,
    /// The name of its tool, for operators.
    pub tool: String,
    /// The dialect in which it was requested. A store lists by it, and does not interpret it.
    pub origin: String,
    /// Whether its principal can list it. An unlisted task needs no index entry.
    pub listed: bool,
    /// The call that it executes, for its worker.
    pub request: RawJson,
    /// How long it may exist, from its creation; `None` for ever.
    pub ttl: Option<Duration>,
    /// How long it may exist while an input request is open, from its creation. When none is open any
    /// more, its `ttl` starts again, but does not exceed this time.
    pub max_ttl: Duration,
    /// What was recorded before it became a task.
    pub journal: JournalSnapshot,
    /// The worker that runs it from its creation on, and the duration of its lease; `None` to queue it.
    pub worker: Option<(WorkerId, Duration)>,
    /// The idempotency key under which it is created once.
    pub idempotency: Option<IdempotencyKey>,
    /// Whether it has a cleanup, if it is cancelled or expires after it was started.
    pub clean_up: bool,
    /// How many tasks that have not ended its principal may have.
    pub quota: usize,
    /// How many bytes its principal may have stored, this task included.
    pub max_bytes: u64,
}

impl NewTask {
    /// Creates a listed task that waits for a worker, without limits.
    pub fn new(
        id: TaskId,
        principal: impl Into<String>,
        tool: impl Into<String>,
        origin: impl Into<String>,
        request: RawJson,
    ) -> Self {
        Self {
            id,
            principal: principal.into(),
            tool: tool.into(),
            origin: origin.into(),
            listed: true,
            request,
            ttl: None,
            max_ttl: Duration::MAX,
            journal: JournalSnapshot::default(),
            worker: None,
            idempotency: None,
            clean_up: false,
            quota: usize::MAX,
            max_bytes: u64::MAX,
        }
    }
}

setters!(NewTask {
    id: TaskId,
    principal: String,
    tool: String,
    request: RawJson,
    listed: bool,
    ttl: Option<Duration>,
    max_ttl: Duration,
    journal: JournalSnapshot,
    worker: Option<(WorkerId, Duration)>,
    idempotency: Option<IdempotencyKey>,
    clean_up: bool,
    quota: usize,
    max_bytes: u64,
});

/// A key under which a principal creates one task, however often it sends the request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdempotencyKey {
    /// The key.
    pub key: String,
    /// A digest of the request. The store rejects the same key with another fingerprint.
    pub fingerprint: String,
}

impl IdempotencyKey {
    /// Creates a key.
    pub fn new(key: impl Into<String>, fingerprint: impl Into<String>) -> Self {
        Self { key: key.into(), fingerprint: fingerprint.into() }
    }
}

/// Result of [`TaskStore::create`](super::TaskStore::create).
///
/// Exhaustive on purpose: a store or an engine that misses an outcome must not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must know them all")]
pub enum CreateOutcome {
    /// The task was created.
    Created {
        /// The lease of its worker, if one was named.
        lease: Option<Lease>,
        /// When it was created.
        at: UnixMillis,
    },
    /// This task was created under the key before.
    Existing(TaskId),
    /// The key was used for another request.
    KeyConflict,
    /// The principal has its maximum number of tasks.
    QuotaExceeded,
    /// The principal has its maximum number of stored bytes.
    BytesExceeded,
}

impl CreateOutcome {
    /// Returns whether the task was created by this operation.
    pub fn is_new(&self) -> bool {
        matches!(self, Self::Created { .. })
    }
}

/// The state of a task in its store.
///
/// Exhaustive on purpose: a store that misses a phase must not compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum Phase {
    /// Waits for a worker.
    Queued,
    /// A worker has a lease on it.
    Running,
    /// Waits for input or a time; no worker has it.
    Parked,
    /// Stopped until an operator retries it; no worker has it. Not terminal: its client sees it as
    /// working.
    Quarantined,
    /// Terminal.
    Ended,
}

/// A task as its principal may see it, read in one transaction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskRecord {
    /// Its ID.
    pub id: TaskId,
    /// The name of its tool.
    pub tool: String,
    /// The dialect in which it was requested.
    pub origin: String,
    /// Its phase.
    pub phase: Phase,
    /// Its outcome, if it has ended.
    pub outcome: Option<TaskOutcome>,
    /// When it was created.
    pub created_at: UnixMillis,
    /// When it last changed; grows with every change of this record. A recorded step may show up to a
    /// second late.
    pub updated_at: UnixMillis,
    /// How long it may exist at the moment, in milliseconds from its creation.
    pub ttl: Option<u64>,
    /// Its status message.
    pub status_message: Option<String>,
    /// Its last progress.
    pub progress: Option<RawJson>,
    /// The open input requests to its client, by wire key, in the order of their issue.
    pub input_requests: Vec<(String, InputRequest)>,
    /// When its cancellation was requested.
    pub cancel_requested: Option<UnixMillis>,
}

impl TaskRecord {
    /// Creates the record of a task that has not changed since its creation.
    pub fn new(
        id: TaskId,
        tool: impl Into<String>,
        origin: impl Into<String>,
        phase: Phase,
        created_at: UnixMillis,
    ) -> Self {
        Self {
            id,
            tool: tool.into(),
            origin: origin.into(),
            phase,
            outcome: None,
            created_at,
            updated_at: created_at,
            ttl: None,
            status_message: None,
            progress: None,
            input_requests: Vec::new(),
            cancel_requested: None,
        }
    }
}

setters!(TaskRecord {
    outcome: Option<TaskOutcome>,
    updated_at: UnixMillis,
    ttl: Option<u64>,
    status_message: Option<String>,
    progress: Option<RawJson>,
    input_requests: Vec<(String, InputRequest)>,
    cancel_requested: Option<UnixMillis>,
});

/// Maximum size of a page of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageLimit {
    /// Number of segments.
    pub segments: usize,
    /// Bytes after which no segment is added. A page has at least one segment.
    pub bytes: usize,
}

impl PageLimit {
    /// Creates a limit.
    pub const fn new(segments: usize, bytes: usize) -> Self {
        Self { segments, bytes }
    }
}

/// Segments of a task after a sequence number, read in one transaction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredSegments {
    /// The content blocks, in order. The first has the sequence number after the requested one.
    pub blocks: Vec<RawJson>,
    /// The sequence number of the task's last segment, in this page or not; zero if it has none.
    pub last: u64,
    /// Whether the task has ended, so that `last` does not change.
    pub ended: bool,
    /// Whether an input request of the task is open.
    pub input_required: bool,
}

impl StoredSegments {
    /// Creates a page of a task that has not ended and waits for no input.
    pub fn new(blocks: Vec<RawJson>, last: u64) -> Self {
        Self { blocks, last, ended: false, input_required: false }
    }
}

setters!(StoredSegments { ended: bool, input_required: bool });

/// The source of input responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must know them all")]
pub enum InputSource {
    /// The client, which sees the input request.
    Client,
    /// Another system, which has a completion token.
    External,
}

/// Result of a cancellation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum CancelOutcome {
    /// The task has ended now.
    Cancelled,
    /// The task had ended before.
    AlreadyEnded,
    /// Its worker is asked to stop.
    Requested,
}

/// The position in a list: after this task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListCursor {
    /// When the task was created.
    pub created: UnixMillis,
    /// Its ID.
    pub id: TaskId,
}

impl ListCursor {
    /// Creates the position after a task.
    pub fn new(created: UnixMillis, id: TaskId) -> Self {
        Self { created, id }
    }
}
