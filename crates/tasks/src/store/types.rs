//! What a store keeps of a task, and what is asked of it.

use std::{fmt, sync::Arc, time::Duration};

use outlive_wire::{InputRequest, RawJson};
use serde::{Deserialize, Serialize};

use super::{charge::Charge, outcome::TaskOutcome};
use crate::{JournalEntry, JournalSnapshot, Segment};

/// Milliseconds since 1970, by the store's own clock. A worker's clock decides nothing.
pub type UnixMillis = u64;

/// The name of a task: unguessable, and safe in a header.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId(Arc<str>);

impl TaskId {
    /// Takes a name as it is.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A process that runs tasks. Another one each time a process starts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(Arc<str>);

impl WorkerId {
    /// Takes a name as it is.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The right to write to a task, until somebody else has claimed it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by stores, third parties' included")]
pub struct Lease {
    /// The task.
    pub task: TaskId,
    /// Who holds it.
    pub worker: WorkerId,
    /// The how manieth claim it is. A write under an older one is refused.
    pub epoch: u64,
}

/// A task that is to be made.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "read by stores, third parties' included")]
pub struct NewTask {
    /// Its name.
    pub id: TaskId,
    /// Whom it belongs to.
    pub principal: String,
    /// What it does, for operators: the name of the tool.
    pub tool: String,
    /// Which dialect it was asked for in. A store lists by it, and makes nothing else of it.
    pub origin: String,
    /// Whether its principal can list it. A task without a list needs no index entry.
    pub listed: bool,
    /// The request that it answers, as whoever runs it wants to have it back.
    pub request: RawJson,
    /// How long it may exist, from its creation; `None` for ever.
    pub ttl: Option<Duration>,
    /// How long it may exist while a question is open, from its creation. When none is open any
    /// more it has its `ttl` once again from then on, as far as this allows.
    pub max_ttl: Duration,
    /// What has been recorded before it became a task.
    pub journal: JournalSnapshot,
    /// Who runs it from the beginning, and for how long that is granted; `None` to queue it.
    pub worker: Option<(WorkerId, Duration)>,
    /// Under which key it is made once only.
    pub idempotency: Option<IdempotencyKey>,
    /// Whether something is to be done after it if it is cancelled or expires once it has begun.
    pub clean_up: bool,
    /// How many tasks that have not ended its principal may have.
    pub quota: usize,
    /// How many bytes its principal may have stored, this task included.
    pub max_bytes: u64,
}

/// A key under which a principal makes one task, however often it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "read by stores, third parties' included")]
pub struct IdempotencyKey {
    /// The key.
    pub key: String,
    /// What is asked for under it. The same key for something else is refused.
    pub fingerprint: String,
}

/// What became of [`TaskStore::create`](super::TaskStore::create).
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must know them all")]
pub enum CreateOutcome {
    /// It was made.
    Created {
        /// The worker's, if one was named.
        lease: Option<Lease>,
        /// When it was made.
        at: UnixMillis,
    },
    /// It had been made under this key before.
    Existing(TaskId),
    /// The key was used for something else.
    KeyConflict,
    /// The principal has as many tasks as it may.
    QuotaExceeded,
    /// The principal has as many bytes stored as it may.
    OverBytes,
}

impl CreateOutcome {
    /// Whether it was made now.
    pub fn is_new(&self) -> bool {
        matches!(self, Self::Created { .. })
    }
}

/// Who has changed a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must know them all")]
pub enum ChangeSource {
    /// The worker that has it, or had it until then.
    Worker,
    /// Somebody else, or nobody knows who.
    Other,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum Phase {
    /// Waits for a worker.
    Queued,
    /// A worker has it.
    Running,
    /// Waits for an answer or a time; no worker has it.
    Parked,
    /// Stopped, and kept for an operator to have it tried again; no worker has it. Not over: its
    /// client sees it as at work.
    Quarantined,
    /// Over. Never changes again.
    Ended,
}

/// A task as its owner may see it, in one consistent piece.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by stores, third parties' included")]
pub struct TaskRecord {
    /// Its name.
    pub id: TaskId,
    /// What it does.
    pub tool: String,
    /// Which dialect it was asked for in.
    pub origin: String,
    /// How far it is.
    pub phase: Phase,
    /// How it has ended.
    pub outcome: Option<TaskOutcome>,
    /// When it was made.
    pub created_at: UnixMillis,
    /// When it last changed; grows with every change that stands here. That it has recorded a step
    /// may be told up to a second late.
    pub updated_at: UnixMillis,
    /// How long it may exist as things are, in milliseconds from its creation.
    pub ttl: Option<u64>,
    /// What it is doing, in words.
    pub status_message: Option<String>,
    /// How far it said it was, last.
    pub progress: Option<RawJson>,
    /// What its client is asked and has not answered, by the name on the wire, in the order it was
    /// asked.
    pub input_requests: Vec<(String, InputRequest)>,
    /// When it was asked to stop.
    pub cancel_requested: Option<UnixMillis>,
}

/// How much of what a task has emitted is read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "read by stores, third parties' included")]
pub struct PageLimit {
    /// So many blocks at most.
    pub segments: usize,
    /// And no more of them when they have so many bytes together; one there always is.
    pub bytes: usize,
}

/// What a task has emitted, from after a number on, in one consistent piece.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by stores, third parties' included")]
pub struct StoredSegments {
    /// The blocks, in their order. The first has the number after the one that was named.
    pub blocks: Vec<RawJson>,
    /// The number of the last block there is, among these or not; zero if there is none.
    pub last: u64,
    /// Whether the task is over, and `last` stays the last.
    pub ended: bool,
    /// Whether a question of it is open.
    pub input_required: bool,
}

/// A task that a worker has got.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by stores, third parties' included")]
pub struct ClaimedTask {
    /// The right to write.
    pub lease: Lease,
    /// Whom it belongs to.
    pub principal: String,
    /// What it does.
    pub tool: String,
    /// The request that it answers.
    pub request: RawJson,
    /// What has been recorded and answered.
    pub journal: JournalSnapshot,
    /// Whether it has run before.
    pub started: bool,
    /// How many workers were lost in a row without a new entry in the journal.
    pub crash_count: u32,
    /// Whether this claim is because a worker was lost: its lease was over, or it is dead.
    pub lost: bool,
    /// Whether it was asked to stop.
    pub cancel_requested: bool,
    /// How far it said it was, last.
    pub progress: Option<RawJson>,
    /// How it has ended, if it has: then it is not to be run, but cleaned up after.
    pub ended: Option<TaskOutcome>,
}

/// What a worker has to write, all of it or nothing.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "read by stores, third parties' included")]
pub struct Changes {
    /// New entries of the journal. One that is there stays as it is.
    pub entries: Vec<(String, JournalEntry)>,
    /// New segments, in their order.
    pub segments: Vec<Segment>,
    /// Questions that are asked from now on. A name means one question in the life of a task: one
    /// that was withdrawn is open again, one that was answered stays answered.
    pub input_requests: Vec<NewInputRequest>,
    /// Names of questions that are not asked any more.
    pub withdrawn: Vec<String>,
    /// Keys of answers that did not fit: they are asked for again, under another name.
    pub invalidated: Vec<String>,
    /// What the task is doing, in words.
    pub status_message: Option<String>,
    /// How far it is.
    pub progress: Option<RawJson>,
    /// Whom the bytes count for, and how many that principal may have stored with these changes;
    /// `None` for any number. Nothing to write by itself.
    pub charge: Option<Charge>,
}

impl Changes {
    /// Returns these changes without what stores bytes: entries, segments, questions and words.
    #[must_use]
    pub fn without_growth(self) -> Self {
        let Self { withdrawn, invalidated: forgotten, .. } = self;
        Self { withdrawn, invalidated: forgotten, ..Self::default() }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
            && self.segments.is_empty()
            && self.input_requests.is_empty()
            && self.withdrawn.is_empty()
            && self.invalidated.is_empty()
            && self.status_message.is_none()
            && self.progress.is_none()
    }

