//! Task stores: traits, records, and the stores in memory, SQLite (feature `sqlite`) and PostgreSQL
//! (feature `postgres`).

mod attendance;
mod audit;
mod ballot;
mod binding;
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
mod decision_store;
#[cfg(feature = "testing")]
mod delegate;
mod delivery_queue;
mod error;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod fingerprint;
mod id;
mod input;
mod input_request;
mod lifetime;
mod memory;
mod metric_store;
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
mod people_store;
#[cfg(feature = "postgres")]
mod postgres;
mod probe;
mod recorded_entry;
mod result;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store_probe;
mod subscription;
mod task;
mod task_index;
mod traits;
mod work;

pub use outlive_wire::RawJson;

pub use audit::{AuditEvent, AuditRecord, EndAudit};
pub use binding::Binding;
pub use bridge::{Attended, Bridge, Departure, Joined, OpenCall};
pub use budget::OUTCOME_RESERVE;
pub(crate) use budget::at_most as max_growth;
pub use charge::Charge;
pub use claim::Claim;
pub use decision_store::{
    Decision, DecisionOutcome, DecisionStore, InboxCursor, InboxItem, InboxReader,
    InputRequestDetail, SettledResponse, Vote,
};
pub use delivery_queue::{DELIVERY_RETENTION, Delivery, DeliveryQueue, MAX_DELIVERIES};
pub use error::StoreError;
pub use id::{Lease, TaskId, UnixMillis, WorkerId};
pub use input::{Audience, InputDetail, InputSource, OpenInput};
pub use input_request::NewInputRequest;
pub use memory::MemoryStore;
pub use metric_store::{BUCKETS, HOURS, MINUTES, MetricRow, MetricStore};
pub use open::{open, open_operator, open_people};
pub use operator::{
    InputRequestRecord, InputRequestState, OperatorStore, PurgeOutcome, RetryOutcome, TaskDetail,
    TaskFilter, TaskSummary,
};
pub use outcome::{OutcomeKind, TaskOutcome};
pub use people_store::PeopleStore;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
pub use probe::probe;
pub use recorded_entry::RecordedEntry;
pub use result::{
    BlockKind, LargeResult, PART_BYTES, ResultPart, SplitResult, StoredBlock, assemble, split,
    split_texts,
};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore, Synchronous};
pub use store_probe::{StoreKind, StoreProbe};
pub use subscription::{Subscription, TaskEvent};
pub use task::{
    CancelOutcome, CreateOutcome, IdempotencyKey, ListCursor, MAX_TAG_BYTES, MAX_TAGS, NewTask,
    PageLimit, Phase, StoredSegments, TaskRecord,
};
pub use task_index::{
    EntryKind, IndexedTask, JournalCursor, JournalItem, MAX_SEARCHED, TaskCount, TaskIndex,
    TaskPage, TaskQuery, TaskState, TimelineEntry,
};
pub use traits::{
    AuditLog, BridgeStore, ChangeListener, InputStore, KeyValueStore, ResultStore, Store,
    StoreFuture, StoreMonitor, TaskStore, WorkQueue,
};
pub use work::{
    ChangeSource, Changes, ClaimedTask, CleanupState, Inbox, StoreStats, SweepReport, Transition,
};
