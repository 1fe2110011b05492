//! One run of a handler over the journal of its call, in every placement.
//!
//! Only this file handles the difference between the eras. A legacy client gets input requests
//! while its call waits, and the run continues with the responses. A modern client gets them as the
//! result, with the sealed journal, and the run is dropped. In a task, they are in the store. The
//! handler sees no difference.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use outlive_protocol::{InputMode, InputRequired, MethodResult, Outcome, ProtocolError, era};
use outlive_tasks::{IdleDetector, InputFailure, ReplayMismatch, RunPoll, poll_as};
use outlive_wire::{ElicitRequestParams, InputRequest, OrderedMap};
use pin_project_lite::pin_project;

use crate::server::{
    durable::input_future::poll_people,
    durable_error::DurableError,
    error::Error,
    exec::sent_input::{SentInput, may_reopen, send, withdraw_all},
    extract::{
        cx::Cx,
        extractor::{Rejection, RejectionKind},
        handler::Handler,
    },
    run::{
        input::url_request,
        input_request_set::InputRequestSet,
        journal_offload,
        replay_policy::ReplayPolicy,
        request_state,
        state::{RunState, run_id},
    },
    time::now,
};

/// Converts the return value of a handler into an outcome.
pub(crate) trait Finish<R>: Send + 'static {
    fn finish(&self, cx: &Cx, returned: R) -> Result<Finished, ProtocolError>;

    /// Returns the outcome of a call that cannot continue.
    fn give_up(&self, cx: &Cx, error: Error) -> Result<Outcome, ProtocolError>;

    /// Returns the replay policy of the handler.
    fn replay(&self) -> &ReplayPolicy;
}

/// End of a handler's run.
pub(crate) enum Finished {
    Outcome(Outcome),
    /// The handler returned input requests and runs again with the responses.
    Input(InputRequestSet),
}

pin_project! {
    /// A run of a handler for a call.
    pub(crate) struct HandlerRun<M, H, E>
    where
        H: Handler<M>,
    {
        cx: Cx,
        handler: Arc<H>,
        finish: E,
        // `None` while the handler's returned input requests lack responses.
        #[pin]
        work: Option<H::Future>,
        idle: IdleDetector,
        sent: Vec<SentInput>,
        // Store operation that must finish before the handler is polled.
        store_op: Option<StoreOp>,
    }
}

/// A store operation. If it returns an outcome, the call ends.
type StoreOp = Pin<Box<dyn Future<Output = Result<Option<Outcome>, ProtocolError>> + Send>>;

/// Way in which a run gets its input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InputPath {
    /// The call suspends, and its client sends a new request with the responses.
    RoundTrip,
    /// The requests are sent to the client while the call waits.
    Stream,
    /// The engine commits requests to the store and resumes the task with the responses.
    Store,
}

/// Next action after a handler has returned.
enum Next {
    Outcome(Outcome),
    /// A test replays the handler over the same journal.
    Restart,
    /// The handler needs input first.
    Input,
}

