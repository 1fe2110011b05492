//! One request to an upstream, with its events until its outcome.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use outlive::{
    client::{
        Client, Error as UpstreamError, ServerError,
        relay::{RelayEvent, RelayExchange, RelayOutcome, RelayRequest, RelayRound, RelayTasks},
        transport::TransportErrorKind,
    },
    server::{Durable, Error, Result},
    wire::{LoggingMessageNotificationParams, Method, code},
};
use serde_json::Value;

use super::{carry::carry, failure, join::Branches, meta, route::Reached};
use crate::{
    settings::TIMEOUT,
    upstream::{Alive, Carried, Connection, ConnectionKey, Lease, Routed, Ticket},
};

/// Input requests that are open in one call.
const MAX_OPEN: usize = 32;

/// A request of one call.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    /// Members of the parameters, without `_meta`.
    pub(super) members: &'a [&'a str],
    /// Name or URI at the upstream.
    pub(super) name: &'a str,
    pub(super) headers: &'a [(String, String)],
    pub(super) timeout: Option<Duration>,
    pub(super) wants_progress: bool,
    /// Whether the upstream runs the call only as a task.
    pub(super) needs_task: bool,
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

/// Returns the right to use the upstream connection of a call.
pub(super) async fn acquire(cx: &Durable, reached: &Reached) -> Result<Lease> {
    let settings = reached.member.settings();
    let (key, alive): (ConnectionKey, Alive) =
        ConnectionKey::of_call(&settings, reached.shared.rules, cx.call());
    tokio::select! {
        lease = reached.member.runtime.acquire(&key, &alive) => {
            lease.map_err(|error| failure::of_acquire(reached, error))
        }
        () = cx.cancelled() => Err(Error::new("the call was cancelled")),
    }
}

/// Sends one request, and forwards its events until its outcome. Sends it again if the connection
/// had closed before.
pub(super) async fn exchange(
    cx: &Durable,
    reached: &Reached,
    request: &Request<'_>,
    round: Option<&Round>,
) -> Result<Sent> {
    let mut closed = 0;
    loop {
        let lease = acquire(cx, reached).await?;
        let outcome = send(cx, reached, request, round, lease.connection()).await?;
        match outcome {
            Err(Ended::Failed(error)) if is_unsent(&error) && closed < MAX_RETRIES => {
                closed += 1;
                drop(lease);
                // Until the pool has observed the end of the connection.
                tokio::time::sleep(CLOSED_PAUSE).await;
            }
            outcome => return checked(reached, request, settle(reached, request, outcome)?),
        }
    }
}

/// Times that a request is sent again because its connection had closed before.
const MAX_RETRIES: usize = 2;

/// Pause before that.
const CLOSED_PAUSE: Duration = Duration::from_millis(20);

/// Returns whether the upstream has certainly not seen the request, because its pipe had closed.
fn is_unsent(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Transport(error)
        if !error.may_have_been_sent() && *error.kind() == TransportErrorKind::Closed)
}

/// Sends one request over a connection. The outer error is one of the request itself.
async fn send(
    cx: &Durable,
    reached: &Reached,
    request: &Request<'_>,
    round: Option<&Round>,
    connection: &Connection,
) -> Result<std::result::Result<RelayOutcome, Ended>> {
    let is_modern = !connection.is_legacy();
    let level = cx.call().log_level();
    if let Some(level) = level.filter(|_| !is_modern) {
        connection.raise_log_level(level).await;
    }
    let meta = meta::members(cx.call(), &reached.shared.id, level.filter(|_| is_modern))?;
    let timeout = request.timeout.unwrap_or(TIMEOUT);
    let mut relayed = RelayRequest::new(request.method.as_str())
        .params(request.members)
        .meta(&meta)
        .name(request.name)
        .param_headers(request.headers)
        .class(connection.class())
        .progress(request.wants_progress)
        .timeout(timeout)
        .max_total_timeout(timeout);
    if request.needs_task && !is_modern {
        relayed = relayed.tasks(RelayTasks::Request(None));
    }
    if let Some(responses) = round.and_then(|round| round.responses.as_deref()) {
        relayed = relayed.input_responses(responses);
    }
    if let Some(state) = round.and_then(|round| round.state.as_deref()) {
        relayed = relayed.request_state(state);
    }
    // Before the request: the upstream may request input at once.
    let ticket = connection.carrier.enter();
    let mut events = Events { cx, reached, connection, ticket };
    let exchange = match events.open(&relayed).await {
        Ok(exchange) => exchange,
        Err(error) => return Ok(Err(error)),
    };
    Ok(match events.follow(exchange).await {
        Ok(RelayOutcome::Task(task)) => {
            let id = Value::from(task.snapshot.id.as_str()).to_string();
            events.task(&id, timeout).await
        }
        outcome => outcome,
    })
}

