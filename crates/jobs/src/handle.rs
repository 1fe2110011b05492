//! Handle of a job: reads its output, responds to its input requests, and ends it.

use std::{fs, io, os::unix::process::CommandExt, path::PathBuf, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    process::{Child, Command},
    time::{Instant, sleep},
};

use super::{
    Error, Event, Exit, How, Position, Progress, Result, SUPERVISE,
    files::now,
    folder::{Folder, Stage},
    inputs::check_response,
    lines::Reader,
    output, processes,
    program::this_program,
    ready::READY,
    reported::Reported,
    socket,
    wire::{News, ServerRequest, Taken, What},
};

/// Delay between retries while another process is working, for example opening a socket.
const AGAIN: Duration = Duration::from_millis(5);

/// One run of a command. Several readers may read the same job, each from its own position.
#[derive(Debug)]
pub struct Job {
    access: Access,
    reader: Reader,
    link: Link,
    /// Newest status and progress that were received and not reported.
    status: Option<String>,
    progress: Option<Progress>,
    reported: Reported,
    /// Warning that has not been returned, and whether one was received.
    warning: Option<String>,
    heard_warning: bool,
}

impl Job {
    pub(super) async fn open(access: Access) -> Result<Self> {
        let link = access.reach().await?;
        let reader = reader(&access.folder, Position::default());
        Ok(Self {
            access,
            reader,
            link,
            status: None,
            progress: None,
            reported: Reported::default(),
            warning: None,
            heard_warning: false,
        })
    }

    /// Reads from a position that [`Job::position`] returned. An input request at that position is
    /// read again.
    #[must_use]
    pub fn read_from(mut self, position: Position) -> Self {
        self.reader = reader(&self.access.folder, position);
        self
    }

    /// Skips the first `count` lines, also those that the command has not printed yet.
    #[must_use]
    pub fn after_line(mut self, count: u64) -> Self {
        self.reader = reader(&self.access.folder, Position::default()).after_line(count);
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
        loop {
            let over = matches!(self.link, Link::Over(_));
            let problem = |error| Error::io("read the output in", self.access.folder.path())(error);
            if let Some(event) = self.reader.next(over).map_err(problem)? {
                return Ok(event);
            }
            if let Some(warning) = self.warning.take() {
                return Ok(Event::Warning(warning));
            }
            let progress = self.progress.take();
            if let Some(event) = progress.and_then(|progress| self.reported.progress(progress)) {
                return Ok(event);
            }
            let status = self.status.take();
            if let Some(event) = status.and_then(|status| self.reported.status(status)) {
                return Ok(event);
            }
            match &mut self.link {
                // The supervisor may have ended before it could send the last line.
                Link::Over(exit) => return Ok(self.reported.end(exit)),
                Link::Watching(news) => match news.next_line().await {
                    Ok(Some(line)) => {
                        if self.handle_line(&line) {
                            self.link = self.access.reach().await?;
                        }
                    }
                    // The supervisor was killed, is exiting, or has too many watchers.
                    _ => {
                        sleep(AGAIN).await;
                        self.link = self.access.reach().await?;
                    }
                },
            }
        }
    }

    /// Sends a response to the input request with this number; the first request of a job has 1.
    ///
    /// Only the first response to a request counts. Returns `Ok` too if the command has exited or
    /// does not read.
    pub async fn respond(&self, number: u32, line: &str) -> Result<()> {
        check_response(line)?;
        let patience = Patience::new();
        while self.access.stage()?.is_running() {
            let response = What::Respond { number, line: line.to_owned() };
            match self.access.ask_once(response).await {
                Some(Taken::Yes) => return Ok(()),
                Some(Taken::No(why)) => return Err(Error::ResponseRejected(why)),
                None => patience.wait(&self.access).await?,
            }
        }
        Ok(())
    }

    /// Ends all processes of the job: asks them to exit, waits for `kill_grace`, then kills them.
    ///
    /// Returns when no process is left and the exit is written, also if the job had ended before.
    pub async fn end(&self) -> Result<()> {
        let mut patience = Patience::new();
        while self.access.stage()?.is_running() {
            if let Some(mut stream) = self.access.connect(What::End).await {
                // The received lines are ignored. The stream ends when the exit is recorded.
                let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                patience = Patience::new();
            }
            patience.wait(&self.access).await?;
        }
        // A job that was removed has ended.
        if !self.access.folder.exists() {
            return Ok(());
        }
        self.access.reach().await.map(drop)
    }

    /// Records the owner of the job, which [`JobInfo::note`](super::JobInfo::note) returns.
    pub fn set_note(&self, note: &str) -> Result<()> {
        let folder = &self.access.folder;
        folder.set_note(note).map_err(Error::io("write the note in", folder.path()))
    }

    /// Handles a line of the supervisor. Returns whether the job has ended.
    fn handle_line(&mut self, line: &str) -> bool {
        // A line of a newer supervisor that cannot be parsed still signals new output.
        let Ok(news) = serde_json::from_str::<News>(line) else { return false };
        // Every line has the newest ones.
        (self.status, self.progress) = (news.status, news.progress);
        if news.warning.is_some() && !self.heard_warning {
            self.heard_warning = true;
            self.warning = news.warning;
        }
        news.over
    }
}

fn reader(folder: &Folder, position: Position) -> Reader {
    Reader::new(folder.file("out"), folder.file("events"), position)
}

