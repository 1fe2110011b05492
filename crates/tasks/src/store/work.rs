//! Records of operations under a lease, and statistics of a store.

use std::time::Duration;

use outlive_wire::RawJson;

use super::{
    charge::Charge,
    id::{Lease, TaskId, UnixMillis},
    input_request::NewInputRequest,
    outcome::TaskOutcome,
    recorded_entry::RecordedEntry,
    result::ResultPart,
    task::CancelOutcome,
};
use crate::{JournalSnapshot, SegmentRecord, setters::setters};

/// Source of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum ChangeSource {
    /// The worker that has the lease, or had it until this change.
    Worker,
    /// Another source, or an unknown one.
    Other,
}

/// A task that a worker has claimed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClaimedTask {
    /// Lease of the worker.
    pub lease: Lease,
    /// Principal that the task belongs to.
    pub principal: String,
    /// Name of the tool.
    pub tool: String,
    /// Call that the task executes.
    pub request: RawJson,
    /// Journal, including input responses.
    pub journal: JournalSnapshot,
    /// Whether the task has run before.
    pub started: bool,
    /// Number of crashes in a row without a new journal entry.
    pub crash_count: u32,
    /// Whether the task was reclaimed after its worker crashed or lost its lease.
    pub lost: bool,
    /// Whether cancellation was requested.
    pub cancel_requested: bool,
    /// Last progress.
    pub progress: Option<RawJson>,
    /// Outcome of an ended task. The worker then executes the cleanup instead of the handler.
    pub ended: Option<TaskOutcome>,
}

impl ClaimedTask {
    /// Creates a claimed task that has not run before.
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

/// Changes that a worker commits in one transaction.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Changes {
    /// New journal entries. The store keeps an existing entry unchanged.
    pub entries: Vec<RecordedEntry>,
    /// New segments, in order.
    pub segments: Vec<SegmentRecord>,
    /// Input requests to open. A wire key identifies one input request of a task: a withdrawn
    /// request is opened again, and a resolved request stays resolved.
    pub input_requests: Vec<NewInputRequest>,
    /// Wire keys of input requests to withdraw.
    pub withdrawn: Vec<String>,
    /// Journal keys of invalid input responses. The run repeats the requests under other wire keys.
    pub invalidated: Vec<String>,
    /// Tags to add, as `key=value`. Ignored for a task that is not indexed.
    pub tags: Vec<String>,
    /// Status message.
    pub status_message: Option<String>,
    /// Progress.
    pub progress: Option<RawJson>,
    /// Parts of the result. Written only with [`Transition::End`], and the outcome is then
    /// [`TaskOutcome::LargeResult`].
    pub result_parts: Vec<ResultPart>,
    /// Principal that is charged for the bytes, and its limit; `None` without a limit. Does not
    /// count as a change.
    pub charge: Option<Charge>,
}

setters!(Changes {
    entries: Vec<RecordedEntry>,
    segments: Vec<SegmentRecord>,
    input_requests: Vec<NewInputRequest>,
    withdrawn: Vec<String>,
    invalidated: Vec<String>,
    tags: Vec<String>,
    status_message: Option<String>,
    progress: Option<RawJson>,
    result_parts: Vec<ResultPart>,
    charge: Option<Charge>,
});

impl Changes {
    /// Returns only the changes that store no bytes. Removes entries, segments, input requests,
    /// status message, progress and result parts.
    #[must_use]
    pub fn without_growth(self) -> Self {
        let Self { withdrawn, invalidated, .. } = self;
        Self { withdrawn, invalidated, ..Self::default() }
    }

    /// Returns the number of changes, not counting the charge.
    pub fn len(&self) -> usize {
        self.entries.len()
            + self.segments.len()
            + self.input_requests.len()
            + self.withdrawn.len()
            + self.invalidated.len()
            + self.tags.len()
            + usize::from(self.status_message.is_some())
            + usize::from(self.progress.is_some())
            + self.result_parts.len()
    }

    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the changes are visible to a reader of the task. Journal entries are not
    /// visible.
    pub fn is_visible(&self) -> bool {
        !self.segments.is_empty()
            || !self.input_requests.is_empty()
            || !self.withdrawn.is_empty()
            || self.status_message.is_some()
            || self.progress.is_some()
    }
}

/// Events of a leased task that its worker must process.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Inbox {
    /// All input responses, by journal key.
    pub answers: Vec<(String, RawJson)>,
    /// Whether cancellation was requested.
    pub cancel_requested: bool,
}

setters!(Inbox { answers: Vec<(String, RawJson)>, cancel_requested: bool });

/// Transition of a task and its lease after a commit.
///
/// Exhaustive on purpose: a store that misses a transition must not compile.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum Transition {
    /// The worker continues.
    Continue,
    /// The task is parked until input arrives or a timer ends. The store queues the task
    /// immediately if it has input responses that the worker has not seen, or if cancellation was
    /// requested.
    Park {
        /// When a worker must claim the task.
        due_at: Option<UnixMillis>,
        /// Number of input responses that the worker has seen.
        responses_seen: usize,
    },
    /// The task is quarantined until [`OperatorStore::retry`](super::OperatorStore::retry). Input
    /// responses do not resume it. The store queues the task instead if cancellation was requested.
    Quarantine {
        /// Outcome if no operator retries the task.
        outcome: TaskOutcome,
        /// Minimum duration of the quarantine. A task without a TTL stays quarantined without a
        /// limit.
        ttl: Duration,
    },
    /// The task ends, and its open input requests are withdrawn.
    End {
        /// Outcome of the task.
        outcome: TaskOutcome,
        /// Time for which the task stays readable.
        retention: Duration,
    },
}

impl Transition {
    /// Returns the name in traces.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Park { .. } => "park",
            Self::Quarantine { .. } => "quarantine",
            Self::End { .. } => "end",
        }
    }
}

/// State of a cleanup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum CleanupState {
    /// The run was dropped, so any worker may start the cleanup.
    Due,
    /// The cleanup succeeded or failed.
    Done,
}

/// Result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepReport {
    /// Expired tasks, with their principals.
    pub expired: Vec<(String, TaskId)>,
    /// Quarantined tasks that no operator retried in time, with their principals. They ended with
    /// the outcome of their quarantine, which is a failure.
    pub failed: Vec<(String, TaskId)>,
    /// Abandoned tasks, with their principals: bridged tasks whose client left. A task with a worker
    /// is only requested to stop.
    pub abandoned: Vec<(String, TaskId, CancelOutcome)>,
    /// Number of deleted tasks.
    pub purged: usize,
    /// Whether more rows may be due, because a batch was full.
    pub more: bool,
}

setters!(SweepReport {
    expired: Vec<(String, TaskId)>,
    failed: Vec<(String, TaskId)>,
    abandoned: Vec<(String, TaskId, CancelOutcome)>,
    purged: usize,
    more: bool,
});

/// Number of tasks and bytes in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreStats {
    /// Number of tasks that wait for a worker.
    pub queued: u64,
    /// Number of tasks that a worker has a lease on.
    pub running: u64,
    /// Number of tasks that wait for input or a timer.
    pub parked: u64,
    /// Number of quarantined tasks.
    pub quarantined: u64,
    /// Number of ended tasks that are still readable.
    pub ended: u64,
    /// Bytes that all principals have stored, as of the last sweep or later.
    pub bytes: u64,
    /// Time since the oldest due task became due.
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
