//! Runs tasks: claims what is due, keeps its leases, and gives up what it has lost.
//!
//! One scheduler per process, one driver per running task. Nothing that matters lives here: a
//! process that ends loses no more than what its runs had not recorded yet.

mod changes;
mod clean_up;
mod config;
mod create;
mod detach_on_drop;
mod drive;
mod events;
mod room;
mod schedule;
mod unacknowledged;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::AtomicBool},
    time::Duration,
};

use tokio::sync::{Notify, Semaphore, watch};

pub use crate::capacity::{Capacity, Permit};
pub use changes::ChangeStream;
pub use clean_up::CleanupFuture;
pub use config::EngineConfig;
pub use events::{EngineEvent, EngineObserver};
pub use unacknowledged::UnacknowledgedTask;

use crate::capacity::{Claimant, Grant};
use changes::Listening;
use drive::{Held, Left};
use room::{Expected, Shares};

use crate::{
    Journal,
    store::{
        CancelOutcome, ChangeSource, ClaimedTask, Lease, PageLimit, Store, StoreError,
        StoredSegments, TaskId, TaskOutcome, TaskRecord, WorkerId,
    },
};

/// The work of a task.
pub type Work = Pin<Box<dyn Future<Output = TaskOutcome> + Send>>;

/// Begins tasks. The engine knows when; this knows what.
pub trait TaskRunner: Send + Sync + 'static {
    /// Begins a task, or begins it again over its journal. Must not block.
    ///
    /// # Errors
    ///
    /// How a task ends that is not to be begun: what it does is not there any more, or must not be
    /// done twice.
    fn start(&self, claimed: ClaimedTask) -> Result<TaskRun, StartError>;

    /// Returns how many bytes a principal may have stored now; `None` for any number. Must not block.
    fn allowance(&self, _principal: &str) -> Option<Allowance> {
        None
    }

    /// Begins to clean up after a task that was cancelled or has expired; `None` if there is nothing
    /// to do. Must not block.
    fn clean_up(&self, _claimed: ClaimedTask) -> Option<CleanupFuture> {
        None
    }
}

/// How many bytes a principal may have stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by the floor above")]
pub struct Allowance {
    /// How many.
    pub max_bytes: u64,
    /// The name of the limit, for whoever has reached it.
    pub limit: &'static str,
}

/// What becomes of a task that is not begun.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by the floor above")]
pub struct StartError {
    /// Its outcome.
    pub outcome: TaskOutcome,
    /// Whether an operator has to look at it before it ends so: it is kept, like what ends its
    /// workers.
    pub keep: bool,
}

/// A run of a task.
pub struct TaskRun {
    /// What it records.
    pub journal: Arc<Journal>,
    /// What it does.
    pub work: Work,
    /// Tells it that it should stop.
    pub cancel: Box<dyn Fn() + Send + Sync>,
    /// Whether another worker can go on with it from its journal.
    pub resumes: bool,
    /// Whether something is done after it if it ends before its work does.
    pub cleans_up: bool,
}

/// Runs the tasks of a store. Clones are the same engine.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    runner: Arc<dyn TaskRunner>,
    observer: Option<Arc<dyn EngineObserver>>,
    config: EngineConfig,
    worker: WorkerId,
    running: Mutex<HashMap<TaskId, Signals>>,
    watched: Mutex<HashMap<TaskId, Weak<Notify>>>,
    listening: Mutex<Vec<Weak<Listening>>>,
    /// Something may be due.
    due: Notify,
    /// Leases have less time left than usual.
    renew: Arc<Notify>,
    /// A run has ended.
    ended: Notify,
    claims: schedule::Claims,
    /// Tasks that have got what they wait for, and are to be claimed.
    granted: Mutex<Vec<Grant>>,
    /// How many tasks of each caller run here.
    shares: Shares,
    slots: Arc<Semaphore>,
    /// More could be claimed if there was room for it.
    is_full: AtomicBool,
    stopping: watch::Sender<bool>,
}

/// How a driver hears of what others do to its task.
#[derive(Clone)]
struct Signals {
    /// The store's row has changed.
    changed: Arc<Notify>,
    /// The lease is lost.
    lost: Arc<Notify>,
    epoch: u64,
    /// What runs, once it does.
    run: Option<Running>,
}

