//! Runs tasks: claims what is due, keeps its leases, and gives up what it has lost.
//!
//! One scheduler per process, one driver per running task. Nothing that matters lives here: a
//! process that ends loses no more than what its runs had not recorded yet.

mod config;
mod drive;
mod news;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use tokio::sync::{Notify, Semaphore, oneshot};

pub use config::EngineConfig;
pub use news::News;

use news::Listening;

use crate::{
    Journal,
    store::{
        Cancelled, Changes, Claimed, Created, Lease, NewTask, Store, StoreError, TaskId,
        TaskOutcome, Then, View, WorkerId,
    },
};

/// The work of a task.
pub type Work = Pin<Box<dyn Future<Output = TaskOutcome> + Send>>;

/// Begins tasks. The engine knows when; this knows what.
pub trait Runner: Send + Sync + 'static {
    /// Begins a task, or begins it again over its journal. Must not block.
    ///
    /// # Errors
    ///
    /// The outcome of a task that is not to be begun: what it does is not there any more, or must
    /// not be done twice.
    fn start(&self, claimed: Claimed) -> Result<Started, TaskOutcome>;
}

/// A run of a task.
pub struct Started {
    /// What it records.
    pub journal: Arc<Journal>,
    /// What it does.
    pub work: Work,
    /// Tells it that it should stop.
    pub cancel: Box<dyn Fn() + Send + Sync>,
}

/// Runs the tasks of a store. Clones are the same engine.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    runner: Arc<dyn Runner>,
    config: EngineConfig,
    worker: WorkerId,
    running: Mutex<HashMap<TaskId, Signals>>,
    watched: Mutex<HashMap<TaskId, Weak<Notify>>>,
    listening: Mutex<Vec<Weak<Listening>>>,
    /// Something may be due.
    due: Notify,
    slots: Arc<Semaphore>,
    stopping: tokio::sync::watch::Sender<bool>,
}

/// How a driver hears of what others do to its task.
#[derive(Clone)]
struct Signals {
    /// The store's row has changed.
    changed: Arc<Notify>,
    /// The lease is lost.
    lost: Arc<Notify>,
    epoch: u64,
}

/// What became of a run that was to become a task.
pub enum Adopted {
    /// It is a task now.
    Task(TaskId),
    /// It is not: the run comes back.
    Refused(Work, Refused),
}

/// Why a task was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The caller has as many as it may.
    OverQuota,
    /// Its key was used for another request.
    OtherRequest,
    /// It was made before, under the same key.
    Before(TaskId),
    /// The store cannot be used.
    Store(StoreError),
}

