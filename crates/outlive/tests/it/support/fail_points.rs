//! A store with fail points: places where a test can hold or fail an operation.
//!
//! Each replica of a test has its own fail points over the shared store. A test simulates a crash
//! by holding a replica at a fail point and dropping its runtime.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use outlive::{
    store::{
        Attended, BridgeStore, CancelOutcome, Changes, Charge, Claim, ClaimedTask, CleanupState,
        CreateOutcome, Departure, IdempotencyKey, Inbox, InputSource, Joined, KeyValueStore, Lease,
        ListCursor, NewTask, PageLimit, Store, StoreError, StoreFuture, StoredSegments,
        SweepReport, TaskId, TaskRecord, TaskStore, Transition, WorkQueue, WorkerId,
    },
    wire::RawJson,
};
use outlive_tasks::delegate_store;

use super::gate::Gate;

/// A store operation. Commits are distinguished by their content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Create,
    Made,
    View,
    Segments,
    List,
    /// `after(Claim)` counts only claims that return a task.
    Claim,
    Renew,
    Release,
    /// A commit with an input request.
    Ask,
    /// A commit with journal entries and without input requests.
    Record,
    /// A commit with segments only.
    Emit,
    /// Any other commit that keeps the lease.
    Write,
    /// A commit that releases the lease.
    Park,
    /// The commit that ends a task.
    End,
    /// A commit that schedules or finishes a cleanup.
    CleanUp,
    Heard,
    Answer,
    Cancel,
    Sweep,
    Join,
    Attend,
    Leave,
    Deliver,
    Evict,
    Keep,
    Replace,
    Kept,
    Forget,
    /// Any write on behalf of a call or a run, but not the background work of engines.
    Change,
}

impl Op {
    fn of(changes: &Changes, then: &Transition) -> Self {
        match then {
            Transition::Park { .. } => Self::Park,
            Transition::Quarantine { .. } | Transition::End { .. } => Self::End,
            Transition::Continue if !changes.input_requests.is_empty() => Self::Ask,
            Transition::Continue if !changes.entries.is_empty() => Self::Record,
            Transition::Continue if !changes.segments.is_empty() => Self::Emit,
            Transition::Continue => Self::Write,
        }
    }

    fn is(self, op: Self) -> bool {
        let idle = [Self::Made, Self::View, Self::List, Self::Kept, Self::Heard, Self::Join];
        let engines = [Self::Claim, Self::Renew, Self::Release, Self::Sweep];
        self == op || self == Self::Change && !idle.contains(&op) && !engines.contains(&op)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// A place before or after the n-th operation of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) op: Op,
    side: Side,
    nth: usize,
}

/// The place before the operation.
pub(crate) fn before(op: Op) -> Point {
    Point { op, side: Side::Before, nth: 1 }
}

/// The place after the operation, before its caller gets the result.
pub(crate) fn after(op: Op) -> Point {
    Point { op, side: Side::After, nth: 1 }
}

impl Point {
    /// The n-th operation instead of the next one, counted from one.
    pub(crate) fn nth(self, nth: usize) -> Self {
        Self { nth, ..self }
    }
}

enum Act {
    Hold(Gate),
    Fail,
}

/// A store with fail points. Without fail points it behaves like the inner store.
pub(crate) struct FailPoints {
    inner: Arc<dyn Store>,
    // A std mutex: nothing awaits while it is held.
    points: Mutex<Vec<(Point, Act)>>,
    down: AtomicBool,
}

impl FailPoints {
    pub(crate) fn over(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, points: Mutex::default(), down: AtomicBool::new(false) })
    }

    /// Holds the next operation at this place until the gate opens.
    pub(crate) fn hold(&self, point: Point) -> Gate {
        let gate = Gate::default();
        self.lock().push((point, Act::Hold(gate.clone())));
        gate
    }

    /// Fails the next operation at this place as unavailable. A place after the operation fails
    /// although the store executed it.
    pub(crate) fn fail(&self, point: Point) {
        self.lock().push((point, Act::Fail));
    }

    /// Makes the whole store unavailable or available.
    pub(crate) fn down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Point, Act)>> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pass(&self, op: Op, side: Side) -> Result<(), StoreError> {
        let refused = || Err(StoreError::Unavailable("a fail point".to_owned()));
        if self.down.load(Ordering::Relaxed) {
            return refused();
        }
        match self.next(op, side) {
            None => Ok(()),
            Some(Act::Fail) => refused(),
            Some(Act::Hold(gate)) => {
                gate.pass().await;
                Ok(())
            }
        }
    }

    /// Returns the action for this operation, if its turn has come.
    fn next(&self, op: Op, side: Side) -> Option<Act> {
        let mut points = self.lock();
        let mut here = None;
        for (at, (point, _)) in points.iter_mut().enumerate() {
            if point.op.is(op) && point.side == side {
                point.nth -= 1;
                if point.nth == 0 && here.is_none() {
                    here = Some(at);
                }
            }
        }
        here.map(|at| points.remove(at).1)
    }

    fn through<'a, T: Send + 'a>(
        &'a self,
        op: Op,
        done: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            self.pass(op, Side::Before).await?;
            let done = done(&*self.inner).await?;
            self.pass(op, Side::After).await?;
            Ok(done)
        })
    }
}

