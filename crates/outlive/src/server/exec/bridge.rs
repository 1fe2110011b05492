//! Bridged calls: calls of clients without tasks. The run of a bridged call is a task, and the call
//! waits for this task in slices that its client allows.
//!
//! [`wait`] ends with the result of the task, with an empty round (2026-07-28: the client repeats
//! the request by itself), or with a pending result.

use std::{future::poll_fn, sync::Arc, time::Duration};

use outlive_protocol::{
    Call, InputMode, InputRequired, MethodResult, Outcome, Progress, ProtocolError, era,
};
use outlive_tasks::store::{OpenInput, TaskId, TaskOutcome, TaskRecord};
use outlive_wire::{CallToolResult, InputRequest, OrderedMap};
use serde_json::Map;
use tokio::time::{Instant, sleep_until};

use crate::server::{
    env::{environment::Env, task_backend::TaskBackend, task_error::unavailable},
    exec::gate::{
        binding::NextStep,
        text::{self, is_undecided},
        wait::{GateWait, announce_caller, open_approval, withdraw},
    },
    hosts::{Hosts, client::Client},
    results::deliver::{Delivered, deliver},
    run::{
        answer_token::AnswerToken, bound_args::BoundArgs, progress::TaskProgress,
        request_state::seal_task,
    },
    tasks::{
        attendance::{Arrival, Attendance},
        attending::Attending,
        inputs::{Dialogue, take},
        lookup::LOOK,
        pending_result::{Situation, pending_result, stop_text, with_task, with_view},
    },
    time::now,
    view::resource::is_declared,
};

/// Longest interval of progress notifications while the handler reports no progress. It is a third of
/// the call timeout if that is shorter.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Options of a wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitOptions {
    /// Wait for an approval; `None` if the tool has no gate.
    pub(crate) gate: Option<GateWait>,
    /// Arguments that a request state is valid for.
    pub(crate) bound_args: BoundArgs,
    /// Longest wait that the model asks for.
    pub(crate) at_most: Option<Duration>,
    /// Whether the request is a call of `task_result`.
    pub(crate) is_poll: bool,
    /// Bytes of a result that is delivered uncut, if the tool sets them.
    pub(crate) max_inline: Option<usize>,
    /// Whether `task_answer` answers input requests of the tool.
    pub(crate) answers_by_tool: bool,
    /// Whether texts have links that answer input requests of the tool.
    pub(crate) answers_by_link: bool,
    /// Whether the client rejects pending results that are not errors.
    pub(crate) rejects_pending: bool,
}

/// The end of a request's wait, and the reply that follows.
pub(super) struct Patience {
    pub(super) deadline: Instant,
    /// Whether the client repeats the request after an empty round.
    pub(super) follows_rounds: bool,
    /// Interval of progress notifications.
    keep_alive: Duration,
    /// Maximum bytes of a delivered result.
    max_bytes: Option<usize>,
    options: WaitOptions,
}

impl Patience {
    pub(super) async fn new(
        tasks: &TaskBackend,
        call: &Call,
        arrival: Arrival,
        options: WaitOptions,
    ) -> Self {
        let hosts = tasks.bridge_hosts();
        let (longest, rounds) = (hosts.longest_wait(), hosts.round_limit());
        let bridged = tasks.host_limits(call).await;
        let limits = bridged.unwrap_or_else(|| hosts.limits(&Client::from_call(call)));
        let extends = limits.progress_extends && call.progress_token().is_some();
        let slice = limits.slice().filter(|_| !extends);
        let has_rounds =
            !limits.timeout_spans_rounds && call.rules().empty_rounds && arrival.round < rounds;
        let slice = slice.unwrap_or(longest).min(longest);
        let asked = options.at_most.filter(|wait| *wait < slice);
        Self {
            deadline: arrival.at + asked.unwrap_or(slice),
            follows_rounds: has_rounds && asked.is_none(),
            keep_alive: limits
                .call_timeout
                .map_or(KEEP_ALIVE, |timeout| KEEP_ALIVE.min(timeout / 3)),
            max_bytes: bridged
                .and_then(|limits| tasks.config.results.max_bytes(&limits, options.max_inline)),
            options,
        }
    }
}