impl Engine {
    /// Begins to run the tasks of a store. Must be called inside a runtime.
    pub fn start(
        store: &Arc<dyn Store>,
        runner: Arc<dyn Runner>,
        worker: WorkerId,
        config: EngineConfig,
    ) -> Self {
        let inner = Arc::new(Inner {
            runner,
            worker,
            running: Mutex::default(),
            watched: Mutex::default(),
            listening: Mutex::default(),
            due: Notify::new(),
            slots: Arc::new(Semaphore::new(config.running)),
            stopping: tokio::sync::watch::channel(false).0,
            store: Arc::clone(store),
            config,
        });
        let listener = Arc::downgrade(&inner);
        store.listen(Arc::new(move |task| {
            if let Some(inner) = listener.upgrade() {
                inner.changed(task);
            }
        }));
        tokio::spawn(schedule(Arc::downgrade(&inner)));
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

    /// Makes a task that is run as soon as there is room for it.
    ///
    /// # Errors
    ///
    /// When it is not made.
    pub async fn create(&self, task: NewTask) -> Result<TaskId, Refused> {
        let id = task.id.clone();
        match self.0.store.create(NewTask { worker: None, ..task }).await {
            Ok(Created::New(_)) => Ok(id),
            Ok(other) => Err(refused(other)),
            Err(error) => Err(Refused::Store(error)),
        }
    }

    /// Makes a task of a run that has begun. The run goes on here; it is not begun again.
    pub fn adopt(&self, task: NewTask, run: Started) -> oneshot::Receiver<Adopted> {
        let (reply, answer) = oneshot::channel();
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            let worker = Some((inner.worker.clone(), inner.config.lease));
            let (id, principal) = (task.id.clone(), task.principal.clone());
            let created = inner.store.create(NewTask { worker, ..task }).await;
            let why = match created {
                Ok(Created::New(Some(lease))) => {
                    run.journal.begin_writing();
                    if reply.send(Adopted::Task(id.clone())).is_err() {
                        // Whoever asked has left before it could learn of the task.
                        let retention = inner.config.retention;
                        let cancel = inner.store.cancel(&principal, &id, false, retention);
                        if let Err(error) = cancel.await {
                            tracing::warn!(%error, "an undelivered task could not be cancelled");
                        }
                    }
                    return inner.run(lease, run).await;
                }
                Ok(other) => refused(other),
                Err(error) => Refused::Store(error),
            };
            // The run goes back to whoever had it; if nobody is there any more, it ends here.
            let _ = reply.send(Adopted::Refused(run.work, why));
        });
        answer
    }

    /// A task of this principal.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn view(&self, principal: &str, task: &TaskId) -> Result<Option<View>, StoreError> {
        self.0.store.view(principal, task).await
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
    ) -> Result<Option<Cancelled>, StoreError> {
        self.0.store.cancel(principal, task, at_once, self.0.config.retention).await
    }

    /// Is told whenever a task may have changed. Take it before looking at the task, so that no
    /// change falls in between.
    pub fn watch(&self, task: &TaskId) -> Arc<Notify> {
        let mut watched = self.0.lock_watched();
        if let Some(notify) = watched.get(task).and_then(Weak::upgrade) {
            return notify;
        }
        watched.retain(|_, notify| notify.strong_count() > 0);
        let notify = Arc::new(Notify::new());
        watched.insert(task.clone(), Arc::downgrade(&notify));
        notify
    }

    /// Changes of these tasks, from now on.
    pub fn news(&self, tasks: &[TaskId]) -> News {
        let (news, listening) = News::new(tasks);
        let mut all = self.0.listening.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|listening| listening.strong_count() > 0);
        all.push(Arc::downgrade(&listening));
        news
    }

    /// Stops claiming, gives steps in flight some time to end, and gives everything back, so that
    /// another replica goes on at once.
    pub async fn drain(&self, patience: Duration) {
        let inner = &self.0;
        inner.stopping.send_replace(true);
        inner.due.notify_one();
        let all = inner.config.running as u32;
        let _ = tokio::time::timeout(patience, inner.slots.acquire_many(all)).await;
        if let Err(error) = inner.store.release(&inner.worker).await {
            tracing::warn!(%error, "tasks could not be released; their leases will end");
        }
    }
}

fn refused(created: Created) -> Refused {
    match created {
        Created::Before(id) => Refused::Before(id),
        Created::OtherRequest => Refused::OtherRequest,
        Created::OverQuota => Refused::OverQuota,
        Created::New(_) => Refused::Store(StoreError::Unavailable("it gave no lease".to_owned())),
    }
}

impl Inner {
    fn changed(&self, task: &TaskId) {
        match self.lock_running().get(task) {
            Some(signals) => signals.changed.notify_one(),
            None => self.due.notify_one(),
        }
        if let Some(notify) = self.lock_watched().get(task).and_then(Weak::upgrade) {
            notify.notify_waiters();
        }
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner).clone();
        listening.iter().filter_map(Weak::upgrade).for_each(|listening| listening.tell(task));
    }

    /// Runs a task until it ends, waits without a worker, or is lost.
    async fn run(self: Arc<Self>, lease: Lease, run: Started) {
        let signals = Signals {
            changed: Arc::new(Notify::new()),
            lost: Arc::new(Notify::new()),
            epoch: lease.epoch,
        };
        let task = lease.task.clone();
        self.lock_running().insert(task.clone(), signals.clone());
        drive::drive(&self, &lease, run, &signals).await;
        let mut running = self.lock_running();
        if running.get(&task).is_some_and(|signals| signals.epoch == lease.epoch) {
            running.remove(&task);
        }
        drop(running);
        self.due.notify_one();
    }

    fn lock_running(&self) -> MutexGuard<'_, HashMap<TaskId, Signals>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_watched(&self) -> MutexGuard<'_, HashMap<TaskId, Weak<Notify>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Claims, renews and sweeps, for as long as the engine is used.
