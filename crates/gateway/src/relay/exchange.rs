//! One request to an upstream, with its events until its outcome.

use std::{
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use outlive::{
    client::{
        ClientError, Error as UpstreamError, ServerError,
        relay::{
            RelayEvent, RelayExchange, RelayOutcome, RelayRequest, RelayRound, RelayTasks,
            StreamPoint,
        },
    },
    server::{Durable, Result},
    wire::{LoggingMessageNotificationParams, Method, TaskSupport, code},
};
use outlive_jobs::AttachState;

use super::{
    carry::carry,
    ended::Ended,
    failure,
    input_keys::InputKeys,
    join::{Branch, Branches},
    journal::{CallPolicy, PipePoint, Tracked},
    meta,
    outage::MAX_OUTAGE,
    resume::{Attempts, Next},
    route::Reached,
    survival::Survival,
    times::Times,
    tracker::{TrackedExchange, Tracker},
    upstream_task::{self, Follow},
};
use crate::{
    settings::TIMEOUT,
    upstream::{Carried, Connection, Routed, Ticket, cancelled},
};

/// Input requests that are open in one call.
const MAX_OPEN: usize = 32;

/// A request of one call.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    /// Members of the parameters, without `_meta`.
    pub(super) members: &'a [&'a str],
    /// Arguments or URI within the members.
    pub(super) arguments: &'a str,
    /// Name or URI at the upstream.
    pub(super) name: &'a str,
    pub(super) headers: &'a [(String, String)],
    pub(super) timeout: Option<Duration>,
    pub(super) wants_progress: bool,
    /// Policy of the call after a crash; `None` for prompts and resources.
    pub(super) policy: Option<CallPolicy>,
    pub(super) max_result: usize,
    /// URI that a client reads.
    pub(super) uri: Option<&'a str>,
}

/// The data of a round after the first.
pub(super) struct Round {
    /// Input responses, as the JSON text of an object.
    pub(super) responses: Option<String>,
    pub(super) state: Option<String>,
}

/// Outcome of one request.
pub(super) enum Sent {
    Complete(Bytes),
    Round(RelayRound),
    /// The user must visit URLs before the call is sent again.
    Urls(Box<ServerError>),
}

/// Sends one request, or continues one that an earlier run has sent. Forwards its events until its
/// outcome. `number` is that of the round.
pub(super) async fn exchange(
    cx: &Durable,
    reached: &Reached,
    request: &Request<'_>,
    number: usize,
    round: Option<&Round>,
    times: &Times,
) -> Result<Sent> {
    let timeout = request.timeout.unwrap_or(TIMEOUT);
    let tracked = Tracked { cx, reached, number, timeout, times, policy: request.policy };
    let (mut attempts, mut next) = Attempts::start(tracked)?;
    loop {
        let lease = times.wait(attempts.reach(&mut next)).await?;
        let connection = lease.connection();
        // Before the request: the upstream may request input at once.
        let ticket = connection.carrier.enter();
        let keyed = attempts.begin(connection.offered.idempotency);
        let mut events = Events { tracked, connection, ticket, keyed, survival: None };
        let started = Instant::now();
        let outcome = match &next {
            Next::Send => events.send(request, round).await?,
            Next::Stream(point) => events.resume(request, point).await?,
            Next::Pipe(point) => events.attach(request, round, point).await?,
            Next::Task(task) => upstream_task::follow(tracked, connection, task, &mut events).await,
        };
        times.add_exchange(started.elapsed());
        let outcome = outcome.map_err(|ended| without_token(ended, connection));
        let survival = events.survival.take().filter(|_| has_response(&outcome));
        drop(events);
        match survival {
            Some(survival) => survival.finish(cx, lease),
            None => drop(lease),
        }
        match times.wait(attempts.after(&next, outcome)).await? {
            ControlFlow::Continue(other) => next = other,
            ControlFlow::Break(outcome) => {
                return checked(reached, request, settle(reached, request, outcome)?);
            }
        }
    }
}

/// Returns whether the upstream has responded to the request.
fn has_response(outcome: &Outcome) -> bool {
    matches!(outcome, Ok(_) | Err(Ended::Failed(UpstreamError::Server(_))))
}

