//! A macro for stores that wrap another store, such as failing stores in tests.

/// Implements store traits, or some of their methods, by delegating to another store.
///
/// The expression after `|store|` borrows the inner store from `store`, which is `&self`.
///
/// ```
/// use std::time::Duration;
/// use outlive_tasks::{delegate_store, store::{MemoryStore, StoreFuture, SweepReport, WorkQueue}};
///
/// /// A store that never deletes.
/// struct KeepsAll(MemoryStore);
///
/// delegate_store!(impl TaskStore, BridgeStore, InputStore for KeepsAll: |store| &store.0);
/// delegate_store!(impl KeyValueStore, ResultStore for KeepsAll: |store| &store.0);
/// delegate_store!(impl AuditLog, StoreMonitor for KeepsAll: |store| &store.0);
///
/// impl WorkQueue for KeepsAll {
///     delegate_store!(claim, renew, release, commit, inbox, finish_cleanup: |store| &store.0);
///     delegate_store!(next_due, subscribe: |store| &store.0);
///
///     fn sweep(&self, _limit: usize, _retention: Duration) -> StoreFuture<'_, SweepReport> {
///         Box::pin(async { Ok(SweepReport::default()) })
///     }
/// }
/// ```
#[macro_export]
macro_rules! delegate_store {
    (impl $(<$generic:ident: $bound:ident>)? $($trait:ident),+ for $type:ty: |$this:ident| $inner:expr) => {
        $crate::delegate_store!(@each [$(<$generic: $bound>)?] [$($trait)+] $type, $this, $inner);
    };
    ($($method:ident),+ : |$this:ident| $inner:expr) => {
        $($crate::delegate_store!(@method $method $this, $inner);)+
    };

    (@each $generics:tt [] $type:ty, $this:ident, $inner:expr) => {};
    (@each $generics:tt [$first:ident $($rest:ident)*] $type:ty, $this:ident, $inner:expr) => {
        $crate::delegate_store!(@impl $first $generics $type, $this, $inner);
        $crate::delegate_store!(@each $generics [$($rest)*] $type, $this, $inner);
    };
    (@impl TaskStore [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::TaskStore for $type {
            $crate::delegate_store!(
                create, find, get, list, read_segments, respond, cancel: |$this| $inner
            );
        }
    };
    (@impl WorkQueue [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::WorkQueue for $type {
            $crate::delegate_store!(
                claim, renew, release, commit, inbox, finish_cleanup, next_due, sweep, subscribe:
                    |$this| $inner
            );
        }
    };
    (@impl BridgeStore [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::BridgeStore for $type {
            $crate::delegate_store!(
                join, attend, leave, deliver, open_calls, evict: |$this| $inner
            );
        }
    };
    (@impl InputStore [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::InputStore for $type {
            $crate::delegate_store!(open_input: |$this| $inner);
        }
    };
    (@impl KeyValueStore [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::KeyValueStore for $type {
            $crate::delegate_store!(put_if_absent, put, get_value, delete: |$this| $inner);
        }
    };
    (@impl ResultStore [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::ResultStore for $type {
            $crate::delegate_store!(read_part, delete_parts: |$this| $inner);
        }
    };
    (@impl AuditLog [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::AuditLog for $type {
            $crate::delegate_store!(append, read: |$this| $inner);
        }
    };
    (@impl StoreMonitor [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::StoreMonitor for $type {
            $crate::delegate_store!(stats, ready, stored_bytes: |$this| $inner);
        }
    };
    (@impl OperatorStore [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::OperatorStore for $type {
            $crate::delegate_store!(tasks, inspect, retry, purge, purge_ended, key_values: |$this| $inner);
        }
    };
    (@impl TaskIndex [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::TaskIndex for $type {
            $crate::delegate_store!(page, count, task, journal, timeline: |$this| $inner);
        }
    };
    (@impl DecisionStore [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::DecisionStore for $type {
            $crate::delegate_store!(
                open_for, count_open, settled_since, voted_by, input_request, decide:
                    |$this| $inner
            );
        }
    };
    (@impl DeliveryQueue [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::DeliveryQueue for $type {
            $crate::delegate_store!(
                due, sent, failed, next_delivery, failing, send_again: |$this| $inner
            );
        }
    };
    (@impl MetricStore [$($generics:tt)*] $type:ty, $this:ident, $inner:expr) => {
        impl $($generics)* $crate::store::MetricStore for $type {
            $crate::delegate_store!(add_metrics, metrics: |$this| $inner);
        }
    };

    (@method create $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, TaskStore, create(
            task: $crate::store::NewTask,
        ) -> $crate::store::CreateOutcome);
    };
    (@method find $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, TaskStore, find(
            principal: &'a str, key: &'a $crate::store::IdempotencyKey,
        ) -> Option<$crate::store::CreateOutcome>);
    };
    (@method get $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, TaskStore, get(
            principal: &'a str, task: &'a $crate::store::TaskId,
        ) -> Option<$crate::store::TaskRecord>);
    };
    (@method list $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, TaskStore, list(
            principal: &'a str,
            origin: &'a str,
            after: Option<&'a $crate::store::ListCursor>,
            limit: usize,
        ) -> Vec<$crate::store::TaskRecord>);
    };
    (@method read_segments $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, TaskStore, read_segments(
            principal: &'a str,
            task: &'a $crate::store::TaskId,
            after: u64,
            limit: $crate::store::PageLimit,
        ) -> Option<$crate::store::StoredSegments>);
    };
    (@method respond $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, TaskStore, respond(
            principal: &'a str,
            task: &'a $crate::store::TaskId,
            source: $crate::store::InputSource,
            responses: Vec<(String, $crate::store::RawJson)>,
            max_bytes: u64,
        ) -> Option<usize>);
    };
    (@method cancel $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, TaskStore, cancel(
            principal: &'a str,
            task: &'a $crate::store::TaskId,
            at_once: bool,
            retention: ::std::time::Duration,
        ) -> Option<$crate::store::CancelOutcome>);
    };

    (@method claim $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, WorkQueue, claim(
            worker: &'a $crate::store::WorkerId,
            lease: ::std::time::Duration,
            claim: &'a $crate::store::Claim,
        ) -> Vec<$crate::store::ClaimedTask>);
    };
    (@method renew $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, WorkQueue, renew(
            worker: &'a $crate::store::WorkerId, lease: ::std::time::Duration,
        ) -> Vec<$crate::store::Lease>);
    };
    (@method release $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, WorkQueue, release(
            worker: &'a $crate::store::WorkerId,
        ) -> ());
    };
    (@method commit $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, WorkQueue, commit(
            lease: &'a $crate::store::Lease,
            changes: &'a $crate::store::Changes,
            then: &'a $crate::store::Transition,
        ) -> ());
    };
    (@method inbox $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, WorkQueue, inbox(
            lease: &'a $crate::store::Lease,
        ) -> $crate::store::Inbox);
    };
    (@method finish_cleanup $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, WorkQueue, finish_cleanup(
            lease: &'a $crate::store::Lease, state: $crate::store::CleanupState,
        ) -> ());
    };
    (@method next_due $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, WorkQueue, next_due(
            except: &'a [String],
        ) -> Option<::std::time::Duration>);
    };
    (@method sweep $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, WorkQueue, sweep(
            limit: usize, retention: ::std::time::Duration,
        ) -> $crate::store::SweepReport);
    };
    (@method subscribe $this:ident, $inner:expr) => {
        fn subscribe(&self, listener: $crate::store::ChangeListener) {
            let $this = self;
            $crate::store::WorkQueue::subscribe($inner, listener);
        }
    };

    (@method join $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, BridgeStore, join(
            principal: &'a str,
            scope: &'a str,
            fingerprint: &'a str,
            worker: &'a $crate::store::WorkerId,
        ) -> $crate::store::Joined);
    };
    (@method attend $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, BridgeStore, attend(
            principal: &'a str,
            task: &'a $crate::store::TaskId,
            worker: &'a $crate::store::WorkerId,
        ) -> Option<$crate::store::Attended>);
    };
    (@method leave $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, BridgeStore, leave(
            principal: &'a str,
            task: &'a $crate::store::TaskId,
            worker: &'a $crate::store::WorkerId,
            how: $crate::store::Departure,
        ) -> ());
    };
    (@method deliver $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, BridgeStore, deliver(
            principal: &'a str,
            task: &'a $crate::store::TaskId,
            retention: Option<::std::time::Duration>,
        ) -> ());
    };
    (@method open_calls $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, BridgeStore, open_calls(
            principal: &'a str, scope: &'a str, limit: usize,
        ) -> Vec<$crate::store::OpenCall>);
    };
    (@method evict $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, BridgeStore, evict(
            principal: &'a str, bytes: u64,
        ) -> u64);
    };
    (@method open_input $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, InputStore, open_input(
            principal: &'a str, task: &'a $crate::store::TaskId, name: &'a str,
        ) -> Option<$crate::store::InputDetail>);
    };

    (@method put_if_absent $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, KeyValueStore, put_if_absent(
            key: &'a str,
            value: $crate::store::RawJson,
            ttl: ::std::time::Duration,
            charge: Option<&'a $crate::store::Charge>,
        ) -> Option<$crate::store::RawJson>);
    };
    (@method put $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, KeyValueStore, put(
            key: &'a str,
            value: $crate::store::RawJson,
            ttl: ::std::time::Duration,
            charge: Option<&'a $crate::store::Charge>,
        ) -> ());
    };
    (@method get_value $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, KeyValueStore, get_value(
            key: &'a str,
        ) -> Option<$crate::store::RawJson>);
    };
    (@method delete $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, KeyValueStore, delete(key: &'a str,) -> ());
    };

    (@method read_part $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, ResultStore, read_part(
            principal: &'a str,
            task: &'a $crate::store::TaskId,
            block: u32,
            part: u32,
        ) -> Option<::std::sync::Arc<[u8]>>);
    };
    (@method delete_parts $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, ResultStore, delete_parts(
            principal: &'a str, task: &'a $crate::store::TaskId,
        ) -> u64);
    };

    (@method append $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, AuditLog, append(
            events: Vec<$crate::store::AuditEvent>,
            retention: ::std::time::Duration,
            max_events: u64,
        ) -> ());
    };
    (@method read $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, AuditLog, read(
            task: Option<&'a str>, after: u64, limit: usize,
        ) -> Vec<$crate::store::AuditRecord>);
    };

    (@method stats $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, StoreMonitor, stats() -> $crate::store::StoreStats);
    };
    (@method ready $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, StoreMonitor, ready() -> ());
    };
    (@method stored_bytes $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, StoreMonitor, stored_bytes(
            principal: &'a str,
        ) -> u64);
    };

    (@method tasks $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, OperatorStore, tasks(
            filter: &'a $crate::store::TaskFilter,
            after: Option<&'a $crate::store::ListCursor>,
            limit: usize,
        ) -> Vec<$crate::store::TaskSummary>);
    };
    (@method inspect $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, OperatorStore, inspect(
            task: &'a $crate::store::TaskId,
        ) -> Option<$crate::store::TaskDetail>);
    };
    (@method retry $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, OperatorStore, retry(
            task: &'a $crate::store::TaskId,
        ) -> Option<$crate::store::RetryOutcome>);
    };
    (@method purge $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, OperatorStore, purge(
            task: &'a $crate::store::TaskId, force: bool,
        ) -> Option<$crate::store::PurgeOutcome>);
    };
    (@method purge_ended $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, OperatorStore, purge_ended(
            before: $crate::store::UnixMillis, limit: usize,
        ) -> Vec<(String, $crate::store::TaskId)>);
    };
    (@method key_values $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, OperatorStore, key_values(
            prefix: &'a str, limit: usize,
        ) -> Vec<(String, $crate::store::RawJson)>);
    };

    (@method page $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, TaskIndex, page(
            query: &'a $crate::store::TaskQuery,
            after: Option<&'a $crate::store::ListCursor>,
            limit: usize,
        ) -> $crate::store::TaskPage);
    };
    (@method count $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, TaskIndex, count(
            query: &'a $crate::store::TaskQuery, limit: usize,
        ) -> $crate::store::TaskCount);
    };
    (@method task $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, TaskIndex, task(
            task: &'a $crate::store::TaskId,
        ) -> Option<$crate::store::IndexedTask>);
    };
    (@method journal $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, TaskIndex, journal(
            task: &'a $crate::store::TaskId,
            after: Option<&'a $crate::store::JournalCursor>,
            limit: usize,
        ) -> Vec<$crate::store::JournalItem>);
    };
    (@method timeline $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, TaskIndex, timeline(
            task: &'a $crate::store::TaskId, limit: usize,
        ) -> Vec<$crate::store::TimelineEntry>);
    };

    (@method open_for $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, DecisionStore, open_for(
            reader: &'a $crate::store::InboxReader,
            after: Option<&'a $crate::store::InboxCursor>,
            limit: usize,
        ) -> Vec<$crate::store::InboxItem>);
    };
    (@method count_open $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, DecisionStore, count_open(
            reader: &'a $crate::store::InboxReader, limit: usize,
        ) -> usize);
    };
    (@method settled_since $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, DecisionStore, settled_since(
            denial: &'a str, since: $crate::store::UnixMillis, limit: usize,
        ) -> Vec<$crate::store::SettledResponse>);
    };
    (@method voted_by $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, DecisionStore, voted_by(
            person: &'a str, limit: usize,
        ) -> Vec<$crate::store::InboxItem>);
    };
    (@method input_request $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, DecisionStore, input_request(
            task: &'a $crate::store::TaskId, name: &'a str,
        ) -> Option<$crate::store::InputRequestDetail>);
    };
    (@method decide $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, DecisionStore, decide(
            task: &'a $crate::store::TaskId,
            name: &'a str,
            decision: &'a $crate::store::Decision,
        ) -> $crate::store::DecisionOutcome);
    };

    (@method due $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, DeliveryQueue, due(
            target: &'a str, lease: ::std::time::Duration, limit: usize,
        ) -> Vec<$crate::store::Delivery>);
    };
    (@method sent $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, DeliveryQueue, sent(delivery: &'a str,) -> ());
    };
    (@method failed $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, DeliveryQueue, failed(
            delivery: &'a str,
            attempt: u32,
            retry_after: Option<::std::time::Duration>,
            error: &'a str,
        ) -> ());
    };
    (@method next_delivery $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, DeliveryQueue, next_delivery(
            targets: &'a [String],
        ) -> Option<::std::time::Duration>);
    };
    (@method failing $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, DeliveryQueue, failing(
            limit: usize,
        ) -> Vec<$crate::store::Delivery>);
    };
    (@method send_again $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, DeliveryQueue, send_again(
            delivery: &'a str,
        ) -> bool);
    };

    (@method add_metrics $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, MetricStore, add_metrics(
            rows: &'a [$crate::store::MetricRow],
        ) -> ());
    };
    (@method metrics $this:ident, $inner:expr) => {
        $crate::delegate_store!(@fn $this, $inner, MetricStore, metrics(
            since: $crate::store::UnixMillis,
        ) -> Vec<$crate::store::MetricRow>);
    };

    (@fn $this:ident, $inner:expr, $trait:ident, $method:ident(
        $($argument:ident: $type:ty,)*
    ) -> $output:ty) => {
        fn $method<'a>(&'a self, $($argument: $type),*) -> $crate::store::StoreFuture<'a, $output> {
            let $this = self;
            $crate::store::$trait::$method($inner, $($argument),*)
        }
    };
}