async fn schedule(engine: Weak<Inner>) {
    let mut renewed = Instant::now();
    let mut swept: Option<Instant> = None;
    loop {
        let Some(inner) = engine.upgrade() else { return };
        if *inner.stopping.borrow() {
            return;
        }
        let config = &inner.config;
        let all_taken = claim(&inner).await;
        if renewed.elapsed() >= config.lease / 3 {
            renew(&inner, &mut renewed).await;
        }
        if swept.is_none_or(|swept| swept.elapsed() >= config.sweep) {
            swept = Some(Instant::now());
            if let Err(error) = inner.store.sweep(config.batch, config.retention).await {
                tracing::warn!(%error, "tasks could not be swept");
            }
        }
        let due = match all_taken {
            true => inner.store.next_due().await.ok().flatten(),
            // There is more, and no room for it until something ends.
            false => None,
        };
        let pause = due.unwrap_or(config.poll).clamp(Duration::from_millis(1), config.poll);
        let _ = tokio::time::timeout(pause, inner.due.notified()).await;
    }
}

/// Claims what there is room for; `false` if there is no room.
async fn claim(inner: &Arc<Inner>) -> bool {
    let room = inner.slots.available_permits().min(inner.config.batch);
    if room == 0 {
        return false;
    }
    let claimed = match inner.store.claim(&inner.worker, inner.config.lease, room).await {
        Ok(claimed) => claimed,
        Err(error) => {
            tracing::warn!(%error, "no tasks could be claimed");
            return true;
        }
    };
    let all_taken = claimed.len() < room;
    for claimed in claimed {
        let inner = Arc::clone(inner);
        tokio::spawn(async move {
            let slots = Arc::clone(&inner.slots);
            let _slot = slots.acquire().await;
            begin(inner, claimed).await;
        });
    }
    all_taken
}

async fn begin(inner: Arc<Inner>, claimed: Claimed) {
    let lease = claimed.lease.clone();
    let crashes = claimed.crashes;
    let started = if claimed.cancel_requested {
        Err(TaskOutcome::Cancelled)
    } else if crashes >= inner.config.crashes {
        let why = format!("its worker was lost {crashes} times in a row; it is not begun again");
        Err(TaskOutcome::Error(drive::internal(why)))
    } else {
        inner.runner.start(claimed)
    };
    match started {
        Ok(run) => inner.run(lease, run).await,
        Err(outcome) => {
            let then = Then::End { outcome, retention: inner.config.retention };
            drive::write(&inner, &lease, Changes::default(), then).await;
        }
    }
}

/// Prolongs all leases; what is not held any more is given up.
async fn renew(inner: &Inner, renewed: &mut Instant) {
    let began = Instant::now();
    let held = match inner.store.renew(&inner.worker, inner.config.lease).await {
        Ok(held) => held,
        Err(error) => {
            tracing::warn!(%error, "leases could not be renewed");
            if renewed.elapsed() < inner.config.lease - inner.config.lease / 4 {
                return;
            }
            // Others may claim them any moment: nothing may be done here any more.
            Vec::new()
        }
    };
    *renewed = began;
    let running = inner.lock_running();
    for (task, signals) in running.iter() {
        let is_held = |lease: &Lease| lease.task == *task && lease.epoch == signals.epoch;
        if !held.iter().any(is_held) {
            signals.lost.notify_one();
        }
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

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Started").field("journal", &self.journal).finish_non_exhaustive()
    }
}

impl fmt::Debug for Adopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(id) => f.debug_tuple("Task").field(id).finish(),
            Self::Refused(_, why) => f.debug_tuple("Refused").field(why).finish(),
        }
    }
}
