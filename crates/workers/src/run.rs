//! One run of a function in a process: its messages, and the requests that they make.

use std::{
    collections::HashMap,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, atomic::AtomicBool},
    task::{Context, Poll},
    time::Duration,
};

use outlive::server::{
    CallToolResult, Durable, Error, Result,
    durable::{DurableError, Permit},
};
use tokio::sync::oneshot;

use crate::{
    clock::CallClock,
    key::read_key,
    line::{
        from_server::{MAX_LINE, Responses},
        from_worker::{RunContent, RunEnd},
    },
    mailbox::CallEvent,
    operations::{Completed, Kind, MAX_OPEN, MAX_SEGMENTS_AHEAD, Operations, Reply, Work},
    rejection::{INVALID, TOO_LARGE, TOO_MANY},
    requests::{Body, Caller, StepEnd},
    result,
    route::ToolRoute,
    seat::Seat,
};

/// Messages that are handled before the requests are polled.
const BATCH: usize = 256;

/// Maximum bytes of a recorded value, so that its entry fits a line of a later call.
const MAX_VALUE: usize = MAX_LINE - (8 << 10);

/// Maximum number of rejections whose errors are retained for the result.
const MAX_REJECTIONS: usize = 64;

/// End of a run in a process.
pub(crate) enum RunOutcome {
    /// The call has this result.
    Over(Result<CallToolResult>),
    /// The function cannot read the journal entry of this key.
    Incompatible { key: String, reason: String },
    /// Another process should continue the call.
    Moved { permit: Permit, operations: Operations },
    /// The process is lost.
    Lost { reason: Arc<str>, permit: Permit, operations: Operations },
}

/// A run of a function in a process.
pub(crate) struct Run<'a> {
    route: &'a ToolRoute,
    caller: Caller,
    seat: Seat,
    operations: Operations,
    /// Steps in progress, by key.
    steps: HashMap<String, StepInProgress>,
    /// Number of segments that the run has emitted, and of those that are accepted.
    emitted: u64,
    accepted: u64,
    /// Errors of rejected requests, by key.
    rejections: HashMap<String, Error>,
    /// Completes when the call is cancelled.
    cancelled: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    clock: CallClock,
    /// Last line, until all segments before it are accepted.
    end: Option<RunEnd>,
}

/// A step that the process executes.
struct StepInProgress {
    operation: u64,
    /// `None` after the body has ended.
    end: Option<oneshot::Sender<StepEnd>>,
    has_started: Arc<AtomicBool>,
}

/// Events of one poll.
#[derive(Default)]
struct Batch {
    events: Vec<CallEvent>,
    completed: Vec<Completed>,
    is_timed_out: bool,
}

/// Reason why a run ends before its last line.
enum Stop {
    Failed(String),
    Lost(Arc<str>),
    Incompatible { key: String, reason: String },
}

impl<'a> Run<'a> {
    pub(crate) fn new(cx: &Durable, route: &'a ToolRoute, seat: Seat) -> Self {
        let caller = Caller {
            cx: cx.clone(),
            process: Arc::clone(seat.process()),
            responses: Responses::new(seat.number()),
            skips_time: route.pool.settings.skips_time,
        };
        let cx = cx.clone();
        Self {
            route,
            caller,
            seat,
            operations: Operations::default(),
            steps: HashMap::new(),
            emitted: 0,
            accepted: 0,
            rejections: HashMap::new(),
            cancelled: Some(Box::pin(async move { cx.cancelled().await })),
            clock: CallClock::new(route.timeout),
            end: None,
        }
    }