    /// Whether those who look at the task see a difference. That it has recorded something, they do
    /// not.
    pub fn is_visible(&self) -> bool {
        !self.segments.is_empty()
            || !self.input_requests.is_empty()
            || !self.withdrawn.is_empty()
            || self.status_message.is_some()
            || self.progress.is_some()
    }
}

/// A question, as it is kept.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "read by stores, third parties' included")]
pub struct NewInputRequest {
    /// Its key in the journal.
    pub key: String,
    /// Its name on the wire.
    pub name: String,
    /// What the client is asked; `None` if it is not the client that answers.
    pub request: Option<InputRequest>,
    /// When it is over.
    pub due: Option<UnixMillis>,
}

/// Who answers a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must know them all")]
pub enum InputSource {
    /// The client, which is shown the question.
    Client,
    /// Something outside, which was given a token for it.
    External,
}

/// What others have done to a task while a worker has it.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "made by stores, third parties' included")]
pub struct Inbox {
    /// All that was answered, by the key in the journal.
    pub answers: Vec<(String, RawJson)>,
    /// Whether it was asked to stop.
    pub cancel_requested: bool,
}

/// What happens to a lease when changes have been written.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum Transition {
    /// The worker goes on.
    Continue,
    /// The task waits without a worker: for an answer, or until a time. If there are answers that
    /// its worker has not seen, or it was asked to stop, it is queued at once.
    Park {
        /// When somebody must look at it.
        due: Option<UnixMillis>,
        /// How many answers its worker has seen.
        seen: usize,
    },
    /// The task is stopped, and kept for an operator: nobody goes on with it until
    /// [`OperatorStore::retry`](super::OperatorStore::retry), whatever is answered meanwhile. One that was
    /// asked to stop is queued at once instead.
    Quarantine {
        /// How it ends if nobody has it tried again.
        outcome: TaskOutcome,
        /// For how long it is kept, at least; one without a time to live is kept for ever.
        hold: Duration,
    },
    /// The task is over. Its open questions are not asked any more.
    End {
        /// How.
        outcome: TaskOutcome,
        /// How long it can still be read.
        retention: Duration,
    },
}

/// How far the clean-up after a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum CleanupState {
    /// The run that it comes after is gone: anybody may begin it.
    Due,
    /// It is done, or given up.
    Done,
}

/// What became of a request to cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum CancelOutcome {
    /// It is over now.
    Cancelled,
    /// It was over before.
    AlreadyEnded,
    /// Its worker has been asked to stop.
    Requested,
}

