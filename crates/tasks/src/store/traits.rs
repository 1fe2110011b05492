//! The traits of a store.
//!
//! Every promise here is a check of the contract suite, which every store runs. Each call changes a
//! task in one transaction or not at all. A change is durable when its future returns `Ok`.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use outlive_wire::RawJson;

use super::{
    audit::{AuditEvent, AuditRecord},
    charge::Charge,
    claim::Claim,
    error::StoreError,
    id::{Lease, TaskId, WorkerId},
    task::{
        CancelOutcome, CreateOutcome, IdempotencyKey, InputSource, ListCursor, NewTask, PageLimit,
        StoredSegments, TaskRecord,
    },
    work::{
        ChangeSource, Changes, ClaimedTask, CleanupState, Inbox, StoreStats, SweepReport,
        Transition,
    },
};

/// The future that store methods return.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A callback for change notifications. Gets the task and the source of the change. Must not block.
pub type ChangeListener = Arc<dyn Fn(&TaskId, ChangeSource) + Send + Sync>;

/// What servers do with tasks on behalf of a principal.
pub trait TaskStore: Send + Sync + 'static {
    /// Creates a task, unless its idempotency key exists or its principal's quota is used up. When
    /// the future returns, every replica finds the task.
    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome>;

    /// Returns the task that this principal created under an idempotency key, or `KeyConflict` if
    /// the key belongs to another request.
    fn find<'a>(
        &'a self,
        principal: &'a str,
        key: &'a IdempotencyKey,
    ) -> StoreFuture<'a, Option<CreateOutcome>>;

    /// Returns a task of this principal. Tasks of other principals do not exist for it.
    fn get<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<TaskRecord>>;

    /// Returns the listed tasks of this principal that were created in one dialect, oldest first,
    /// from after a cursor on.
    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskRecord>>;

    /// Returns the segments of a task after a sequence number; `None` if this principal has no such
    /// task. A segment never changes its number, and an ended task gets no more segments.
    fn read_segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> StoreFuture<'a, Option<StoredSegments>>;

    /// Stores responses to open input requests, by their wire key, and returns how many were
    /// accepted; `None` if this principal has no such task.
    ///
    /// The first response to a request counts. The store ignores all others, and those to requests
    /// that are not open or belong to another source. If the principal would have more than
    /// `max_bytes` stored, it accepts none and returns `BytesExceeded`.
    fn respond<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        source: InputSource,
        responses: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> StoreFuture<'a, Option<usize>>;

    /// Cancels a task: at once if no worker holds it or `at_once` is set; otherwise the store asks
    /// the worker to stop. `None` if this principal has no such task.
    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> StoreFuture<'a, Option<CancelOutcome>>;
}

/// What workers do with tasks under leases.
pub trait WorkQueue: Send + Sync + 'static {
    /// Gives due tasks to a worker. A task is due if it is queued, is parked and its input or time
    /// has come, has a worker whose lease has ended, or has ended and needs its cleanup. Each task
    /// goes to one worker, and the store rejects later writes of its former worker.
    ///
    /// A task that was created with `clean_up`, has started, and was cancelled or has expired needs
    /// a cleanup from the same transaction on. The cleanup is due at once if no worker held the
    /// task; otherwise when its worker reports that the run is gone, or when its lease would have
    /// ended. The task keeps its outcome, and no sweep deletes it before the cleanup is done.
    ///
    /// No principal gets more than the claim allows, so more tasks may be due.
    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> StoreFuture<'a, Vec<ClaimedTask>>;

    /// Renews all leases of a worker, and returns them.
    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> StoreFuture<'a, Vec<Lease>>;

    /// Releases all tasks of a worker. No crash is counted.
    fn release<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()>;

    /// Commits the changes of a worker and the transition that follows, all of it or nothing.
    ///
    /// With a charge it returns `BytesExceeded` if the task's principal would have too many bytes
    /// stored. Changes that store nothing are always written, and so is an outcome of
    /// [`OUTCOME_RESERVE`](super::OUTCOME_RESERVE) bytes.
    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()>;

    /// Returns the input responses and the cancellation that a task has got since its claim.
    fn inbox<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, Inbox>;

    /// Records the state of a cleanup. `Due` is reported by the last worker of the task or the
    /// worker that claimed the cleanup, `Done` by the latter. `LeaseLost` if another worker has
    /// claimed the cleanup, or the task needs none.
    fn finish_cleanup<'a>(&'a self, lease: &'a Lease, state: CleanupState) -> StoreFuture<'a, ()>;

    /// Returns the time until a task is due; zero if one is due now. Tasks of the principals in
    /// `except` do not count.
    fn next_due<'a>(&'a self, except: &'a [String]) -> StoreFuture<'a, Option<Duration>>;

    /// Ends expired tasks, and deletes tasks, key-value entries and audit events whose retention is
    /// over.
    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport>;

    /// Calls the listener for changes that callers can see or that make a task due: for each change
    /// of this process, and soon, as a hint, for those of other replicas.
    ///
    /// Changes that only the worker knows are left out: a task that its worker creates for itself,
    /// a recorded step. The listener may get more calls and duplicates, but never
    /// [`ChangeSource::Worker`] for a change that the worker did not make. A reader that must not
    /// miss a change polls as well.
    fn subscribe(&self, listener: ChangeListener);
}

/// Expiring values under keys.
pub trait KeyValueStore: Send + Sync + 'static {
    /// Stores `value` under `key` for `ttl` if the key is absent. Returns the existing value
    /// otherwise. Of several concurrent callers one gets `None`.
    ///
    /// With a charge the entry counts in the bytes of that principal until it is deleted;
    /// `BytesExceeded` if there would be too many.
    fn put_if_absent<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, Option<RawJson>>;

    /// Stores `value` under `key` for `ttl`, and replaces an existing value. Charged like
    /// [`put_if_absent`](Self::put_if_absent); on `BytesExceeded` the existing value stays.
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, ()>;

    /// Returns the value under `key`, unless it has expired.
    fn get_value<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<RawJson>>;

    /// Deletes the value under `key`.
    fn delete<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()>;
}

/// The append-only record of who did what.
pub trait AuditLog: Send + Sync + 'static {
    /// Appends events. Each is kept until `retention` is over; of all events the newest
    /// `max_events` are kept.
    fn append(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> StoreFuture<'_, ()>;

    /// Returns events after an event number, oldest first: those of one task, or all.
    fn read<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditRecord>>;
}

/// What health checks, metrics and quotas read.
pub trait StoreMonitor: Send + Sync + 'static {
    /// Returns the number of tasks by phase, and how long the oldest due task has been waiting.
    /// Stores count as tasks change their phase, so this reads no task.
    fn stats(&self) -> StoreFuture<'_, StoreStats>;

    /// Checks that the store responds, with its cheapest request.
    fn ready(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.stats().await.map(drop) })
    }

    /// Returns how many bytes a principal has stored: its tasks, ended ones included, with their
    /// requests, journals and outcomes, and the key-value entries that it is charged for.
    fn stored_bytes<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, u64>;
}

/// A store of tasks, as a server takes it.
///
/// Implemented for every type that implements its parts.
pub trait Store: TaskStore + WorkQueue + KeyValueStore + AuditLog + StoreMonitor {}

impl<S: TaskStore + WorkQueue + KeyValueStore + AuditLog + StoreMonitor> Store for S {}