impl<M, H, E> HandlerRun<M, H, E>
where
    H: Handler<M>,
    E: Finish<H::Output>,
{
    /// Extracts the arguments and creates the handler's future, without polling it.
    pub(crate) fn start(cx: &Cx, handler: &Arc<H>, finish: E) -> Result<Self, (Rejection, E)> {
        match handler.start(cx) {
            Ok(work) => Ok(Self {
                cx: cx.clone(),
                handler: Arc::clone(handler),
                finish,
                work: Some(work),
                idle: IdleDetector::default(),
                sent: Vec::new(),
                store_op: fetch(cx),
            }),
            Err(rejection) => Err((rejection, finish)),
        }
    }

    /// Drops the handler's future and starts a new run over the same journal.
    fn restart(self: Pin<&mut Self>) -> Result<(), ProtocolError> {
        let mut this = self.project();
        let (cx, run) = this.cx.with_run();
        *this.cx = cx;
        run.journal().close();
        this.work.set(None);
        run.journal().restart();
        *this.idle = IdleDetector::default();
        match this.handler.start(this.cx) {
            Ok(work) => {
                this.work.set(Some(work));
                Ok(())
            }
            Err(Rejection(RejectionKind::Refused(error))) => Err(error),
            Err(Rejection(RejectionKind::Arguments(error))) => Err(ProtocolError::internal(error)),
        }
    }

    /// Applies test hooks: a crash, a cancellation, or skipped time. Returns whether the handler
    /// must be polled again.
    fn intervene(mut self: Pin<&mut Self>, is_idle: bool) -> Result<bool, ProtocolError> {
        let Some(hooks) = self.cx.env().test_hooks.clone() else { return Ok(false) };
        let Some(run) = self.cx.run().cloned() else { return Ok(false) };
        let Some(journal) = run.used_journal() else { return Ok(false) };
        if journal.crashed() {
            match hooks.reached() {
                true => {
                    run.cancel_task();
                    journal.survive();
                    *self.project().idle = IdleDetector::default();
                }
                false => self.as_mut().restart()?,
            }
            return Ok(true);
        }
        let due = journal.next_timer().filter(|_| is_idle);
        let Some(due) = due else { return Ok(false) };
        hooks.skip(due.saturating_sub(now(&self.cx.env().profile)));
        *self.project().idle = IdleDetector::default();
        Ok(true)
    }

    /// Returns the next action for the handler's return value.
    fn finish(self: Pin<&mut Self>, returned: H::Output) -> Result<Next, ProtocolError> {
        let mut this = self.project();
        let finished = this.finish.finish(this.cx, returned);
        if !this.sent.is_empty() && !matches!(finished, Ok(Finished::Input(_))) {
            withdraw_all(this.sent);
        }
        match finished? {
            Finished::Outcome(outcome) => {
                let outcome = complete(this.cx, outcome);
                match runs_once_more(this.cx, &outcome) {
                    true => Ok(Next::Restart),
                    false => Ok(Next::Outcome(outcome)),
                }
            }
            Finished::Input(requests) => {
                this.work.set(None);
                let (cx, run) = this.cx.with_run();
                *this.cx = cx;
                match open_requests(this.cx, &run, requests) {
                    Ok(()) => Ok(Next::Input),
                    Err(error) => {
                        let outcome = this.finish.give_up(this.cx, error)?;
                        Ok(Next::Outcome(complete(this.cx, outcome)))
                    }
                }
            }
        }
    }

    /// Suspends the call with its open input requests. Returns `None` if the journal must be stored
    /// first.
    fn suspend(self: Pin<&mut Self>) -> Result<Option<Outcome>, ProtocolError> {
        let mut this = self.project();
        let (cx, run) = this.cx.with_run();
        *this.cx = cx;
        let (env, journal) = (this.cx.env(), run.journal());
        let suspended =
            journal.suspend().map_err(|reason| ProtocolError::InvalidParams(reason.into()))?;
        if let Some(hooks) = &env.test_hooks {
            hooks.ended(journal, &[]);
        }
        let open = suspended.requests;
        this.work.set(None);
        let limit = env.profile.limits.max_rounds;
        if run.rounds() >= limit {
            let outcome = this.finish.give_up(this.cx, too_many_rounds(limit))?;
            return Ok(Some(complete(this.cx, outcome)));
        }
        let (state, offload) =
            request_state::seal(env, this.cx.call(), &run, this.finish.replay(), &open)?;
        let requests = open.into_iter().map(|open| (open.name, open.request));
        let required = InputRequired {
            requests: OrderedMap(requests.collect()),
            state,
            retry_after: suspended.retry_after,
        };
        let Some(offload) = offload else {
            return Ok(Some(Outcome::InputRequired(Box::new(required))));
        };
        let (env, call) = (Arc::clone(env), Arc::clone(this.cx.call()));
        *this.store_op =
            Some(Box::pin(async move { offload.suspend(&env, &call, required).await.map(Some) }));
        Ok(None)
    }

    /// Sends open input requests and receives responses. Returns whether the run can continue.
    fn exchange_input(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        is_idle: bool,
    ) -> Result<bool, ProtocolError> {
        let run = self.cx.run();
        if run.is_some_and(|run| has_open_requests(run) && run.request_promotion()) {
            // As a task, the call gets its input where its client waits for the task.
            return Ok(false);
        }
        let answered = self.as_mut().gather(task, is_idle);
        let returned_requests = self.work.is_none();
        let waits = match returned_requests {
            true => !self.sent.is_empty(),
            false => !answered,
        };
        if waits {
            return Ok(false);
        }
        if returned_requests || self.cx.env().replay_on_input {
            self.restart()?;
        }
        Ok(true)
    }

    /// Sends unsent requests and records responses. Returns whether there was a response.
    fn gather(self: Pin<&mut Self>, task: &mut Context<'_>, is_idle: bool) -> bool {
        let this = self.project();
        let Some(journal) = this.cx.run().and_then(|run| run.used_journal()) else { return false };
        let may_repeat = may_reopen(this.cx, journal, is_idle);
        let inputs = journal.inputs();
        for open in inputs.take_unsent() {
            let known = this.sent.iter_mut().find(|sent| sent.key == open.key);
            if let Some(sent) = known.filter(|sent| sent.is(&open)) {
                // The client already has this request, from before the restart.
                sent.serial = open.serial;
                continue;
            }
            match send(this.cx, open) {
                Ok(sent) => this.sent.push(sent),
                Err(key) => {
                    let _ = inputs.resolve(&key, Err(InputFailure::TimedOut));
                }
            }
        }
        let mut answered = false;
        this.sent.retain_mut(|sent| {
            let open = inputs.serial_of(&sent.key);
            if open != Some(sent.serial) {
                if open.is_none() && may_repeat {
                    return true;
                }
                sent.request.withdraw("the input is no longer needed");
                return false;
            }
            let Poll::Ready(response) = sent.poll(task) else { return true };
            if inputs.resolve(&sent.key, response).is_err() {
                let too_large = InputFailure::Refused {
                    code: outlive_wire::code::INVALID_PARAMS,
                    message: "the input response is too large".to_owned(),
                };
                let _ = inputs.resolve(&sent.key, Err(too_large));
            }
            answered = true;
            false
        });
        answered
    }
}

