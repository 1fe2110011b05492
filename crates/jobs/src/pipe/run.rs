//! The run of a supervised process, from its start until no gateway needs it.
//!
//! One loop handles the messages of the process and of gateways, timeouts and processes.

use std::{future::pending, io, process::Child, sync::Arc, time::Duration};

use bytes::Bytes;
use rustix::process::Pid;
use serde_json::value::RawValue;
use tokio::{
    net::UnixListener,
    process::{ChildStderr, ChildStdin, ChildStdout},
    signal::unix::{Signal, SignalKind, signal},
    sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc},
    time::{Instant, sleep_until},
};

use super::{
    super::{
        folder::Folder,
        heartbeat::LastHeartbeat,
        pipes::{Reading, Stderr, Stdout},
        processes::{self, Family},
        spec::How,
    },
    input::{self, Input},
    lines::{Line, Lines},
    long_line::LongLine,
    members::split,
    peers::{PeerId, Peers},
    serve::{Connections, Request},
    slots::Slots,
    spec::{PipeHello, PipeSpec},
    stderr::StderrLines,
    wire::{Frame, HEAD, Kind, MAX_BODY, VERSION},
};

/// Time without a gateway and without an open request after which the process ends.
const UNUSED_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that other processes may keep the output open after the process has exited.
const LINGER: Duration = Duration::from_secs(1);
/// Capacity of the queue of gateways' frames.
const MAX_REQUESTS: usize = 64;
/// Maximum number of reads that drain a pipe at the end: enough for the largest pipe, and finite,
/// because an unknown process may hold the other end.
const MAX_RESTS: usize = 64;

/// Signals of a supervisor.
#[derive(Debug)]
pub(super) struct Signals {
    child: Signal,
    /// Sent when the machine shuts down, or when an operator stops the supervisor.
    terminate: Signal,
    /// Signals that are ignored: operators send them to all processes with a name, and terminals to
    /// all their processes.
    _ignored: [Signal; 2],
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            child: signal(SignalKind::child())?,
            terminate: signal(SignalKind::terminate())?,
            _ignored: [signal(SignalKind::hangup())?, signal(SignalKind::interrupt())?],
        })
    }
}

/// A running process.
#[derive(Debug)]
pub(super) struct Run<'a> {
    folder: &'a Folder,
    spec: PipeSpec,
    child: Pid,
    family: Family,
    stdout: Stdout,
    stderr: Stderr,
    input: Input,
    lines: Lines,
    last_lines: StderrLines,
    slots: Slots,
    peers: Peers,
    greeting: Option<Box<RawValue>>,
    /// A message that does not fit yet. Reading continues when it is stored.
    stalled: Option<Bytes>,
    /// End of the process.
    exit: Option<How>,
    /// Reason why the supervisor ends the process.
    ends: Option<How>,
    /// Time when an unused process ends.
    unused_at: Option<Instant>,
    /// Whether a gateway has connected.
    was_used: bool,
    heartbeat: LastHeartbeat,
}

impl<'a> Run<'a> {
    pub(super) fn new(folder: &'a Folder, spec: PipeSpec, mut child: Child) -> Self {
        let pid = Pid::from_child(&child);
        // Ignored: without this file, a process that settles the folder finds the processes by
        // their mark alone.
        let _ = folder.set_child(&processes::identity(pid));
        // Pipes can always be registered with the runtime.
        let stdout = child.stdout.take().and_then(|pipe| ChildStdout::from_std(pipe).ok());
        let stderr = child.stderr.take().and_then(|pipe| ChildStderr::from_std(pipe).ok());
        let stdin = child.stdin.take().and_then(|pipe| ChildStdin::from_std(pipe).ok());
        Self {
            folder,
            child: pid,
            family: Family::of_own_child(pid),
            stdout: Reading::new(stdout),
            stderr: Reading::new(stderr),
            input: Input::new(stdin),
            lines: Lines::new(spec.max_message_bytes),
            last_lines: StderrLines::default(),
            slots: Slots::new(folder.file("overflow")),
            peers: Peers::default(),
            greeting: None,
            stalled: None,
            exit: None,
            ends: None,
            unused_at: Some(Instant::now() + UNUSED_TIMEOUT),
            was_used: false,
            heartbeat: LastHeartbeat::new(),
            spec,
        }
    }