delegate_store!(
    impl InputStore, ResultStore, AuditLog, StoreMonitor for FailPoints: |store| &*store.inner
);

impl TaskStore for FailPoints {
    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome> {
        // Tests list every task.
        let task = task.listed(true);
        self.through(Op::Create, move |store| store.create(task))
    }

    fn find<'a>(
        &'a self,
        principal: &'a str,
        once: &'a IdempotencyKey,
    ) -> StoreFuture<'a, Option<CreateOutcome>> {
        self.through(Op::Made, move |store| store.find(principal, once))
    }

    fn get<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<TaskRecord>> {
        self.through(Op::View, move |store| store.get(principal, task))
    }

    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskRecord>> {
        self.through(Op::List, move |store| store.list(principal, origin, after, limit))
    }

    fn read_segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> StoreFuture<'a, Option<StoredSegments>> {
        self.through(Op::Segments, move |store| store.read_segments(principal, task, after, limit))
    }

    fn respond<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: InputSource,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> StoreFuture<'a, Option<usize>> {
        self.through(Op::Answer, move |store| {
            store.respond(principal, task, from, answers, max_bytes)
        })
    }

    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> StoreFuture<'a, Option<CancelOutcome>> {
        self.through(Op::Cancel, move |store| store.cancel(principal, task, at_once, retention))
    }
}

impl WorkQueue for FailPoints {
    delegate_store!(next_due, subscribe: |store| &*store.inner);

    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> StoreFuture<'a, Vec<ClaimedTask>> {
        Box::pin(async move {
            self.pass(Op::Claim, Side::Before).await?;
            let claimed = self.inner.claim(worker, lease, claim).await?;
            if !claimed.is_empty() {
                self.pass(Op::Claim, Side::After).await?;
            }
            Ok(claimed)
        })
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> StoreFuture<'a, Vec<Lease>> {
        self.through(Op::Renew, move |store| store.renew(worker, lease))
    }

    fn release<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()> {
        self.through(Op::Release, move |store| store.release(worker))
    }

    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        let op = Op::of(changes, then);
        self.through(op, move |store| store.commit(lease, changes, then))
    }

    fn inbox<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, Inbox> {
        self.through(Op::Heard, move |store| store.inbox(lease))
    }

    fn finish_cleanup<'a>(&'a self, lease: &'a Lease, now: CleanupState) -> StoreFuture<'a, ()> {
        self.through(Op::CleanUp, move |store| store.finish_cleanup(lease, now))
    }

    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport> {
        self.through(Op::Sweep, move |store| store.sweep(limit, retention))
    }
}

impl BridgeStore for FailPoints {
    delegate_store!(open_calls: |store| &*store.inner);

    fn join<'a>(
        &'a self,
        principal: &'a str,
        scope: &'a str,
        fingerprint: &'a str,
        worker: &'a WorkerId,
    ) -> StoreFuture<'a, Joined> {
        self.through(Op::Join, move |store| store.join(principal, scope, fingerprint, worker))
    }

    fn attend<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        worker: &'a WorkerId,
    ) -> StoreFuture<'a, Option<Attended>> {
        self.through(Op::Attend, move |store| store.attend(principal, task, worker))
    }

    fn leave<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        worker: &'a WorkerId,
        how: Departure,
    ) -> StoreFuture<'a, ()> {
        self.through(Op::Leave, move |store| store.leave(principal, task, worker, how))
    }

    fn deliver<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        retention: Option<Duration>,
    ) -> StoreFuture<'a, ()> {
        self.through(Op::Deliver, move |store| store.deliver(principal, task, retention))
    }

    fn evict<'a>(&'a self, principal: &'a str, bytes: u64) -> StoreFuture<'a, u64> {
        self.through(Op::Evict, move |store| store.evict(principal, bytes))
    }
}

impl KeyValueStore for FailPoints {
    fn put_if_absent<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, Option<RawJson>> {
        self.through(Op::Keep, move |store| store.put_if_absent(key, value, ttl, charge))
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, ()> {
        self.through(Op::Replace, move |store| store.put(key, value, ttl, charge))
    }

    fn get_value<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<RawJson>> {
        self.through(Op::Kept, move |store| store.get_value(key))
    }

    fn delete<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.through(Op::Forget, move |store| store.delete(key))
    }
}
