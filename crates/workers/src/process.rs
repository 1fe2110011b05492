//! One process of a tool worker: its calls, and the lines from and to it.

use std::{
    collections::HashMap,
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use outlive::server::durable::Permit;
use tokio::{
    sync::{Notify, oneshot, watch},
    time::Instant,
};

use crate::{
    line::{
        declared::{DeclaredTool, Hello, HelloError},
        from_server::{RunNumber, drain, drop_run, ping},
        from_worker::{RunContent, RunEnd, RunMessage, WorkerMessage},
    },
    lines::{ReadLine, sender_of},
    mailbox::Mailbox,
    outbox::Outbox,
    output::{LastLines, OutputLog},
};

/// One process.
pub(crate) struct Process {
    /// Generation of the code: a reload starts the next one.
    pub(crate) generation: u64,
    pub(crate) outbox: Outbox,
    pub(crate) last_lines: LastLines,
    nonce: String,
    log: Arc<OutputLog>,
    // A std mutex: no code awaits while it is held.
    state: Mutex<State>,
    /// When the process last sent a line with the nonce.
    heard: Mutex<Instant>,
    pings: AtomicU64,
    /// Whether the process has completed a call or recorded a step.
    is_useful: AtomicBool,
    /// Requests the end of the process.
    killed: Notify,
    /// Reason why the process is gone.
    ended: watch::Sender<Option<Arc<str>>>,
    /// Notifies the pool of free places.
    freed: Arc<Notify>,
    /// The newest entries that the process declared after its `hello`.
    declared: watch::Sender<Option<Arc<[DeclaredTool]>>>,
}

#[derive(Default)]
struct State {
    runs: HashMap<u64, Run>,
    /// Tools by name, and whether they are durable. Set by `hello` and `tools`.
    tools: Option<HashMap<String, bool>>,
    hello: Option<oneshot::Sender<Result<Hello, HelloError>>>,
    is_draining: bool,
    is_gone: bool,
}

/// A call or cleanup of a process.
enum Run {
    Call(Arc<Mailbox>),
    Cleanup(oneshot::Sender<RunEnd>),
    /// The run is dropped, and the process has not confirmed that. It keeps its place.
    Dropping {
        _permit: Option<Permit>,
    },
}

/// Message of the server about a line above the limit.
const TOO_LONG: &str = "of more than 4 MiB; emit large content in several segments (`emit`), or \
                        return a reference to it";

impl Process {
    /// Creates the state of a process that is about to start. Returns the receiver of its `hello`.
    pub(crate) fn new(
        generation: u64,
        nonce: String,
        log: Arc<OutputLog>,
        freed: Arc<Notify>,
    ) -> (Arc<Self>, oneshot::Receiver<Result<Hello, HelloError>>) {
        let (hello, received) = oneshot::channel();
        let state = State { hello: Some(hello), ..State::default() };
        let process = Self {
            generation,
            outbox: Outbox::default(),
            last_lines: LastLines::default(),
            nonce,
            log,
            state: Mutex::new(state),
            heard: Mutex::new(Instant::now()),
            pings: AtomicU64::new(0),
            is_useful: AtomicBool::new(false),
            killed: Notify::new(),
            ended: watch::Sender::new(None),
            freed,
            declared: watch::Sender::new(None),
        };
        (Arc::new(process), received)
    }

    /// Records the declared tools. The first time, the output from before enters the log: the error of
    /// a process that declares none has it.
    pub(crate) fn set_tools(&self, tools: &[DeclaredTool]) {
        let tools = tools.iter().map(|tool| (tool.name.clone(), tool.durable)).collect();
        let is_first = self.lock().tools.replace(tools).is_none();
        if is_first {
            self.last_lines.text().lines().for_each(|line| self.log.line(line));
        }
    }

    /// Returns whether a tool is durable in this process, or `None` if the process does not have it.
    pub(crate) fn tool(&self, name: &str) -> Option<bool> {
        self.lock().tools.as_ref()?.get(name).copied()
    }

    /// Returns the receiver of entries that the process declares later.
    pub(crate) fn declared(&self) -> watch::Receiver<Option<Arc<[DeclaredTool]>>> {
        self.declared.subscribe()
    }

    /// Returns the number of occupied places. Returns `None` if the process accepts no calls.
    pub(crate) fn load(&self) -> Option<usize> {
        let state = self.lock();
        (!state.is_draining && !state.is_gone).then_some(state.runs.len())
    }

    /// Returns whether the process exits after its last call.
    pub(crate) fn is_retired(&self) -> bool {
        self.lock().is_draining
    }

    /// Returns the number of calls and cleanups, apart from dropped ones.
    pub(crate) fn running(&self) -> usize {
        let state = self.lock();
        state.runs.values().filter(|run| !matches!(run, Run::Dropping { .. })).count()
    }

    /// Adds a call, unless `max` places are occupied or the process accepts no calls.
    pub(crate) fn add_call(&self, number: u64, mailbox: &Arc<Mailbox>, max: usize) -> bool {
        self.add(number, max, || Run::Call(Arc::clone(mailbox)))
    }

    /// Adds a cleanup as [`Process::add_call`] does.
    pub(crate) fn add_cleanup(&self, number: u64, max: usize) -> Option<oneshot::Receiver<RunEnd>> {
        let (end, received) = oneshot::channel();
        self.add(number, max, || Run::Cleanup(end)).then_some(received)
    }

    fn add(&self, number: u64, max: usize, run: impl FnOnce() -> Run) -> bool {
        let mut state = self.lock();
        if state.is_draining || state.is_gone || state.runs.len() >= max {
            return false;
        }
        state.runs.insert(number, run());
        true
    }

    /// Removes a run whose last line has arrived.
    pub(crate) fn remove(&self, number: u64) {
        let removed = {
            let mut state = self.lock();
            let removed = state.runs.remove(&number);
            self.close_if_over(&state);
            removed
        };
        // Dropped outside the lock, because a permit may wake other calls.
        drop(removed);
        self.freed.notify_waiters();
    }

    /// Drops a run. It keeps its place, with its permit, until the process confirms that.
    pub(crate) fn drop_run(&self, run: RunNumber, reason: &str, permit: Option<Permit>) {
        let released = {
            let mut state = self.lock();
            let State { runs, is_gone, .. } = &mut *state;
            match runs.get_mut(&run.value()) {
                Some(entry) if !*is_gone => {
                    *entry = Run::Dropping { _permit: permit };
                    None
                }
                _ => permit,
            }
        };
        drop(released);
        self.outbox.send(&drop_run(run, reason));
    }

    /// Marks the process as useful, so that its next restart is immediate.
    pub(crate) fn set_useful(&self) {
        self.is_useful.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_useful(&self) -> bool {
        self.is_useful.load(Ordering::Relaxed)
    }

    /// Lets the process exit after its last call. Its durable calls may move to another process.
    pub(crate) fn retire(&self) {
        let calls: Vec<Arc<Mailbox>> = {
            let mut state = self.lock();
            if mem::replace(&mut state.is_draining, true) {
                return;
            }
            let call = |run: &Run| match run {
                Run::Call(mailbox) => Some(Arc::clone(mailbox)),
                Run::Cleanup(_) | Run::Dropping { .. } => None,
            };
            state.runs.values().filter_map(call).collect()
        };
        self.outbox.send(&drain());
        calls.iter().for_each(|mailbox| mailbox.request_move());
        self.close_if_over(&self.lock());
        self.freed.notify_waiters();
    }

    /// Ends the standard input of a draining process without calls, so that it exits.
    fn close_if_over(&self, state: &State) {
        if state.is_draining && state.runs.is_empty() {
            self.outbox.close();
        }
    }

    /// Requests that the process is killed.
    pub(crate) fn kill(&self) {
        self.killed.notify_one();
    }

    /// Waits for [`Process::kill`].
    pub(crate) async fn kill_requested(&self) {
        self.killed.notified().await;
    }

    /// Sends a `ping`. Returns the time since the last line of the process.
    pub(crate) fn ping(&self) -> std::time::Duration {
        let number = self.pings.fetch_add(1, Ordering::Relaxed) + 1;
        self.outbox.send(&ping(number));
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Reports that the process is gone. Its calls continue in other processes.
    pub(crate) fn set_gone(&self, reason: &str) {
        let reason: Arc<str> = reason.into();
        let runs = {
            let mut state = self.lock();
            state.is_gone = true;
            state.hello = None;
            mem::take(&mut state.runs)
        };
        for run in runs.values() {
            if let Run::Call(mailbox) = run {
                mailbox.lose(&reason);
            }
        }
        // Drops the senders of cleanups, which reports their loss, and the permits of dropped runs.
        drop(runs);
        self.outbox.close();
        self.ended.send_replace(Some(reason));
        self.freed.notify_waiters();
    }

    /// Waits until the process is gone. Returns the reason.
    pub(crate) async fn ended(&self) -> Arc<str> {
        let mut ended = self.ended.subscribe();
        match ended.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => Arc::default(),
        }
    }

    /// Returns whether the process has declared its tools.
    pub(crate) fn is_started(&self) -> bool {
        self.lock().tools.is_some()
    }

    /// Handles a line of standard error.
    pub(crate) fn read_stderr(&self, line: &str) {
        self.last_lines.add(line);
        if self.is_started() {
            self.log.line(line);
        }
    }

    /// Handles a line of standard output.
    pub(crate) fn read_line(&self, line: &ReadLine<'_>) {
        let line = match line {
            ReadLine::Line(line) => *line,
            ReadLine::TooLong(head) => return self.read_long(head),
        };
        match WorkerMessage::read(line, &self.nonce) {
            Some(message) => self.receive(message, line.len()),
            None => self.log.line(&String::from_utf8_lossy(line)),
        }
    }

    fn receive(&self, message: WorkerMessage, bytes: usize) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        match message {
            WorkerMessage::Run(message) => self.deliver(message, bytes),
            WorkerMessage::Pong => {}
            WorkerMessage::Hello(raw) => {
                let hello = self.lock().hello.take();
                match hello {
                    // The receiver may have timed out, and then the process is killed.
                    Some(sender) => drop(sender.send(Hello::read(&raw))),
                    None => self.log.line("a second `hello` is ignored"),
                }
            }
            WorkerMessage::Tools(tools) => {
                let tools: Vec<_> = tools.iter().map(|tool| &**tool).collect();
                match DeclaredTool::read_all(&tools) {
                    Ok(tools) => {
                        self.declared.send_replace(Some(tools.into()));
                    }
                    Err(reason) => self.log.line(&format!("`tools` is ignored: {reason}")),
                }
            }
            WorkerMessage::Unknown => self.log.line("an unknown message is ignored"),
            WorkerMessage::Invalid { number, reason } => {
                self.fail(number, format!("the tool worker sent an invalid message: {reason}"));
            }
        }
    }

    fn read_long(&self, head: &[u8]) {
        match sender_of(head, &self.nonce) {
            Some((number, name)) => {
                self.fail(number, format!("the tool worker sent a `{name}` message {TOO_LONG}"));
            }
            None => self.log.line(&String::from_utf8_lossy(head)),
        }
    }

    /// Makes a call fail.
    fn fail(&self, number: u64, reason: String) {
        match self.lock().runs.get(&number) {
            Some(Run::Call(mailbox)) => mailbox.fail(reason),
            _ => self.log.line(&reason),
        }
    }

    /// Passes a message to its call.
    fn deliver(&self, message: RunMessage, bytes: usize) {
        let RunMessage { number, content } = message;
        let mut state = self.lock();
        match state.runs.get(&number) {
            Some(Run::Call(mailbox)) => {
                let mailbox = Arc::clone(mailbox);
                drop(state);
                mailbox.push(content, bytes);
            }
            // Ended by any last line: the drop and the last line may cross.
            Some(Run::Dropping { .. }) if matches!(content, RunContent::End(_)) => {
                drop(state);
                self.remove(number);
            }
            Some(Run::Cleanup(_)) => {
                let RunContent::End(end) = content else { return };
                if let Some(Run::Cleanup(sender)) = state.runs.remove(&number) {
                    self.close_if_over(&state);
                    drop(state);
                    let _ = sender.send(end);
                    self.freed.notify_waiters();
                }
            }
            // Lines after the last line, and lines between `drop` and `dropped`.
            Some(Run::Dropping { .. }) | None => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
