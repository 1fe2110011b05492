//! Where tasks are kept. Every promise of the trait is a test of the contract suite, which every
//! store runs, third parties' included.
//!
//! A task is one row with its child rows, and every call here changes it in one transaction or not
//! at all. What is acknowledged is durable.

mod budget;
mod claim;
pub mod contract;
mod lifetime;
mod memory;
mod open;
mod operator;
mod outcome;
#[cfg(feature = "postgres")]
mod postgres;
mod probe;
mod sqlite;
mod types;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use outlive_wire::RawJson;

pub use budget::{Charge, OUTCOME_RESERVE};
pub use claim::Claim;
pub use memory::MemoryStore;
pub use open::{open, open_operator};
pub use operator::{
    InputRequestRecord, InputRequestState, OperatorStore, PurgeOutcome, RetryOutcome, TaskDetail,
    TaskFilter, TaskSummary,
};
pub use outcome::{OutcomeKind, TaskOutcome};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
pub use probe::{StoreKind, StoreProbe, probe};
pub use sqlite::{SqliteOptions, SqliteStore, Synchronous};
pub use types::{
    AuditEvent, AuditRecord, CancelOutcome, ChangeSource, Changes, ClaimedTask, CleanupState,
    CreateOutcome, IdempotencyKey, Inbox, InputSource, Lease, ListCursor, NewInputRequest, NewTask,
    PageLimit, Phase, StoreError, StoreStats, StoredSegments, SweepReport, TaskId, TaskRecord,
    Transition, UnixMillis, WorkerId,
};

/// What a store returns: a future of a result.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Hears that a task has changed, and by whom. Must not block.
pub type ChangeListener = Arc<dyn Fn(&TaskId, ChangeSource) + Send + Sync>;

/// Keeps tasks.
pub trait Store: Send + Sync + 'static {
    /// Makes a task, unless its key or its principal's quota says otherwise. When it answers, every
    /// replica finds the task.
    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome>;

    /// The task that this principal has made under a key, if it is there; `OtherRequest` if it was
    /// made for something else.
    fn find<'a>(
        &'a self,
        principal: &'a str,
        once: &'a IdempotencyKey,
    ) -> StoreFuture<'a, Option<CreateOutcome>>;

    /// A task of this principal; one of another is not there.
    fn get<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<TaskRecord>>;

    /// What a task of this principal has emitted, from after a number on; `None` if there is no such
    /// task. A block has the same number for everybody who reads it, for as long as the task is there,
    /// and no more of them come once it is over.
    fn read_segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> StoreFuture<'a, Option<StoredSegments>>;

    /// Returns the listed tasks of this principal that were created in one dialect, oldest first, from
    /// after a position on.
    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskRecord>>;

    /// Gives a worker tasks that are due: queued, parked and answered, parked until now, held by a
    /// worker whose lease is over, or ended and owed a clean-up. Each goes to one worker only, and
    /// what its former owner writes is refused from now on.
    ///
    /// A task that was made with `clean_up`, has begun, and was cancelled or has expired, is owed
    /// one, from the same transaction on: at once if no worker had it, else when its worker says
    /// that its run is gone, or its lease would have been over. It stays as it has ended, and is
    /// not forgotten before the clean-up is done.
    ///
    /// No principal gets more than its room in the claim, so there may be more that is due.
    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> StoreFuture<'a, Vec<ClaimedTask>>;

    /// Prolongs all leases of a worker, and says which it holds.
    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> StoreFuture<'a, Vec<Lease>>;

    /// Gives all tasks of a worker back; that is no crash.
    fn release<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()>;

    /// Writes what a worker has done, all of it or nothing.
    ///
    /// With a charge it is `OverBytes` if the task's principal would have too many bytes stored. What
    /// stores nothing is written in any case, as is an outcome of [`OUTCOME_RESERVE`] bytes.
    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()>;

    /// Says how far the clean-up after a task is: that it is due, as whoever ran the task last or
    /// has claimed the clean-up; that it is done, as whoever has claimed it. `LeaseLost` if somebody
    /// else has claimed it, or none is owed.
    fn finish_cleanup<'a>(&'a self, lease: &'a Lease, now: CleanupState) -> StoreFuture<'a, ()>;

    /// What others have done to a task since its worker has it.
    fn inbox<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, Inbox>;

    /// Takes answers to open questions, by their name on the wire. The first answer to a name
    /// counts; all others, and those to names that are not open or are asked of somebody else, are
    /// ignored. `None` if there is no such task for this principal; else how many were taken.
    /// `OverBytes`, and none is taken, if the principal would have more than `max_bytes` stored.
    fn respond<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: InputSource,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> StoreFuture<'a, Option<usize>>;

    /// Cancels a task: at once if no worker has it or `at_once` says so; else its worker is asked
    /// to stop. `None` if there is no such task for this principal.
    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> StoreFuture<'a, Option<CancelOutcome>>;

    /// Ends tasks whose time is over, and forgets those that have been over for long enough, notes
    /// and events whose time is over.
    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport>;

    /// Keeps a note that is no task under a key, for some time, unless one is there: then that one
    /// is given back. Of several who keep under one key at once, one is told `None`.
    ///
    /// With a charge it counts in the bytes of that principal until it is gone, and it is
    /// `OverBytes` if there would be too many.
    fn keep<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, Option<RawJson>>;

    /// Puts a note in the place of whatever is under a key, for some time from now on. Charged as
    /// [`Store::keep`] does; if that is too much, what is there stays.
    fn replace<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, ()>;

    /// The note under a key, unless its time is over.
    fn kept<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<RawJson>>;

    /// Forgets the note under a key.
    fn forget<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()>;

    /// Writes down what has happened, for those who look at it later. Kept until `retention` after
    /// it has happened; swept with the tasks. Of all events the newest `max_events` are kept at most.
    fn record(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> StoreFuture<'_, ()>;

    /// What has happened, oldest first, from after an event's number on: of one task, or of all.
    fn audit<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditRecord>>;

    /// How many tasks there are, and how long the oldest has been waiting. Looks at no task for it:
    /// stores count as tasks go from phase to phase.
    fn stats(&self) -> StoreFuture<'_, StoreStats>;

    /// Whether the store answers. The cheapest question that it can be asked.
    fn ready(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.stats().await.map(drop) })
    }

    /// How many bytes a principal has stored: its tasks, ended ones included, with their requests,
    /// journals and outcomes, and the key-value entries that it is charged for.
    fn stored_bytes<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, u64>;

    /// How long until something is due, if anything will be by itself; zero if it is now. Tasks of
    /// the principals in `except` do not count.
    fn next_due<'a>(&'a self, except: &'a [String]) -> StoreFuture<'a, Option<Duration>>;

    /// Tells the listener of changes that can be seen, or that make a task due: of those of this
    /// process each, of those of other replicas soon, as a hint. What only its worker knows of is not
    /// told: that a task is made which its worker has already, that a step is recorded. It may be told of more, and of the same more than once, but never that it was
    /// the worker when it was not. Whoever must know looks by itself now and then.
    fn subscribe(&self, listener: ChangeListener);
}