    /// Follows the run to its end in this process.
    pub(crate) async fn follow(mut self) -> RunOutcome {
        loop {
            if self.operations.count(Kind::Segment) == 0
                && let Some(end) = self.end.take()
            {
                return self.finish(end);
            }
            if self.moves() {
                let Self { seat, operations, .. } = self;
                return match seat.leave("moved") {
                    Some(permit) => RunOutcome::Moved { permit, operations },
                    None => RunOutcome::Over(Err(Error::new("the call has no permit"))),
                };
            }
            let batch = poll_fn(|task| self.poll(task)).await;
            let stop = self.apply(batch);
            match stop {
                None => {}
                Some(Stop::Lost(reason)) => return self.lost(reason).await,
                Some(Stop::Failed(reason)) => {
                    drop(self.seat.leave("failed"));
                    return RunOutcome::Over(Err(Error::new(reason)));
                }
                Some(Stop::Incompatible { key, reason }) => {
                    drop(self.seat.leave("failed"));
                    return RunOutcome::Incompatible { key, reason };
                }
            }
        }
    }

    /// Polls for messages, completed requests, cancellation and the timeout.
    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Batch> {
        let mut batch = Batch::default();
        let is_cancelled = self.cancelled.as_mut().map(|it| it.as_mut().poll(task).is_ready());
        if is_cancelled == Some(true) {
            self.cancelled = None;
            self.send(&self.caller.responses.cancel());
        }
        while batch.events.len() < BATCH
            && let Poll::Ready(event) = self.seat.mailbox.poll_next(task)
        {
            batch.events.push(event);
        }
        self.operations.poll(task, &mut batch.completed);
        let is_waiting = self.operations.count(Kind::Wait) > 0;
        batch.is_timed_out = self.clock.poll(is_waiting, task).is_ready();
        let is_empty = batch.events.is_empty() && batch.completed.is_empty();
        match is_empty && !batch.is_timed_out && !self.moves() {
            true => Poll::Pending,
            false => Poll::Ready(batch),
        }
    }

    /// Returns whether another process can continue the call now: its code is newer, and no step is
    /// in progress.
    fn moves(&self) -> bool {
        let declared = &self.route.declared;
        self.seat.mailbox.is_move_requested()
            && declared.durable
            && self.steps.is_empty()
            && self.end.is_none()
            && self.route.pool.has_durable(&declared.name)
    }

    fn apply(&mut self, batch: Batch) -> Option<Stop> {
        let Batch { events, completed, is_timed_out } = batch;
        for completed in completed {
            if let Some(stop) = self.complete(completed) {
                return Some(stop);
            }
        }
        self.acknowledge();
        for event in events {
            // Lines after the last one do not count, and the process may be lost after it.
            if self.end.is_some() {
                return None;
            }
            match event {
                CallEvent::Message(message) => {
                    if let Some(stop) = self.receive(message) {
                        return Some(stop);
                    }
                }
                CallEvent::Failed(reason) => return Some(Stop::Failed(reason)),
                CallEvent::Lost(reason) => return Some(Stop::Lost(reason)),
            }
        }
        is_timed_out.then(|| {
            let timeout = self.clock.timeout();
            Stop::Failed(format!("the tool exceeded its timeout of {timeout:?} and was stopped"))
        })
    }

    /// Handles a completed request.
    fn complete(&mut self, completed: Completed) -> Option<Stop> {
        let Completed { number, kind, key, reply } = completed;
        if kind == Kind::Step && self.steps.get(&key).is_some_and(|step| step.operation == number) {
            self.steps.remove(&key);
        }
        match reply {
            Reply::Nothing => {}
            Reply::Line(line) => self.send(&line),
            // The process must not continue before it is killed.
            Reply::Recorded(_) if self.route.pool.settings.crash_after_each_entry => {
                self.seat.process().kill();
            }
            Reply::Recorded(line) => self.send(&line),
            Reply::Rejected { line, key, error } => {
                self.send(&line);
                if self.rejections.len() < MAX_REJECTIONS {
                    self.rejections.insert(key, error);
                }
            }
            Reply::Mismatch { key, reason } => return Some(Stop::Incompatible { key, reason }),
            Reply::Segment(rejection) => {
                self.accepted += 1;
                if let Some(line) = rejection {
                    self.send(&line);
                }
            }
        }
        None
    }

