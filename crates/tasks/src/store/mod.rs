//! Task stores: traits, records, and the stores in memory, SQLite (feature `sqlite`) and PostgreSQL
//! (feature `postgres`).

mod attendance;
mod audit;
mod bridge;
#[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "only SQLite uses some functions"))]
mod budget;
mod charge;
mod claim;
#[cfg_attr(
    not(any(feature = "postgres", feature = "sqlite")),
    allow(dead_code, reason = "only the databases use some functions")
)]
mod commit_span;
#[cfg(feature = "testing")]
pub mod contract;
#[cfg(feature = "testing")]
mod delegate;
mod error;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod fingerprint;
mod id;
mod input;
mod lifetime;
mod memory;
mod open;
#[cfg_attr(not(feature = "postgres"), path = "no_postgres.rs")]
mod open_postgres;
#[cfg_attr(not(feature = "sqlite"), path = "no_sqlite.rs")]
mod open_sqlite;
mod operator;
#[cfg_attr(
    not(any(feature = "postgres", feature = "sqlite")),
    allow(dead_code, reason = "only the databases use some functions")
)]
mod outcome;
#[cfg(feature = "postgres")]
mod postgres;
mod probe;
mod result;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store_probe;
mod task;
mod traits;
mod work;

pub use outlive_wire::RawJson;

pub use audit::{AuditEvent, AuditRecord};
pub use bridge::{Attended, Bridge, Departure, OpenCall};
pub use budget::OUTCOME_RESERVE;
pub(crate) use budget::at_most as max_growth;
pub use charge::Charge;
pub use claim::Claim;
pub use error::StoreError;
pub use id::{Lease, TaskId, UnixMillis, WorkerId};
pub use input::{Audience, InputDetail, InputSource, OpenInput};
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
pub use result::{
    BlockKind, LargeResult, PART_BYTES, ResultPart, SplitResult, StoredBlock, assemble, split,
    split_texts,
};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore, Synchronous};
pub use store_probe::{StoreKind, StoreProbe};
pub use task::{
    CancelOutcome, CreateOutcome, IdempotencyKey, ListCursor, NewTask, PageLimit, Phase,
    StoredSegments, TaskRecord,
};
pub use traits::{
    AuditLog, BridgeStore, ChangeListener, InputStore, KeyValueStore, ResultStore, Store,
    StoreFuture, StoreMonitor, TaskStore, WorkQueue,
};
pub use work::{
    ChangeSource, Changes, ClaimedTask, CleanupState, Inbox, NewInputRequest, StoreStats,
    SweepReport, Transition,
};