impl<M, H, E> Future for HandlerRun<M, H, E>
where
    H: Handler<M>,
    E: Finish<H::Output>,
{
    type Output = Result<Outcome, ProtocolError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            if let Some(outcome) = ready!(self.as_mut().poll_store_op(task))? {
                return Poll::Ready(Ok(outcome));
            }
            let path = input_path(&self.cx);
            let polled = self.as_mut().poll_handler(task);
            let is_idle = matches!(polled, Poll::Ready(RunPoll::Idle));
            let suspends = match polled {
                Poll::Ready(RunPoll::Done(returned)) => match self.as_mut().finish(returned)? {
                    Next::Outcome(outcome) => return Poll::Ready(Ok(outcome)),
                    Next::Input => true,
                    Next::Restart => {
                        self.as_mut().restart()?;
                        continue;
                    }
                },
                _ if self.as_mut().intervene(is_idle)? => continue,
                _ => is_idle,
            };
            match path {
                // The promotion polls the run again.
                InputPath::RoundTrip if suspends && self.becomes_task_for_input() => {
                    return Poll::Pending;
                }
                InputPath::RoundTrip if suspends => {
                    if let Some(outcome) = self.as_mut().suspend()? {
                        return Poll::Ready(Ok(outcome));
                    }
                }
                InputPath::RoundTrip => return Poll::Pending,
                InputPath::Store if self.waits_for_store() => return Poll::Pending,
                InputPath::Store => self.as_mut().restart()?,
                InputPath::Stream => {
                    if !self.as_mut().exchange_input(task, is_idle)? {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl<M, H, E> HandlerRun<M, H, E>
where
    H: Handler<M>,
{
    /// Finishes the pending store operation, if there is one.
    fn poll_store_op(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Result<Option<Outcome>, ProtocolError>> {
        let this = self.project();
        let Some(op) = this.store_op else { return Poll::Ready(Ok(None)) };
        let done = ready!(op.as_mut().poll(task));
        *this.store_op = None;
        Poll::Ready(done)
    }

    fn poll_handler(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<RunPoll<H::Output>> {
        let this = self.project();
        let Some(work) = this.work.as_pin_mut() else { return Poll::Pending };
        let (cx, idle) = (&*this.cx, this.idle);
        poll_as(run_id(cx.call()), || {
            idle.poll(work, task, || {
                let journal = cx.run().and_then(|run| run.used_journal());
                // Tests skip the time of timers.
                let skips = cx.env().test_hooks.is_some();
                journal.is_some_and(|journal| {
                    journal.is_idle() || skips && journal.next_timer().is_some()
                })
            })
        })
    }

    /// Returns whether a call that waits for input becomes a task: its promotion is requested, or the
    /// server promotes before input.
    fn becomes_task_for_input(&self) -> bool {
        let tasks = self.cx.env().tasks.as_ref();
        let promotes = tasks.is_some_and(|tasks| tasks.config.promotes_before_input);
        self.cx.run().is_some_and(|run| {
            run.is_promotion_requested()
                || promotes && has_open_requests(run) && run.request_promotion()
        })
    }

    /// Returns whether the task's handler still runs, or its input requests are open in the store.
    fn waits_for_store(&self) -> bool {
        self.work.is_some() || self.cx.run().is_some_and(|run| has_open_requests(run))
    }
}

/// Returns the way in which the run of a call gets its input.
fn input_path(cx: &Cx) -> InputPath {
    match cx.run() {
        Some(run) if run.is_task() => InputPath::Store,
        _ if cx.call().rules().input_mode == InputMode::Stream => InputPath::Stream,
        _ => InputPath::RoundTrip,
    }
}

fn has_open_requests(run: &RunState) -> bool {
    run.used_journal().is_some_and(|journal| journal.inputs().any_open())
}

/// Opens the input requests that a handler returned.
fn open_requests(cx: &Cx, run: &RunState, requests: InputRequestSet) -> Result<(), Error> {
    let limits = &cx.env().profile.limits;
    if cx.call().rules().input_mode == InputMode::Stream {
        // A legacy round is not a separate request, so it is counted here.
        run.count_round();
    }
    if run.rounds() > limits.max_rounds {
        return Err(too_many_rounds(limits.max_rounds));
    }
    let rounds = run.journal().rounds();
    for (key, mut request) in requests.requests {
        if let InputRequest::Elicit(ElicitRequestParams::Url(params)) = request {
            request = url_request(cx.env(), cx.call(), run, &key, params)?;
        }
        if requests.audience.is_people() {
            // A call that is not a task is promoted before it waits. The promotion polls the run.
            let task = &mut Context::from_waker(Waker::noop());
            if let Poll::Ready(checked) = poll_people(cx.env(), run, &key, task) {
                checked?;
            }
        } else if let Some(required) = era::missing_for(cx.call(), &request)
            && !run.takes_input_elsewhere(&request)
        {
            return Err(ProtocolError::MissingCapability { required }.into());
        }
        rounds.open(&key, request, requests.audience.clone());
    }
    match requests.state {
        Some(state) => Ok(rounds.set_state(state).map_err(DurableError::from)?),
        None => Ok(()),
    }
}

/// Returns the operation that reads the offloaded journal, if there is one.
fn fetch(cx: &Cx) -> Option<StoreOp> {
    cx.run()?.offloaded()?;
    let (_, run) = cx.with_run();
    let env = Arc::clone(cx.env());
    Some(Box::pin(async move { journal_offload::fetch(&env, &run).await.map(|()| None) }))
}

/// Returns whether a test replays the handler over its whole journal.
fn runs_once_more(cx: &Cx, outcome: &Outcome) -> bool {
    let Some(hooks) = &cx.env().test_hooks else { return false };
    let result = match outcome {
        Outcome::Complete(MethodResult::Tool(result)) => serde_json::to_string(result),
        Outcome::Complete(MethodResult::Prompt(result)) => serde_json::to_string(result),
        Outcome::Complete(MethodResult::Resource(result, _)) => serde_json::to_string(result),
        Outcome::Complete(MethodResult::Relayed(result, _)) => Ok(result.get().to_owned()),
        _ => return false,
    };
    // A handler without a journal has nothing to replay.
    cx.run().is_some_and(|run| run.used_journal().is_some())
        && hooks.returned(result.unwrap_or_default())
}

fn too_many_rounds(rounds: u32) -> Error {
    DurableError::TooManyRounds { rounds }.into()
}

/// Adds emitted segments to the outcome, and warns if the handler does not match its journal.
fn complete(cx: &Cx, mut outcome: Outcome) -> Outcome {
    let Some(run) = cx.run() else { return outcome };
    let Some(journal) = run.used_journal() else { return outcome };
    let ReplayMismatch { unused, missing_segments, .. } = journal.replay_mismatch();
    if let Some(hooks) = &cx.env().test_hooks {
        hooks.ended(journal, &unused);
        hooks.finished(cx.call(), run.snapshot(cx.env()));
    }
    if !unused.is_empty() {
        tracing::warn!(
            target = %cx.call().name().unwrap_or_default(),
            keys = unused.join(", "),
            "handler did not reach recorded journal entries; it may have changed"
        );
    }
    if !missing_segments.is_empty() {
        tracing::warn!(
            target = %cx.call().name().unwrap_or_default(),
            scopes = missing_segments.join(", "),
            "handler emitted fewer segments than its journal has; it may have changed"
        );
    }
    run.merge_segments(&mut outcome);
    outcome
}