/// Converts an outcome.
fn settle(
    reached: &Reached,
    request: &Request<'_>,
    outcome: std::result::Result<RelayOutcome, Ended>,
) -> Result<Sent> {
    match outcome {
        Ok(RelayOutcome::Complete(result)) => Ok(Sent::Complete(result)),
        Ok(RelayOutcome::InputRequired(round)) => Ok(Sent::Round(round)),
        Ok(_) => Err(failure::invalid(reached, "it has an outcome that the gateway does not know")),
        Err(Ended::Cancelled) => Err(Error::new("the call was cancelled")),
        Err(Ended::Failed(UpstreamError::Server(error)))
            if error.code == code::URL_ELICITATION_REQUIRED =>
        {
            Ok(Sent::Urls(Box::new(error)))
        }
        Err(Ended::Failed(error)) => Err(failure::of_call(reached, error, request.uri)),
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

/// End of an exchange without an outcome.
enum Ended {
    Cancelled,
    Failed(UpstreamError),
}

/// Forwards the events of one call.
struct Events<'a> {
    cx: &'a Durable,
    reached: &'a Reached,
    connection: &'a Connection,
    ticket: Ticket,
}

impl Events<'_> {
    async fn open(&self, request: &RelayRequest<'_>) -> std::result::Result<RelayExchange, Ended> {
        tokio::select! {
            opened = self.connection.client.relay(request) => opened.map_err(Ended::Failed),
            () = self.cx.cancelled() => Err(Ended::Cancelled),
        }
    }

    /// Forwards events until the outcome. Dropping the future cancels the call at the upstream.
    async fn follow(
        &mut self,
        mut exchange: RelayExchange,
    ) -> std::result::Result<RelayOutcome, Ended> {
        let carrier = Arc::clone(self.ticket.carrier());
        let settings = self.reached.member.settings();
        let prefix = settings.shown_prefix();
        let mut carried = Branches::new();
        let mut number = 0;
        loop {
            let input = tokio::select! {
                biased;
                event = exchange.next() => match event.map_err(Ended::Failed)? {
                    RelayEvent::Outcome(outcome) => return Ok(outcome),
                    RelayEvent::Input(input) => Some(Carried::of_call(input)),
                    other => {
                        self.forward(other);
                        None
                    }
                },
                routed = self.ticket.next() => match routed {
                    Routed::Input(input) => Some(self.ticket.carry(input)),
                    Routed::Log(message) => {
                        self.log(&message);
                        None
                    }
                },
                () = carried.next() => {
                    exchange.pause_timeout(carried.len() > 0);
                    None
                }
                () = self.cx.cancelled() => {
                    exchange.cancel("the client cancelled the call");
                    return Err(Ended::Cancelled);
                }
            };
            // Beyond the limit the input request is dropped, and the upstream gets an error.
            if let Some(input) = input.filter(|_| carried.len() < MAX_OPEN) {
                number += 1;
                carried.push(carry(self.cx, input, &carrier, prefix, number));
                exchange.pause_timeout(true);
            }
        }
    }

    fn forward(&self, event: RelayEvent) {
        match event {
            RelayEvent::Progress(progress) => {
                let message = progress.message.unwrap_or_default();
                self.cx.progress(progress.progress, progress.total, message);
            }
            RelayEvent::Log(message) => self.log(&message),
            // The future that carries a withdrawn input request observes that.
            _ => {}
        }
    }

    fn log(&self, message: &LoggingMessageNotificationParams) {
        let name = self.reached.name();
        let logger = match &message.logger {
            Some(logger) => format!("{name}/{logger}"),
            None => name.to_string(),
        };
        self.cx.log_from(&logger, message.level, &message.data);
    }

    /// Waits for the result of a task of the upstream, which is cancelled with the call.
    async fn task(
        &mut self,
        id: &str,
        timeout: Duration,
    ) -> std::result::Result<RelayOutcome, Ended> {
        let members = [r#""taskId":"#, id];
        let request = RelayRequest::new(Method::TasksResult.as_str())
            .params(&members)
            .timeout(timeout)
            .max_total_timeout(timeout);
        let guard = CancelTask { client: self.connection.client.clone(), id: Some(id.to_owned()) };
        let outcome = match self.open(&request).await {
            Ok(exchange) => self.follow(exchange).await,
            Err(error) => Err(error),
        };
        if outcome.is_ok() {
            guard.disarm();
        }
        outcome
    }
}

/// Cancels a task of the upstream when it is dropped.
struct CancelTask {
    client: Client,
    /// JSON text of the ID.
    id: Option<String>,
}

impl CancelTask {
    fn disarm(mut self) {
        self.id = None;
    }
}

impl Drop for CancelTask {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let client = self.client.clone();
        runtime.spawn(async move {
            let members = [r#""taskId":"#, id.as_str()];
            let request = RelayRequest::new(Method::TasksCancel.as_str()).params(&members);
            let cancelling = async {
                let mut exchange = client.relay(&request).await?;
                exchange.next().await
            };
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, cancelling).await;
        });
    }
}

/// Time for the cancellation of a task at the upstream.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);
