//! Stores for tasks, the traits of a custom store, and the records.

pub use outlive_tasks::{
    InputFailure, JournalEntry, JournalSnapshot, SegmentRecord, StepFailure,
    store::{
        Attended, Audience, AuditEvent, AuditLog, AuditRecord, BlockKind, Bridge, BridgeStore,
        CancelOutcome, ChangeListener, ChangeSource, Changes, Charge, Claim, ClaimedTask,
        CleanupState, CreateOutcome, Departure, IdempotencyKey, Inbox, InputDetail,
        InputRequestRecord, InputRequestState, InputSource, InputStore, KeyValueStore, LargeResult,
        Lease, ListCursor, MemoryStore, NewInputRequest, NewTask, OpenCall, OpenInput,
        OperatorStore, OutcomeKind, PART_BYTES, PageLimit, Phase, PurgeOutcome, ResultPart,
        ResultStore, RetryOutcome, SplitResult, Store, StoreError, StoreFuture, StoreKind,
        StoreMonitor, StoreProbe, StoreStats, StoredBlock, StoredSegments, SweepReport, TaskDetail,
        TaskFilter, TaskId, TaskOutcome, TaskRecord, TaskStore, TaskSummary, Transition,
        UnixMillis, WorkQueue, WorkerId, assemble, open, open_operator, probe, split,
    },
};

#[cfg(feature = "testing")]
pub use outlive_tasks::store::contract;
#[cfg(feature = "postgres")]
pub use outlive_tasks::store::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
pub use outlive_tasks::store::{SqliteOptions, SqliteStore, Synchronous};
