//! Records of what workers do under a lease, and of the state of a store.

use std::time::Duration;

use outlive_wire::{InputRequest, RawJson};

use super::{
    charge::Charge,
    id::{Lease, TaskId, UnixMillis},
    outcome::TaskOutcome,
};
use crate::{JournalEntry, JournalSnapshot, SegmentRecord, setters::setters};

/// The source of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must know them all")]
pub enum ChangeSource {
    /// The worker that has the lease, or had it until this change.
    Worker,
    /// Another one, or an unknown one.
    Other,
}

/// A task that a worker has claimed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClaimedTask {
    /// The worker's lease.
    pub lease: Lease,
    /// The principal that the task belongs to.
    pub principal: String,
    /// The name of its tool.
    pub tool: String,
    /// The call that it executes.
    pub request: RawJson,
    /// Its journal, input responses included.
    pub journal: JournalSnapshot,
    /// Whether it has run before.
    pub started: bool,
    /// How many workers crashed in a row without a new journal entry.
    pub crash_count: u32,
    /// Whether it was claimed because its worker crashed or lost its lease.
    pub lost: bool,
    /// Whether its cancellation was requested.
    pub cancel_requested: bool,
    /// Its last progress.
    pub progress: Option<RawJson>,
    /// Its outcome, if it has ended: then its cleanup is to run, not its handler.
    pub ended: Option<TaskOutcome>,
}

impl ClaimedTask {
    /// Creates a task that has not run before.
    pub fn new(
        lease: Lease,
        principal: impl Into<String>,
        tool: impl Into<String>,
        request: RawJson,
    ) -> Self {
        Self {
            lease,
            principal: principal.into(),
            tool: tool.into(),
            request,
            journal: JournalSnapshot::default(),
            started: false,
            crash_count: 0,
            lost: false,
            cancel_requested: false,
            progress: None,
            ended: None,
        }
    }
}

setters!(ClaimedTask {
    journal: JournalSnapshot,
    started: bool,
    crash_count: u32,
    lost: bool,
    cancel_requested: bool,
    progress: Option<RawJson>,
    ended: Option<TaskOutcome>,
});

/// What a worker writes in one transaction.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Changes {
    /// New journal entries. An existing entry stays as it is.
    pub entries: Vec<(String, JournalEntry)>,
    /// New segments, in order.
    pub segments: Vec<SegmentRecord>,
    /// Input requests that are open from now on. A wire key means one input request in the life of a
    /// task: a withdrawn one is open again, a resolved one stays resolved.
    pub input_requests: Vec<NewInputRequest>,
    /// Wire keys of input requests that are withdrawn.
    pub withdrawn: Vec<String>,
    /// Journal keys of input responses that did not fit. They are requested again under another wire key.
    pub invalidated: Vec<String>,
    /// The status message.
    pub status_message: Option<String>,
    /// The progress.
    pub progress: Option<RawJson>,
    /// The principal that is charged for the bytes, and its limit; `None` for no limit. Not a change by
    /// itself.
    pub charge: Option<Charge>,
}

setters!(Changes {
    entries: Vec<(String, JournalEntry)>,
    segments: Vec<SegmentRecord>,
    input_requests: Vec<NewInputRequest>,
    withdrawn: Vec<String>,
    invalidated: Vec<String>,
    status_message: Option<String>,
    progress: Option<RawJson>,
    charge: Option<Charge>,
});

impl Changes {
    /// Returns these changes without those that store bytes: entries, segments, input requests, status
    /// message and progress.
    #[must_use]
    pub fn without_growth(self) -> Self {
        let Self { withdrawn, invalidated, .. } = self;
        Self { withdrawn, invalidated, ..Self::default() }
    }

    /// Returns the number of changes. A charge is none.
    pub fn len(&self) -> usize {
        self.entries.len()
            + self.segments.len()
            + self.input_requests.len()
            + self.withdrawn.len()
            + self.invalidated.len()
            + usize::from(self.status_message.is_some())
            + usize::from(self.progress.is_some())
    }

    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether a reader of the task sees a difference. Journal entries are not visible.
    pub fn is_visible(&self) -> bool {
        !self.segments.is_empty()
            || !self.input_requests.is_empty()
            || !self.withdrawn.is_empty()
            || self.status_message.is_some()
            || self.progress.is_some()
    }
}

