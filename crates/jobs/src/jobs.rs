//! All jobs of a data folder: starts each job once, finds and removes jobs.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Error, Job, JobInfo, JobSpec, Result, State,
    files::is_id,
    folder::{self, Folder, Stage},
    handle::Access,
    root::open_root,
};

/// Jobs of one folder.
#[derive(Clone, Debug)]
pub struct Jobs {
    folder: PathBuf,
    /// Program that runs `__supervise`. `None` for the current program.
    program: Option<PathBuf>,
}

impl Jobs {
    /// Opens the folder of jobs, `<data>/jobs`. Creates it if it is missing.
    pub fn open(folder: &Path) -> Result<Self> {
        let folder = open_root(folder)?;
        Ok(Self { folder, program: None })
    }

    /// Sets the program that supervisors run, which calls [`supervise`](super::supervise). The
    /// default is the program that runs now.
    #[must_use]
    pub fn supervisor_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Starts a command under this ID. If the job exists, returns it instead, whatever its command.
    ///
    /// The command is started at most once, even if several processes call this at the same time or
    /// are killed. The job is read from its first line.
    pub async fn start_or_find(&self, id: &str, spec: &JobSpec) -> Result<Job> {
        let access = self.access(id)?;
        if !access.folder().exists() {
            let (jobs, id, spec) = (self.folder.clone(), id.to_owned(), spec.clone());
            let problem = Error::io("create the folder of a job in", &jobs);
            // A blocking thread, because creating the folder waits for the disk.
            tokio::task::spawn_blocking(move || folder::make(&jobs, &id, &spec))
                .await
                .unwrap_or_else(|panic| Err(io::Error::other(panic)))
                .map_err(problem)?;
        }
        Job::open(access).await
    }

    /// Returns the job with this ID, positioned at its first line. Starts a job that was not
    /// started, and settles one that was lost.
    pub async fn find(&self, id: &str) -> Result<Option<Job>> {
        let access = self.access(id)?;
        if !access.folder().exists() {
            return Ok(None);
        }
        Job::open(access).await.map(Some)
    }

    /// Lists all jobs. Logs and skips a job that cannot be read.
    pub fn list(&self) -> Result<Vec<JobInfo>> {
        let problem = || Error::io("list the jobs in", &self.folder);
        let mut jobs = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(problem())? {
            let name = entry.map_err(problem())?.file_name();
            let Some(id) = name.to_str().filter(|name| is_id(name)) else { continue };
            let folder = Folder::new(self.folder.join(id));
            match info(id, &folder) {
                Ok(info) => jobs.push(info),
                // The job was removed meanwhile.
                Err(_) if !folder.exists() => {}
                Err(error) => {
                    tracing::warn!(job_id = id, %error, "skipping a job that cannot be read")
                }
            }
        }
        Ok(jobs)
    }

    /// Returns the state of a job, or `None` if the job does not exist.
    pub fn state(&self, id: &str) -> Result<Option<State>> {
        let folder = Folder::new(self.path(id)?);
        if !folder.exists() {
            return Ok(None);
        }
        let stage = folder.stage().map_err(Error::io("read", folder.path()))?;
        Ok(Some(state(&stage)))
    }

    /// Returns whether a job runs, or may still be started by a process that finds it.
    pub fn may_run(&self, id: &str) -> Result<bool> {
        let folder = Folder::new(self.path(id)?);
        if !folder.exists() {
            return Ok(false);
        }
        let stage = folder.stage().map_err(Error::io("read", folder.path()))?;
        Ok(!matches!(stage, Stage::Over(_)))
    }

    /// Returns whether a job has ended and its exit is recorded.
    pub fn has_ended(&self, id: &str) -> Result<bool> {
        let folder = Folder::new(self.path(id)?);
        let stage = folder.stage().map_err(Error::io("read", folder.path()))?;
        Ok(matches!(stage, Stage::Over(_)))
    }

    /// Removes the folder of a job that has ended or was never started. Also returns `Ok` if the
    /// job does not exist.
    pub fn remove(&self, id: &str) -> Result<()> {
        let folder = Folder::new(self.path(id)?);
        if !folder.exists() {
            return Ok(());
        }
        let problem = || Error::io("remove", folder.path());
        let removed = match folder.stage().map_err(problem())? {
            Stage::Over(_) => folder.remove().map(|()| true),
            Stage::Waiting => folder.remove_unless_begun(),
            Stage::Running | Stage::Lost => Ok(false),
        };
        if removed.map_err(problem())? { Ok(()) } else { Err(Error::NotEnded(id.to_owned())) }
    }

    fn access(&self, id: &str) -> Result<Access> {
        Ok(Access::new(Folder::new(self.path(id)?), self.program.clone()))
    }

    fn path(&self, id: &str) -> Result<PathBuf> {
        if is_id(id) { Ok(self.folder.join(id)) } else { Err(Error::BadId(id.to_owned())) }
    }
}

fn info(id: &str, folder: &Folder) -> io::Result<JobInfo> {
    let state = state(&folder.stage()?);
    let is_running = state == State::Running;
    Ok(JobInfo {
        id: id.to_owned(),
        note: folder.note()?,
        label: if is_running { folder.spec()?.label } else { None },
        state,
        started_at: folder.start_mark()?.map(|start| start.at),
        waits_for: if is_running { folder.waits_for()? } else { None },
    })
}

fn state(stage: &Stage) -> State {
    match stage {
        Stage::Waiting => State::Waiting,
        Stage::Running => State::Running,
        Stage::Lost => State::Lost,
        Stage::Over(exit) => State::Ended { ended_at: exit.ended_at },
    }
}