    /// Tells the process how many segments are accepted.
    fn acknowledge(&mut self) {
        let accepted = std::mem::take(&mut self.accepted);
        if accepted > 0 {
            self.emitted += accepted;
            self.send(&self.caller.responses.stored_segments(self.emitted));
        }
    }

    /// Handles a message of the process.
    fn receive(&mut self, message: RunContent) -> Option<Stop> {
        match message {
            RunContent::Step { key, once } => self.step(key, once),
            RunContent::Done { key, value, is_secret } => self.done(&key, value, is_secret),
            RunContent::Failed { key, error, is_permanent } => {
                self.end_step(&key, StepEnd::Failed { error, is_permanent });
            }
            RunContent::Replayed(keys) => self.replayed(&keys),
            RunContent::Input(input) => {
                let key = input.key.clone();
                self.open(Kind::Wait, key, |caller, key| caller.input(*input, key));
            }
            RunContent::ExternalEvent { key, timeout_ms } => {
                let (text, timeout) = (key.clone(), timeout_ms.map(Duration::from_millis));
                let work = move |caller: Caller, key| caller.external_event(text, key, timeout);
                self.open(Kind::Wait, key, work);
            }
            RunContent::Sleep { key, ms } => {
                let text = key.clone();
                self.open(Kind::Wait, key, move |caller, key| caller.sleep(text, key, ms));
            }
            RunContent::Withdraw(key) => {
                self.operations.remove(Kind::Wait, &key);
            }
            RunContent::Emit { block, scope } => return self.emit(block, scope),
            RunContent::Progress { done, total, message } => {
                self.caller.cx.progress(done, total, message);
            }
            RunContent::StatusMessage(message) => self.caller.cx.set_status_message(message),
            RunContent::Log { level, data } => self.caller.cx.log(level, data),
            RunContent::End(end) => self.end = Some(end),
        }
        None
    }

    /// Opens a request with a key. Returns its number, unless it is rejected at once.
    fn open(
        &mut self,
        kind: Kind,
        key: String,
        work: impl FnOnce(Caller, outlive::server::durable::Key) -> Work,
    ) -> Option<u64> {
        let parsed = match read_key(&key) {
            Ok(parsed) => parsed,
            Err(reason) => {
                self.reject(&key, INVALID, &reason);
                return None;
            }
        };
        if self.operations.is_full(kind) {
            let reason = format!(
                "the call has {MAX_OPEN} open steps, input requests and timers; wait for some of them"
            );
            self.reject(&key, TOO_MANY, &reason);
            return None;
        }
        let work = work(self.caller.clone(), parsed);
        Some(self.operations.add(kind, key, work))
    }

    fn reject(&self, key: &str, kind: &str, reason: &str) {
        self.send(&self.caller.responses.rejected(key, None, kind, reason));
    }

    fn step(&mut self, key: String, once: bool) {
        if self.steps.get(&key).is_some_and(|step| step.end.is_some()) {
            let reason = format!("the step `{key}` is in progress; a run uses a key once");
            return self.reject(&key, "duplicate_key", &reason);
        }
        let (sender, end) = oneshot::channel();
        let has_started = Arc::new(AtomicBool::new(false));
        let body = Body { once, end, has_started: Arc::clone(&has_started) };
        let text = key.clone();
        let opened =
            self.open(Kind::Step, key.clone(), move |caller, key| caller.step(text, key, body));
        if let Some(operation) = opened {
            let step = StepInProgress { operation, end: Some(sender), has_started };
            self.steps.insert(key, step);
        }
    }

    fn done(&mut self, key: &str, value: outlive::wire::RawJson, is_secret: bool) {
        let bytes = value.get().len();
        if bytes <= MAX_VALUE {
            return self.end_step(key, StepEnd::Done { value, is_secret });
        }
        // The step is dropped, so its key is free again.
        if self.operations.remove(Kind::Step, key) {
            self.steps.remove(key);
            let reason = format!(
                "the value of the step `{key}` has {bytes} bytes, above the limit of {MAX_VALUE}; record a reference to it"
            );
            self.reject(key, TOO_LARGE, &reason);
        }
    }

