//! Runs a server as a child process of the client.
//!
//! The client always drains the standard error of the child, because a full pipe would block the
//! child. Output on standard error does not indicate an error.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio>

use std::{
    ffi::OsString,
    fmt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use outlive_protocol::Incoming;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
    sync::mpsc,
    task::JoinHandle,
};

use super::{
    TransportError, TransportErrorKind,
    pipe::{PipeLimits, PipeLink},
    process_group,
};

/// Maximum length of a line of standard error. Longer lines are truncated.
const STDERR_LINE: usize = 16 << 10;

/// A program to start as a server, with its arguments and environment.
#[derive(Clone)]
pub struct ChildProcess {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
    stderr: Stderr,
    patience: Duration,
    inherits_env: bool,
    own_group: bool,
}

/// Destination of the lines that a server writes to its standard error.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Stderr {
    /// The standard error of this process.
    #[default]
    Inherit,
    /// The lines are read and discarded.
    Ignore,
    /// A function that is called with each line.
    Lines(Arc<dyn Fn(&str) + Send + Sync>),
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inherit => "Inherit",
            Self::Ignore => "Ignore",
            Self::Lines(_) => "Lines",
        })
    }
}

impl fmt::Debug for ChildProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only the program is shown: arguments and environment may contain secrets.
        f.debug_struct("ChildProcess").field("program", &self.program).finish_non_exhaustive()
    }
}

impl ChildProcess {
    /// Creates a command that runs `program` without arguments.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: None,
            stderr: Stderr::default(),
            patience: Duration::from_secs(5),
            inherits_env: true,
            own_group: false,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable. The child inherits all other variables from this process,
    /// unless [`ChildProcess::inherit_env`] disables that.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets whether the child inherits the environment variables of this process. Enabled by
    /// default.
    #[must_use]
    pub fn inherit_env(mut self, inherits: bool) -> Self {
        self.inherits_env = inherits;
        self
    }

    /// Sets whether the child leads its own process group on Unix, so that its own children end
    /// with it. Disabled by default: a signal of the terminal then reaches all processes.
    #[must_use]
    pub fn process_group(mut self, own: bool) -> Self {
        self.own_group = own;
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets the destination of the child's standard error.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Calls `line` with every line of the child's standard error.
    #[must_use]
    pub fn on_stderr(self, line: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.stderr(Stderr::Lines(Arc::new(line)))
    }

    /// Sets how long the process may take to exit after its input is closed, before it gets
    /// SIGTERM.
    #[must_use]
    pub fn shutdown_timeout(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Returns the name of the program, for messages.
    pub fn name(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// Starts the process and opens a link to it.
    ///
    /// # Errors
    ///
    /// Returns an error if the process cannot be started.
    pub fn start(
        &self,
        limits: PipeLimits,
        others: mpsc::Sender<Incoming>,
    ) -> Result<(PipeLink, Process), TransportError> {
        let mut command = Command::new(&self.program);
        if !self.inherits_env {
            command.env_clear();
        }
        command.args(&self.arguments).envs(self.environment.iter().map(|(k, v)| (k, v)));
        if self.own_group {
            process_group::lead(&mut command);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        command.stderr(match self.stderr {
            Stderr::Inherit => Stdio::inherit(),
            Stderr::Ignore => Stdio::null(),
            Stderr::Lines(_) => Stdio::piped(),
        });
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let broken = |error: std::io::Error| {
            let what = format!("`{}`: {error}", self.program.to_string_lossy());
            TransportError::unsent(TransportErrorKind::Start).because(what)
        };
        let mut child = command.spawn().map_err(broken)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(broken(std::io::Error::other(
                "standard input or output of the process is missing",
            )));
        };
        let forwarding = match (&self.stderr, child.stderr.take()) {
            (Stderr::Lines(each), Some(stderr)) => {
                Some(tokio::spawn(forward(stderr, Arc::clone(each))))
            }
            _ => None,
        };
        let link = PipeLink::lines(output, input, limits, others);
        let group = child.id().filter(|_| self.own_group);
        Ok((link, Process { child, forwarding, patience: self.patience, group }))
    }
}

/// Process of a server. Dropping the value kills the process; [`Process::end`] terminates it
/// gracefully.
#[derive(Debug)]
pub struct Process {
    child: Child,
    forwarding: Option<JoinHandle<()>>,
    patience: Duration,
    /// ID of the process group that the process leads.
    group: Option<u32>,
}

impl Process {
    /// Returns the process ID while the process runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the process has exited, but not longer than `patience`. Returns `None` if it
    /// still runs, or its status is unknown.
    pub async fn exited(&mut self, patience: Duration) -> Option<ExitStatus> {
        let status = tokio::time::timeout(patience, self.child.wait()).await.ok()?.ok();
        self.end_group();
        status
    }

    /// Terminates the process.
    ///
    /// The caller must have dropped the link, which closes the input of the process. The process
    /// then gets two periods of the shutdown timeout: one before SIGTERM and one before SIGKILL.
    pub async fn end(mut self) {
        if tokio::time::timeout(self.patience, self.child.wait()).await.is_err() {
            process_group::terminate(&mut self.child, self.group.is_some());
            if tokio::time::timeout(self.patience, self.child.wait()).await.is_err() {
                let _ = self.child.kill().await;
            }
        }
        self.end_group();
        if let Some(forwarding) = self.forwarding.take() {
            // Wait for the last lines, but not long: a grandchild may keep the stream open forever.
            let _ = tokio::time::timeout(Duration::from_millis(100), forwarding).await;
        }
    }

    /// Kills what is left of the process group, once.
    fn end_group(&mut self) {
        if let Some(id) = self.group.take() {
            process_group::kill_group(id);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end_group();
    }
}

async fn forward(stderr: impl AsyncRead + Unpin, each: Arc<dyn Fn(&str) + Send + Sync>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        let Ok(available) = reader.fill_buf().await else { return };
        if available.is_empty() {
            break;
        }
        let (taken, ended) = match memchr::memchr(b'\n', available) {
            Some(at) => (at + 1, true),
            None => (available.len(), false),
        };
        let room = STDERR_LINE.saturating_sub(line.len());
        line.extend_from_slice(&available[..taken.min(room)]);
        reader.consume(taken);
        if ended {
            each(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
            line.clear();
        }
    }
    if !line.is_empty() {
        each(&String::from_utf8_lossy(&line));
    }
}
