//! Records of a server's operations on tasks for a principal.

use std::time::Duration;

use outlive_wire::RawJson;
use serde::{Deserialize, Serialize};

use super::{
    audit::EndAudit,
    bridge::Bridge,
    id::{Lease, TaskId, UnixMillis, WorkerId},
    input::OpenInput,
    input_request::NewInputRequest,
    outcome::TaskOutcome,
    subscription::Subscription,
};
use crate::{JournalSnapshot, setters::setters};

/// Maximum number of tags of a task. A store ignores further ones.
pub const MAX_TAGS: usize = 8;

/// Maximum bytes of a tag.
pub const MAX_TAG_BYTES: usize = 64;

/// A task to create.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewTask {
    /// Task ID.
    pub id: TaskId,
    /// Principal that the task belongs to.
    pub principal: String,
    /// Name of the tool, for operators.
    pub tool: String,
    /// Protocol dialect of the request. The store filters lists by it and does not interpret it.
    pub origin: String,
    /// Whether the principal can list the task. An unlisted task needs no index entry.
    pub listed: bool,
    /// Call that the task executes.
    pub request: RawJson,
    /// TTL of the task; `None` without a limit.
    pub ttl: Option<Duration>,
    /// Maximum TTL while an input request is open, from the creation. After the last input request
    /// is closed, `ttl` starts again, but never exceeds this maximum.
    pub max_ttl: Duration,
    /// Journal from before the promotion.
    pub journal: JournalSnapshot,
    /// Worker that runs the task from its creation, and the duration of its lease; `None` to queue
    /// the task.
    pub worker: Option<(WorkerId, Duration)>,
    /// Idempotency key of the task.
    pub idempotency: Option<IdempotencyKey>,
    /// Whether the task needs a cleanup if it is cancelled or expires after its start.
    pub clean_up: bool,
    /// Maximum number of tasks of the principal that have not ended.
    pub quota: usize,
    /// Maximum stored bytes of the principal, including this task.
    pub max_bytes: u64,
    /// Call of a client without tasks that waits for the task. The task is then created
    /// unacknowledged.
    pub bridge: Option<Bridge>,
    /// Person of the caller; `None` for an anonymous caller.
    pub person: Option<String>,
    /// Whether lists by tool, person and tag contain the task, because its server has a console.
    pub indexed: bool,
    /// Task that this one runs again.
    pub rerun_of: Option<TaskId>,
    /// Input requests that are open from the creation. A task with an input request and without a
    /// worker is parked until a response or the first timeout.
    pub input_requests: Vec<NewInputRequest>,
    /// Status message.
    pub status_message: Option<String>,
    /// Tags, as `key=value`. Only an indexed task has tags.
    pub tags: Vec<String>,
    /// Events of the task that targets are notified of.
    pub notify: Vec<Subscription>,
    /// Audit event of the end. Every operation that ends the task appends it in the same
    /// transaction. The deletion of a task that has not ended appends no event.
    pub end_audit: Option<EndAudit>,
}

impl NewTask {
    /// Creates a listed, queued task without limits.
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
            bridge: None,
            person: None,
            indexed: false,
            rerun_of: None,
            input_requests: Vec::new(),
            status_message: None,
            tags: Vec::new(),
            notify: Vec::new(),
            end_audit: None,
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
    bridge: Option<Bridge>,
    person: Option<String>,
    indexed: bool,
    rerun_of: Option<TaskId>,
    input_requests: Vec<NewInputRequest>,
    status_message: Option<String>,
    tags: Vec<String>,
    notify: Vec<Subscription>,
    end_audit: Option<EndAudit>,
});

