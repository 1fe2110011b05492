//! One request on one connection: timeout, progress, input requests and the response.

use std::{borrow::Cow, fmt, pin::pin, sync::Arc, time::Duration};

use outlive_protocol::{Incoming, IncomingKind, era::client::Outgoing};
use outlive_transport::client::{TransportError, TransportErrorKind};
use outlive_wire::{ErrorObject, Method, ProgressNotificationParams};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::{task::JoinSet, time::Instant};

use super::{
    env::ClientEnv,
    error::{ClientError, Error, Result, ServerError},
    exchange::{Exchange, Failed},
    incoming,
    input::DynAnswerer,
    link::{Connection, unexpected},
};

/// Progress notification of a request.
pub type Progress = ProgressNotificationParams;

/// Callback for the progress notifications of a request.
pub(crate) type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// A request before a protocol version encodes it.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) method: Cow<'static, str>,
    /// JSON text of an object, without `_meta`.
    pub(crate) params: String,
    /// Name of the tool, prompt or resource, for methods that repeat it in a header.
    pub(crate) name: Option<String>,
    /// Arguments that are also sent as headers.
    pub(crate) repeated: Vec<(String, String)>,
    pub(crate) holds_tasks: bool,
    pub(crate) waiting: Waiting,
}

/// Timeouts, progress callback, `_meta` and input handler of a request.
#[derive(Clone)]
pub(crate) struct Waiting {
    pub(crate) timeout: Option<Duration>,
    pub(crate) total: Duration,
    pub(crate) on_progress: Option<OnProgress>,
    pub(crate) progress_resets: bool,
    /// Members of `_meta`, without braces.
    pub(crate) meta: String,
    /// Input handler of this call, in place of the client's.
    pub(crate) answerer: Option<Arc<dyn DynAnswerer>>,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Waiting {
    pub(crate) fn new(env: &ClientEnv) -> Self {
        let limits = env.limits();
        Self {
            timeout: Some(limits.request_timeout),
            total: limits.max_total_timeout,
            on_progress: None,
            progress_resets: true,
            meta: String::new(),
            answerer: None,
        }
    }

    pub(crate) fn within(env: &ClientEnv, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..Self::new(env) }
    }

    /// Adds a member to `_meta`.
    pub(crate) fn add_meta(&mut self, key: &str, value: &str) {
        if !self.meta.is_empty() {
            self.meta.push(',');
        }
        self.meta.push_str(&Value::from(key).to_string());
        self.meta.push(':');
        self.meta.push_str(value);
    }
}

impl Wanted {
    /// Creates a request for a method of the specification.
    pub(crate) fn new(env: &ClientEnv, method: Method, params: impl Into<String>) -> Self {
        Self {
            method: method.as_str().into(),
            params: params.into(),
            name: None,
            repeated: Vec::new(),
            holds_tasks: false,
            waiting: Waiting::new(env),
        }
    }

    #[must_use]
    pub(crate) fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// A response, and the connection that it arrived on.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) here: Arc<Connection>,
    pub(crate) message: Incoming,
    pub(crate) status: Option<u16>,
    /// Number of `input_required` rounds before this response.
    pub(crate) rounds: u32,
}

impl Answered {
    /// Returns the result, or the error of the server.
    pub(crate) fn result(&self) -> Result<&str> {
        match self.message.kind() {
            IncomingKind::Result { result, .. } => Ok(self.message.text(result)),
            IncomingKind::Error { error, .. } => Err(refused(error, self.status)),
            _ => Err(unexpected(&self.message)),
        }
    }

    /// Deserializes the result.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        read(self.result()?)
    }

    pub(super) fn code(&self) -> Option<i32> {
        match self.message.kind() {
            IncomingKind::Error { error, .. } => Some(error.code),
            _ => None,
        }
    }
}

fn refused(error: &ErrorObject, status: Option<u16>) -> Error {
    // A success status says nothing about the error in the body.
    ServerError::of(error.clone(), status.filter(|status| *status >= 400)).into()
}

/// Deserializes a result.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Error::broke(format!("the result cannot be parsed: {error}")))
}