/// Where a list goes on: after this task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "read by stores, third parties' included")]
pub struct ListCursor {
    /// When it was made.
    pub created: UnixMillis,
    /// Its name.
    pub id: TaskId,
}

/// What a sweep has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by stores, third parties' included")]
pub struct SweepReport {
    /// Tasks whose time was over, and whose they were.
    pub expired: Vec<(String, TaskId)>,
    /// Quarantined tasks that no operator had retried in time, and their principals. They have
    /// ended as their quarantine said, which is a failure.
    pub failed: Vec<(String, TaskId)>,
    /// Tasks that have been forgotten.
    pub purged: usize,
    /// Whether there may be more to do: as much of something was done as was asked for.
    pub more: bool,
}

/// Something that has happened, for whoever must know later who did what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "read by stores, third parties' included")]
pub struct AuditEvent {
    /// Which task: its name, or a digest of it where the name opens it.
    pub task: String,
    /// Who did it.
    pub principal: String,
    /// What: one word, or several with dashes.
    pub action: String,
    /// Why, or how it went.
    pub reason: Option<String>,
}

/// An event as a store has kept it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "made by stores, third parties' included")]
pub struct AuditRecord {
    /// Its number; later ones have greater numbers.
    pub number: u64,
    /// When it was written down.
    pub at: UnixMillis,
    /// What has happened.
    pub event: AuditEvent,
}

/// How many tasks there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by stores, third parties' included")]
pub struct StoreStats {
    /// Wait for a worker.
    pub queued: u64,
    /// Have a worker.
    pub running: u64,
    /// Wait for an answer or a time.
    pub parked: u64,
    /// Are kept for an operator.
    pub quarantined: u64,
    /// Are over, and can still be read.
    pub ended: u64,
    /// Bytes that all principals have stored, at the last sweep or later.
    pub bytes: u64,
    /// How long the task that is due for the longest time has been so.
    pub oldest_due: Option<Duration>,
}

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The lease is lost, or the task is over: whoever holds it must stop.
    LeaseLost,
    /// The store cannot be reached or written. It is not known to be done; doing it again later does
    /// no harm.
    Unavailable(String),
    /// The store holds something that this version cannot read.
    Incompatible(String),
    /// The principal has as many bytes stored as it may. Nothing was written.
    OverBytes,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeaseLost => f.write_str("another worker has the task, or it is over"),
            Self::Unavailable(why) => write!(f, "the store cannot be used: {why}"),
            Self::Incompatible(what) => write!(f, "the store holds what cannot be read: {what}"),
            Self::OverBytes => f.write_str("the caller has as many bytes stored as it may"),
        }
    }
}

impl std::error::Error for StoreError {}
