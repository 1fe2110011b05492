//! Where tasks are kept. Every promise of the trait is a test of the contract suite, which every
//! store runs, third parties' included.
//!
//! A task is one row with its child rows, and every call here changes it in one transaction or not
//! at all. What is acknowledged is durable.

pub mod contract;
mod memory;
mod sqlite;
mod types;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use outlive_wire::RawJson;

pub use memory::MemoryStore;
pub use sqlite::{Durability, SqliteOptions, SqliteStore};
pub use types::{
    After, Asked, Cancelled, Changes, Claimed, Created, Lease, Millis, NewTask, OnceKey, Phase,
    StoreError, Swept, TaskId, TaskOutcome, Then, View, WorkerId,
};

/// What a store returns: a future of a result.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Hears that a task has changed. Must not block.
pub type Listener = Arc<dyn Fn(&TaskId) + Send + Sync>;

/// Keeps tasks.
pub trait Store: Send + Sync + 'static {
    /// Makes a task, unless its key or its principal's quota says otherwise. When it answers, every
    /// replica finds the task.
    fn create(&self, task: NewTask) -> Answer<'_, Created>;

    /// A task of this principal; one of another is not there.
    fn view<'a>(&'a self, principal: &'a str, task: &'a TaskId) -> Answer<'a, Option<View>>;

    /// Tasks of this principal, oldest first, from after a place on.
    fn list<'a>(
        &'a self,
        principal: &'a str,
        after: Option<&'a After>,
        limit: usize,
    ) -> Answer<'a, Vec<View>>;

    /// Gives a worker tasks that are due: queued, parked and answered, parked until now, or held by
    /// a worker whose lease is over. Each goes to one worker only, and what its former owner writes
    /// is refused from now on.
    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        limit: usize,
    ) -> Answer<'a, Vec<Claimed>>;

    /// Prolongs all leases of a worker, and says which it holds.
    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> Answer<'a, Vec<Lease>>;

    /// Gives all tasks of a worker back; that is no crash.
    fn release<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, ()>;

    /// Writes what a worker has done, all of it or nothing.
    fn write<'a>(&'a self, lease: &'a Lease, changes: Changes, then: Then) -> Answer<'a, ()>;

    /// What the client has answered, by the key in the journal.
    fn answers<'a>(&'a self, lease: &'a Lease) -> Answer<'a, Vec<(String, RawJson)>>;

    /// Takes answers to open questions, by their name on the wire. The first answer to a name
    /// counts; all others, and those to names that are not open, are ignored. `None` if there is no
    /// such task for this principal; else how many were taken.
    fn answer<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        answers: Vec<(String, RawJson)>,
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

    /// Ends tasks whose time is over, and forgets those that have been over for long enough.
    fn sweep(&self, limit: usize, retention: Duration) -> Answer<'_, Swept>;

    /// How long until something is due, if anything will be by itself; zero if it is now.
    fn next_due(&self) -> Answer<'_, Option<Duration>>;

    /// Tells the listener of every change, from whichever replica, at least once. It may be told
    /// of more.
    fn listen(&self, listener: Listener);
}