    /// Ends the body of a step. A step that was rejected has ended before.
    fn end_step(&mut self, key: &str, end: StepEnd) {
        let sender = self.steps.get_mut(key).and_then(|step| step.end.take());
        match sender {
            // Without a receiver, the step was rejected.
            Some(sender) => drop(sender.send(end)),
            None => tracing::debug!(key, "a step that is not in progress has ended"),
        }
    }

    fn replayed(&self, keys: &[String]) {
        for key in keys {
            let marked = read_key(key).map(|key| self.caller.cx.mark_replayed(key));
            match marked {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => {
                    tracing::warn!(key, "a tool worker replays a step without a record")
                }
                Ok(Err(error)) => tracing::debug!(key, %error, "a replayed step is not marked"),
                Err(error) => tracing::warn!(error, "a tool worker replays an invalid key"),
            }
        }
    }

    fn emit(&mut self, block: outlive::wire::RawJson, scope: String) -> Option<Stop> {
        if self.operations.is_full(Kind::Segment) {
            let reason =
                format!("the tool worker is more than {MAX_SEGMENTS_AHEAD} segments ahead");
            return Some(Stop::Failed(reason));
        }
        let step = self.steps.get(&scope).map(|step| Arc::clone(&step.has_started));
        let open = self.operations.count(Kind::Segment) as u64;
        let number = self.emitted + self.accepted + open + 1;
        let parsed = match scope.as_str() {
            "" => Ok(None),
            scope => read_key(scope).map(Some),
        };
        let work: Work = match parsed {
            Ok(key) => self.caller.clone().emit(block, (scope.clone(), key), step, number),
            Err(reason) => {
                let rejected =
                    self.caller.responses.rejected(&scope, Some(number), INVALID, &reason);
                Box::pin(async move { Reply::Segment(Some(rejected)) })
            }
        };
        self.operations.add(Kind::Segment, scope, work);
        None
    }

    /// Returns the outcome of a run whose process is lost. Steps that the process has completed are
    /// recorded before.
    async fn lost(mut self, reason: Arc<str>) -> RunOutcome {
        poll_fn(|task| {
            self.operations.poll(task, &mut Vec::new());
            Poll::Ready(())
        })
        .await;
        let Self { seat, operations, .. } = self;
        match seat.lost() {
            Some(permit) => RunOutcome::Lost { reason, permit, operations },
            None => RunOutcome::Over(Err(Error::new("the call has no permit"))),
        }
    }

    /// Returns the outcome of the last line.
    fn finish(mut self, end: RunEnd) -> RunOutcome {
        let (worker, tool) = (&*self.route.pool.settings.name, &*self.route.declared.name);
        let result = match end {
            RunEnd::Return(value) => result::of_value(&value),
            RunEnd::Result(raw) => result::of_result(&raw),
            RunEnd::Error(mut failed) => {
                if failed.rejected.is_some() && self.cancelled.is_none() {
                    // The function ended because its task was cancelled: a log line would mislead.
                    failed.traceback = None;
                }
                let rejection =
                    failed.rejected.as_ref().and_then(|key| self.rejections.remove(key));
                let own = rejection.filter(is_for_client);
                Err(own.unwrap_or_else(|| result::of_error(worker, tool, failed)))
            }
            RunEnd::Incompatible { key, reason } => {
                self.seat.end();
                return RunOutcome::Incompatible { key, reason };
            }
            RunEnd::Dropped => Err(Error::new("the tool worker dropped the call")),
            RunEnd::CleanedUp => Err(Error::new("the tool worker sent the end of a cleanup")),
        };
        self.seat.end();
        RunOutcome::Over(result)
    }

    fn send(&self, line: &str) {
        self.seat.process().outbox.send(line);
    }
}

/// Returns whether the client must get an error itself, because it can do something about it.
fn is_for_client(error: &Error) -> bool {
    matches!(error.durable_error(), Some(DurableError::MissingCapability { .. }))
}
