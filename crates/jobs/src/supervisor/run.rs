//! The run of a command, from its start until no process is left.
//!
//! One loop handles output, messages, requests of servers, timeouts and processes.

use std::{future::pending, io, os::unix::process::CommandExt, process::Child, time::Duration};

use rustix::process::Pid;
use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout},
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until},
};

use super::{
    super::{
        Exit, How, JobSpec,
        clock::Clock,
        command::{explain, prepare},
        control::Channel,
        files::now,
        folder::Folder,
        heartbeat::LastHeartbeat,
        output::{Output, Tail},
        pipes::{Stderr, Stdin, Stdout, Writing},
        processes::{self, Family, GIVE_UP_AFTER, LEFT, LOOK_EVERY},
        ready::say_ready,
        wire::News,
    },
    control::{Control, Followers, Request},
    messages::Messages,
};

/// Time that other processes may keep the output open after the command has exited.
const LINGER: Duration = Duration::from_secs(1);
/// Capacity of the queue of server requests.
const MAX_REQUESTS: usize = 16;
/// Maximum number of reads that drain a pipe at the end: enough for the largest pipe, and finite,
/// because an unknown process may hold the other end.
const MAX_RESTS: usize = 64;

/// State that is prepared before the command starts.
#[derive(Debug)]
pub(super) struct Run<'f> {
    folder: &'f Folder,
    spec: JobSpec,
    control: Control,
    output: Output,
    tail: Tail,
    messages: Messages,
    channel: Channel,
    signals: Signals,
}

#[derive(Debug)]
struct Signals {
    child: Signal,
    /// Sent when the machine shuts down, or when an operator stops the supervisor.
    terminate: Signal,
    /// Signals that are ignored: operators send them to all processes with a name, and terminals to
    /// all their processes.
    _ignored: [Signal; 2],
}

impl<'f> Run<'f> {
    pub(super) fn prepare(folder: &'f Folder, spec: JobSpec, control: Control) -> io::Result<Self> {
        let output = Output::new(folder.append_to("out")?, &spec);
        let tail = Tail::new(folder.append_to("err")?);
        let (channel, messages) = Messages::open(&spec, folder.append_to("events")?)?;
        let signals = Signals {
            child: signal(SignalKind::child())?,
            terminate: signal(SignalKind::terminate())?,
            _ignored: [signal(SignalKind::hangup())?, signal(SignalKind::interrupt())?],
        };
        Ok(Self { folder, spec, control, output, tail, messages, channel, signals })
    }

    /// Starts the command, and returns after its exit is recorded.
    pub(super) async fn start_and_watch(self, mark: &str) {
        let Self { folder, spec, control, output, tail, messages, channel, signals } = self;
        let followers = control.followers();
        let (news, hear) = watch::channel(News::default());
        let (ask, requests) = mpsc::channel(MAX_REQUESTS);
        let serving = tokio::spawn(control.serve(ask, hear));
        let exit = match start(&spec, mark, channel) {
            Ok(child) => {
                let kept = Kept { output, tail };
                let watch = Watch::new(folder, spec, child, kept, messages, followers, &news);
                say_ready();
                watch.until_over(signals, requests).await
            }
            Err(why) => Exit::silent(How::NotStarted(why), now()),
        };
        record_exit(folder, &exit, &news).await;
        // A server may still wait for a command that could not be started.
        say_ready();
        news.send_modify(|news| news.over = true);
        let _ = serving.await;
    }
}

/// Starts the command as the leader of a process group.
fn start(spec: &JobSpec, mark: &str, channel: Channel) -> Result<Child, String> {
    prepare(spec, mark, channel)?
        .process_group(0)
        .spawn()
        .map_err(|error| explain(spec.program(), &error))
}

/// Writes the exit, and retries until it succeeds, so that an exit is not lost on a full disk.
/// Stops if the folder was removed.
async fn record_exit(folder: &Folder, exit: &Exit, news: &watch::Sender<News>) {
    const AGAIN: Duration = Duration::from_secs(1);
    while let Err(error) = folder.set_exit(exit)
        && folder.exists()
    {
        let warning = format!(
            "the command has ended, but writing its exit failed ({error}); free space in the data folder"
        );
        news.send_modify(|news| news.warning = Some(warning));
        sleep(AGAIN).await;
    }
}