/// Waits for the task of a bridged call.
///
/// # Errors
///
/// Returns the error of the task.
pub(crate) async fn wait(
    attendance: Attendance,
    options: WaitOptions,
) -> Result<Outcome, ProtocolError> {
    let (tasks, call) = (attendance.env().tasks()?, attendance.call());
    let patience = Patience::new(tasks, call, attendance.arrival(), options).await;
    wait_with(attendance, patience).await
}

/// Waits for the task of a bridged call with the limits of its client.
pub(super) async fn wait_with(
    attendance: Attendance,
    patience: Patience,
) -> Result<Outcome, ProtocolError> {
    let is_told = patience.options.gate.is_some_and(|gate| gate.next == NextStep::Pending);
    let mut attendance = attendance.announcing(is_told);
    let (env, call) = (Arc::clone(attendance.env()), Arc::clone(attendance.call()));
    let tasks = env.tasks()?;
    let watch = tasks.engine().watch(attendance.task());
    let mut dialogue = Dialogue::default();
    let mut progress = KeepAlive::new(&call, patience.keep_alive);
    let mut disconnected = false;
    let mut last = None;
    loop {
        let changed = watch.notified();
        // Not `Engine::get`, which loads a large result whole.
        match tasks.engine().store().get(call.principal().key(), attendance.task()).await {
            Ok(None) => return Ok(forgotten(attendance)),
            Ok(Some(record)) if record.outcome.is_some() => {
                let was_undecided = last.as_ref().is_some_and(is_undecided);
                return finish(attendance, &patience, record, was_undecided).await;
            }
            Ok(Some(record)) => last = Some(record),
            // The task runs although the store does not respond, so the call continues to wait.
            Err(error) => tracing::debug!(%error, "state of a bridged task is not available"),
        }
        if let Some(record) = &last {
            progress.tell(&call, record);
            if patience.options.gate.is_some() && !disconnected {
                announce_caller(tasks, &call, record).await;
            }
            let reply = input_reply(&env, &attendance, &patience, record, &mut dialogue);
            if let Some(reply) = reply.await? {
                return Ok(reply.send(attendance));
            }
        }
        tokio::select! {
            () = changed => {}
            () = tokio::time::sleep(LOOK) => {}
            () = sleep_until(patience.deadline) => {
                return slice_over(&env, attendance, &patience, last).await;
            }
            () = tasks.bridges.drained() => {
                return slice_over(&env, attendance, &patience, last).await;
            }
            () = sleep_until(progress.next) => progress.keep_alive(&call, last.as_ref()),
            () = poll_fn(|cx| call.port().poll_disconnected(cx)), if !disconnected => {
                disconnected = true;
                attendance.disconnect();
            }
            (name, answer) = dialogue.answered() => {
                take(tasks, &call, attendance.task(), name, answer).await?;
            }
        }
    }
}

/// Records that a request waits for a task. Returns `None` if this principal has no such task.
pub(crate) async fn attend(
    env: &Arc<Env>,
    call: &Arc<Call>,
    task: &TaskId,
    arrival: Arrival,
) -> Result<Option<Attendance>, ProtocolError> {
    let write = {
        let (env, call, task) = (Arc::clone(env), Arc::clone(call), task.clone());
        async move {
            let tasks = env.tasks()?;
            let (store, principal) = (tasks.engine().store(), call.principal().key());
            let attended = store.attend(principal, &task, tasks.worker_id()).await;
            attended.map_err(|error| unavailable(&error))
        }
    };
    let attended = Attending::new(env, call, write, |attended| Some(attended.ok()??.task)).await?;
    Ok(attended.map(|attended| Attendance::new(env, call, attended, arrival, None)))
}

/// A response that ends the wait before the task has ended.
enum Reply {
    Round(InputRequired),
    Pending(CallToolResult),
}

impl Reply {
    /// Returns the outcome. The attendance ends when the response is written.
    fn send(self, attendance: Attendance) -> Outcome {
        match self {
            Self::Round(required) => {
                attendance.leave_for_round();
                Outcome::InputRequired(Box::new(required))
            }
            Self::Pending(result) => {
                attendance.leave_pending();
                Outcome::Complete(MethodResult::Tool(result))
            }
        }
    }
}