/// A run, for those who read what it emits.
#[derive(Clone)]
struct Running {
    principal: Arc<str>,
    journal: Arc<Journal>,
}

impl Signals {
    fn of(epoch: u64) -> Self {
        Self { changed: Arc::default(), lost: Arc::default(), epoch, run: None }
    }
}

/// What became of a run that was to become a task.
pub enum Promotion {
    /// It is a task now.
    Task(UnacknowledgedTask),
    /// It is not: the run comes back.
    Refused(Work, CreateError),
}

/// Why a task was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreateError {
    /// The caller has as many as it may.
    OverQuota,
    /// The caller has as many bytes stored as it may.
    OverBytes,
    /// Its key was used for another request.
    OtherRequest,
    /// It was made before, under the same key.
    Before(TaskId),
    /// The store cannot be used.
    Store(StoreError),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OverQuota => f.write_str("the caller has as many open tasks as it may have"),
            Self::OverBytes => f.write_str("the caller has as many bytes stored as it may have"),
            Self::OtherRequest => f.write_str("the idempotency key was used for another request"),
            Self::Before(id) => write!(f, "the idempotency key belongs to the task {id}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl Engine {
    /// Begins to run the tasks of a store. Must be called inside a runtime.
    pub fn start(
        store: &Arc<dyn Store>,
        runner: Arc<dyn TaskRunner>,
        observer: Option<Arc<dyn EngineObserver>>,
        worker: WorkerId,
        config: EngineConfig,
    ) -> Self {
        let inner = Arc::new(Inner {
            runner,
            observer,
            worker,
            running: Mutex::default(),
            watched: Mutex::default(),
            listening: Mutex::default(),
            due: Notify::new(),
            renew: Arc::default(),
            ended: Notify::new(),
            claims: schedule::Claims::default(),
            granted: Mutex::default(),
            shares: Shares::default(),
            slots: Arc::new(Semaphore::new(config.max_running)),
            is_full: AtomicBool::new(false),
            stopping: watch::channel(false).0,
            store: Arc::clone(store),
            config,
        });
        let listener = Arc::downgrade(&inner);
        store.subscribe(Arc::new(move |task, by| {
            if let Some(inner) = listener.upgrade() {
                inner.changed(task, by);
            }
        }));
        tokio::spawn(schedule::claims(Arc::downgrade(&inner)));
        tokio::spawn(schedule::renewals(Arc::downgrade(&inner)));
        Self(inner)
    }

    /// Where the tasks are kept.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// How it runs them.
    pub fn config(&self) -> &EngineConfig {
        &self.0.config
    }

    /// A task of this principal.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn view(
        &self,
        principal: &str,
        task: &TaskId,
    ) -> Result<Option<TaskRecord>, StoreError> {
        self.0.store.get(principal, task).await
    }

    /// Cancels a task of this principal.
    ///
    /// # Errors
    ///
    /// When the store cannot be written.
    pub async fn cancel(
        &self,
        principal: &str,
        task: &TaskId,
        at_once: bool,
    ) -> Result<Option<CancelOutcome>, StoreError> {
        self.0.store.cancel(principal, task, at_once, self.0.config.retention).await
    }

    /// Looks now for tasks whose time is over. It does so by itself now and then; this is for one who
    /// knows that there is such a task.
    pub async fn sweep(&self) {
        schedule::sweep(&self.0).await;
    }

    /// Is told whenever a task may have changed. Take it before looking at the task, so that no
    /// change falls in between.
    pub fn watch(&self, task: &TaskId) -> Arc<Notify> {
        let mut watched = self.0.lock_watched();
        if let Some(notify) = watched.get(task).and_then(Weak::upgrade) {
            return notify;
        }
        // Those that nobody waits for any more are let go before room is made for more.
        if watched.len() == watched.capacity() {
            watched.retain(|_, notify| notify.strong_count() > 0);
        }
        let notify = Arc::new(Notify::new());
        watched.insert(task.clone(), Arc::downgrade(&notify));
        notify
    }

    /// What a task of this principal has emitted from after a number on, if it runs here and the store
    /// has more. It is read without the store, and says nothing of how the task is.
    pub fn emitted(
        &self,
        principal: &str,
        task: &TaskId,
        after: u64,
        limit: PageLimit,
    ) -> Option<StoredSegments> {
        let run = self.0.lock_running().get(task).and_then(|signals| signals.run.clone())?;
        (*run.principal == *principal).then(|| run.journal.written_after(after, limit))?
    }

    /// Changes of these tasks, from now on.
    pub fn news(&self, tasks: &[TaskId]) -> ChangeStream {
        let (news, listening) = ChangeStream::new(tasks);
        let mut all = self.0.listening.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|listening| listening.strong_count() > 0);
        all.push(Arc::downgrade(&listening));
        news
    }

    /// Stops claiming, and gives everything to other replicas: what can go on elsewhere as soon as
    /// no step of it is at work, all else if it has not ended in time.
    pub async fn drain(&self, patience: Duration) {
        let inner = &self.0;
        inner.stopping.send_replace(true);
        inner.due.notify_one();
        let all_ended = async {
            loop {
                let ended = inner.ended.notified();
                if inner.lock_running().is_empty() {
                    return;
                }
                ended.await;
            }
        };
        if tokio::time::timeout(patience, all_ended).await.is_err() {
            let late = inner.lock_running().len();
            tracing::warn!(late, "some tasks did not come to the end of a step in time");
        }
        if let Err(error) = inner.store.release(&inner.worker).await {
            tracing::warn!(%error, "tasks could not be released; their leases will end");
        }
        inner.lock_running().values().for_each(|signals| signals.lost.notify_one());
    }
}

