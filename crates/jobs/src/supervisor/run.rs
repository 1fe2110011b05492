//! The run of a command, from its start until none of its processes is left.
//!
//! One loop: what is printed, what is requested and responded, the time, the servers, and the processes.

use std::{
    future::pending,
    io,
    os::unix::process::CommandExt,
    process::Child,
    time::{Duration, SystemTime},
};

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
        heartbeat,
        output::{Output, Tail},
        pipes::{Stderr, Stdin, Stdout, Writing},
        processes::{self, Family, GIVE_UP_AFTER, LEFT, LOOK_EVERY},
        wire::News,
    },
    control::{Control, Followers, Request},
    messages::Messages,
    ready::say_ready,
};

/// How long others may hold the command's output open after it has exited.
const LINGER: Duration = Duration::from_secs(1);
/// How many requests of servers may wait. They are served at once.
const MAX_REQUESTS: usize = 16;
/// How often a pipe is emptied at the end: more often than the largest needs, but not for ever, because a stranger may
/// have been handed the other end.
const MAX_RESTS: usize = 64;
/// How often is looked for a server at most, and at least.
const LOOK_FOR_SERVER: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// All that a command needs before it is started.
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
    /// The machine is shut down, or somebody wants the supervisor to end.
    terminate: Signal,
    /// Heard and ignored: they are sent to all processes of a name, to make servers read their files again, or to all
    /// of a terminal.
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

    /// Starts the command and stays until it is over and written down.
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
        write_down(folder, &exit, &news).await;
        // For who waits for a command that could not be started; others were told before.
        say_ready();
        news.send_modify(|news| news.over = true);
        let _ = serving.await;
    }
}

/// Starts the command, as the leader of a process group.
fn start(spec: &JobSpec, mark: &str, channel: Channel) -> Result<Child, String> {
    prepare(spec, mark, channel)?.process_group(0).spawn().map_err(|error| explain(spec, &error))
}

/// Tries until it works: an exit is never lost, not even to a disk that is full. But who has removed the folder does not
/// want to know.
async fn write_down(folder: &Folder, exit: &Exit, news: &watch::Sender<News>) {
    const AGAIN: Duration = Duration::from_secs(1);
    while let Err(error) = folder.set_exit(exit)
        && folder.exists()
    {
        let warning = format!(
            "the command has ended, and its exit could not be written ({error}); make room in the data folder"
        );
        news.send_modify(|news| news.warning = Some(warning));
        sleep(AGAIN).await;
    }
}

/// What is kept of the standard streams.
struct Kept {
    output: Output,
    tail: Tail,
}

/// A command that runs.
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
    /// Last heartbeat of the server, and when it was first seen.
    server_heartbeat: Option<SystemTime>,
    server_seen: Instant,
    /// Why it was ended, if it was.
    ended_by: Option<How>,
    /// How the command itself ended.
    ending: Option<How>,
    phase: Phase,
    /// Whether somebody could not be ended.
    is_left: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// The command has exited; somebody may still print.
    Lingering {
        until: Instant,
    },
    /// All that is left has been asked to end, and is ended at `hard`. The next look is at `look`.
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
        // Without it, who finds the job after this process was killed looks for the mark alone.
        let _ = folder.set_child(&processes::identity(pid));
        let input = spec.stdin.take();
        // The ends of pipes can always be waited for.
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
            server_heartbeat: None,
            server_seen: Instant::now(),
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
                    self.tell();
                }
                chunk = self.messages.requests.read() => {
                    let messages = self.messages.lines.push(chunk);
                    self.take_messages(messages);
                }
                () = self.messages.responses.write() => {}
                chunk = self.stderr.read() => {
                    let status = self.tail.push(chunk);
                    self.said(status);
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

    fn said(&self, status: Option<String>) {
        if status.is_some() {
            self.news.send_modify(|news| news.status = status);
        }
    }

    fn serve(&mut self, request: Request) {
        match request {
            Request::End => self.end(How::Ended),
            Request::Respond { number, line, taken } => {
                // Who has asked may be gone.
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

    /// Once the command has exited and nobody prints any more, there is no reason to wait.
    fn linger(&mut self) {
        let is_quiet = self.stdout.is_closed() && self.stderr.is_closed();
        if is_quiet && matches!(self.phase, Phase::Lingering { .. }) {
            self.end_the_rest();
        }
    }

    /// Ends the command, if it has not ended by itself.
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

    /// Whether none of the command's processes is left.
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
        let (often, seldom) = LOOK_FOR_SERVER;
        let every = (self.spec.orphan_timeout? / 4).clamp(often, seldom);
        Some(Instant::now() + every)
    }

    fn look_for_server(&mut self) {
        let data = self.folder.jobs().parent();
        let heartbeat = data.and_then(heartbeat::last);
        if heartbeat != self.server_heartbeat {
            self.server_heartbeat = heartbeat;
            self.server_seen = Instant::now();
        } else if self.spec.orphan_timeout.is_some_and(|after| self.server_seen.elapsed() >= after)
        {
            self.end(How::Orphaned);
        }
    }

    /// Nobody is left who could print; what was printed may still be in the pipes.
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
        self.tell();
        let how = self.ended_by.or(self.ending).unwrap_or(How::Lost);
        Exit {
            how,
            stderr_tail: self.tail.text(),
            bytes_dropped: dropped.bytes,
            lines_dropped: dropped.lines,
            output_lost,
            warning: self.is_left.then(|| LEFT.to_owned()),
            ended_at: now(),
        }
    }
}

/// Waits for that time, and for ever if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}
