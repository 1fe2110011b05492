//! All supervised processes of a folder: starts, finds and removes them.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::{Instant, sleep},
};

use super::{
    super::{
        error::{Error, Result},
        files::is_id,
        folder::{self, Folder, Stage},
        names::SUPERVISE,
        processes,
        program::this_program,
        ready::{NOT_STARTED, READY},
        root::open_root,
    },
    handle::{Pipe, PipeEvent},
    spec::{PipeInfo, PipeSpec, StoredSpec},
};

/// Delay between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(5);
/// Time in which a supervisor that is alive accepts connections.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Age of a folder whose process was never started, because its gateway was killed.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// Supervised processes of one folder.
#[derive(Clone, Debug)]
pub struct Pipes {
    folder: PathBuf,
    /// Program that runs `__supervise`. `None` for the current program.
    program: Option<PathBuf>,
}

impl Pipes {
    /// Opens the folder of processes, `<data>/pipes`. Creates it if it is missing.
    ///
    /// # Errors
    ///
    /// If the folder cannot be used.
    pub fn open(folder: &Path) -> Result<Self> {
        Ok(Self { folder: open_root(folder)?, program: None })
    }

    /// Sets the program that supervisors run, which calls [`supervise`](super::super::supervise).
    /// The default is the program that runs now.
    #[must_use]
    pub fn supervisor_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Starts a process under an ID that is not in use, and connects to it. It gets only these
    /// variables, whose values are written to no file.
    ///
    /// # Errors
    ///
    /// [`Error::NotStarted`] if the program cannot be started.
    pub async fn start(
        &self,
        id: &str,
        spec: &PipeSpec,
        variables: &[(OsString, OsString)],
    ) -> Result<Pipe> {
        let folder = self.folder_of(id)?;
        let names = variables.iter().map(|(name, _)| name.to_string_lossy().into_owned());
        let spec = PipeSpec { variables: names.collect(), ..spec.clone() };
        let stored = StoredSpec { pipe: Some(spec) };
        let (pipes, id, made) = (self.folder.clone(), id.to_owned(), folder.clone());
        let program = self.program.clone();
        // A blocking thread, because creating the folder waits for the disk, and spawning a process
        // waits until the new program runs.
        let spawned = tokio::task::spawn_blocking(move || {
            folder::make(&pipes, &id, &stored).and_then(|()| spawn_supervisor(&made, program))
        });
        let spawned = spawned.await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        let supervisor = spawned.map_err(Error::io("start a supervisor for", folder.path()))?;
        if let Err(error) = launch(&folder, supervisor, variables).await {
            // If this fails, the next gateway removes the folder.
            let _ = folder.remove();
            return Err(error);
        }
        match self.connect(&folder, false).await? {
            Some(pipe) => Ok(pipe),
            None => Err(Error::Supervisor("it ended at once".to_owned())),
        }
    }

    /// Connects to a process. Returns `None` if it has ended, and no gateway needs its responses.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read, or the supervisor does not accept connections.
    pub async fn find(&self, id: &str) -> Result<Option<Pipe>> {
        self.connect(&self.folder_of(id)?, false).await
    }

    /// Connects to a process as [`Pipes::find`] does, without keeping it running.
    ///
    /// # Errors
    ///
    /// As [`Pipes::find`].
    pub async fn observe(&self, id: &str) -> Result<Option<Pipe>> {
        self.connect(&self.folder_of(id)?, true).await
    }

    /// Lists all processes. Skips a folder that cannot be read.
    ///
    /// # Errors
    ///
    /// If the folders cannot be listed.
    pub fn list(&self) -> Result<Vec<PipeInfo>> {
        let problem = || Error::io("list the processes in", &self.folder);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(problem())? {
            let name = entry.map_err(problem())?.file_name();
            let Some(id) = name.to_str().filter(|name| is_id(name)) else { continue };
            let folder = Folder::new(self.folder.join(id));
            let (Ok(stage), Ok(spec)) = (folder.stage(), folder.read_spec::<StoredSpec>()) else {
                continue;
            };
            let Some(spec) = spec.pipe else { continue };
            let is_running = matches!(stage, Stage::Running);
            found.push(PipeInfo { id: id.to_owned(), label: spec.label, is_running });
        }
        Ok(found)
    }