/// Sends a request and waits for its response, on this connection only.
pub(crate) async fn once(here: &Arc<Connection>, wanted: &Wanted) -> Result<Answered, Failed> {
    let waiting = &wanted.waiting;
    let id = here.env.next_id();
    let mut meta = waiting.meta.clone();
    if waiting.on_progress.is_some() {
        let comma = if meta.is_empty() { "" } else { "," };
        meta.push_str(&format!(r#"{comma}"progressToken":{id}"#));
    }
    let request = Outgoing {
        id: Some(id),
        method: &wanted.method,
        params: &wanted.params,
        meta: &meta,
        name: wanted.name.as_deref(),
        repeated: &wanted.repeated,
        holds_tasks: wanted.holds_tasks,
        ..Outgoing::default()
    };
    let begun = Instant::now();
    let span = waiting.timeout.unwrap_or(waiting.total).min(waiting.total);
    let mut alarm = pin!(tokio::time::sleep_until(begun + span));
    let timed_out = || Failed::from(Error::from(ClientError::TimedOut(begun.elapsed())));
    let mut opening = pin!(Exchange::open(here, &request));
    let mut exchange = loop {
        tokio::select! {
            biased;
            opened = &mut opening => break opened?,
            () = &mut alarm => match here.env.more_time(span) {
                Some(until) => alarm.as_mut().reset(until),
                None => return Err(timed_out()),
            },
        }
    };
    let mut beside = Beside { here, id, asked: None, strays: 0 };
    loop {
        let is_asked = beside.is_asked();
        let message = tokio::select! {
            biased;
            message = exchange.next() => message?,
            Some(()) = one_of(&mut beside.asked), if is_asked => {
                // The time that a user takes to respond does not count as the server's time.
                alarm.as_mut().reset(Instant::now() + span);
                continue;
            }
            () = &mut alarm, if !is_asked => return Err(timed_out()),
        };
        let Some(message) = message else {
            return Err(TransportError::after_sending(TransportErrorKind::ConnectionLost).into());
        };
        if exchange.is_answer(&message) {
            exchange.settle();
            let (here, status) = (Arc::clone(here), exchange.status());
            return Ok(Answered { here, message, status, rounds: 0 });
        }
        if beside.take(message, waiting.on_progress.as_ref())? && waiting.progress_resets {
            let most = begun + waiting.total;
            alarm.as_mut().reset((Instant::now() + span).min(most));
        }
    }
}

/// Messages that arrive before the response of a request.
struct Beside<'a> {
    here: &'a Arc<Connection>,
    id: u64,
    /// Input requests in progress. Allocated for the first one, because most requests have none.
    asked: Option<JoinSet<()>>,
    strays: usize,
}

impl Beside<'_> {
    fn is_asked(&self) -> bool {
        self.asked.as_ref().is_some_and(|asked| !asked.is_empty())
    }

    /// Handles a message that is not the response. Returns whether it is progress of this request.
    fn take(&mut self, message: Incoming, hear: Option<&OnProgress>) -> Result<bool, Failed> {
        let id = self.id;
        match message.kind() {
            IncomingKind::Result { .. } | IncomingKind::Error { .. } => {
                tracing::warn!(id, "dropped a response to another request");
                self.strays += 1;
                if self.strays > self.here.env.limits().max_queued_notifications {
                    return Err(Error::broke("it sent too many responses to other requests").into());
                }
            }
            IncomingKind::Request { .. } => {
                if let Some(work) = incoming::asked(self.here, message) {
                    self.asked.get_or_insert_default().spawn(work);
                }
            }
            IncomingKind::Notification { method: Some(Method::Progress), .. }
                if message.belongs_to() == Some(id) =>
            {
                if let (Some(hear), Ok(progress)) = (hear, message.params()) {
                    hear(progress);
                }
                return Ok(true);
            }
            IncomingKind::Notification { .. } => {
                self.here.inputs.heard(&message);
                self.here.env.dispatch.heard(&message);
            }
        }
        Ok(false)
    }
}

/// Waits until one input request has a response.
async fn one_of(asked: &mut Option<JoinSet<()>>) -> Option<()> {
    asked.as_mut()?.join_next().await.map(|_| ())
}

/// Returns the protocol versions that an error lists as supported.
pub(crate) fn supported(error: &ErrorObject) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    let data = error.data.as_ref().and_then(|data| serde_json::from_str::<Data>(data.get()).ok());
    data.map(|data| data.supported).unwrap_or_default()
}
