//! Starts a process, and attends it until it is gone.

use std::{
    fmt,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use outlive_jobs::{ChildMark, ChildProcesses, Children};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader},
    process::{Child, Command},
    sync::Notify,
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use crate::{
    line::{
        declared::{Hello, HelloError},
        from_server::{goodbye, welcome},
    },
    lines::Lines,
    nonce,
    output::OutputLog,
    process::Process,
    settings::WorkerSettings,
};

/// Environment variable that makes a package speak the protocol.
const VARIABLE: &str = "OUTLIVE_WORKER";

/// Reason why a process with another protocol is rejected.
const OTHER_PROTOCOL: &str = "it speaks another version of the protocol; install a package of the same \
                              version as this program";

/// Bytes that are read from a process at once.
const CHUNK: usize = 64 << 10;

/// Time to read the rest of the output after a process has exited. Another process may hold the pipe.
const REST: Duration = Duration::from_millis(500);

/// Parts that all processes of a tool worker share.
pub(crate) struct Surroundings {
    pub(crate) settings: Arc<WorkerSettings>,
    pub(crate) children: Option<Children>,
    pub(crate) log: Arc<OutputLog>,
    /// Notifies the pool of free places.
    pub(crate) freed: Arc<Notify>,
}

/// A process that has declared its tools, and the future that attends it.
pub(crate) struct Started {
    pub(crate) process: Arc<Process>,
    pub(crate) hello: Hello,
    pub(crate) attendant: Attendant,
}

/// Future that attends a process until it is gone.
pub(crate) type Attendant = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// Reason why a process did not start.
#[derive(Clone, Debug)]
pub(crate) struct SpawnError {
    pub(crate) reason: String,
    /// Last lines of standard error.
    pub(crate) stderr: String,
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Starts a process of a generation, and waits for its `hello`.
///
/// # Errors
///
/// Returns an error if the process cannot be started, exits, or declares no valid tools in time.
pub(crate) async fn start(
    surroundings: &Surroundings,
    generation: u64,
) -> Result<Started, SpawnError> {
    let settings = &surroundings.settings;
    let failed = |reason: String| SpawnError { reason, stderr: String::new() };
    let nonce = nonce::random().map_err(|error| failed(format!("no random bytes: {error}")))?;
    let mark = match &surroundings.children {
        Some(children) => children.mark(),
        None => ChildMark::unrecorded(),
    };
    let mark = mark.map_err(|error| failed(format!("cannot record the process: {error}")))?;
    let mut child = spawn(settings, &mark).map_err(failed)?;
    let processes = child.id().map(|pid| mark.started(pid));
    let processes = match processes {
        Some(Ok(processes)) => processes,
        other => {
            let _ = child.start_kill();
            let reason = match other {
                Some(Err(error)) => format!("cannot record the process: {error}"),
                _ => "the process exited at once".to_owned(),
            };
            return Err(failed(reason));
        }
    };
    let (log, freed) = (Arc::clone(&surroundings.log), Arc::clone(&surroundings.freed));
    let (process, hello) = Process::new(generation, nonce.clone(), log, freed);
    process.outbox.send(&welcome(&nonce, settings.max_concurrent, settings.is_dev));
    let mut attendant: Attendant =
        Box::pin(attend(child, processes, Arc::clone(&process), Arc::clone(settings)));
    let declared = tokio::select! {
        biased;
        declared = timeout(settings.start_timeout, hello) => match declared {
            Ok(Ok(Ok(hello))) => Ok(hello),
            Ok(Ok(Err(HelloError::Invalid(reason)))) => Err(reason),
            Ok(Ok(Err(HelloError::Protocol))) => Err(OTHER_PROTOCOL.to_owned()),
            Ok(Err(_)) => Err(format!("it {}", process.ended().await)),
            Err(_) => Err(format!("it did not declare its tools in {:?}", settings.start_timeout)),
        },
        () = &mut attendant => Err(format!("it {}", process.ended().await)),
    };
    match declared {
        Ok(hello) => {
            process.set_tools(&hello.tools);
            Ok(Started { process, hello, attendant })
        }
        Err(reason) => Err(reject(&process, attendant, settings, reason).await),
    }
}

/// Ends a process that did not start properly.
async fn reject(
    process: &Process,
    attendant: Attendant,
    settings: &WorkerSettings,
    reason: String,
) -> SpawnError {
    if !process.outbox.is_closed() {
        let text = match reason == OTHER_PROTOCOL {
            true => concat!("this server speaks 1; install outlive ", env!("CARGO_PKG_VERSION")),
            false => reason.as_str(),
        };
        process.outbox.send(&goodbye(text));
        process.outbox.close();
        // A frozen process is killed after this time.
        let _ = timeout(settings.kill_grace, attendant).await;
    }
    SpawnError { reason, stderr: process.last_lines.text() }
}

/// Starts the command.
fn spawn(settings: &WorkerSettings, mark: &ChildMark) -> Result<Child, String> {
    let mut words = settings.command.iter();
    let program = words.next().ok_or("its command is empty")?;
    let mut command = Command::new(program);
    command.args(words).env_clear().envs(settings.environment());
    let (name, value) = mark.variable();
    command.env(name, value).env(VARIABLE, "1");
    if let Some(folder) = &settings.working_dir {
        if !folder.is_dir() {
            return Err(format!("its working folder {} does not exist", folder.display()));
        }
        command.current_dir(folder);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // A signal of the terminal must not end the process before the server has released its calls.
    #[cfg(unix)]
    command.process_group(0);
    command.spawn().map_err(|error| {
        let program = program.to_string_lossy();
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("the program `{program}` was not found; install it, or use its full path")
            }
            _ => format!("starting `{program}` failed: {error}"),
        }
    })
}

