//! Traits of a store.
//!
//! The contract suite checks every promise of these traits for every store. Each call changes a
//! task in one transaction or not at all. A change is durable when its future returns `Ok`.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use outlive_wire::RawJson;

use super::{
    audit::{AuditEvent, AuditRecord},
    bridge::{Attended, Departure, Joined, OpenCall},
    charge::Charge,
    claim::Claim,
    error::StoreError,
    id::{Lease, TaskId, WorkerId},
    input::{InputDetail, InputSource},
    task::{
        CancelOutcome, CreateOutcome, IdempotencyKey, ListCursor, NewTask, PageLimit,
        StoredSegments, TaskRecord,
    },
    work::{
        ChangeSource, Changes, ClaimedTask, CleanupState, Inbox, StoreStats, SweepReport,
        Transition,
    },
};

/// Future of a store method.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Callback for change notifications, with the task and the source of the change. Must not block.
pub type ChangeListener = Arc<dyn Fn(&TaskId, ChangeSource) + Send + Sync>;

/// Operations of servers on tasks, for a principal.
pub trait TaskStore: Send + Sync + 'static {
    /// Creates a task, unless its idempotency key exists or the principal has reached a quota.
    /// Every replica finds the task as soon as the future returns.
    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome>;

    /// Returns the task that this principal created under an idempotency key. Returns `KeyConflict`
    /// if the key belongs to another request.
    fn find<'a>(
        &'a self,
        principal: &'a str,
        key: &'a IdempotencyKey,
    ) -> StoreFuture<'a, Option<CreateOutcome>>;

    /// Returns a task of this principal. Tasks of other principals are invisible.
    fn get<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<TaskRecord>>;

    /// Returns the listed and acknowledged tasks of this principal in one dialect, oldest first,
    /// after a cursor.
    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskRecord>>;

    /// Returns the segments of a task after a sequence number. Returns `None` if this principal has
    /// no such task. A segment never changes its number, and an ended task gets no more segments.
    fn read_segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> StoreFuture<'a, Option<StoredSegments>>;

    /// Stores responses to open input requests, by wire key. Returns the number of accepted
    /// responses, or `None` if this principal has no such task.
    ///
    /// Only the first response to a request counts. The store ignores responses to requests that
    /// are not open, that belong to another source, or whose
    /// [`Audience`](super::Audience) does not allow the source. Returns `BytesExceeded` and accepts nothing
    /// if the principal would exceed `max_bytes`.
    fn respond<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        source: InputSource,
        responses: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> StoreFuture<'a, Option<usize>>;

    /// Cancels a task. If a worker has the task, requests that the worker stops, unless `at_once`
    /// is set. Returns `None` if this principal has no such task.
    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> StoreFuture<'a, Option<CancelOutcome>>;
}