/// Connection to a job.
#[derive(Debug)]
pub(super) enum Link {
    /// The supervisor signals new output.
    Watching(tokio::io::Lines<BufReader<UnixStream>>),
    /// The job has ended, and all output is written.
    Over(Box<Exit>),
}

/// Access to a job in any state.
#[derive(Debug)]
pub(super) struct Access {
    folder: Folder,
    program: Option<PathBuf>,
}

impl Access {
    pub(super) fn new(folder: Folder, program: Option<PathBuf>) -> Self {
        Self { folder, program }
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    fn stage(&self) -> Result<Stage> {
        self.folder.stage().map_err(Error::io("read", self.folder.path()))
    }

    /// Connects to a job. Starts a job that was not started, and settles one that was lost.
    async fn reach(&self) -> Result<Link> {
        let patience = Patience::new();
        loop {
            match self.stage()? {
                Stage::Over(exit) => return Ok(Link::Over(Box::new(exit))),
                Stage::Lost => self.settle_lost().await?,
                Stage::Waiting => self.launch().await?,
                Stage::Running => match self.connect(What::Watch).await {
                    Some(stream) => return Ok(Link::Watching(BufReader::new(stream).lines())),
                    // The supervisor is just starting or ending.
                    None => patience.wait(self).await?,
                },
            }
        }
    }

    /// Sends a request to the supervisor. Returns `None` if the supervisor does not accept
    /// connections.
    async fn connect(&self, what: What) -> Option<UnixStream> {
        let path = self.folder.control().ok()??;
        let mut stream = socket::connect(&path).await.ok()?;
        let request = ServerRequest { job: self.folder.id().to_owned(), what };
        let mut line = serde_json::to_vec(&request).ok()?;
        line.push(b'\n');
        stream.write_all(&line).await.ok()?;
        Some(stream)
    }

    async fn ask_once(&self, what: What) -> Option<Taken> {
        let mut said = String::new();
        self.connect(what).await?.read_to_string(&mut said).await.ok()?;
        serde_json::from_str(&said).ok()
    }

    /// Starts a supervisor, and waits until it or another supervisor has started the command.
    async fn launch(&self) -> Result<()> {
        let problem = || Error::io("start a supervisor for", self.folder.path());
        let (folder, program) = (self.folder.clone(), self.program.clone());
        // Spawning a process blocks its thread until the new program runs, which is slow on a busy
        // machine. The runtime's threads must stay free for other calls.
        let mut supervisor =
            tokio::task::spawn_blocking(move || spawn_supervisor(&folder, program))
                .await
                .unwrap_or_else(|panic| Err(io::Error::other(panic)))
                .map_err(problem())?;
        let mut said = String::new();
        if let Some(mut stdout) = supervisor.stdout.take() {
            stdout.read_to_string(&mut said).await.map_err(problem())?;
        }
        match said.trim() {
            READY => Ok(()),
            "" => match supervisor.wait().await.map_err(problem())? {
                // Another supervisor has the job.
                status if status.success() => Ok(()),
                status => Err(Error::Supervisor(format!(
                    "{status}; see {}",
                    self.folder.file("log").display()
                ))),
            },
            complaint => Err(Error::Supervisor(complaint.to_owned())),
        }
    }

    /// Terminates the remaining processes of the command, and records that the job was lost. Safe
    /// to run concurrently.
    async fn settle_lost(&self) -> Result<()> {
        let folder = &self.folder;
        let problem = || Error::io("settle", folder.path());
        let grace = folder.spec().map_err(problem())?.kill_grace;
        let is_gone = processes::end_left_behind(folder, grace).await.map_err(problem())?;
        if let Some(socket) = folder.control().map_err(problem())? {
            let _ = fs::remove_file(socket);
        }
        let stderr_tail = output::text(&fs::read(folder.file("err")).unwrap_or_default());
        // Another process may have settled the job meanwhile.
        if folder.exit().map_err(problem())?.is_none() {
            let warning = (!is_gone).then(|| processes::LEFT.to_owned());
            let exit = Exit { stderr_tail, warning, ..Exit::silent(How::Lost, now()) };
            folder.set_exit(&exit).map_err(problem())?;
        }
        Ok(())
    }
}

fn spawn_supervisor(folder: &Folder, program: Option<PathBuf>) -> io::Result<Child> {
    let program = program.map_or_else(this_program, Ok)?;
    let mut command = std::process::Command::new(program);
    command.arg0("outlive").arg(SUPERVISE).arg(folder.path());
    // A command can read the environment of its parent process.
    command.env_clear();
    let spec = folder.spec()?;
    if !spec.clear_env {
        command.envs(std::env::vars_os().filter(|(name, _)| !spec.withholds(name)));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(folder.append_to("log")?);
    // Tokio reaps the process when it exits, even if the caller no longer waits.
    Command::from(command).spawn()
}

/// Timeout for a supervisor that is alive but does not accept connections. A supervisor accepts
/// connections soon after its start, unless its socket was removed.
struct Patience {
    until: Instant,
}

impl Patience {
    fn new() -> Self {
        Self { until: Instant::now() + Duration::from_secs(30) }
    }

    async fn wait(&self, access: &Access) -> Result<()> {
        if Instant::now() >= self.until {
            let job = access.folder.id().to_owned();
            return Err(Error::Deaf { job, supervisor: access.folder.supervisor() });
        }
        sleep(AGAIN).await;
        Ok(())
    }
}

impl Stage {
    fn is_running(&self) -> bool {
        matches!(self, Self::Running)
    }
}
