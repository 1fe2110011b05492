//! Stores for tasks, the traits of a custom store, and the records.

pub use outlive_tasks::{
    InputFailure, JournalEntry, JournalSnapshot, SegmentRecord, StepFailure,
    store::{
        Audience, AuditEvent, AuditLog, AuditRecord, CancelOutcome, ChangeListener, ChangeSource,
        Changes, Charge, Claim, ClaimedTask, CleanupState, CreateOutcome, IdempotencyKey, Inbox,
        InputDetail, InputRequestRecord, InputRequestState, InputSource, InputStore, KeyValueStore,
        Lease, ListCursor, MemoryStore, NewInputRequest, NewTask, OpenInput, OperatorStore,
        OutcomeKind, PageLimit, Phase, PurgeOutcome, RetryOutcome, Store, StoreError, StoreFuture,
        StoreKind, StoreMonitor, StoreProbe, StoreStats, StoredSegments, SweepReport, TaskDetail,
        TaskFilter, TaskId, TaskOutcome, TaskRecord, TaskStore, TaskSummary, Transition,
        UnixMillis, WorkQueue, WorkerId, open, open_operator, probe,
    },
};

#[cfg(feature = "testing")]
pub use outlive_tasks::store::contract;
#[cfg(feature = "postgres")]
pub use outlive_tasks::store::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
pub use outlive_tasks::store::{SqliteOptions, SqliteStore, Synchronous};
