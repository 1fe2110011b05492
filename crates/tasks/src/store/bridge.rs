//! Records of bridged calls: calls of clients without tasks that wait for a task.

use std::time::Duration;

use super::id::{TaskId, UnixMillis, WorkerId};

/// Maximum number of tasks that one call of [`BridgeStore::evict`](super::BridgeStore::evict)
/// deletes. A longer call would block the other writers of the store.
pub(super) const MAX_EVICTED: usize = 128;

/// The call that waits for a new task.
///
/// A task with a bridge is created unacknowledged, and attended by `worker`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bridge {
    /// Part of the principal whose calls can join and list the task, such as a session; `None` if
    /// no call can.
    pub scope: Option<String>,
    /// Fingerprint of tool and arguments. Two calls with the same fingerprint are equal.
    pub fingerprint: String,
    /// Worker in whose process the call waits.
    pub worker: WorkerId,
    /// Time after which the sweep cancels an unattended task whose client never received a pending
    /// result.
    pub abandon_timeout: Duration,
}

impl Bridge {
    /// Creates a bridge.
    pub fn new(
        scope: Option<String>,
        fingerprint: impl Into<String>,
        worker: WorkerId,
        abandon_timeout: Duration,
    ) -> Self {
        Self { scope, fingerprint: fingerprint.into(), worker, abandon_timeout }
    }
}

/// Reason why a call stops waiting for its task.
///
/// Exhaustive on purpose: a store that misses a departure must not compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "stores and engines must handle every variant")]
pub enum Departure {
    /// A pending result was flushed. The client knows the task.
    PendingResult,
    /// An empty round was sent. The client returns, so no call joins within `return_timeout`.
    Round {
        /// Time in which the client returns.
        return_timeout: Duration,
    },
    /// The request ended without a reply.
    Lost,
}

/// Result of [`BridgeStore::join`](super::BridgeStore::join).
///
/// Exhaustive on purpose: a caller that misses a result must not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "callers must handle every variant")]
pub enum Joined {
    /// The call attends this run.
    Run(Attended),
    /// No run can be joined yet. The client of one returns after an empty round; if it does not, the
    /// run can be joined after this time.
    Returning(Duration),
    /// No run can be joined.
    Nothing,
}

impl Joined {
    /// Returns the run that the call attends.
    pub fn run(self) -> Option<Attended> {
        match self {
            Self::Run(attended) => Some(attended),
            Self::Returning(_) | Self::Nothing => None,
        }
    }
}

/// A task that a call waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attended {
    /// Task ID.
    pub task: TaskId,
    /// When the task was created.
    pub created_at: UnixMillis,
    /// Number of pending results that were sent for the task.
    pub pending_results: u32,
}

impl Attended {
    /// Creates the record of a task.
    pub fn new(task: TaskId, created_at: UnixMillis, pending_results: u32) -> Self {
        Self { task, created_at, pending_results }
    }
}

/// A bridged task whose result was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenCall {
    /// Task ID.
    pub task: TaskId,
    /// Name of the tool.
    pub tool: String,
    /// When the task was created.
    pub created_at: UnixMillis,
}

impl OpenCall {
    /// Creates the record of a task.
    pub fn new(task: TaskId, tool: impl Into<String>, created_at: UnixMillis) -> Self {
        Self { task, tool: tool.into(), created_at }
    }
}
