//! What all commands of a server share: the folder of jobs, the machine, and who looks after what.
//!
//! A job is *attended* while a call follows it, in this process or another one on the same data
//! folder: a file that is locked says so. A call that is dropped without being a task takes its
//! command with it; all others are the janitor's.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outlive::{
    server::{Cx, Error},
    store::{Store, TaskId},
};
use outlive_jobs::{Job, Jobs, State};
use serde::{Deserialize, Serialize};
use tokio::{runtime::Handle, task::JoinSet};

use super::{host_liveness::Host, places::Places};

/// What commands share.
pub(super) struct Runner {
    pub(super) jobs: Jobs,
    pub(super) host: Host,
    /// The store, where other machines use it too.
    pub(super) shared_store: Option<Arc<dyn Store>>,
    /// When a machine that is not heard of is gone.
    pub(super) replica_timeout: Duration,
    /// Which jobs hold a place.
    pub(super) places: Places,
    /// Variables that no command inherits.
    pub(super) withheld_env: Vec<String>,
    /// How many commands of one caller may wait for input in calls that are no tasks.
    pub(super) max_waiting: usize,
    /// Where the locks of attended jobs are.
    attended: PathBuf,
    /// What is being ended while nobody waits for it.
    ending: Mutex<JoinSet<()>>,
}

/// Whose job it is, as it is written on it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Owner {
    principal: String,
    task: String,
}

impl Owner {
    pub(super) fn read(note: &str) -> Option<Self> {
        serde_json::from_str(note).ok()
    }

    /// Whether the task may still want its command. A store that does not answer says nothing.
    pub(super) async fn may_go_on(&self, store: &dyn Store) -> bool {
        let view = store.get(&self.principal, &TaskId::new(self.task.as_str())).await;
        match view {
            Ok(Some(view)) => view.outcome.is_none(),
            Ok(None) => false,
            Err(_) => true,
        }
    }
}

impl Runner {
    pub(super) fn new(
        data: &Path,
        host: Host,
        shared_store: Option<Arc<dyn Store>>,
        replica_timeout: Duration,
    ) -> outlive_jobs::Result<Self> {
        let jobs = Jobs::open(&data.join("jobs"))?;
        let attended = data.join("attended");
        let places = Places::default();
        places.adopt(&jobs);
        Ok(Self {
            jobs,
            host,
            shared_store,
            replica_timeout,
            places,
            withheld_env: Vec::new(),
            max_waiting: super::config::MAX_WAITING_JOBS as usize,
            attended,
            ending: Mutex::default(),
        })
    }

    /// Follows a job, for a call.
    pub(super) fn attend(
        self: &Arc<Self>,
        id: String,
        caller: String,
        call: &Cx,
    ) -> io::Result<Attendance> {
        fs::create_dir_all(&self.attended)?;
        let file = File::create(self.attended.join(&id))?;
        // Who looks whether it is locked holds it for an instant.
        file.lock_shared()?;
        let (runner, call) = (Arc::clone(self), call.clone());
        Ok(Attendance {
            runner,
            id,
            caller,
            call,
            labelled: false,
            asks: false,
            over: None,
            _locked: file,
        })
    }

    pub(super) fn is_attended(&self, id: &str) -> bool {
        let file = File::open(self.attended.join(id));
        file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }

    /// Ends all processes of a job, if it has any.
    pub(super) async fn end(&self, id: &str) -> outlive_jobs::Result<()> {
        self.end_processes(id).await?;
        self.places.release(id);
        Ok(())
    }

    async fn end_processes(&self, id: &str) -> outlive_jobs::Result<()> {
        match self.jobs.state(id)? {
            Some(State::Running | State::Lost) => match self.jobs.find(id).await? {
                Some(job) => job.end().await,
                None => Ok(()),
            },
            Some(State::Waiting) => self.jobs.remove(id),
            Some(State::Ended { .. }) | None => Ok(()),
        }
    }

