//! Assigns input requests and log messages that name no call to a call of their connection.
//!
//! All calls of an upstream connection belong to one principal and one capability class, unless the
//! connection is shared. A wrong choice therefore only shows an input request beside another call of
//! the same user. On a shared connection nothing is guessed.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use outlive::{
    client::relay::RelayInput,
    wire::{LoggingMessageNotificationParams, Method, RawJson, code},
};
use outlive_jobs::CarriedInput;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

/// Messages that wait for one call.
const MAX_QUEUED: usize = 64;

/// Input requests that wait for a call.
const MAX_WAITING: usize = 32;

/// Time that an input request waits for a call.
const WAIT: Duration = Duration::from_secs(30);

/// Calls in flight on an upstream connection, and the input requests that wait for one.
#[derive(Debug)]
pub(crate) struct Carrier {
    inner: Mutex<Inner>,
    /// Whether a message without a call may be assigned to one.
    guesses: bool,
}

#[derive(Debug, Default)]
struct Inner {
    calls: Vec<(u64, mpsc::Sender<Routed>)>,
    next: u64,
    waiting: VecDeque<(Instant, RelayInput)>,
    /// Calls and numbers of input requests that an earlier gateway has carried, by ID.
    resumed: HashMap<String, (u64, u32)>,
    /// The roots that the client of the last call returned.
    roots: Option<RawJson>,
}

/// A message for a call.
#[derive(Debug)]
pub(crate) enum Routed {
    Input(RelayInput),
    Log(LoggingMessageNotificationParams),
}

/// A call in flight. Dropping it releases its messages to the next call.
#[derive(Debug)]
pub(crate) struct Ticket {
    carrier: Arc<Carrier>,
    id: u64,
    messages: mpsc::Receiver<Routed>,
}

/// An input request that a call carries. Dropping it before the response releases it to the next
/// call.
#[derive(Debug)]
pub(crate) struct Carried {
    carrier: Option<Arc<Carrier>>,
    input: Option<RelayInput>,
}

impl Carrier {
    pub(crate) fn new(guesses: bool) -> Arc<Self> {
        Arc::new(Self { inner: Mutex::default(), guesses })
    }

    /// Adds a call, which becomes the newest.
    pub(crate) fn enter(self: &Arc<Self>) -> Ticket {
        let (sender, messages) = mpsc::channel(MAX_QUEUED);
        let mut inner = self.lock();
        inner.next += 1;
        let id = inner.next;
        for (_, input) in std::mem::take(&mut inner.waiting) {
            // A new channel has room for all input requests that may wait.
            let _ = sender.try_send(Routed::Input(input));
        }
        inner.calls.push((id, sender));
        drop(inner);
        Ticket { carrier: Arc::clone(self), id, messages }
    }

    /// Gives an input request to the newest call.
    pub(crate) fn route(&self, input: RelayInput) {
        if input.is_withdrawn() {
            return;
        }
        let mut inner = self.lock();
        let newest = match inner.resumed.get(&id_of(&input)) {
            Some((call, _)) => inner.calls.iter().find(|(id, _)| id == call),
            None => inner.calls.last().filter(|_| self.guesses),
        };
        match newest {
            // A full channel drops the input request, and the upstream gets an error.
            Some((_, call)) => {
                let _ = call.try_send(Routed::Input(input));
            }
            None if input.method() == Method::RootsList => {
                let roots = inner.roots.clone().unwrap_or_else(no_roots);
                drop(inner);
                respond_later(input, roots);
            }
            None if self.guesses && inner.waiting.len() < MAX_WAITING => {
                inner.waiting.push_back((Instant::now() + WAIT, input));
            }
            None => {
                drop(inner);
                reject_later(input, "no call on this connection can carry this input request");
            }
        }
    }

    /// Gives a log message to the newest call. Returns `false` without a call.
    pub(crate) fn log(&self, message: LoggingMessageNotificationParams) -> bool {
        let inner = self.lock();
        let newest = inner.calls.last().filter(|_| self.guesses);
        newest.is_some_and(|(_, call)| call.try_send(Routed::Log(message)).is_ok())
    }