/// Operations of workers on tasks, under leases.
pub trait WorkQueue: Send + Sync + 'static {
    /// Claims due tasks for a worker. A task is due if it is queued, or its lease has expired, or
    /// its cleanup is due. A parked task is due when it has new input or its timer ends. Each task
    /// goes to one worker, and the store rejects later writes of its former worker.
    ///
    /// A task needs a cleanup if it was created with `clean_up`, has started, and was cancelled or
    /// expired. If no worker has the task, the cleanup is due immediately. Otherwise it is due when
    /// the worker reports that it dropped the run, or when the lease expires. The task keeps its
    /// outcome, and no sweep deletes the task before its cleanup is done.
    ///
    /// The claim limits the tasks per principal, so due tasks may remain.
    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> StoreFuture<'a, Vec<ClaimedTask>>;

    /// Renews all leases of a worker. Returns the renewed leases.
    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> StoreFuture<'a, Vec<Lease>>;

    /// Releases all tasks of a worker without counting a crash.
    fn release<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()>;

    /// Commits the changes of a worker and the following transition in one transaction.
    ///
    /// With a charge, returns `BytesExceeded` if the principal of the task would exceed its limit.
    /// Changes that store no bytes are always written, as is an outcome of at most
    /// [`OUTCOME_RESERVE`](super::OUTCOME_RESERVE) bytes.
    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()>;

    /// Returns all input responses of a task, and whether its cancellation was requested.
    fn inbox<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, Inbox>;

    /// Records the state of a cleanup. `Due` comes from the last worker of the task or from the
    /// worker that claimed the cleanup, `Done` only from the latter. Returns `LeaseLost` if another
    /// worker has claimed the cleanup, or if the task needs none.
    fn finish_cleanup<'a>(&'a self, lease: &'a Lease, state: CleanupState) -> StoreFuture<'a, ()>;

    /// Returns the time until a task is due; zero if one is due now. Ignores tasks of the
    /// principals in `except`.
    fn next_due<'a>(&'a self, except: &'a [String]) -> StoreFuture<'a, Option<Duration>>;

    /// Ends expired tasks, and cancels abandoned ones. Deletes tasks, key-value entries and audit
    /// events whose retention has ended.
    ///
    /// A bridged task is abandoned if its client left without a pending result, and did not return
    /// in the abandon timeout. An open input request restarts the timeout. The sweep cancels the task
    /// like [`cancel`](TaskStore::cancel) without `at_once`. The sweep also starts the timeout of tasks
    /// that are attended by a dead worker.
    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport>;

    /// Registers a listener for changes that are visible to clients or make a task due. Changes of
    /// this process are always reported. Changes of other replicas are reported soon, as a hint.
    ///
    /// Changes that only their worker needs are not reported, such as a recorded step or a task
    /// that its worker created with a lease. The listener may get duplicates, but never
    /// [`ChangeSource::Worker`] for a change that the worker did not make. A reader that must not
    /// miss a change must also poll.
    fn subscribe(&self, listener: ChangeListener);
}

/// Bridged calls: calls of clients without tasks, which wait for a task of their principal.
///
/// A run is *attended* while a call waits for it in the process of a live worker. If that process
/// dies, the run is unattended at once. A run that several calls of one worker wait for is attended
/// until the last of them leaves. If calls of several workers wait, the worker that attended last
/// counts. A run is *delivered* when its result was flushed to a client.
pub trait BridgeStore: Send + Sync + 'static {
    /// Attends the oldest undelivered and unattended run of an equal call. Equal means the same
    /// principal, scope and fingerprint. Exactly one of several concurrent callers gets a run.
    ///
    /// The run may have ended: the caller then reads its outcome. A run that was cancelled or
    /// expired, or that was requested to stop, is not joined. If no run can be joined, nothing is
    /// written, and the result says whether the client of one returns after an empty round.
    fn join<'a>(
        &'a self,
        principal: &'a str,
        scope: &'a str,
        fingerprint: &'a str,
        worker: &'a WorkerId,
    ) -> StoreFuture<'a, Joined>;

    /// Attends a bridged task of this principal, for a call that knows the task. Returns `None` if
    /// this principal has no such bridged task.
    ///
    /// The run may be attended already. A delivered run stays unattended.
    fn attend<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        worker: &'a WorkerId,
    ) -> StoreFuture<'a, Option<Attended>>;

    /// Records that a call of `worker` stops waiting. Ignores an unknown task.
    ///
    /// A pending result acknowledges the task, and increments its number of pending results. Every
    /// other departure starts the abandon timeout of a task that is not acknowledged. The
    /// run becomes unattended, unless another call waits for it.
    fn leave<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        worker: &'a WorkerId,
        how: Departure,
    ) -> StoreFuture<'a, ()>;

    /// Records that the result of a bridged task was flushed. Ignores an unknown task, and may be
    /// repeated.
    ///
    /// With `retention`, an ended task is deleted after that time at the latest. This does not
    /// count as a change of its record.
    fn deliver<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        retention: Option<Duration>,
    ) -> StoreFuture<'a, ()>;

    /// Returns the undelivered bridged tasks of a principal and scope, newest first. They may have
    /// ended.
    fn open_calls<'a>(
        &'a self,
        principal: &'a str,
        scope: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<OpenCall>>;

    /// Deletes ended and delivered bridged tasks of a principal, the first delivered first, until at
    /// least `bytes` are free. Returns the freed bytes.
    ///
    /// One call deletes at most 128 tasks. Tasks whose cleanup is pending stay.
    fn evict<'a>(&'a self, principal: &'a str, bytes: u64) -> StoreFuture<'a, u64>;
}