/// An input request to store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewInputRequest {
    /// Its journal key.
    pub key: String,
    /// Its wire key.
    pub name: String,
    /// The request to the client; `None` if another system responds.
    pub request: Option<InputRequest>,
    /// When it times out.
    pub due: Option<UnixMillis>,
}

impl NewInputRequest {
    /// Creates an input request without a timeout.
    pub fn new(
        key: impl Into<String>,
        name: impl Into<String>,
        request: Option<InputRequest>,
    ) -> Self {
        Self { key: key.into(), name: name.into(), request, due: None }
    }
}

setters!(NewInputRequest { due: Option<UnixMillis> });

/// What others did to a task while a worker has it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Inbox {
    /// All input responses, by journal key.
    pub answers: Vec<(String, RawJson)>,
    /// Whether its cancellation was requested.
    pub cancel_requested: bool,
}

setters!(Inbox { answers: Vec<(String, RawJson)>, cancel_requested: bool });

/// What happens to a task and its lease after a write.
///
/// Exhaustive on purpose: a store that misses a transition must not compile.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum Transition {
    /// The worker continues.
    Continue,
    /// The task waits without a worker, for input or until a time. It is queued at once if it has input
    /// responses that its worker has not seen, or if its cancellation was requested.
    Park {
        /// When a worker must claim it.
        due_at: Option<UnixMillis>,
        /// How many input responses its worker has seen.
        responses_seen: usize,
    },
    /// The task is stopped until [`OperatorStore::retry`](super::OperatorStore::retry); input responses do
    /// not resume it. It is queued at once instead if its cancellation was requested.
    Quarantine {
        /// Its outcome if no operator retries it.
        outcome: TaskOutcome,
        /// How long it is quarantined at least; a task without a TTL is quarantined for ever.
        ttl: Duration,
    },
    /// The task ends. Its open input requests are withdrawn.
    End {
        /// Its outcome.
        outcome: TaskOutcome,
        /// How long it stays readable.
        retention: Duration,
    },
}

impl Transition {
    /// Returns the name that traces show.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Park { .. } => "park",
            Self::Quarantine { .. } => "quarantine",
            Self::End { .. } => "end",
        }
    }
}

/// The state of a cleanup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum CleanupState {
    /// The run before it was dropped: any worker may start it.
    Due,
    /// It is done, or was given up.
    Done,
}

/// Result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepReport {
    /// Tasks that have expired, with their principals.
    pub expired: Vec<(String, TaskId)>,
    /// Quarantined tasks that no operator has retried in time, with their principals. They have ended
    /// with the outcome of their quarantine, which is a failure.
    pub failed: Vec<(String, TaskId)>,
    /// Number of deleted tasks.
    pub purged: usize,
    /// Whether there may be more to do, because a batch was full.
    pub more: bool,
}

setters!(SweepReport {
    expired: Vec<(String, TaskId)>,
    failed: Vec<(String, TaskId)>,
    purged: usize,
    more: bool,
});

/// How many tasks and bytes a store has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStats {
    /// Number of tasks that wait for a worker.
    pub queued: u64,
    /// Number of tasks that a worker has.
    pub running: u64,
    /// Number of tasks that wait for input or a time.
    pub parked: u64,
    /// Number of tasks that wait for an operator.
    pub quarantined: u64,
    /// Number of ended tasks that can still be read.
    pub ended: u64,
    /// Bytes that all principals have stored, at the last sweep or later.
    pub bytes: u64,
    /// How long the oldest due task has been due.
    pub oldest_due: Option<Duration>,
}

setters!(StoreStats {
    queued: u64,
    running: u64,
    parked: u64,
    quarantined: u64,
    ended: u64,
    bytes: u64,
    oldest_due: Option<Duration>,
});
