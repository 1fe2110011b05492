//! Two handles on one store, as two processes have.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use outlive_tasks::store::{
    AuditEvent, AuditRecord, CancelOutcome, ChangeListener, Changes, Charge, Claim, ClaimedTask,
    CleanupState, CreateOutcome, IdempotencyKey, Inbox, InputSource, Lease, ListCursor, NewTask,
    OperatorStore, PageLimit, PurgeOutcome, RetryOutcome, Store, StoreFuture, StoreStats,
    StoredSegments, SweepReport, TaskDetail, TaskFilter, TaskId, TaskRecord, TaskSummary,
    Transition, UnixMillis, WorkerId,
};
use outlive_wire::RawJson;

/// Each call goes to the other handle than the one before. Who listens does so at the first.
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

impl<S: Store> Store for Alternating<S> {
    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome> {
        self.next().create(task)
    }

    fn find<'a>(
        &'a self,
        principal: &'a str,
        once: &'a IdempotencyKey,
    ) -> StoreFuture<'a, Option<CreateOutcome>> {
        self.next().find(principal, once)
    }

    fn get<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<TaskRecord>> {
        self.next().get(principal, task)
    }

    fn read_segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> StoreFuture<'a, Option<StoredSegments>> {
        self.next().read_segments(principal, task, after, limit)
    }

    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskRecord>> {
        self.next().list(principal, origin, after, limit)
    }

    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> StoreFuture<'a, Vec<ClaimedTask>> {
        self.next().claim(worker, lease, claim)
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> StoreFuture<'a, Vec<Lease>> {
        self.next().renew(worker, lease)
    }

    fn release<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()> {
        self.next().release(worker)
    }

    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        self.next().commit(lease, changes, then)
    }

    fn finish_cleanup<'a>(&'a self, lease: &'a Lease, now: CleanupState) -> StoreFuture<'a, ()> {
        self.next().finish_cleanup(lease, now)
    }

    fn inbox<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, Inbox> {
        self.next().inbox(lease)
    }

    fn respond<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: InputSource,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> StoreFuture<'a, Option<usize>> {
        self.next().respond(principal, task, from, answers, max_bytes)
    }

    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> StoreFuture<'a, Option<CancelOutcome>> {
        self.next().cancel(principal, task, at_once, retention)
    }

    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport> {
        self.next().sweep(limit, retention)
    }

    fn keep<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, Option<RawJson>> {
        self.next().keep(key, note, ttl, charge)
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, ()> {
        self.next().replace(key, note, ttl, charge)
    }

    fn kept<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<RawJson>> {
        self.next().kept(key)
    }

    fn forget<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.next().forget(key)
    }

    fn record(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> StoreFuture<'_, ()> {
        self.next().record(events, retention, max_events)
    }

    fn audit<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditRecord>> {
        self.next().audit(task, after, limit)
    }

    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        self.next().stats()
    }

    fn stored_bytes<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, u64> {
        self.next().stored_bytes(principal)
    }

    fn next_due<'a>(&'a self, except: &'a [String]) -> StoreFuture<'a, Option<Duration>> {
        self.next().next_due(except)
    }

    fn subscribe(&self, listener: ChangeListener) {
        self.handles[0].subscribe(listener);
    }
}

impl<S: OperatorStore> OperatorStore for Alternating<S> {
    fn tasks<'a>(
        &'a self,
        filter: &'a TaskFilter,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskSummary>> {
        self.next().tasks(filter, after, limit)
    }

    fn inspect<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<TaskDetail>> {
        self.next().inspect(task)
    }

    fn retry<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<RetryOutcome>> {
        self.next().retry(task)
    }

    fn purge<'a>(&'a self, task: &'a TaskId, force: bool) -> StoreFuture<'a, Option<PurgeOutcome>> {
        self.next().purge(task, force)
    }

    fn purge_ended(
        &self,
        before: UnixMillis,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(String, TaskId)>> {
        self.next().purge_ended(before, limit)
    }
}
