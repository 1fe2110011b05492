//! Runs tasks: claims what is due, keeps its leases, and gives up what it has lost.
//!
//! One scheduler per process, one driver per running task. Nothing that matters lives here: a
//! process that ends loses no more than what its runs had not recorded yet.

mod config;
mod drive;
mod news;
mod schedule;
mod seen;
mod untold;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::sync::{Notify, Semaphore, oneshot, watch};

pub use config::EngineConfig;
pub use news::News;
pub use seen::{Observer, Seen};
pub use untold::Untold;

use drive::Held;
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
    /// Whether another worker can go on with it from its journal.
    pub resumes: bool,
}

/// Runs the tasks of a store. Clones are the same engine.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    runner: Arc<dyn Runner>,
    observer: Option<Arc<dyn Observer>>,
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
    slots: Arc<Semaphore>,
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
}

/// What became of a run that was to become a task.
pub enum Adopted {
    /// It is a task now.
    Task(Untold),
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
        observer: Option<Arc<dyn Observer>>,
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
            slots: Arc::new(Semaphore::new(config.running)),
            stopping: watch::channel(false).0,
            store: Arc::clone(store),
            config,
        });
        let listener = Arc::downgrade(&inner);
        store.listen(Arc::new(move |task| {
            if let Some(inner) = listener.upgrade() {
                inner.changed(task);
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

    /// Makes a task that is run as soon as there is room for it. It is made, and cancelled then,
    /// even if whoever asked does not wait for it; unless it has a key to ask for it again.
    ///
    /// # Errors
    ///
    /// When it is not made, or nobody knows whether it was.
    pub async fn create(&self, task: NewTask) -> Result<Untold, Refused> {
        let (reply, answer) = oneshot::channel();
        let inner = Arc::clone(&self.0);
        // Waited for whether its caller stays or not: where there are several ways to a store, a
        // cancellation might overtake it.
        tokio::spawn(async move {
            let untold = Untold::of(&inner, &task);
            let created = match inner.store.create(NewTask { worker: None, ..task }).await {
                Ok(Created::New(_)) => Ok(untold),
                Ok(other) => {
                    untold.told();
                    Err(refused(other))
                }
                Err(error) => Err(Refused::Store(error)),
            };
            // If nobody waits for it any more it comes back, and is cancelled.
            drop(reply.send(created));
        });
        let lost = || Refused::Store(StoreError::Unavailable("it was not waited for".to_owned()));
        answer.await.unwrap_or_else(|_| Err(lost()))
    }

    /// Makes a task of a run that has begun. The run goes on here; it is not begun again.
    pub fn adopt(&self, task: NewTask, run: Started) -> oneshot::Receiver<Adopted> {
        let (reply, answer) = oneshot::channel();
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            let worker = Some((inner.worker.clone(), inner.config.lease));
            let (id, principal) = (task.id.clone(), task.principal.clone());
            let untold = Untold::of(&inner, &task);
            let created = inner.store.create(NewTask { worker, ..task }).await;
            let why = match created {
                Ok(Created::New(Some(lease))) => {
                    run.journal.begin_writing();
                    inner.saw(&principal, &id, Seen::Adopted);
                    // If nobody waits for it any more it comes back, and is cancelled.
                    drop(reply.send(Adopted::Task(untold)));
                    return inner.run(lease, principal, run).await;
                }
                Ok(other) => {
                    untold.told();
                    refused(other)
                }
                Err(error) => {
                    // It may be there all the same, and must not run beside what goes back.
                    untold.never_was();
                    Refused::Store(error)
                }
            };
            // The run goes back to whoever had it; if nobody is there any more, it ends here.
            let _ = reply.send(Adopted::Refused(run.work, why));
        });
        answer
    }

    /// Keeps what has been done as a task that has ended, for those who ask for it again.
    ///
    /// # Errors
    ///
    /// When it is not kept, or nobody knows whether it was.
    pub async fn keep_ended(&self, task: NewTask, outcome: TaskOutcome) -> Result<(), Refused> {
        let inner = &self.0;
        let untold = Untold::of(inner, &task);
        let worker = Some((inner.worker.clone(), inner.config.lease));
        let lease = match inner.store.create(NewTask { worker, ..task }).await {
            Ok(Created::New(Some(lease))) => lease,
            Ok(other) => {
                untold.told();
                return Err(refused(other));
            }
            Err(error) => {
                untold.never_was();
                return Err(Refused::Store(error));
            }
        };
        let then = Then::End { outcome, retention: inner.config.retention };
        match inner.store.write(&lease, Changes::default(), then).await {
            Ok(()) => {
                untold.told();
                Ok(())
            }
            Err(error) => {
                untold.never_was();
                Err(Refused::Store(error))
            }
        }
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

fn refused(created: Created) -> Refused {
    match created {
        Created::Before(id) => Refused::Before(id),
        Created::OtherRequest => Refused::OtherRequest,
        Created::OverQuota => Refused::OverQuota,
        Created::New(_) => Refused::Store(StoreError::Unavailable("it gave no lease".to_owned())),
    }
}

impl Inner {
    fn saw(&self, principal: &str, task: &TaskId, seen: Seen<'_>) {
        if let Some(observer) = &self.observer {
            observer.seen(principal, task, seen);
        }
    }

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
    async fn run(self: Arc<Self>, lease: Lease, principal: String, run: Started) {
        let signals = Signals {
            changed: Arc::new(Notify::new()),
            lost: Arc::new(Notify::new()),
            epoch: lease.epoch,
        };
        let task = lease.task.clone();
        self.lock_running().insert(task.clone(), signals.clone());
        let held = Held { inner: &self, lease: &lease, principal: &principal };
        drive::drive(held, run, &signals).await;
        let mut running = self.lock_running();
        if running.get(&task).is_some_and(|signals| signals.epoch == lease.epoch) {
            running.remove(&task);
        }
        drop(running);
        self.ended.notify_waiters();
        self.due.notify_one();
    }

    fn lock_running(&self) -> MutexGuard<'_, HashMap<TaskId, Signals>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_watched(&self) -> MutexGuard<'_, HashMap<TaskId, Weak<Notify>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
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
            Self::Task(untold) => f.debug_tuple("Task").field(untold.task()).finish(),
            Self::Refused(_, why) => f.debug_tuple("Refused").field(why).finish(),
        }
    }
}
