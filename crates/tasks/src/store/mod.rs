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
pub use open::{open, open_operated};
pub use operator::{
    Filter, Inspected, Operated, Overseen, Purged, QuestionState, Questioned, Retried,
};
pub use outcome::{OutcomeKind, TaskOutcome};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
pub use probe::{Probe, Product, probe};
pub use sqlite::{Durability, SqliteOptions, SqliteStore};
pub use types::{
    After, Answerer, Asked, Audit, AuditEvent, By, Cancelled, Census, Changes, Claimed, Cleaning,
    Created, Emitted, Heard, Lease, Millis, NewTask, OnceKey, PageLimit, Phase, StoreError, Swept,
    TaskId, Then, View, WorkerId,
};

/// What a store returns: a future of a result.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Hears that a task has changed, and by whom. Must not block.
pub type Listener = Arc<dyn Fn(&TaskId, By) + Send + Sync>;

/// Keeps tasks.
pub trait Store: Send + Sync + 'static {
    /// Makes a task, unless its key or its principal's quota says otherwise. When it answers, every
    /// replica finds the task.
    fn create(&self, task: NewTask) -> Answer<'_, Created>;

    /// The task that this principal has made under a key, if it is there; `OtherRequest` if it was
    /// made for something else.
    fn made<'a>(&'a self, principal: &'a str, once: &'a OnceKey) -> Answer<'a, Option<Created>>;

    /// A task of this principal; one of another is not there.
    fn view<'a>(&'a self, principal: &'a str, task: &'a TaskId) -> Answer<'a, Option<View>>;

    /// What a task of this principal has emitted, from after a number on; `None` if there is no such
    /// task. A block has the same number for everybody who reads it, for as long as the task is there,
    /// and no more of them come once it is over.
    fn segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> Answer<'a, Option<Emitted>>;

    /// Returns the listed tasks of this principal that were created in one dialect, oldest first, from
    /// after a position on.
    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a After>,
        limit: usize,
    ) -> Answer<'a, Vec<View>>;

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
    ) -> Answer<'a, Vec<Claimed>>;

    /// Prolongs all leases of a worker, and says which it holds.
    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> Answer<'a, Vec<Lease>>;

    /// Gives all tasks of a worker back; that is no crash.
    fn release<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, ()>;

    /// Writes what a worker has done, all of it or nothing.
    ///
    /// With a charge it is `OverBytes` if the task's principal would have too many bytes stored. What
    /// stores nothing is written in any case, as is an outcome of [`OUTCOME_RESERVE`] bytes.
    fn write<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Then,
    ) -> Answer<'a, ()>;

    /// Says how far the clean-up after a task is: that it is due, as whoever ran the task last or
    /// has claimed the clean-up; that it is done, as whoever has claimed it. `Lost` if somebody
    /// else has claimed it, or none is owed.
    fn clean_up<'a>(&'a self, lease: &'a Lease, now: Cleaning) -> Answer<'a, ()>;

    /// What others have done to a task since its worker has it.
    fn heard<'a>(&'a self, lease: &'a Lease) -> Answer<'a, Heard>;

    /// Takes answers to open questions, by their name on the wire. The first answer to a name
    /// counts; all others, and those to names that are not open or are asked of somebody else, are
    /// ignored. `None` if there is no such task for this principal; else how many were taken.
    /// `OverBytes`, and none is taken, if the principal would have more than `max_bytes` stored.
    fn answer<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: Answerer,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> Answer<'a, Option<usize>>;

    /// Cancels a task: at once if no worker has it or `at_once` says so; else its worker is asked
    /// to stop. `None` if there is no such task for this principal.
    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> Answer<'a, Option<Cancelled>>;

    /// Ends tasks whose time is over, and forgets those that have been over for long enough, notes
    /// and events whose time is over.
    fn sweep(&self, limit: usize, retention: Duration) -> Answer<'_, Swept>;

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
    ) -> Answer<'a, Option<RawJson>>;

    /// Puts a note in the place of whatever is under a key, for some time from now on. Charged as
    /// [`Store::keep`] does; if that is too much, what is there stays.
    fn replace<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> Answer<'a, ()>;

    /// The note under a key, unless its time is over.
    fn kept<'a>(&'a self, key: &'a str) -> Answer<'a, Option<RawJson>>;

    /// Forgets the note under a key.
    fn forget<'a>(&'a self, key: &'a str) -> Answer<'a, ()>;

    /// Writes down what has happened, for those who look at it later. Kept until `retention` after
    /// it has happened; swept with the tasks. Of all events the newest `max_events` are kept at most.
    fn record(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> Answer<'_, ()>;

    /// What has happened, oldest first, from after an event's number on: of one task, or of all.
    fn audit<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> Answer<'a, Vec<Audit>>;

    /// How many tasks there are, and how long the oldest has been waiting. Looks at no task for it:
    /// stores count as tasks go from phase to phase.
    fn census(&self) -> Answer<'_, Census>;

    /// Whether the store answers. The cheapest question that it can be asked.
    fn ready(&self) -> Answer<'_, ()> {
        Box::pin(async move { self.census().await.map(drop) })
    }

    /// How many bytes a principal has stored: its tasks, ended ones included, with their requests,
    /// journals and outcomes, and the key-value entries that it is charged for.
    fn stored_bytes<'a>(&'a self, principal: &'a str) -> Answer<'a, u64>;

    /// How long until something is due, if anything will be by itself; zero if it is now. Tasks of
    /// the principals in `except` do not count.
    fn next_due<'a>(&'a self, except: &'a [String]) -> Answer<'a, Option<Duration>>;

    /// Tells the listener of changes that can be seen, or that make a task due: of those of this
    /// process each, of those of other replicas soon, as a hint. What only its worker knows of is not
    /// told: that a task is made which its worker has already, that a step is recorded. It may be told of more, and of the same more than once, but never that it was
    /// the worker when it was not. Whoever must know looks by itself now and then.
    fn listen(&self, listener: Listener);
}