/// Expiring values under keys.
pub trait KeyValueStore: Send + Sync + 'static {
    /// Stores `value` under `key` for `ttl` if the key is absent. Returns the existing value
    /// otherwise. Exactly one of several concurrent callers gets `None`.
    ///
    /// With a charge, the entry counts in the bytes of that principal until it is deleted. Returns
    /// `BytesExceeded` if the principal would exceed its limit.
    fn put_if_absent<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, Option<RawJson>>;

    /// Stores `value` under `key` for `ttl`, replacing an existing value. Charges the principal
    /// like [`put_if_absent`](Self::put_if_absent). On `BytesExceeded` the existing value stays.
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

/// Parts of large results. They are written with the end of their task
/// ([`Changes::result_parts`]) and deleted with it.
pub trait ResultStore: Send + Sync + 'static {
    /// Returns a part of a body of a result. Returns `None` if this principal has no such task, or
    /// if the result has no such part. Reads only this part.
    fn read_part<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        block: u32,
        part: u32,
    ) -> StoreFuture<'a, Option<Arc<[u8]>>>;

    /// Deletes all parts of a result, and keeps its task. Returns the freed bytes, which no longer
    /// count in the bytes of the principal; zero if this principal has no such task.
    fn delete_parts<'a>(&'a self, principal: &'a str, task: &'a TaskId) -> StoreFuture<'a, u64>;
}

/// Append-only audit log. The end of a task with an [`EndAudit`](super::EndAudit) also appends an
/// event; the next [`append`](AuditLog::append) applies its maximum number.
pub trait AuditLog: Send + Sync + 'static {
    /// Appends events. The store deletes an event after `retention`, and keeps only the newest
    /// `max_events`.
    fn append(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> StoreFuture<'_, ()>;

    /// Returns events after a sequence number, oldest first: those of one task, or all.
    fn read<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditRecord>>;
}

/// State of a store for health checks, metrics and quotas.
pub trait StoreMonitor: Send + Sync + 'static {
    /// Returns the number of tasks by phase, and how long the oldest due task has been due. Stores
    /// maintain these counts, so this method reads no task.
    fn stats(&self) -> StoreFuture<'_, StoreStats>;

    /// Checks that the store responds, with its cheapest request.
    fn ready(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.stats().await.map(drop) })
    }

    /// Returns the stored bytes of a principal: all its tasks with their requests, journals,
    /// outcomes and result parts, and the key-value entries that are charged to it. Ended tasks
    /// count, too.
    fn stored_bytes<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, u64>;
}

/// Open input requests of a principal, for people who respond outside the client.
pub trait InputStore: Send + Sync + 'static {
    /// Returns an open input request to the client, by wire key, with the call of its task. Returns
    /// `None` if this principal has no such task, and for a request that is not open or that is for
    /// named people or a scope.
    fn open_input<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        name: &'a str,
    ) -> StoreFuture<'a, Option<InputDetail>>;
}

/// A complete task store.
///
/// Implemented for every type that implements all parts.
pub trait Store:
    TaskStore
    + WorkQueue
    + BridgeStore
    + InputStore
    + KeyValueStore
    + ResultStore
    + AuditLog
    + StoreMonitor
{
}

impl<S> Store for S where
    S: TaskStore
        + WorkQueue
        + BridgeStore
        + InputStore
        + KeyValueStore
        + ResultStore
        + AuditLog
        + StoreMonitor
{
}