/// Marks the failure of a request that was not sent, or was rejected, for lack of a valid token. The
/// upstream has not executed it. Another connection is opened, whose state says what is missing.
fn without_token(ended: Ended, connection: &Connection) -> Ended {
    match ended {
        Ended::Failed(error @ UpstreamError::Client(ClientError::NoToken(_))) => {
            connection.retire();
            Ended::WithoutToken { error, may_log_in: connection.key.is_users() }
        }
        ended => ended,
    }
}

/// Converts an outcome.
fn settle(
    reached: &Reached,
    request: &Request<'_>,
    outcome: std::result::Result<RelayOutcome, Ended>,
) -> Result<Sent> {
    match outcome {
        Ok(RelayOutcome::Complete(result)) => {
            reached.member.state().meter().received(result.len());
            Ok(Sent::Complete(result))
        }
        Ok(RelayOutcome::InputRequired(round)) => {
            reached.member.state().meter().received(round.result.len());
            Ok(Sent::Round(round))
        }
        Ok(_) => Err(failure::invalid(reached, "it has an outcome that the gateway does not know")),
        Err(Ended::Cancelled) => Err(cancelled()),
        Err(Ended::Final(error)) => Err(error),
        Err(Ended::Failed(UpstreamError::Server(error)))
            if error.code == code::URL_ELICITATION_REQUIRED =>
        {
            Ok(Sent::Urls(Box::new(error)))
        }
        Err(Ended::Failed(error) | Ended::Lost(error) | Ended::WithoutToken { error, .. }) => {
            Err(failure::of_call(reached, error, request.uri))
        }
        Err(Ended::Gone) => Err(failure::unknown(reached)),
    }
}

/// Checks the size of a result.
fn checked(reached: &Reached, request: &Request<'_>, sent: Sent) -> Result<Sent> {
    match &sent {
        Sent::Complete(result) if result.len() > request.max_result => {
            Err(failure::too_long(&reached.name(), result.len(), request.max_result))
        }
        _ => Ok(sent),
    }
}

/// Forwards the events of one call.
struct Events<'a> {
    tracked: Tracked<'a>,
    connection: &'a Arc<Connection>,
    ticket: Ticket,
    /// Whether the call has an idempotency key.
    keyed: bool,
    /// Present while the process of the request survives the gateway.
    survival: Option<Survival>,
}

type Outcome = std::result::Result<RelayOutcome, Ended>;