impl Inner {
    fn saw(&self, principal: &str, task: &TaskId, seen: EngineEvent<'_>) {
        if let Some(observer) = &self.observer {
            observer.seen(principal, task, seen);
        }
    }

    fn changed(&self, task: &TaskId, by: ChangeSource) {
        match (self.lock_running().get(task), by) {
            // Whoever has written it knows it, and tells others once its journal knows it, too.
            (Some(Signals { run: Some(_), .. }), ChangeSource::Worker) => return,
            (Some(_), ChangeSource::Worker) => {}
            (Some(signals), ChangeSource::Other) => signals.changed.notify_one(),
            (None, _) => self.due.notify_one(),
        }
        self.tell_readers(task);
    }

    /// Tells those who look at a task that it may have changed.
    fn tell_readers(&self, task: &TaskId) {
        if let Some(notify) = self.lock_watched().get(task).and_then(Weak::upgrade) {
            notify.notify_waiters();
        }
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner).clone();
        listening.iter().filter_map(Weak::upgrade).for_each(|listening| listening.tell(task));
    }

    /// Runs a task until it ends, waits without a worker, or is lost.
    async fn run(
        self: &Arc<Self>,
        lease: Lease,
        principal: String,
        run: TaskRun,
        expected: Option<Expected>,
    ) {
        // What was done to one that is claimed may have come before anybody listened.
        let look = expected.is_none();
        let expected = expected.unwrap_or_else(|| self.expect(&lease.task));
        let running =
            Running { principal: principal.as_str().into(), journal: Arc::clone(&run.journal) };
        let signals = expected.is_held(lease.epoch, Some(running));
        let held = Held { inner: self, lease: &lease, principal: &principal };
        let left = drive::drive(held, run, &signals, look).await;
        drop(expected);
        self.tell_readers(&lease.task);
        match left {
            // It may be due again already.
            Left::Waiting => self.due.notify_one(),
            Left::NoPermit(capacity) => {
                let engine = Arc::downgrade(self);
                capacity.wait(&principal, lease.task, engine);
            }
            Left::Over => {}
        }
    }

    fn lock_running(&self) -> MutexGuard<'_, HashMap<TaskId, Signals>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_granted(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_watched(&self) -> MutexGuard<'_, HashMap<TaskId, Weak<Notify>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claimant for Inner {
    fn take_grant(&self, grant: &dyn Fn() -> Grant) -> bool {
        if *self.stopping.borrow() {
            return false;
        }
        self.lock_granted().push(grant());
        self.due.notify_one();
        true
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("worker", &self.0.worker)
            .field("running", &self.0.lock_running().len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TaskRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Started").field("journal", &self.journal).finish_non_exhaustive()
    }
}

impl fmt::Debug for Promotion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(untold) => f.debug_tuple("Task").field(untold.task()).finish(),
            Self::Refused(_, why) => f.debug_tuple("Refused").field(why).finish(),
        }
    }
}
