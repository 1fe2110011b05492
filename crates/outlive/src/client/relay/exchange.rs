//! A relayed request and its events.

use std::{fmt, pin::Pin, sync::Arc};

use outlive_protocol::{
    Incoming, IncomingKind, InputMode,
    era::client::{RelayedKind, ResultContext, client_codec},
};
use outlive_transport::client::{TransportError, TransportErrorKind};
use outlive_wire::{Method, OrderedMap, RawJson, Version};
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc};

use super::{
    clock::{Clock, alarm},
    event::{RelayEvent, RelayOutcome, RelayRound, RelayedTask},
    input::InputState,
    open_inputs::{Destination, RoutedEvent, TaskInputs},
    point::{PointCell, StreamPosition},
};
use crate::client::{
    core::Core,
    error::{ClientError, Error, Result, ServerError},
    exchange::{Exchange, Failed},
    incoming,
    link::Connection,
};

/// An open request whose owner gets its events.
///
/// Dropping it before the outcome cancels the request at the server, in the form of its protocol
/// version.
pub struct RelayExchange {
    core: Arc<Core>,
    here: Arc<Connection>,
    id: u64,
    way: Way,
    context: ResultContext,
    clock: Clock,
    /// Whether the owner stopped the clock.
    paused: bool,
    /// Present once the exchange has had an input request, or if it waits for a task.
    inputs: Option<Inputs>,
    strays: usize,
    /// Position in the response stream, if the owner wants it.
    cell: Option<Arc<PointCell>>,
}

/// Sending of a legacy HTTP request, which `next` continues.
pub(super) type Opening = Pin<Box<dyn Future<Output = Result<Exchange>> + Send>>;

pub(super) enum Way {
    Opening(Opening),
    Open(Exchange),
    Ended,
}

/// The input requests of one exchange.
pub(super) struct Inputs {
    to: Destination,
    events: mpsc::Receiver<RoutedEvent>,
    settled: Arc<Notify>,
    open: Vec<Arc<InputState>>,
    /// Directs the input requests of the awaited task to this exchange.
    task: Option<TaskInputs>,
}

/// The next step of an exchange.
enum Step {
    Opened(Result<Exchange>),
    Message(Result<Option<Incoming>, Failed>),
    Routed(RoutedEvent),
    Settled,
    TimedOut,
}

impl fmt::Debug for RelayExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayExchange").field("id", &self.id).finish_non_exhaustive()
    }
}