    /// Removes what is left of a job that is over. Nobody attends it any more, nor will.
    pub(super) async fn forget(&self, id: &str) -> outlive_jobs::Result<()> {
        self.places.release(id);
        let (jobs, id, lock) = (self.jobs.clone(), id.to_owned(), self.attended.join(id));
        // It waits for the disk.
        let forgotten = tokio::task::spawn_blocking(move || {
            jobs.remove(&id)?;
            let _ = fs::remove_file(lock);
            Ok(())
        });
        // A runtime that ends leaves it to the janitor of the next server.
        forgotten.await.unwrap_or(Ok(()))
    }

    fn end_in_the_background(self: &Arc<Self>, id: String) {
        // Without a runtime there is nobody to do it; the next server's janitor will.
        let Ok(runtime) = Handle::try_current() else { return };
        let runner = Arc::clone(self);
        let ending = async move {
            let done = async {
                runner.end(&id).await?;
                runner.forget(&id).await
            };
            if let Err(error) = done.await {
                tracing::warn!(job_id = id, %error, "a command may not have ended");
            }
        };
        let mut set = lock(&self.ending);
        while set.try_join_next().is_some() {}
        set.spawn_on(ending, &runtime);
    }

    /// Waits until everything is ended that should be.
    pub(super) async fn settled(&self) {
        let mut ending = std::mem::take(&mut *lock(&self.ending));
        while ending.join_next().await.is_some() {}
    }
}

/// That a call follows a job.
pub(super) struct Attendance {
    runner: Arc<Runner>,
    id: String,
    caller: String,
    call: Cx,
    /// Whether it is written on the job which task it belongs to.
    labelled: bool,
    asks: bool,
    /// Set when the job has been read to its end: whether the call ends with it.
    over: Option<bool>,
    _locked: File,
}

impl Attendance {
    /// Writes on the job which task it belongs to, once there is one.
    pub(super) fn label(&mut self, job: &Job) {
        if self.labelled {
            return;
        }
        let Some(task) = self.call.task_id() else { return };
        let owner = Owner { principal: self.call.principal().key().to_owned(), task };
        let note = serde_json::to_string(&owner).unwrap_or_default();
        match job.set_note(&note) {
            Ok(()) => self.labelled = true,
            Err(error) => tracing::warn!(job_id = self.id, %error, "a job could not be labelled"),
        }
    }

    /// Whether it is a task's, and that is written on it.
    pub(super) fn is_labelled(&self) -> bool {
        self.labelled
    }

    /// Says whether a question is out: the call may be dropped and come back with the answer.
    ///
    /// # Errors
    ///
    /// When too many commands of the caller wait already, each for a call that is no task.
    pub(super) fn asks(&mut self, asks: bool) -> Result<(), Error> {
        self.asks = asks;
        let Runner { places, max_waiting, .. } = &*self.runner;
        if !asks || self.call.task_id().is_some() {
            places.go_on(&self.id);
            return Ok(());
        }
        places.release_ended(&self.runner.jobs);
        if places.wait(&self.id, &self.caller, *max_waiting) {
            return Ok(());
        }
        self.asks = false;
        Err(Error::new(format!(
            "{max_waiting} commands of this caller wait for input already (`max_waiting_jobs_per_caller`), and this one was ended; respond to one of those first"
        )))
    }

    /// The job has been read to its end. `for_good` if no later run of this call can ask for it.
    pub(super) fn over(&mut self, for_good: bool) {
        self.runner.places.release(&self.id);
        self.over = Some(for_good);
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        let id = std::mem::take(&mut self.id);
        // A task is stored before its result is; until then it may run again.
        let is_task = self.call.task_id().is_some();
        match self.over {
            _ if is_task => {}
            Some(false) => {}
            None if self.asks => {}
            // It is over, or its caller has left, and nobody can come back to it.
            Some(true) | None => self.runner.end_in_the_background(id),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