/// Handles the open input requests of the task. Returns a response if they end the wait.
async fn input_reply(
    env: &Arc<Env>,
    attendance: &Attendance,
    patience: &Patience,
    record: &TaskRecord,
    dialogue: &mut Dialogue,
) -> Result<Option<Reply>, ProtocolError> {
    let call = attendance.call();
    if record.input_requests.is_empty() {
        dialogue.ask(env, call, &record.id, Vec::new());
        return Ok(None);
    }
    let for_client = |request: &InputRequest| era::missing_for(call, request).is_none();
    let accepted: Vec<_> =
        record.input_requests.iter().filter(|input| for_client(&input.request)).cloned().collect();
    match call.rules().input_mode {
        InputMode::Stream if !accepted.is_empty() => {
            dialogue.ask(env, call, &record.id, accepted);
            Ok(None)
        }
        InputMode::RoundTrip if !accepted.is_empty() && patience.follows_rounds => {
            let accepted = accepted.into_iter().map(|input| (input.name, input.request)).collect();
            let (call, task, arrival) = (call, attendance.task(), attendance.arrival());
            round(env, call, (task, arrival), patience, accepted).map(Reply::Round).map(Some)
        }
        // A model that polls has seen the input request, and waits for the answer.
        _ if !patience.options.is_poll => {
            Ok(Some(Reply::Pending(pending(env, attendance, patience, record).await)))
        }
        _ => Ok(None),
    }
}

/// Responds when the slice is over or the server drains.
async fn slice_over(
    env: &Arc<Env>,
    attendance: Attendance,
    patience: &Patience,
    record: Option<TaskRecord>,
) -> Result<Outcome, ProtocolError> {
    // A host with the task view gets a pending result, whose next step shows the view.
    let has_round = patience.follows_rounds && !has_view(env, attendance.call());
    let reply = match record {
        _ if has_round => {
            let (call, task) = (attendance.call(), attendance.task());
            Reply::Round(round(env, call, (task, attendance.arrival()), patience, Vec::new())?)
        }
        Some(record)
            if patience.options.gate.is_some_and(|gate| gate.withdraws)
                && is_undecided(&record) =>
        {
            match withdraw(env.tasks()?, &attendance, &record).await? {
                Some(outcome) => {
                    attendance.deliver(true);
                    return Ok(outcome);
                }
                None => Reply::Pending(pending(env, &attendance, patience, &record).await),
            }
        }
        Some(record) => Reply::Pending(pending(env, &attendance, patience, &record).await),
        // The store has not responded since the promotion, which it committed.
        None => return Err(ProtocolError::unavailable("the task store does not respond")),
    };
    Ok(reply.send(attendance))
}

/// Returns a round that names the task, with input requests or without.
pub(super) fn round(
    env: &Arc<Env>,
    call: &Arc<Call>,
    (task, arrival): (&TaskId, Arrival),
    patience: &Patience,
    requests: Vec<(String, InputRequest)>,
) -> Result<InputRequired, ProtocolError> {
    let bound_args = &patience.options.bound_args;
    let state = seal_task(env, call, bound_args, (task, arrival.first_at), arrival.round + 1)?;
    Ok(InputRequired { requests: OrderedMap(requests), state, retry_after: None })
}

async fn pending(
    env: &Env,
    attendance: &Attendance,
    patience: &Patience,
    record: &TaskRecord,
) -> CallToolResult {
    let links = match patience.options.answers_by_link {
        true => answer_links(env, attendance.call(), record),
        false => Vec::new(),
    };
    let situation = Situation {
        earlier: attendance.pending_results(),
        is_joined: attendance.is_joined(),
        is_poll: patience.options.is_poll,
        has_view: has_view(env, attendance.call()),
        answers_by_tool: patience.options.answers_by_tool,
        links: &links,
    };
    let mut result = pending_result(record, now(&env.profile), situation);
    if let Some(gate) = patience.options.gate.filter(|_| is_undecided(record)) {
        let approval = open_approval(env, record).await;
        result = text::pending(result, record, approval.as_ref(), gate.next);
    }
    if situation.has_view && situation.is_poll {
        result = with_view(result, record, now(&env.profile), Map::new());
    }
    if patience.options.rejects_pending {
        result.is_error = Some(true);
        result.structured_content = None;
    }
    result
}