impl RelayExchange {
    pub(super) fn new(
        core: &Arc<Core>,
        here: &Arc<Connection>,
        id: u64,
        way: Way,
        context: ResultContext,
        clock: Clock,
        inputs: Option<Inputs>,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            here: Arc::clone(here),
            id,
            way,
            context,
            clock,
            paused: false,
            inputs,
            strays: 0,
            cell: None,
        }
    }

    /// Returns the request ID.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the protocol version of the connection.
    pub fn protocol_version(&self) -> Version {
        self.here.rules.version
    }

    /// Stops the timeouts, or starts them again. For input requests that arrive elsewhere and that
    /// the owner attributes to this request.
    pub fn pause_timeout(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Returns the position in the response stream, from now on.
    pub fn position(&mut self) -> StreamPosition {
        let cell = Arc::clone(self.cell.get_or_insert_default());
        if let Way::Open(exchange) = &mut self.way {
            exchange.report_to(&cell);
        }
        StreamPosition(cell)
    }

    /// Drops the exchange without cancelling the request, which another process continues. Servers
    /// for which the end of the connection is a cancellation cancel it nevertheless.
    pub fn detach(mut self) {
        if let Way::Open(exchange) = &mut self.way {
            exchange.settle();
        }
        self.way = Way::Ended;
    }

    /// Cancels the request at the server with a reason.
    pub fn cancel(mut self, reason: &str) {
        if let Way::Open(exchange) = &mut self.way {
            exchange.cancel(reason);
        }
    }

    /// Returns the next event. Cancel safe.
    ///
    /// # Errors
    ///
    /// If the request fails, or the server returns an error. [`ClientError::Closed`] after the
    /// outcome.
    pub async fn next(&mut self) -> Result<RelayEvent> {
        loop {
            match self.step().await {
                Step::Opened(Ok(mut exchange)) => {
                    if let Some(cell) = &self.cell {
                        exchange.report_to(cell);
                    }
                    self.here = Arc::clone(exchange.connection());
                    self.way = Way::Open(exchange);
                }
                Step::Opened(Err(error)) => return self.fail(error),
                Step::Message(Ok(Some(message))) => {
                    if let Some(event) = self.take(message)? {
                        return Ok(event);
                    }
                }
                Step::Message(Ok(None)) => {
                    let kind = TransportErrorKind::ConnectionLost;
                    return self.fail(TransportError::after_sending(kind).into());
                }
                Step::Message(Err(failed)) => return self.fail(failed.into()),
                Step::Routed(RoutedEvent::Input(input)) => {
                    if let Some(inputs) = &mut self.inputs {
                        inputs.open.push(Arc::clone(&input.state));
                    }
                    return Ok(RelayEvent::Input(input));
                }
                Step::Routed(RoutedEvent::Withdrawn(id)) => {
                    return Ok(RelayEvent::InputWithdrawn(id));
                }
                Step::Settled => {}
                Step::TimedOut => return self.fail(self.timed_out()),
            }
        }
    }

    fn timed_out(&self) -> Error {
        ClientError::TimedOut(self.clock.elapsed()).into()
    }

    /// Ends the exchange. Dropping an open one cancels the request.
    fn fail(&mut self, error: Error) -> Result<RelayEvent> {
        self.way = Way::Ended;
        Err(error)
    }

    async fn step(&mut self) -> Step {
        let has_open = self.inputs.as_mut().is_some_and(Inputs::has_open);
        self.clock.pause(self.paused || has_open);
        loop {
            let deadline = self.clock.deadline();
            let (events, settled) = match &mut self.inputs {
                Some(inputs) => (Some(&mut inputs.events), Some(&inputs.settled)),
                None => (None, None),
            };
            let is_opening = matches!(self.way, Way::Opening(_));
            let step = tokio::select! {
                biased;
                event = received(events) => Step::Routed(event),
                step = self.way.step() => step,
                () = notified(settled), if has_open => Step::Settled,
                () = alarm(deadline) => Step::TimedOut,
            };
            if matches!(step, Step::TimedOut)
                && is_opening
                && let Some(until) = self.core.more_time(self.clock.span())
            {
                self.clock.extend(until);
                continue;
            }
            return step;
        }
    }

    /// Handles a message. Returns the event for the owner, if it is one.
    fn take(&mut self, message: Incoming) -> Result<Option<RelayEvent>> {
        if let Way::Open(exchange) = &mut self.way
            && exchange.is_answer(&message)
        {
            exchange.settle();
            let status = exchange.status();
            self.way = Way::Ended;
            return self.outcome(&message, status).map(|it| Some(RelayEvent::Outcome(it)));
        }
        match message.kind() {
            IncomingKind::Result { .. } | IncomingKind::Error { .. } => {
                tracing::warn!(id = self.id, "dropped a response to another request");
                self.strays += 1;
                if self.strays > self.core.limits().max_queued_notifications {
                    let error = Error::broke("it sent too many responses to other requests");
                    return self.fail(error).map(Some);
                }
                Ok(None)
            }
            IncomingKind::Request { .. } => Ok(self.asked(message)),
            IncomingKind::Notification { method: Some(Method::Progress), .. }
                if message.belongs_to() == Some(self.id) =>
            {
                self.clock.restart();
                Ok(message.params().ok().map(RelayEvent::Progress))
            }
            IncomingKind::Notification { method: Some(Method::LogMessage), .. } => {
                Ok(message.params().ok().map(RelayEvent::Log))
            }
            IncomingKind::Notification { .. } => {
                self.here.inputs.heard(&message);
                self.core.dispatch.heard(&message);
                Ok(None)
            }
        }
    }

    /// Handles a request of the server. Returns the event if it is an input request.
    fn asked(&mut self, message: Incoming) -> Option<RelayEvent> {
        let is_input = self.here.rules.input_mode == InputMode::Stream
            && matches!(
                message.kind(),
                IncomingKind::Request {
                    method: Some(Method::Elicit | Method::CreateMessage | Method::RootsList),
                    ..
                }
            );
        if !is_input {
            if let Some(work) = incoming::asked(&self.here, message) {
                tokio::spawn(work);
            }
            return None;
        }
        let inputs = Inputs::get(&mut self.inputs, self.core.limits().max_open_inputs);
        let input = incoming::open_input(&self.here, message, &inputs.to)?;
        inputs.open.push(Arc::clone(&input.state));
        if let Some(cell) = &self.cell {
            cell.hold(Arc::clone(&input.state));
        }
        Some(RelayEvent::Input(input))
    }

    fn outcome(&self, message: &Incoming, status: Option<u16>) -> Result<RelayOutcome> {
        let range = match message.kind() {
            IncomingKind::Result { result, .. } => result,
            IncomingKind::Error { error, .. } => {
                // A success status says nothing about the error in the body.
                let status = status.filter(|status| *status >= 400);
                return Err(ServerError::of(error.clone(), status).into());
            }
            _ => return Err(Error::broke("expected a response")),
        };
        let (text, result) = (message.text(range), message.part(range));
        let codec = client_codec(self.here.rules.era);
        match codec.read_relayed(&self.context, text).map_err(Error::broke)? {
            RelayedKind::Complete => Ok(RelayOutcome::Complete(result)),
            RelayedKind::Task(snapshot) => Ok(RelayOutcome::Task(RelayedTask { result, snapshot })),
            RelayedKind::InputRequired { requests, state, meta } => {
                let requests = self.requests(requests)?;
                Ok(RelayOutcome::InputRequired(RelayRound::new(result, requests, state, meta)))
            }
        }
    }

    fn requests(&self, requests: Option<&RawValue>) -> Result<Vec<(String, RawJson)>> {
        let Some(requests) = requests else { return Ok(Vec::new()) };
        let requests: OrderedMap<RawJson> = serde_json::from_str(requests.get())
            .map_err(|error| Error::broke(format!("invalid `inputRequests`: {error}")))?;
        match requests.len() > self.core.limits().max_open_inputs {
            true => {
                Err(Error::broke(format!("it sent {} input requests in one round", requests.len())))
            }
            false => Ok(requests.0),
        }
    }
}