    /// Ends a process in any case, and waits for it.
    ///
    /// # Errors
    ///
    /// If the supervisor does not accept connections.
    pub async fn end(&self, id: &str) -> Result<()> {
        let Some(mut pipe) = self.find(id).await? else { return Ok(()) };
        pipe.sender().end(true);
        while let Some(event) = pipe.next().await {
            if matches!(event, PipeEvent::Exit(_)) {
                break;
            }
        }
        Ok(())
    }

    /// Removes what an ended process left: its folder, and its processes if its supervisor was
    /// killed. Has no effect on a process that runs.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read or removed.
    pub async fn remove(&self, id: &str) -> Result<()> {
        let folder = self.folder_of(id)?;
        let problem = || Error::io("remove", folder.path());
        if !folder.exists() {
            return Ok(());
        }
        match folder.stage().map_err(problem())? {
            Stage::Running => Ok(()),
            Stage::Over(_) => folder.remove().map_err(problem()),
            Stage::Waiting if is_abandoned(&folder) => {
                folder.remove_unless_begun().map(drop).map_err(problem())
            }
            Stage::Waiting => Ok(()),
            Stage::Lost => {
                let stored: StoredSpec = folder.read_spec().unwrap_or_default();
                let grace = stored.pipe.map(|spec| spec.kill_grace).unwrap_or_default();
                processes::end_left_behind(&folder, grace).await.map_err(problem())?;
                // Another gateway may have removed it meanwhile.
                match folder.remove() {
                    Err(_) if !folder.exists() => Ok(()),
                    removed => removed.map_err(problem()),
                }
            }
        }
    }

    async fn connect(&self, folder: &Folder, observes: bool) -> Result<Option<Pipe>> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        loop {
            let problem = Error::io("read", folder.path());
            if !folder.exists() || !matches!(folder.stage().map_err(problem)?, Stage::Running) {
                return Ok(None);
            }
            if let Some(pipe) = Pipe::connect(folder, observes).await? {
                return Ok(Some(pipe));
            }
            // The supervisor is just ending.
            if Instant::now() >= deadline {
                let (job, supervisor) = (folder.id().to_owned(), folder.supervisor());
                return Err(Error::Deaf { job, supervisor });
            }
            sleep(AGAIN).await;
        }
    }

    fn folder_of(&self, id: &str) -> Result<Folder> {
        match is_id(id) {
            true => Ok(Folder::new(self.folder.join(id))),
            false => Err(Error::BadId(id.to_owned())),
        }
    }
}

fn is_abandoned(folder: &Folder) -> bool {
    let modified = fs::metadata(folder.path()).and_then(|folder| folder.modified());
    let age = modified.ok().and_then(|modified| modified.elapsed().ok());
    age.is_some_and(|age| age >= ABANDONED_AFTER)
}

fn spawn_supervisor(folder: &Folder, program: Option<PathBuf>) -> io::Result<Child> {
    let program = program.map_or_else(this_program, Ok)?;
    let mut command = std::process::Command::new(program);
    command.arg0("outlive").arg(SUPERVISE).arg(folder.path());
    // A process can read the environment of its parent process.
    command.env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(folder.append_to("log")?);
    // Tokio reaps the process when it exits, even if the gateway no longer waits.
    Command::from(command).spawn()
}

/// Passes the variables to a supervisor, and waits until it has started the process.
async fn launch(
    folder: &Folder,
    mut supervisor: Child,
    variables: &[(OsString, OsString)],
) -> Result<()> {
    let problem = || Error::io("start a supervisor for", folder.path());
    if let Some(mut stdin) = supervisor.stdin.take() {
        let mut text = Vec::new();
        for (name, value) in variables {
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            text.extend_from_slice(value.as_bytes());
            text.push(0);
        }
        // A supervisor that has exited says why.
        let _ = stdin.write_all(&text).await;
    }
    let mut said = String::new();
    if let Some(mut stdout) = supervisor.stdout.take() {
        stdout.read_to_string(&mut said).await.map_err(problem())?;
    }
    match said.trim() {
        READY => Ok(()),
        "" => {
            let status = supervisor.wait().await.map_err(problem())?;
            let log = folder.file("log");
            Err(Error::Supervisor(format!("{status}; see {}", log.display())))
        }
        said => Err(match said.strip_prefix(NOT_STARTED) {
            Some(reason) => Error::NotStarted(reason.to_owned()),
            None => Error::Supervisor(said.to_owned()),
        }),
    }
}
