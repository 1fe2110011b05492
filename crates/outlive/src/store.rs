//! Stores for tasks, the traits of a custom store, and the records.

pub use outlive_tasks::{
    InputFailure, JournalEntry, JournalSnapshot, SegmentRecord, StepFailure,
    store::{
        Attended, Audience, AuditEvent, AuditLog, AuditRecord, BUCKETS, Binding, BlockKind, Bridge,
        BridgeStore, CancelOutcome, ChangeListener, ChangeSource, Changes, Charge, Claim,
        ClaimedTask, CleanupState, CreateOutcome, DELIVERY_RETENTION, Decision, DecisionOutcome,
        DecisionStore, Delivery, DeliveryQueue, Departure, EndAudit, EntryKind, HOURS,
        IdempotencyKey, Inbox, InboxCursor, InboxItem, InboxReader, IndexedTask, InputDetail,
        InputRequestDetail, InputRequestRecord, InputRequestState, InputSource, InputStore, Joined,
        JournalCursor, JournalItem, KeyValueStore, LargeResult, Lease, ListCursor, MAX_DELIVERIES,
        MAX_SEARCHED, MAX_TAG_BYTES, MAX_TAGS, MINUTES, MemoryStore, MetricRow, MetricStore,
        NewInputRequest, NewTask, OpenCall, OpenInput, OperatorStore, OutcomeKind, PART_BYTES,
        PageLimit, PeopleStore, Phase, PurgeOutcome, RecordedEntry, ResultPart, ResultStore,
        RetryOutcome, SettledResponse, SplitResult, Store, StoreError, StoreFuture, StoreKind,
        StoreMonitor, StoreProbe, StoreStats, StoredBlock, StoredSegments, Subscription,
        SweepReport, TaskCount, TaskDetail, TaskEvent, TaskFilter, TaskId, TaskIndex, TaskOutcome,
        TaskPage, TaskQuery, TaskRecord, TaskState, TaskStore, TaskSummary, TimelineEntry,
        Transition, UnixMillis, Vote, WorkQueue, WorkerId, assemble, open, open_operator,
        open_people, probe, split,
    },
};

#[cfg(feature = "testing")]
pub use outlive_tasks::store::contract;
#[cfg(feature = "postgres")]
pub use outlive_tasks::store::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
pub use outlive_tasks::store::{SqliteOptions, SqliteStore, Synchronous};