impl Way {
    /// Continues the request. Cancel safe.
    async fn step(&mut self) -> Step {
        match self {
            Self::Opening(opening) => Step::Opened(opening.await),
            Self::Open(exchange) => Step::Message(exchange.next().await),
            Self::Ended => Step::Message(Err(Error::from(ClientError::Closed).into())),
        }
    }
}

impl Inputs {
    /// Returns the input requests of an exchange, and creates their channel for the first one.
    fn get(inputs: &mut Option<Self>, limit: usize) -> &mut Self {
        inputs.get_or_insert_with(|| Self::new(limit))
    }

    fn new(limit: usize) -> Self {
        // Two events for each input request: its arrival and its withdrawal.
        let (sender, events) = mpsc::channel((limit * 2).max(1));
        let settled = Arc::new(Notify::new());
        let to = Destination { events: sender, settled: Some(Arc::clone(&settled)) };
        Self { to, events, settled, open: Vec::new(), task: None }
    }

    /// Receives the input requests of a task.
    pub(super) fn for_task(here: &Connection, task: &str) -> Self {
        let mut inputs = Self::new(here.env.limits().max_open_inputs);
        inputs.task = Some(here.inputs.receive_for_task(task, inputs.to.clone()));
        inputs
    }

    fn has_open(&mut self) -> bool {
        self.open.retain(|input| input.is_open());
        !self.open.is_empty()
    }
}

async fn received(events: Option<&mut mpsc::Receiver<RoutedEvent>>) -> RoutedEvent {
    match events {
        Some(events) => match events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

async fn notified(settled: Option<&Arc<Notify>>) {
    match settled {
        Some(settled) => settled.notified().await,
        None => std::future::pending().await,
    }
}
