//! State that all commands of a server share: the job folder, the machine, and the calls that
//! follow jobs.
//!
//! A job is *attended* while a call follows it, in this process or in another one with the same
//! data folder. A locked file marks an attended job. If a call that is not a task is dropped, its
//! command ends. The janitor ends all other unattended jobs.

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

/// State shared by all commands.
pub(super) struct Runner {
    pub(super) jobs: Jobs,
    pub(super) host: Host,
    /// The store, if other machines use it, too.
    pub(super) shared_store: Option<Arc<dyn Store>>,
    /// Time without heartbeats after which a machine is considered gone.
    pub(super) replica_timeout: Duration,
    /// Concurrency slots of the jobs.
    pub(super) places: Places,
    /// Environment variables that no command inherits.
    pub(super) withheld_env: Vec<String>,
    /// Maximum number of commands of one caller that may wait for input in inline calls.
    pub(super) max_waiting: usize,
    /// Folder with the lock files of attended jobs.
    attended: PathBuf,
    /// Jobs that are being ended in the background.
    ending: Mutex<JoinSet<()>>,
}

/// Owner of a job, stored with the job.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Owner {
    principal: String,
    task: String,
}

impl Owner {
    pub(super) fn read(note: &str) -> Option<Self> {
        serde_json::from_str(note).ok()
    }

    /// Returns whether the task may still need its command. A store error counts as yes.
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

    /// Marks a job as attended by a call.
    pub(super) fn attend(
        self: &Arc<Self>,
        id: String,
        caller: String,
        call: &Cx,
    ) -> io::Result<Attendance> {
        fs::create_dir_all(&self.attended)?;
        let file = File::create(self.attended.join(&id))?;
        // Waits only while `is_attended` briefly holds the lock.
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

    /// Ends all processes of a job.
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

    /// Deletes the files of an ended job. No call may attend it now or later.
    pub(super) async fn forget(&self, id: &str) -> outlive_jobs::Result<()> {
        self.places.release(id);
        let (jobs, id, lock) = (self.jobs.clone(), id.to_owned(), self.attended.join(id));
        // Deleting files blocks.
        let forgotten = tokio::task::spawn_blocking(move || {
            jobs.remove(&id)?;
            let _ = fs::remove_file(lock);
            Ok(())
        });
        // If the runtime shuts down first, the janitor of the next server deletes the files.
        forgotten.await.unwrap_or(Ok(()))
    }

    fn end_in_the_background(self: &Arc<Self>, id: String) {
        // Without a runtime, the janitor of the next server ends the job.
        let Ok(runtime) = Handle::try_current() else { return };
        let runner = Arc::clone(self);
        let ending = async move {
            let done = async {
                runner.end(&id).await?;
                runner.forget(&id).await
            };
            if let Err(error) = done.await {
                tracing::warn!(job_id = id, %error, "cannot end a command; it may still run");
            }
        };
        let mut set = lock(&self.ending);
        while set.try_join_next().is_some() {}
        set.spawn_on(ending, &runtime);
    }

    /// Waits until all jobs that are being ended have ended.
    pub(super) async fn settled(&self) {
        let mut ending = std::mem::take(&mut *lock(&self.ending));
        while ending.join_next().await.is_some() {}
    }
}

/// Marks a job as followed by a call, until dropped.
pub(super) struct Attendance {
    runner: Arc<Runner>,
    id: String,
    caller: String,
    call: Cx,
    /// Whether the task ID is stored with the job.
    labelled: bool,
    asks: bool,
    /// Set when the job's output was read to its end: whether the call ends, too.
    over: Option<bool>,
    _locked: File,
}

impl Attendance {
    /// Stores the task ID with the job, once the call is a task.
    pub(super) fn label(&mut self, job: &Job) {
        if self.labelled {
            return;
        }
        let Some(task) = self.call.task_id() else { return };
        let owner = Owner { principal: self.call.principal().key().to_owned(), task };
        let note = serde_json::to_string(&owner).unwrap_or_default();
        match job.set_note(&note) {
            Ok(()) => self.labelled = true,
            Err(error) => {
                tracing::warn!(job_id = self.id, %error, "cannot store the task ID with the job")
            }
        }
    }

    /// Returns whether the job belongs to a task, and the task ID is stored with it.
    pub(super) fn is_labelled(&self) -> bool {
        self.labelled
    }

    /// Records whether an input request is open. An open request keeps the job alive if the call is
    /// dropped, because the call may return with the response.
    ///
    /// # Errors
    ///
    /// Fails if too many commands of the caller wait for input in inline calls.
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
            "this caller already has {max_waiting} commands that wait for input (`max_waiting_jobs_per_caller`), so this command was ended; respond to one of those first"
        )))
    }

    /// Records that the job's output was read to its end. `for_good` means that no later run of
    /// this call needs the job.
    pub(super) fn over(&mut self, for_good: bool) {
        self.runner.places.release(&self.id);
        self.over = Some(for_good);
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        let id = std::mem::take(&mut self.id);
        // A task may run again until its result is stored.
        let is_task = self.call.task_id().is_some();
        match self.over {
            _ if is_task => {}
            Some(false) => {}
            None if self.asks => {}
            // The call ended or its caller disconnected, so no later run needs the job.
            Some(true) | None => self.runner.end_in_the_background(id),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