/// Stored output of the standard streams.
struct Kept {
    output: Output,
    tail: Tail,
}

/// A running command.
pub(super) struct Watch<'a> {
    pub(super) folder: &'a Folder,
    pub(super) spec: JobSpec,
    child: Pid,
    family: Family,
    pub(super) stdout: Stdout,
    stderr: Stderr,
    pub(super) stdin: Stdin,
    pub(super) output: Output,
    tail: Tail,
    pub(super) messages: Messages,
    pub(super) news: &'a watch::Sender<News>,
    pub(super) clock: Clock,
    pub(super) followers: Followers,
    heartbeat: LastHeartbeat,
    /// Reason why the supervisor ended the command.
    ended_by: Option<How>,
    /// End of the command itself.
    ending: Option<How>,
    phase: Phase,
    /// Whether processes could not be terminated.
    is_left: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// The command has exited, but other processes may still print.
    Lingering {
        until: Instant,
    },
    /// The remaining processes were asked to exit, and are killed at `hard`. The next check is at
    /// `look`.
    Ending {
        hard: Instant,
        look: Instant,
    },
    Over,
}

impl<'a> Watch<'a> {
    fn new(
        folder: &'a Folder,
        mut spec: JobSpec,
        mut child: Child,
        kept: Kept,
        messages: Messages,
        followers: Followers,
        news: &'a watch::Sender<News>,
    ) -> Self {
        let pid = Pid::from_child(&child);
        // Ignored: without this file, a process that settles the job finds its processes by the
        // mark alone.
        let _ = folder.set_child(&processes::identity(pid));
        let input = spec.stdin.take();
        // Pipes can always be registered with the runtime.
        let stdout = child.stdout.take().and_then(|pipe| ChildStdout::from_std(pipe).ok());
        let stderr = child.stderr.take().and_then(|pipe| ChildStderr::from_std(pipe).ok());
        let stdin = child.stdin.take().and_then(|pipe| ChildStdin::from_std(pipe).ok());
        Self {
            folder,
            child: pid,
            family: Family::of_own_child(pid),
            stdout: Stdout::new(stdout),
            stderr: Stderr::new(stderr),
            stdin: Writing::new(stdin, input, messages.respond_on_stdin()),
            output: kept.output,
            tail: kept.tail,
            messages,
            news,
            clock: Clock::start(spec.timeout),
            followers,
            heartbeat: LastHeartbeat::new(),
            ended_by: None,
            ending: None,
            phase: Phase::Running,
            is_left: false,
            spec,
        }
    }

    async fn until_over(
        mut self,
        mut signals: Signals,
        mut requests: mpsc::Receiver<Request>,
    ) -> Exit {
        let mut look_for_server = self.look_for_server_at();
        while self.phase != Phase::Over {
            let (deadline, look) = (self.clock.deadline(), self.look_at());
            tokio::select! {
                chunk = self.stdout.read() => {
                    match self.messages.split(chunk) {
                        Some(pieces) => self.take_pieces(pieces),
                        None => self.output.push(chunk),
                    }
                    self.notify();
                }
                chunk = self.messages.requests.read() => {
                    let messages = self.messages.lines.push(chunk);
                    self.take_messages(messages);
                }
                () = self.messages.responses.write() => {}
                chunk = self.stderr.read() => {
                    let status = self.tail.push(chunk);
                    self.set_status(status);
                }
                () = self.stdin.write() => {}
                _ = signals.child.recv() => self.see_who_ended(),
                _ = signals.terminate.recv() => self.end(How::Lost),
                Some(request) = requests.recv() => self.serve(request),
                () = until(deadline), if self.phase == Phase::Running => {
                    self.end(How::TimedOut);
                }
                () = until(look_for_server), if self.phase == Phase::Running => {
                    self.look_for_server();
                    look_for_server = self.look_for_server_at();
                }
                () = until(self.messages.look_at), if self.phase == Phase::Running => {
                    self.look_for_followers();
                }
                () = until(look) => self.look(),
            }
            self.linger();
        }
        self.finish().await
    }