    /// Rejects the input requests that have waited too long.
    pub(crate) fn expire(&self, now: Instant) {
        let expired: Vec<RelayInput> = {
            let mut inner = self.lock();
            let (expired, waiting) =
                std::mem::take(&mut inner.waiting).into_iter().partition(|(due, _)| *due <= now);
            inner.waiting = waiting;
            expired.into_iter().map(|(_, input)| input).collect()
        };
        for input in expired {
            reject_later(input, "no call accepted this input request within 30 s");
        }
    }

    /// Records the roots of a client, for requests outside of calls. Returns whether they changed.
    pub(crate) fn set_roots(&self, roots: &RawValue) -> bool {
        let mut inner = self.lock();
        let is_changed = inner.roots.as_ref().is_none_or(|known| known.get() != roots.get());
        if is_changed {
            inner.roots = Some(roots.to_owned());
        }
        is_changed
    }

    fn leave(&self, id: u64) {
        let mut inner = self.lock();
        inner.calls.retain(|(call, _)| *call != id);
        inner.resumed.retain(|_, (call, _)| *call != id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Returns the next message for this call.
    pub(crate) async fn next(&mut self) -> Routed {
        match self.messages.recv().await {
            Some(message) => message,
            // The sender lives in the carrier while the ticket exists.
            None => std::future::pending().await,
        }
    }

    /// Returns a function that directs input requests to this call, which an earlier gateway has
    /// carried with it under these numbers.
    pub(crate) fn resumes(&self) -> impl FnOnce(&[CarriedInput]) + Send + use<> {
        let (carrier, call) = (Arc::clone(&self.carrier), self.id);
        move |inputs| {
            let inputs = inputs.iter().map(|carried| (carried.input.clone(), carried.number));
            let inputs = inputs.map(|(input, number)| (input, (call, number)));
            carrier.lock().resumed.extend(inputs);
        }
    }

    /// Returns the number of an input request that an earlier gateway has carried with this call.
    pub(crate) fn resumed_number(&self, input: &RelayInput) -> Option<u32> {
        let inner = self.carrier.lock();
        let (call, number) = inner.resumed.get(&id_of(input))?;
        (*call == self.id).then_some(*number)
    }

    /// Takes the log messages for this call, which has ended. Its input requests go to the next call.
    pub(crate) fn take_logs(&mut self) -> Vec<LoggingMessageNotificationParams> {
        self.carrier.leave(self.id);
        let mut logs = Vec::new();
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Routed::Log(message) => logs.push(message),
                Routed::Input(input) => self.carrier.route(input),
            }
        }
        logs
    }

    /// Marks an input request as carried by this call.
    pub(crate) fn carry(&self, input: RelayInput) -> Carried {
        Carried { carrier: Some(Arc::clone(&self.carrier)), input: Some(input) }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.carrier.leave(self.id);
        self.messages.close();
        while let Ok(message) = self.messages.try_recv() {
            if let Routed::Input(input) = message {
                self.carrier.route(input);
            }
        }
    }
}

impl Carried {
    /// Wraps an input request that arrived on the call's own stream, and ends with it.
    pub(crate) fn of_call(input: RelayInput) -> Self {
        Self { carrier: None, input: Some(input) }
    }

    /// Returns whether the input request arrived on the call's own stream.
    pub(crate) fn is_of_call(&self) -> bool {
        self.carrier.is_none()
    }

    /// Returns the input request until it is taken.
    pub(crate) fn input(&self) -> Option<&RelayInput> {
        self.input.as_ref()
    }

    /// Takes the input request, to respond to it.
    pub(crate) fn take(mut self) -> Option<RelayInput> {
        self.input.take()
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if let (Some(carrier), Some(input)) = (&self.carrier, self.input.take()) {
            carrier.route(input);
        }
    }
}

/// Returns the ID of an input request as a supervisor knows it.
pub(crate) fn id_of(input: &RelayInput) -> String {
    outlive_jobs::id_text(input.id().as_raw().get()).unwrap_or_default()
}

fn no_roots() -> RawJson {
    RawValue::from_string(r#"{"roots":[]}"#.to_owned()).expect("the literal is valid JSON")
}

/// Sends a response without waiting: the peer may not read.
fn respond_later(input: RelayInput, result: RawJson) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move {
            let _ = tokio::time::timeout(WAIT, input.respond(&result)).await;
        });
    }
}

fn reject_later(input: RelayInput, reason: &'static str) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move {
            let _ = tokio::time::timeout(WAIT, input.reject(code::INTERNAL, reason, None)).await;
        });
    }
}