impl Events<'_> {
    /// Sends the request of a call. The outer error is one of the request itself.
    async fn send(&mut self, request: &Request<'_>, round: Option<&Round>) -> Result<Outcome> {
        self.survival = Survival::new(self.tracked, self.connection);
        self.send_surviving(request, round).await
    }

    /// Sends the request of a call with the ID that it has if it survives the gateway.
    async fn send_surviving(
        &mut self,
        request: &Request<'_>,
        round: Option<&Round>,
    ) -> Result<Outcome> {
        let Self { tracked, connection, .. } = *self;
        let Tracked { cx, reached, number, timeout, .. } = tracked;
        let is_modern = !connection.is_legacy();
        let level = cx.call().log_level();
        if let Some(level) = level.filter(|_| !is_modern) {
            connection.raise_log_level(level).await;
        }
        let keyed = self.keyed;
        let key = keyed.then(|| cx.idempotency_key(("call", number)));
        let level = level.filter(|_| is_modern);
        let meta = meta::members(cx.call(), &reached.shared.id, level, key.as_deref())?;
        let tasks = self.tasks(request);
        // A legacy upstream reports the progress of a task as status messages.
        let is_task = connection.offered.task_calls && matches!(tasks, RelayTasks::Request(_));
        let mut relayed = RelayRequest::new(request.method.as_str())
            .params(request.members)
            .meta(&meta)
            .name(request.name)
            .param_headers(request.headers)
            .class(connection.class())
            .tasks(tasks)
            .progress(request.wants_progress && !is_task)
            .timeout(timeout)
            .max_total_timeout(timeout);
        if let Some(responses) = round.and_then(|round| round.responses.as_deref()) {
            relayed = relayed.input_responses(responses);
        }
        if let Some(state) = round.and_then(|round| round.state.as_deref()) {
            relayed = relayed.request_state(state);
        }
        if let Some(survival) = &self.survival {
            relayed = relayed.id(survival.request());
        }
        reached.member.state().meter().sent(request.members.iter().map(|part| part.len()).sum());
        let survival = self.survival.clone();
        let mut tracker = Tracker::start(tracked, connection, keyed, None, survival).await?;
        let opened = tokio::select! {
            opened = connection.client.relay(&relayed) => opened.map_err(Ended::Failed),
            never = tracker.run() => match never {},
            () = cx.cancelled() => Err(Ended::Cancelled),
        };
        match opened {
            Ok(exchange) => self.finish(tracker.follow(exchange), 0).await,
            Err(error) => Ok(Err(error)),
        }
    }

    /// Continues a request that an earlier run has sent to a process, or sends it if the process has
    /// never seen it.
    async fn attach(
        &mut self,
        request: &Request<'_>,
        round: Option<&Round>,
        point: &PipePoint,
    ) -> Result<Outcome> {
        let Self { tracked, connection, .. } = *self;
        let Some(survival) = Survival::of_request(tracked, connection, point.request) else {
            return Ok(Err(Ended::Gone));
        };
        let relayed = RelayRequest::new(request.method.as_str())
            .tasks(self.tasks(request))
            .timeout(tracked.timeout)
            .max_total_timeout(tracked.timeout);
        self.survival = Some(survival.clone());
        // Before the supervisor sends the messages of the request.
        let exchange = match connection.client.attach(point.request, &relayed).await {
            Ok(exchange) => exchange,
            // The connection has ended, and so has the process.
            Err(_) => return Ok(Err(Ended::Gone)),
        };
        let attached = tokio::select! {
            attached = survival.attach(&self.ticket) => attached.unwrap_or_default(),
            () = tracked.cx.cancelled() => {
                exchange.cancel("the client cancelled the call");
                return Ok(Err(Ended::Cancelled));
            }
        };
        match attached.state {
            AttachState::Open | AttachState::Responded => {
                let tracker = Tracker::resume(tracked, connection, survival);
                self.finish(tracker.follow(exchange), attached.carried).await
            }
            AttachState::Unknown => {
                exchange.detach();
                self.send_surviving(request, round).await
            }
            _ => {
                exchange.detach();
                Ok(Err(Ended::Gone))
            }
        }
    }

    /// Continues the response stream of a request that an earlier run has sent.
    async fn resume(&mut self, request: &Request<'_>, point: &StreamPoint) -> Result<Outcome> {
        let Self { tracked, connection, .. } = *self;
        let relayed = RelayRequest::new(request.method.as_str())
            .tasks(self.tasks(request))
            .timeout(tracked.timeout)
            .max_total_timeout(tracked.timeout);
        let tracker = Tracker::start(tracked, connection, false, Some(point.clone()), None).await?;
        match connection.client.resume_at(point, &relayed).await {
            Ok(exchange) => self.finish(tracker.follow(exchange), 0).await,
            Err(error) => Ok(Err(Ended::Failed(error))),
        }
    }

    /// Returns whether the call may become a task of the upstream. A legacy upstream is asked for one
    /// only if the gateway's own call may be a task.
    fn tasks(&self, request: &Request<'_>) -> RelayTasks {
        let support = request.policy.and_then(|policy| policy.task_support);
        let asks = match support {
            Some(TaskSupport::Required) => true,
            Some(TaskSupport::Optional) => self.tracked.may_continue(),
            _ => false,
        };
        match asks {
            // The result must be there after an outage.
            true => RelayTasks::Request(Some(self.tracked.timeout.saturating_add(MAX_OUTAGE))),
            false => RelayTasks::Accept,
        }
    }

    /// Forwards events until the outcome, also that of a task of the upstream. Earlier runs have
    /// carried input requests with numbers up to `carried`.
    async fn finish(&mut self, exchange: TrackedExchange<'_>, carried: u32) -> Result<Outcome> {
        let keys = InputKeys::after(self.tracked, carried);
        let outcome = self.follow(exchange, keys).await;
        let Ok(RelayOutcome::Task(task)) = outcome else { return Ok(outcome) };
        let Self { tracked, connection, .. } = *self;
        let task = upstream_task::record(tracked, connection, &task.snapshot).await?;
        // A modern upstream decides which calls are slow. A legacy one was asked for a task.
        if !task.is_legacy {
            tracked.cx.promote().await;
        }
        Ok(upstream_task::follow(tracked, connection, &task, self).await)
    }

    /// Forwards events until the outcome. Dropping the future cancels the call at the upstream, unless
    /// another run continues it.
    async fn follow(
        &mut self,
        mut exchange: TrackedExchange<'_>,
        mut keys: InputKeys<'_>,
    ) -> Outcome {
        let Tracked { cx, reached, times, .. } = self.tracked;
        let connection = self.connection;
        let mut carried = Branches::new();
        loop {
            let (waits, since) = (carried.len() > 0, Instant::now());
            let (input, is_own) = tokio::select! {
                biased;
                event = exchange.next() => match event.map_err(Ended::Failed)? {
                    RelayEvent::Outcome(outcome) => {
                        self.last_logs(&outcome).await;
                        return Ok(outcome);
                    }
                    RelayEvent::Input(input) => (Some(Carried::of_call(input)), true),
                    other => {
                        self.forward(other);
                        (None, true)
                    }
                },
                routed = self.ticket.next() => match routed {
                    Routed::Input(input) => (Some(self.ticket.carry(input)), false),
                    Routed::Log(message) => {
                        self.log(&message);
                        (None, false)
                    }
                },
                () = carried.next() => {
                    exchange.pause_timeout(carried.len() > 0);
                    (None, false)
                }
                () = cx.cancelled() => {
                    exchange.cancel("the client cancelled the call");
                    return Err(Ended::Cancelled);
                }
            };
            if waits {
                times.add_input(since.elapsed());
            }
            // Beyond the limit the input request is dropped, and the upstream gets an error.
            let input = input.filter(|_| carried.len() < MAX_OPEN);
            let key = input.as_ref().and_then(Carried::input).map(|input| {
                let key = keys.next(input, is_own, self.ticket.resumed_number(input));
                if let (Some(survival), Some(number)) = (&self.survival, key.number) {
                    survival.carry(input, number);
                }
                key
            });
            if let (Some(input), Some(key)) = (input, key) {
                carried.push(carry(cx, reached, connection, input, key));
                exchange.pause_timeout(true);
            }
        }
    }

    fn forward(&self, event: RelayEvent) {
        match event {
            RelayEvent::Progress(progress) => {
                let message = progress.message.unwrap_or_default();
                self.tracked.cx.progress(progress.progress, progress.total, message);
            }
            RelayEvent::Log(message) => self.log(&message),
            // The future that carries a withdrawn input request observes that.
            _ => {}
        }
    }

    /// Forwards the log messages that a process wrote before the outcome. A task has further ones.
    async fn last_logs(&mut self, outcome: &RelayOutcome) {
        let is_wanted = self.tracked.cx.call().log_level().is_some();
        if !is_wanted || matches!(outcome, RelayOutcome::Task(_)) {
            return;
        }
        self.connection.flush_logs().await;
        for message in self.ticket.take_logs() {
            self.log(&message);
        }
    }

    fn log(&self, message: &LoggingMessageNotificationParams) {
        let Tracked { cx, reached, .. } = self.tracked;
        let name = reached.name();
        let logger = match &message.logger {
            Some(logger) => format!("{name}/{logger}"),
            None => name.to_string(),
        };
        if cx.is_task() {
            // A task has no channel for log messages.
            let data = outlive::text::json(message.data.get());
            tracing::debug!(upstream = &*name, logger, level = ?message.level, data = &*data, "message of the upstream");
        }
        cx.log_from(&logger, message.level, &message.data);
    }
}

impl Follow for Events<'_> {
    fn follow_task<'a>(&'a mut self, exchange: RelayExchange) -> Branch<'a, Outcome> {
        let keys = InputKeys::of_task(self.tracked);
        Box::pin(self.follow(TrackedExchange::untracked(exchange), keys))
    }
}
