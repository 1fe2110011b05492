//! Jobs on systems where commands are children of the server.

use std::{
    collections::HashMap,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{mpsc, oneshot, watch};

use super::{
    super::{
        error::{Error, Result},
        files::{is_id, now, read_optional},
        inputs::check_response,
        line::Position,
        lines::Reader,
        reported::Reported,
        spec::{Event, Exit, How, JobInfo, JobSpec, State},
    },
    run::{self, News, Request},
};

/// Jobs of one folder.
#[derive(Clone, Debug)]
pub struct Jobs {
    folder: PathBuf,
    running: Running,
}

/// Commands that are children of this process.
type Running = Arc<Mutex<HashMap<String, Link>>>;

/// Connection to a running command.
#[derive(Clone, Debug)]
struct Link {
    news: watch::Receiver<News>,
    requests: mpsc::Sender<Request>,
    started_at: u64,
    label: Option<String>,
}

impl Jobs {
    /// Opens the folder of jobs, `<data>/jobs`. Creates it if it is missing.
    pub fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
        let folder = std::path::absolute(folder).map_err(Error::io("find", folder))?;
        Ok(Self { folder, running: Running::default() })
    }

    /// Starts a command under this ID. If the job exists, returns it instead, whatever its command.
    #[expect(clippy::unused_async, reason = "same signature as with a supervisor")]
    pub async fn start_or_find(&self, id: &str, spec: &JobSpec) -> Result<Job> {
        let path = self.path(id)?;
        // Creating the folder claims the ID. The command is registered under the same lock, so no
        // caller sees a folder without its command.
        let mut running = lock(&self.running);
        match fs::create_dir(&path) {
            Ok(()) => {
                let started = run::start(&path, spec.clone());
                let (news, requests) =
                    started.map_err(Error::io("open the output files in", &path))?;
                let label = spec.label.clone();
                let link = Link { news, requests, started_at: now(), label };
                running.insert(id.to_owned(), link);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io("create", &path)(error)),
        }
        drop(running);
        self.job(id, path)
    }

    /// Returns the job with this ID, positioned at its first line.
    #[expect(clippy::unused_async, reason = "same signature as with a supervisor")]
    pub async fn find(&self, id: &str) -> Result<Option<Job>> {
        let path = self.path(id)?;
        if path.is_dir() { self.job(id, path).map(Some) } else { Ok(None) }
    }

    /// Lists all jobs.
    pub fn list(&self) -> Result<Vec<JobInfo>> {
        let problem = || Error::io("list the jobs in", &self.folder);
        let mut jobs = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(problem())? {
            let name = entry.map_err(problem())?.file_name();
            if let Some(id) = name.to_str().filter(|name| is_id(name)) {
                jobs.push(self.info(id).map_err(problem())?);
            }
        }
        Ok(jobs)
    }

    /// Returns the state of a job, or `None` if the job does not exist.
    pub fn state(&self, id: &str) -> Result<Option<State>> {
        let path = self.path(id)?;
        if !path.is_dir() {
            return Ok(None);
        }
        let info = self.info(id).map_err(Error::io("read", &path))?;
        Ok(Some(info.state))
    }

    /// Returns whether a job runs.
    pub fn may_run(&self, id: &str) -> Result<bool> {
        self.path(id)?;
        Ok(lock(&self.running).get(id).is_some_and(|link| !link.news.borrow().over))
    }

    /// Returns whether a job has ended and its exit is recorded.
    pub fn has_ended(&self, id: &str) -> Result<bool> {
        let folder = self.path(id)?;
        Ok(exit(&folder).map_err(Error::io("read", &folder))?.is_some())
    }

    /// Removes the folder of a job that has ended. Also returns `Ok` if the job does not exist.
    pub fn remove(&self, id: &str) -> Result<()> {
        let path = self.path(id)?;
        let mut running = lock(&self.running);
        if running.get(id).is_some_and(|link| !link.news.borrow().over) {
            return Err(Error::NotEnded(id.to_owned()));
        }
        running.remove(id);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    fn job(&self, id: &str, folder: PathBuf) -> Result<Job> {
        let link = lock(&self.running).get(id).cloned();
        if link.is_none() && exit(&folder).map_err(Error::io("read", &folder))?.is_none() {
            let lost = Exit::silent(How::Lost, now());
            run::write_exit(&folder, &lost).map_err(Error::io("settle", &folder))?;
        }
        let reader = reader(&folder, Position::default());
        Ok(Job { folder, reader, link, reported: Reported::default() })
    }

    fn info(&self, id: &str) -> io::Result<JobInfo> {
        let folder = self.folder.join(id);
        let link = lock(&self.running).get(id).cloned();
        let exit = exit(&folder)?;
        let news = link.as_ref().map(|link| link.news.borrow().clone());
        let state = match (&news, exit) {
            (_, Some(exit)) => State::Ended { ended_at: exit.ended_at },
            (Some(_), None) => State::Running,
            (None, None) => State::Lost,
        };
        let is_running = state == State::Running;
        Ok(JobInfo {
            id: id.to_owned(),
            note: read_optional(&folder.join(NOTE))?,
            label: link.as_ref().and_then(|link| link.label.clone()).filter(|_| is_running),
            state,
            started_at: link.map(|link| link.started_at),
            waits_for: news.and_then(|news| news.waits_for).filter(|_| is_running),
        })
    }

    fn path(&self, id: &str) -> Result<PathBuf> {
        if is_id(id) { Ok(self.folder.join(id)) } else { Err(Error::BadId(id.to_owned())) }
    }
}

const NOTE: &str = "note";

fn reader(folder: &Path, position: Position) -> Reader {
    Reader::new(folder.join(run::OUT), folder.join(run::EVENTS), position)
}

fn exit(folder: &Path) -> io::Result<Option<Exit>> {
    Ok(read_optional(&folder.join(run::EXIT))?
        .map(|text| serde_json::from_str(&text))
        .transpose()?)
}

// A std mutex: no code awaits while it is held, and a panic leaves the map consistent.
fn lock(running: &Running) -> MutexGuard<'_, HashMap<String, Link>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One run of a command. Several readers may read the same job, each from its own position.
#[derive(Debug)]
pub struct Job {
    folder: PathBuf,
    reader: Reader,
    /// `None` if the job ended before this process started.
    link: Option<Link>,
    reported: Reported,
}

impl Job {
    /// Reads from a position that [`Job::position`] returned.
    #[must_use]
    pub fn read_from(mut self, position: Position) -> Self {
        self.reader = reader(&self.folder, position);
        self
    }

    /// Skips the first `count` lines, also those that the command has not printed yet.
    #[must_use]
    pub fn after_line(mut self, count: u64) -> Self {
        self.reader = reader(&self.folder, Position::default()).after_line(count);
        self
    }

    /// Returns the position from which [`Job::next`] reads.
    pub fn position(&self) -> Position {
        self.reader.position()
    }

    /// Returns the next event: lines, input requests and gaps in the order of the output, and the
    /// newest status and progress between them. The newest progress and then the last line of
    /// standard error, as a status, come before the exit. After the last event, every call returns
    /// the exit.
    ///
    /// Cancel safe: dropping the future loses no event.
    pub async fn next(&mut self) -> Result<Event> {
        let problem = Error::io("read the output in", &self.folder);
        self.read_next().await.map_err(problem)
    }

    async fn read_next(&mut self) -> io::Result<Event> {
        loop {
            let news = self.link.as_mut().map(|link| link.news.borrow_and_update().clone());
            let over = news.as_ref().is_none_or(|news| news.over);
            if let Some(event) = self.reader.next(over)? {
                return Ok(event);
            }
            let (status, progress) = news.map(|news| (news.status, news.progress)).unzip();
            let (status, progress) = (status.flatten(), progress.flatten());
            let progress = progress.and_then(|progress| self.reported.progress(progress));
            if let Some(event) =
                progress.or_else(|| status.and_then(|status| self.reported.status(status)))
            {
                return Ok(event);
            }
            match &mut self.link {
                // An error means that the sender is dropped, which happens only after the end of
                // the job.
                Some(link) if !over => drop(link.news.changed().await),
                _ => {
                    let lost = || Exit::silent(How::Lost, now());
                    let exit = exit(&self.folder)?.unwrap_or_else(lost);
                    return Ok(self.reported.end(&exit));
                }
            }
        }
    }

    /// Sends a response to the input request with this number; the first request of a job has 1.
    ///
    /// Only the first response to a request counts. Returns `Ok` too if the command has exited or
    /// does not read.
    pub async fn respond(&self, number: u32, line: &str) -> Result<()> {
        check_response(line)?;
        let Some(link) = &self.link else { return Ok(()) };
        let (taken, response) = oneshot::channel();
        let request = Request::Respond { number, line: line.to_owned(), taken };
        if link.requests.send(request).await.is_err() {
            return Ok(());
        }
        response.await.unwrap_or(Ok(())).map_err(Error::ResponseRejected)
    }

    /// Ends the job. Returns when the exit is recorded, also if the job had ended before.
    pub async fn end(&self) -> Result<()> {
        let Some(link) = &self.link else { return Ok(()) };
        let _ = link.requests.send(Request::End).await;
        let _ = link.news.clone().wait_for(|news| news.over).await;
        Ok(())
    }

    /// Records the owner of the job, which [`JobInfo::note`] returns.
    pub fn set_note(&self, note: &str) -> Result<()> {
        fs::write(self.folder.join(NOTE), note)
            .map_err(Error::io("write the note in", &self.folder))
    }
}

/// Returns an error, because this system does not support supervisors.
pub fn supervise(job: &Path) -> Result<()> {
    Err(Error::Unsupported(job.to_owned()))
}