/// A key under which a principal creates at most one task, however often it sends the request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdempotencyKey {
    /// Idempotency key.
    pub key: String,
    /// Digest of the request. The store rejects the same key with another fingerprint.
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
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum CreateOutcome {
    /// The task was created.
    Created {
        /// Lease of the worker, if one was given.
        lease: Option<Lease>,
        /// When the task was created.
        at: UnixMillis,
    },
    /// The principal created this task earlier under the same key.
    Existing(TaskId),
    /// The key was used for another request.
    KeyConflict,
    /// The principal has reached its maximum number of tasks.
    QuotaExceeded,
    /// The principal has reached its maximum number of stored bytes.
    BytesExceeded,
}

impl CreateOutcome {
    /// Returns whether the task was created by this operation.
    pub fn is_new(&self) -> bool {
        matches!(self, Self::Created { .. })
    }
}

/// State of a task in its store.
///
/// Exhaustive on purpose: a store that misses a phase must not compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum Phase {
    /// The task waits for a worker.
    Queued,
    /// A worker has a lease on the task.
    Running,
    /// The task waits for input or a timer, without a worker.
    Parked,
    /// The task is stopped, without a worker, until an operator retries it. The phase is not
    /// terminal: the client sees the status `working`.
    Quarantined,
    /// The task has ended. This phase is terminal.
    Ended,
}

/// A task as its principal sees it, read in one transaction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskRecord {
    /// Task ID.
    pub id: TaskId,
    /// Name of the tool.
    pub tool: String,
    /// Protocol dialect of the request.
    pub origin: String,
    /// Phase of the task.
    pub phase: Phase,
    /// Outcome, if the task has ended.
    pub outcome: Option<TaskOutcome>,
    /// When the task was created.
    pub created_at: UnixMillis,
    /// Time of the last change; grows with every change of this record. A recorded step may appear
    /// here up to a second late.
    pub updated_at: UnixMillis,
    /// Current TTL, in milliseconds from the creation.
    pub ttl: Option<u64>,
    /// Status message.
    pub status_message: Option<String>,
    /// Last progress.
    pub progress: Option<RawJson>,
    /// Open input requests to the client, in the order of their issue. Those for named people or a
    /// scope are not among them.
    pub input_requests: Vec<OpenInput>,
    /// When the cancellation was requested.
    pub cancel_requested: Option<UnixMillis>,
    /// Whether the client knows the task: `false` for a bridged task until its first pending
    /// result. Lists contain only acknowledged tasks.
    pub acknowledged: bool,
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
            acknowledged: true,
        }
    }
}

setters!(TaskRecord {
    outcome: Option<TaskOutcome>,
    updated_at: UnixMillis,
    ttl: Option<u64>,
    status_message: Option<String>,
    progress: Option<RawJson>,
    input_requests: Vec<OpenInput>,
    cancel_requested: Option<UnixMillis>,
    acknowledged: bool,
});

/// Maximum size of a page of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageLimit {
    /// Maximum number of segments.
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
    /// Content blocks, in order. The first block has the sequence number after the requested one.
    pub blocks: Vec<RawJson>,
    /// Sequence number of the task's last segment, on this page or not; zero without segments.
    pub last: u64,
    /// Whether the task has ended, so that `last` does not change.
    pub ended: bool,
    /// Whether an input request to the client or an external event of the task is open.
    pub input_required: bool,
}

impl StoredSegments {
    /// Creates a page of a task that has not ended and waits for no input.
    pub fn new(blocks: Vec<RawJson>, last: u64) -> Self {
        Self { blocks, last, ended: false, input_required: false }
    }
}

setters!(StoredSegments { ended: bool, input_required: bool });

/// Result of a cancellation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum CancelOutcome {
    /// This operation ended the task.
    Cancelled,
    /// The task had already ended.
    AlreadyEnded,
    /// The worker was requested to stop.
    Requested,
}

/// Pagination cursor: the last task of the previous page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListCursor {
    /// When that task was created.
    pub created: UnixMillis,
    /// ID of that task.
    pub id: TaskId,
}

impl ListCursor {
    /// Creates a cursor after a task.
    pub fn new(created: UnixMillis, id: TaskId) -> Self {
        Self { created, id }
    }
}
