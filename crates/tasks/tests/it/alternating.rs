//! Two handles on one store, as two processes have.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use outlive_tasks::store::{
    After, Answer, Answerer, Audit, AuditEvent, Cancelled, Census, Changes, Charge, Claim, Claimed,
    Cleaning, Created, Emitted, Filter, Heard, Inspected, Lease, Listener, Millis, NewTask,
    OnceKey, Operated, Overseen, PageLimit, Purged, Retried, Store, Swept, TaskId, Then, View,
    WorkerId,
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
    fn create(&self, task: NewTask) -> Answer<'_, Created> {
        self.next().create(task)
    }

    fn made<'a>(&'a self, principal: &'a str, once: &'a OnceKey) -> Answer<'a, Option<Created>> {
        self.next().made(principal, once)
    }

    fn view<'a>(&'a self, principal: &'a str, task: &'a TaskId) -> Answer<'a, Option<View>> {
        self.next().view(principal, task)
    }

    fn segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> Answer<'a, Option<Emitted>> {
        self.next().segments(principal, task, after, limit)
    }

    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a After>,
        limit: usize,
    ) -> Answer<'a, Vec<View>> {
        self.next().list(principal, origin, after, limit)
    }

    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> Answer<'a, Vec<Claimed>> {
        self.next().claim(worker, lease, claim)
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> Answer<'a, Vec<Lease>> {
        self.next().renew(worker, lease)
    }

    fn release<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, ()> {
        self.next().release(worker)
    }

    fn write<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Then,
    ) -> Answer<'a, ()> {
        self.next().write(lease, changes, then)
    }

    fn clean_up<'a>(&'a self, lease: &'a Lease, now: Cleaning) -> Answer<'a, ()> {
        self.next().clean_up(lease, now)
    }

    fn heard<'a>(&'a self, lease: &'a Lease) -> Answer<'a, Heard> {
        self.next().heard(lease)
    }

    fn answer<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: Answerer,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> Answer<'a, Option<usize>> {
        self.next().answer(principal, task, from, answers, max_bytes)
    }

    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> Answer<'a, Option<Cancelled>> {
        self.next().cancel(principal, task, at_once, retention)
    }

    fn sweep(&self, limit: usize, retention: Duration) -> Answer<'_, Swept> {
        self.next().sweep(limit, retention)
    }

    fn keep<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> Answer<'a, Option<RawJson>> {
        self.next().keep(key, note, ttl, charge)
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> Answer<'a, ()> {
        self.next().replace(key, note, ttl, charge)
    }

    fn kept<'a>(&'a self, key: &'a str) -> Answer<'a, Option<RawJson>> {
        self.next().kept(key)
    }

    fn forget<'a>(&'a self, key: &'a str) -> Answer<'a, ()> {
        self.next().forget(key)
    }

    fn record(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> Answer<'_, ()> {
        self.next().record(events, retention, max_events)
    }

    fn audit<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> Answer<'a, Vec<Audit>> {
        self.next().audit(task, after, limit)
    }

    fn census(&self) -> Answer<'_, Census> {
        self.next().census()
    }

    fn stored_bytes<'a>(&'a self, principal: &'a str) -> Answer<'a, u64> {
        self.next().stored_bytes(principal)
    }

    fn next_due<'a>(&'a self, except: &'a [String]) -> Answer<'a, Option<Duration>> {
        self.next().next_due(except)
    }

    fn listen(&self, listener: Listener) {
        self.handles[0].listen(listener);
    }
}

impl<S: Operated> Operated for Alternating<S> {
    fn tasks<'a>(
        &'a self,
        filter: &'a Filter,
        after: Option<&'a After>,
        limit: usize,
    ) -> Answer<'a, Vec<Overseen>> {
        self.next().tasks(filter, after, limit)
    }

    fn inspect<'a>(&'a self, task: &'a TaskId) -> Answer<'a, Option<Inspected>> {
        self.next().inspect(task)
    }

    fn retry<'a>(&'a self, task: &'a TaskId) -> Answer<'a, Option<Retried>> {
        self.next().retry(task)
    }

    fn purge<'a>(&'a self, task: &'a TaskId, force: bool) -> Answer<'a, Option<Purged>> {
        self.next().purge(task, force)
    }

    fn purge_ended(&self, before: Millis, limit: usize) -> Answer<'_, Vec<(String, TaskId)>> {
        self.next().purge_ended(before, limit)
    }
}