/// Returns the answer links of a task by the names of its input requests.
pub(crate) fn answer_links(env: &Env, call: &Call, record: &TaskRecord) -> Vec<(String, String)> {
    let hosts = env.hosts();
    let Some(url) = hosts.and_then(Hosts::page_url) else { return Vec::new() };
    let link = |input: &OpenInput| {
        let token = AnswerToken::seal(env, call.principal().key(), &record.id, input)?;
        Some((input.name.clone(), format!("{url}/answer/{token}")))
    };
    record.input_requests.iter().filter_map(link).collect()
}

/// Returns whether the host of a call shows the task view.
pub(crate) fn has_view(env: &Env, call: &Call) -> bool {
    let hosts = env.hosts();
    hosts.is_some_and(Hosts::has_view) && is_declared(call.client_capabilities())
}

/// Returns the result of an ended task, cut to the limit of the host.
async fn finish(
    attendance: Attendance,
    patience: &Patience,
    record: TaskRecord,
    was_undecided: bool,
) -> Result<Outcome, ProtocolError> {
    let (tasks, principal) = (attendance.env().tasks()?, attendance.call().principal().key());
    let delivered = match &record.outcome {
        Some(TaskOutcome::Error(error)) => {
            let error = ProtocolError::Custom(error.clone());
            attendance.deliver(true);
            return Err(error);
        }
        Some(TaskOutcome::Cancelled) if was_undecided => {
            Some(Delivered { result: text::withdrawn(), is_cut: false })
        }
        _ => match stop_text(&record) {
            Some(text) => Some(Delivered { result: CallToolResult::error(text), is_cut: false }),
            None => deliver(tasks, principal, &record, patience.max_bytes).await?,
        },
    };
    let Some(Delivered { mut result, is_cut }) = delivered else {
        return Ok(forgotten(attendance));
    };
    if patience.options.is_poll {
        result = with_task(result, attendance.task());
        // The host gives this result to the task view.
        if has_view(attendance.env(), attendance.call()) {
            result = with_view(result, &record, now(&attendance.env().profile), Map::new());
        }
    }
    attendance.deliver(!is_cut);
    Ok(Outcome::Complete(MethodResult::Tool(result)))
}

/// Returns the response for a task that was deleted while a request waited for it.
fn forgotten(attendance: Attendance) -> Outcome {
    attendance.deliver(true);
    no_such_task()
}

/// Returns the one response for unknown, foreign and deleted tasks.
pub(crate) fn no_such_task() -> Outcome {
    Outcome::Complete(MethodResult::Tool(CallToolResult::error(
        "no such task, or its result was deleted; call the tool again if you still need it"
            .to_owned(),
    )))
}

/// Progress notifications of a waiting request. Their values increase, as the protocol requires.
struct KeepAlive {
    /// When the next notification is due.
    next: Instant,
    /// Last value that was sent.
    sent: f64,
    interval: Duration,
}

impl KeepAlive {
    fn new(call: &Call, interval: Duration) -> Self {
        // Without a token, the client receives no progress.
        let pause = match call.progress_token() {
            Some(_) => interval,
            None => Duration::from_secs(365 * 24 * 3_600),
        };
        Self { next: Instant::now() + pause, sent: 0.0, interval }
    }

    /// Sends the progress of the task if it has increased.
    fn tell(&mut self, call: &Call, record: &TaskRecord) {
        if let Some(progress) = progress_of(record).filter(|progress| progress.done > self.sent) {
            self.send(call, progress);
        }
    }

    /// Sends a notification that only extends the timeout of the client. Its value is a millionth of
    /// the total above the last one, so that the next value of the handler is larger.
    fn keep_alive(&mut self, call: &Call, record: Option<&TaskRecord>) {
        let status = record.and_then(|record| record.status_message.clone());
        let (total, message) = match record.and_then(progress_of) {
            Some(progress) => (progress.total, progress.message.or(status)),
            None => (None, status),
        };
        let step = total.unwrap_or(1.0).abs().max(1.0) / 1_000_000.0;
        self.send(call, Progress { done: self.sent + step, total, message });
    }

    fn send(&mut self, call: &Call, progress: Progress) {
        self.sent = progress.done;
        if call.progress_token().is_some() {
            call.port().progress(progress);
            self.next = Instant::now() + self.interval;
        }
    }
}

/// Returns the progress that the handler of a task reported.
fn progress_of(record: &TaskRecord) -> Option<Progress> {
    Some(TaskProgress::read(record.progress.as_ref()?)?.into_progress())
}
