//! Stores of tasks: the traits, their records, and the stores in memory, SQLite and PostgreSQL.

mod audit;
mod budget;
mod charge;
mod claim;
mod commit_span;
pub mod contract;
#[cfg(feature = "testing")]
mod delegate;
mod error;
mod fingerprint;
mod id;
mod lifetime;
mod memory;
mod open;
mod operator;
mod outcome;
#[cfg(feature = "postgres")]
mod postgres;
mod probe;
mod sqlite;
mod store_probe;
mod task;
mod traits;
mod work;

pub use outlive_wire::RawJson;

pub use audit::{AuditEvent, AuditRecord};
pub use budget::OUTCOME_RESERVE;
pub use charge::Charge;
pub use claim::Claim;
pub use error::StoreError;
pub use id::{Lease, TaskId, UnixMillis, WorkerId};
pub use memory::MemoryStore;
pub use open::{open, open_operator};
pub use operator::{
    InputRequestRecord, InputRequestState, OperatorStore, PurgeOutcome, RetryOutcome, TaskDetail,
    TaskFilter, TaskSummary,
};
pub use outcome::{OutcomeKind, TaskOutcome};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
pub use probe::probe;
pub use sqlite::{SqliteOptions, SqliteStore, Synchronous};
pub use store_probe::{StoreKind, StoreProbe};
pub use task::{
    CancelOutcome, CreateOutcome, IdempotencyKey, InputSource, ListCursor, NewTask, PageLimit,
    Phase, StoredSegments, TaskRecord,
};
pub use traits::{
    AuditLog, ChangeListener, KeyValueStore, Store, StoreFuture, StoreMonitor, TaskStore, WorkQueue,
};
pub use work::{
    ChangeSource, Changes, ClaimedTask, CleanupState, Inbox, NewInputRequest, StoreStats,
    SweepReport, Transition,
};