/// Attends a process: moves its lines, pings it, ends it on request, and reports its end.
async fn attend(
    mut child: Child,
    processes: ChildProcesses,
    process: Arc<Process>,
    settings: Arc<WorkerSettings>,
) {
    let mut pipes = JoinSet::new();
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    if let Some(stdin) = stdin {
        let process = Arc::clone(&process);
        pipes.spawn(async move { process.outbox.write_to(stdin).await });
    }
    let mut reading = JoinSet::new();
    if let Some(stdout) = stdout {
        reading.spawn(read_output(stdout, Arc::clone(&process)));
    }
    if let Some(stderr) = stderr {
        reading.spawn(read_stderr(stderr, Arc::clone(&process)));
    }
    let (status, cause) = tokio::select! {
        status = child.wait() => (status.ok(), None),
        cause = must_end(&process, &settings) => {
            // Killed at once: it has had its time, or is not responding.
            processes.kill();
            let _ = child.start_kill();
            (child.wait().await.ok(), Some(cause))
        }
        () = lingers(&process, &processes, &settings) => {
            processes.kill();
            let _ = child.start_kill();
            (child.wait().await.ok(), None)
        }
    };
    // Lines that the process has sent still count.
    let _ = timeout(REST, async { while reading.join_next().await.is_some() {} }).await;
    let reason = cause.unwrap_or_else(|| ending(status));
    let tool_worker = &*settings.name;
    // The error of a start reports a process that declares no tools.
    let is_expected = !process.is_started() || process.is_retired();
    if !is_expected && !settings.crash_after_each_entry {
        let stderr = process.last_lines.text();
        tracing::warn!(tool_worker, reason, stderr, "a process of a tool worker is gone");
    }
    process.set_gone(&reason);
    drop(pipes);
    if !processes.end(settings.kill_grace).await {
        tracing::warn!(tool_worker, "some processes of a tool worker could not be ended");
    }
}

/// Waits until the process must be killed. Returns the reason.
async fn must_end(process: &Process, settings: &WorkerSettings) -> String {
    let mut pings = interval((settings.ping_timeout / 3).max(Duration::from_millis(10)));
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings.tick().await;
    let mut is_overdue = false;
    loop {
        tokio::select! {
            () = process.kill_requested() => return "was killed by the server".to_owned(),
            _ = pings.tick() => {}
        }
        if process.outbox.is_full() {
            return "does not read its standard input and was killed".to_owned();
        }
        // The start of a process has another timeout.
        if !process.is_started() {
            continue;
        }
        let was_overdue = is_overdue;
        is_overdue = process.ping() > settings.ping_timeout;
        // Twice, because this server may have been frozen itself, and then has to read first.
        if was_overdue && is_overdue {
            return format!("did not respond for {:?} and was killed", settings.ping_timeout);
        }
    }
}

/// Waits until a process whose standard input has ended does not exit in time. Asks it to exit first.
async fn lingers(process: &Process, processes: &ChildProcesses, settings: &WorkerSettings) {
    process.outbox.closed().await;
    sleep(settings.kill_grace).await;
    processes.ask_to_end();
    sleep(settings.kill_grace).await;
}

/// Describes how a process ended. Clients read it, so it has no output of the process.
fn ending(status: Option<ExitStatus>) -> String {
    #[cfg(unix)]
    let signal = status.and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status));
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    match (status.and_then(|status| status.code()), signal) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "exited".to_owned(),
    }
}

async fn read_output(mut stdout: impl AsyncRead + Unpin, process: Arc<Process>) {
    let mut chunk = vec![0; CHUNK];
    let mut lines = Lines::default();
    loop {
        // Reading from a pipe does not fail; an error would mean the end.
        let count = stdout.read(&mut chunk).await.unwrap_or(0);
        if count == 0 {
            return lines.end(|line| process.read_line(&line));
        }
        lines.push(&chunk[..count], |line| process.read_line(&line));
    }
}

/// Logs and retains the lines of standard error. The pipe is always read, because a full one would
/// block the process.
async fn read_stderr(stderr: impl AsyncRead + Unpin, process: Arc<Process>) {
    /// Bytes of a line that are retained.
    const LINE: usize = 16 << 10;
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        let Ok(available) = reader.fill_buf().await else { return };
        if available.is_empty() {
            break;
        }
        let (taken, is_ended) = match memchr::memchr(b'\n', available) {
            Some(at) => (at + 1, true),
            None => (available.len(), false),
        };
        let room = LINE.saturating_sub(line.len());
        line.extend_from_slice(&available[..taken.min(room)]);
        reader.consume(taken);
        if is_ended {
            process.read_stderr(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
            line.clear();
        }
    }
    if !line.is_empty() {
        process.read_stderr(&String::from_utf8_lossy(&line));
    }
}
