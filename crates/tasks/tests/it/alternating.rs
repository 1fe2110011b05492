//! Two handles on one store, like those of two processes.

use std::sync::atomic::{AtomicUsize, Ordering};

use outlive_tasks::{
    delegate_store,
    store::{OperatorStore, PeopleStore, Store, WorkQueue},
};

/// Store that alternates between two handles with each call. Listeners subscribe to the first
/// handle.
pub(crate) struct Alternating<S> {
    pub(crate) handles: [S; 2],
    calls: AtomicUsize,
}

impl<S: Store> Alternating<S> {
    pub(crate) fn new(handles: [S; 2]) -> Self {
        Self { handles, calls: AtomicUsize::new(0) }
    }

    fn next(&self) -> &S {
        &self.handles[self.calls.fetch_add(1, Ordering::Relaxed) % 2]
    }
}

delegate_store!(
    impl<S: Store> TaskStore, BridgeStore, InputStore, KeyValueStore, ResultStore
        for Alternating<S>: |store| store.next()
);
delegate_store!(
    impl<S: Store> AuditLog, StoreMonitor for Alternating<S>:
        |store| store.next()
);
delegate_store!(impl<S: OperatorStore> OperatorStore for Alternating<S>: |store| store.next());
delegate_store!(
    impl<S: PeopleStore> TaskIndex, DecisionStore, DeliveryQueue, MetricStore for Alternating<S>:
        |store| store.next()
);

impl<S: Store> WorkQueue for Alternating<S> {
    delegate_store!(claim, renew, release, commit, inbox, finish_cleanup: |store| store.next());
    delegate_store!(next_due, sweep: |store| store.next());
    delegate_store!(subscribe: |store| &store.handles[0]);
}