    fn set_status(&self, status: Option<String>) {
        if status.is_some() {
            self.news.send_modify(|news| news.status = status);
        }
    }

    fn serve(&mut self, request: Request) {
        match request {
            Request::End => self.end(How::Ended),
            Request::Respond { number, line, taken } => {
                // A failed send is ignored, because the requesting server may be gone.
                let _ = taken.send(self.respond(number, &line));
            }
        }
    }

    fn see_who_ended(&mut self) {
        processes::reap_adopted(self.child);
        if self.ending.is_none() {
            self.ending = processes::ending(self.child);
        }
        if self.ending.is_some() && self.phase == Phase::Running {
            self.phase = Phase::Lingering { until: Instant::now() + LINGER };
        }
    }

    /// Terminates the remaining processes after the command has exited and all output is closed.
    fn linger(&mut self) {
        let is_quiet = self.stdout.is_closed() && self.stderr.is_closed();
        if is_quiet && matches!(self.phase, Phase::Lingering { .. }) {
            self.end_the_rest();
        }
    }

    /// Ends the command, unless it has already ended.
    pub(super) fn end(&mut self, why: How) {
        if matches!(self.phase, Phase::Running | Phase::Lingering { .. }) {
            if self.ending.is_none() {
                self.ended_by = Some(why);
            }
            self.end_the_rest();
        }
    }

    fn end_the_rest(&mut self) {
        if self.is_gone() {
            self.phase = Phase::Over;
            return;
        }
        self.family.ask_to_end();
        let hard = processes::later(self.spec.kill_grace);
        self.phase = Phase::Ending { hard, look: Instant::now() };
    }

    /// Returns whether no process of the command is left.
    fn is_gone(&self) -> bool {
        self.ending.is_some() && self.family.is_gone()
    }

    fn look_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running | Phase::Over => None,
            Phase::Lingering { until } => Some(until),
            Phase::Ending { look, .. } => Some(look),
        }
    }

    fn look(&mut self) {
        match self.phase {
            Phase::Running | Phase::Over => {}
            Phase::Lingering { .. } => self.end_the_rest(),
            Phase::Ending { hard, .. } => {
                self.see_who_ended();
                let now = Instant::now();
                if self.is_gone() {
                    self.phase = Phase::Over;
                    return;
                }
                if now >= hard + GIVE_UP_AFTER {
                    self.is_left = true;
                    self.phase = Phase::Over;
                    return;
                }
                if now >= hard {
                    self.family.end();
                }
                self.phase = Phase::Ending { hard, look: now + LOOK_EVERY };
            }
        }
    }

    fn look_for_server_at(&self) -> Option<Instant> {
        LastHeartbeat::next_check(self.spec.orphan_timeout)
    }

    fn look_for_server(&mut self) {
        let silence = self.heartbeat.silence(self.folder.jobs().parent());
        if self.spec.orphan_timeout.is_some_and(|after| silence >= after) {
            self.end(How::Orphaned);
        }
    }

    /// Reads the remaining output from the pipes after all processes have ended.
    async fn finish(mut self) -> Exit {
        for _ in 0..MAX_RESTS {
            let Some(chunk) = self.stdout.read_rest().await else { break };
            match self.messages.split(chunk) {
                Some(pieces) => self.take_pieces(pieces),
                None => self.output.push(chunk),
            }
        }
        self.take_last_messages();
        for _ in 0..MAX_RESTS {
            let Some(chunk) = self.stderr.read_rest().await else { break };
            self.tail.push(chunk);
        }
        let (dropped, output_lost) = self.output.close(&mut self.messages.events);
        self.notify();
        let how = self.ended_by.or(self.ending).unwrap_or(How::Lost);
        Exit {
            how,
            stderr_tail: self.tail.text(),
            progress: self.news.borrow().progress.clone(),
            bytes_dropped: dropped.bytes,
            lines_dropped: dropped.lines,
            output_lost,
            warning: self.is_left.then(|| LEFT.to_owned()),
            ended_at: now(),
        }
    }
}

/// Waits until `time`, or forever if it is `None`.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}