    /// Runs until no gateway needs the process or a response. Returns how the process ended, and the
    /// end of its standard error.
    pub(super) async fn until_over(
        mut self,
        listener: UnixListener,
        mut signals: Signals,
    ) -> (How, String) {
        let (sender, mut requests) = mpsc::channel(MAX_REQUESTS);
        let (drained, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let connections = Connections {
            pipe: self.folder.id().into(),
            requests: sender,
            drained: Arc::clone(&drained),
            room: Arc::new(Semaphore::new(input::MAX_BYTES)),
            max_body: MAX_BODY.max(self.spec.max_message_bytes + HEAD),
        };
        let serving = tokio::spawn(connections.serve(listener, Arc::clone(&done)));
        let mut check = LastHeartbeat::next_check(self.spec.orphan_timeout);
        while !self.is_over() {
            if self.ends.is_some() && self.exit.is_none() {
                self.end_process(&mut signals).await;
                continue;
            }
            let deadline = self.deadline();
            tokio::select! {
                chunk = self.stdout.read(), if self.stalled.is_none() => {
                    self.lines.push(chunk);
                    self.take_lines();
                }
                chunk = self.stderr.read() => self.last_lines.push(chunk, &self.peers),
                () = self.input.write() => {}
                _ = signals.child.recv() => self.see_exit().await,
                _ = signals.terminate.recv() => self.ends = Some(How::Ended),
                Some(request) = requests.recv() => self.take_request(request),
                () = drained.notified() => self.flush(),
                () = until(deadline) => self.expire(),
                () = until(check) => {
                    check = LastHeartbeat::next_check(self.spec.orphan_timeout);
                    self.check_heartbeat();
                }
            }
        }
        self.peers.clear();
        drop(requests);
        done.notify_one();
        let _ = serving.await;
        let how = self.exit.unwrap_or(How::Lost);
        (how, self.last_lines.tail())
    }

    /// Returns whether the process has ended, a gateway knows that, and no gateway needs a response.
    fn is_over(&self) -> bool {
        let is_needed = !self.slots.is_empty() || !self.was_used;
        self.exit.is_some() && (!is_needed || self.ends.is_some())
    }

    fn deadline(&self) -> Option<Instant> {
        [self.unused_at, self.slots.deadline()].into_iter().flatten().min()
    }

    /// Handles the lines that were read. Stops at a message that does not fit yet.
    fn take_lines(&mut self) {
        while self.stalled.is_none()
            && let Some(line) = self.lines.next()
        {
            match line {
                Line::Message(message) => self.take_message(message),
                Line::TooLong(line) => self.take_long(&line),
            }
        }
    }

    /// Responds to the request whose response was too long.
    fn take_long(&mut self, line: &LongLine) {
        let response = line.response(self.slots.only_open(), self.spec.max_message_bytes);
        if let Some(response) = response {
            self.take_message(response);
        }
    }

    fn take_message(&mut self, message: Bytes) {
        let mut parts = split(&message).unwrap_or_else(|| vec![message]).into_iter();
        while let Some(part) = parts.next() {
            if let Err(part) = self.slots.take(part, &self.peers) {
                self.stalled = Some(joined(part, parts));
                return;
            }
        }
    }

    /// Tries again to store the message that did not fit, and continues to read.
    fn retry(&mut self) {
        if let Some(message) = self.stalled.take() {
            self.take_message(message);
            self.take_lines();
        }
    }

    fn take_request(&mut self, request: Request) {
        match request {
            Request::Joined { peer, gateway } => {
                let gateways = self.peers.gateways().count();
                self.peers.add(peer, gateway);
                self.welcome(peer, gateways);
            }
            Request::Frame { peer, frame, room } => self.take_frame(peer, frame, room),
            Request::Left { peer } => {
                self.peers.remove(peer);
                let cancelled = self.slots.leave(peer);
                self.cancel(cancelled);
            }
        }
        self.retry();
        self.check_use();
    }

    fn welcome(&mut self, peer: PeerId, gateways: usize) {
        let hello = PipeHello {
            version: VERSION,
            greeting: self.greeting.clone(),
            slots: self.slots.states(),
            gateways,
            exit: self.exit.clone(),
        };
        self.peers.reply(peer, Frame::new(Kind::Welcome, 0).json(&hello));
        if !self.peers.gateways().any(|gateway| gateway == peer) {
            return;
        }
        self.was_used = true;
        self.last_lines.send_unsent(peer, &self.peers);
        self.slots.flush(peer, &self.peers);
        // A gateway that may attach to a response reads the end in the welcome.
        if let Some(how) = self.exit.as_ref().filter(|_| self.slots.is_empty()) {
            self.peers.reply(peer, Frame::new(Kind::Exit, 0).json(how));
        }
    }

    fn take_frame(&mut self, peer: PeerId, frame: Frame, room: Option<OwnedSemaphorePermit>) {
        let (id, time) = (frame.id, Duration::from_millis(frame.number));
        match frame.kind {
            Kind::Greet => self.greeting = frame.read_json(),
            Kind::Write => self.input.push(frame.body, room),
            Kind::Request => {
                let retained = (frame.number > 0).then_some(time);
                if self.exit.is_none() && self.slots.open(id, peer, retained) {
                    self.input.push(frame.body, room);
                }
            }
            Kind::Retain => self.slots.retain(id, peer, time),
            Kind::Label => self.slots.label(id, peer, frame.text().unwrap_or_default()),
            Kind::Attach => {
                let attached = self.slots.attach(id, peer);
                self.peers.reply(peer, Frame::new(Kind::Attached, id).json(&attached));
                self.slots.flush(peer, &self.peers);
            }
            Kind::Respond => {
                let is_first = self.slots.respond(peer, &frame.body);
                if is_first {
                    self.input.push(frame.body, room);
                }
            }
            Kind::Carry => {
                let number = u32::try_from(frame.number).unwrap_or(u32::MAX);
                self.slots.carry(id, peer, frame.text().unwrap_or_default(), number);
            }
            Kind::Cancel => {
                let is_open = self.slots.close(id, peer);
                if is_open {
                    self.input.push(frame.body, room);
                }
            }
            Kind::Done => {
                self.slots.close(id, peer);
            }
            Kind::End => self.take_end(peer, frame.number > 0),
            _ => {}
        }
    }

    /// Ends the process, unless another gateway or a call that must survive needs it.
    fn take_end(&mut self, peer: PeerId, at_any_rate: bool) {
        let others = self.peers.gateways().any(|gateway| gateway != peer);
        if !at_any_rate && (others || self.slots.any_beside(peer)) {
            self.peers.reply(peer, Frame::new(Kind::Kept, 0));
            return;
        }
        if at_any_rate {
            self.slots.end();
        }
        match &self.exit {
            Some(how) => self.peers.reply(peer, Frame::new(Kind::Exit, 0).json(how)),
            None => self.ends = Some(How::Ended),
        }
    }

    /// Sends the messages for which gateways had no room.
    fn flush(&mut self) {
        let peers: Vec<PeerId> = self.peers.ids().collect();
        peers.into_iter().for_each(|peer| self.slots.flush(peer, &self.peers));
        self.retry();
        self.check_use();
    }

    fn expire(&mut self) {
        let cancelled = self.slots.expire();
        self.cancel(cancelled);
        self.retry();
        if self.unused_at.is_some_and(|at| at <= Instant::now()) {
            self.unused_at = None;
            self.ends = Some(How::Orphaned);
        }
        self.check_use();
    }

    /// Starts the time after which an unused process ends, or stops it.
    fn check_use(&mut self) {
        let is_used = !self.slots.is_empty() || self.peers.gateways().next().is_some();
        match is_used {
            true => self.unused_at = None,
            false if self.unused_at.is_none() && self.ends.is_none() => {
                self.unused_at = Some(Instant::now() + UNUSED_TIMEOUT);
            }
            false => {}
        }
    }

    /// Cancels requests at the process.
    fn cancel(&mut self, requests: Vec<u64>) {
        let (before, after) = &self.spec.cancel;
        for id in requests.into_iter().filter(|_| !before.is_empty()) {
            self.input.push(format!("{before}{id}{after}\n").into(), None);
        }
    }

    fn check_heartbeat(&mut self) {
        let silence = self.heartbeat.silence(self.folder.jobs().parent());
        if self.spec.orphan_timeout.is_some_and(|after| silence >= after) {
            self.ends = Some(How::Orphaned);
        }
    }

    /// Handles the exit of the process, if it has exited.
    async fn see_exit(&mut self) {
        processes::reap_adopted(self.child);
        if self.exit.is_some() {
            return;
        }
        let Some(how) = processes::ending(self.child) else { return };
        let deadline = Instant::now() + LINGER;
        while !(self.stdout.is_closed() && self.stderr.is_closed()) {
            tokio::select! {
                chunk = self.stdout.read(), if self.stalled.is_none() => {
                    self.lines.push(chunk);
                    self.take_lines();
                }
                chunk = self.stderr.read() => self.last_lines.push(chunk, &self.peers),
                () = sleep_until(deadline) => break,
            }
        }
        self.family.end_all(self.spec.kill_grace).await;
        self.finish(how).await;
    }

    /// Ends the process as the protocol asks for: closes its input, then sends SIGTERM, then kills
    /// it.
    async fn end_process(&mut self, signals: &mut Signals) {
        self.input.close();
        let deadline = Instant::now() + self.spec.kill_grace;
        while processes::ending(self.child).is_none() && Instant::now() < deadline {
            tokio::select! {
                chunk = self.stdout.read(), if self.stalled.is_none() => {
                    self.lines.push(chunk);
                    self.take_lines();
                }
                chunk = self.stderr.read() => self.last_lines.push(chunk, &self.peers),
                () = self.input.write() => {}
                _ = signals.child.recv() => processes::reap_adopted(self.child),
                () = sleep_until(deadline) => {}
            }
        }
        self.end_family().await;
        let how = self.ends.take().or_else(|| processes::ending(self.child));
        self.finish(how.unwrap_or(How::Lost)).await;
    }

    /// Ends all processes, and reads their output meanwhile: they must not wait for a reader.
    async fn end_family(&mut self) {
        let ended = self.family.end_all(self.spec.kill_grace);
        tokio::pin!(ended);
        loop {
            tokio::select! {
                _ = &mut ended => return,
                _ = self.stdout.read() => {}
                chunk = self.stderr.read() => self.last_lines.push(chunk, &self.peers),
            }
        }
    }

    /// Reads the rest of the output, and reports the end to the gateways.
    async fn finish(&mut self, how: How) {
        for _ in 0..MAX_RESTS {
            if self.stalled.is_some() {
                break;
            }
            let Some(chunk) = self.stdout.read_rest().await else { break };
            self.lines.push(chunk);
            self.take_lines();
        }
        self.lines.finish();
        self.take_lines();
        for _ in 0..MAX_RESTS {
            let Some(chunk) = self.stderr.read_rest().await else { break };
            self.last_lines.push(chunk, &self.peers);
        }
        self.last_lines.finish(&self.peers);
        self.stalled = None;
        self.slots.end();
        let peers: Vec<PeerId> = self.peers.ids().collect();
        for peer in peers {
            self.slots.flush(peer, &self.peers);
            self.peers.reply(peer, Frame::new(Kind::Exit, 0).json(&how));
        }
        self.exit = Some(how);
    }
}

/// Returns messages as one line: a batch, if there are several.
fn joined(first: Bytes, rest: impl ExactSizeIterator<Item = Bytes>) -> Bytes {
    if rest.len() == 0 {
        return first;
    }
    let mut batch = vec![b'['];
    batch.extend_from_slice(&first);
    for part in rest {
        batch.push(b',');
        batch.extend_from_slice(&part);
    }
    batch.push(b']');
    batch.into()
}

/// Waits until `time`, or forever if it is `None`.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}
