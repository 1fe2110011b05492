//! A request that carries everything needed to answer it.
//!
//! An era makes it from a message; the router reads it; the run keeps it to the end. The message's
//! bytes are kept once, and every part of them is a [`Span`] into them: nothing is copied.

use std::{
    borrow::Cow,
    fmt,
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use bytestring::ByteString;
use http::request::Parts;
use outlive_wire::{LoggingLevel, Method};

use crate::{CallEnd, Outbox, Principal, ProtocolError, RunningCall, Session, VersionRules};

/// A part of a message, by position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Where `part` stands in `whole`. `part` must have been borrowed from `whole`.
    pub(crate) fn of(whole: &str, part: &str) -> Self {
        let start = part.as_ptr() as usize - whole.as_ptr() as usize;
        // Messages are bounded far below 4 GiB, so that positions fit.
        Self { start: start as u32, end: (start + part.len()) as u32 }
    }
}

/// Receives how calls end.
pub trait CallWatcher: Send + Sync + 'static {
    /// Called once when the call is answered or cancelled, and once when a task of it has ended.
    fn ended(&self, call: &Call, how: CallEnd<'_>, took: Duration);
}

/// Who watches a call, and since when.
pub(crate) struct Watch {
    watcher: Arc<dyn CallWatcher>,
    began: Instant,
    exit_code: OnceLock<i32>,
}

/// One request, decoded, with its caller.
pub struct Call {
    pub(crate) rules: &'static VersionRules,
    pub(crate) message: ByteString,
    pub(crate) id: Span,
    pub(crate) method: Option<Method>,
    /// The name of a method that the specification does not name.
    pub(crate) custom_method: Option<Box<str>>,
    pub(crate) parts: ParamSpans,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) principal: Principal,
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) peer: Option<IpAddr>,
    pub(crate) http: Option<Box<Parts>>,
    pub(crate) params: Option<Span>,
    pub(crate) port: Outbox,
    pub(crate) watch: OnceLock<Watch>,
}

/// Where the members of `params` stand that more than one method has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ParamSpans {
    pub(crate) name: Option<Span>,
    pub(crate) uri: Option<Span>,
    pub(crate) arguments: Option<Span>,
    pub(crate) progress_token: Option<Span>,
    pub(crate) idempotency_key: Option<Span>,
    pub(crate) client_info: Option<Span>,
    pub(crate) client_capabilities: Option<Span>,
    pub(crate) input_responses: Option<Span>,
    pub(crate) request_state: Option<Span>,
    pub(crate) task_id: Option<Span>,
    pub(crate) task: Option<Span>,
}

impl Call {
    /// Returns the rules of the version that this call came in.
    pub fn rules(&self) -> &'static VersionRules {
        self.rules
    }

    /// The request's id as it stands in the message: a JSON string or integer.
    pub fn id(&self) -> &str {
        self.text(self.id)
    }

    /// The method, if the specification names it; `None` for one of the application's own.
    pub fn method(&self) -> Option<Method> {
        self.method
    }

    /// The method's name.
    pub fn method_name(&self) -> &str {
        self.method.map(Method::as_str).or(self.custom_method.as_deref()).unwrap_or_default()
    }

    /// The parameters as JSON text: an object, `{}` where the message has none.
    pub fn params(&self) -> &str {
        self.params.map_or("{}", |span| self.text(span))
    }

    /// `params.name`: of the tool or prompt that is meant.
    pub fn name(&self) -> Result<Cow<'_, str>, ProtocolError> {
        self.string(self.parts.name, "name")
    }

    /// `params.uri`: of the resource that is meant.
    pub fn uri(&self) -> Result<Cow<'_, str>, ProtocolError> {
        self.string(self.parts.uri, "uri")
    }

    /// `params.arguments` as JSON text: an object, `{}` where the message has none.
    pub fn arguments(&self) -> Result<&str, ProtocolError> {
        match self.parts.arguments.map(|span| self.text(span)) {
            None => Ok("{}"),
            Some(text) if text.starts_with('{') => Ok(text),
            Some(_) => Err(ProtocolError::invalid_params("`params.arguments` must be an object")),
        }
    }

    /// `params.inputResponses` as JSON text: answers to what an earlier round of this call asked.
    pub fn input_responses(&self) -> Option<&str> {
        self.parts.input_responses.map(|span| self.text(span))
    }

    /// `params.requestState`: what an earlier round of this call gave the client to keep.
    pub fn request_state(&self) -> Option<Result<Cow<'_, str>, ProtocolError>> {
        let span = self.parts.request_state?;
        Some(self.string(Some(span), "requestState"))
    }

    /// `params.taskId`: of the task that is meant.
    pub fn task_id(&self) -> Result<Cow<'_, str>, ProtocolError> {
        self.string(self.parts.task_id, "taskId")
    }

    /// `_meta["dev.outlive/idempotencyKey"]`: under which key the caller wants this done once only,
    /// however often it asks.
    pub fn idempotency_key(&self) -> Option<Result<Cow<'_, str>, ProtocolError>> {
        let span = self.parts.idempotency_key?;
        Some(self.string(Some(span), "_meta[\"dev.outlive/idempotencyKey\"]"))
    }

    /// Whether the client asks for a task, where its revision has that.
    pub fn requests_task(&self) -> bool {
        self.parts.task.is_some()
    }

    /// `params.task` as JSON text: that the client wants a task, where its revision has that.
    pub(crate) fn task(&self) -> Option<&str> {
        self.parts.task.map(|span| self.text(span))
    }

    /// The token under which the client wants to hear of progress, if it does.
    pub fn progress_token(&self) -> Option<&str> {
        self.parts.progress_token.map(|span| self.text(span))
    }

    /// The lowest level of log lines the client wants, if it wants any.
    pub fn log_level(&self) -> Option<LoggingLevel> {
        match &self.session {
            Some(session) => session.log_level(),
            None => self.log_level,
        }
    }

    /// What the client says it can do, as the JSON text of a `ClientCapabilities` object.
    pub fn client_capabilities(&self) -> &str {
        match &self.session {
            Some(session) => session.client_capabilities(),
            None => self.parts.client_capabilities.map_or("{}", |span| self.text(span)),
        }
    }

    /// What the client calls itself, as the JSON text of an `Implementation` object. Never
    /// proof of anything: clients write it themselves.
    pub fn client_info(&self) -> Option<&str> {
        match &self.session {
            Some(session) => session.client_info(),
            None => self.parts.client_info.map(|span| self.text(span)),
        }
    }

    /// Who is calling.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The session this call came in on, if its era has sessions.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// The address the call came from, where the transport knows one.
    pub fn peer_addr(&self) -> Option<IpAddr> {
        self.peer
    }

    /// Method, URI and headers of the HTTP request that brought this call, if one did.
    pub fn http(&self) -> Option<&Parts> {
        self.http.as_deref()
    }

    /// The headers that must mirror parts of the body, if this call is under that rule.
    pub fn mirrored_headers(&self) -> Option<&http::HeaderMap> {
        if !self.rules.mirrored_headers {
            return None;
        }
        self.http.as_ref().map(|parts| &parts.headers)
    }

    /// The way to the client while the call runs.
    pub fn port(&self) -> &Outbox {
        &self.port
    }

    /// Has a watcher told how the call ends. The first one counts; a call without one costs one check.
    pub fn watch(&self, watcher: Arc<dyn CallWatcher>, began: Instant) {
        let _ = self.watch.set(Watch { watcher, began, exit_code: OnceLock::new() });
    }

    /// Tells the watcher, if there is one, how the call has ended.
    pub fn report(&self, how: CallEnd<'_>, now: impl FnOnce() -> Instant) {
        if let Some(watch) = self.watch.get() {
            let took = now().saturating_duration_since(watch.began);
            watch.watcher.ended(self, how, took);
        }
    }

    /// Remembers the exit code of the command that the call has run, for its watcher.
    pub fn set_exit_code(&self, code: i32) {
        if let Some(watch) = self.watch.get() {
            let _ = watch.exit_code.set(code);
        }
    }

    /// Returns the exit code of the command that the call has run.
    pub fn exit_code(&self) -> Option<i32> {
        self.watch.get()?.exit_code.get().copied()
    }

    fn text(&self, span: Span) -> &str {
        &self.message[span.start as usize..span.end as usize]
    }

    fn string(
        &self,
        span: Option<Span>,
        member: &'static str,
    ) -> Result<Cow<'_, str>, ProtocolError> {
        match span.map(|span| self.text(span)) {
            Some(text) if text.starts_with('"') => unquote(text).map_err(|error| {
                ProtocolError::invalid_params(format!("`params.{member}`: {error}"))
            }),
            Some(_) => {
                Err(ProtocolError::invalid_params(format!("`params.{member}` must be a string")))
            }
            None => Err(ProtocolError::invalid_params(format!("`params.{member}` is missing"))),
        }
    }
}

impl RunningCall for Call {
    fn id(&self) -> &str {
        self.id()
    }

    fn method(&self) -> Option<Method> {
        self.method
    }

    fn cancel(&self) {
        self.port.cancel();
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("version", &self.rules.version)
            .field("id", &self.id())
            .field("method", &self.method_name())
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

/// The string that a JSON string literal stands for. One whose escapes stand for no text, such as
/// half of a surrogate pair, passes as raw JSON and is refused only here.
fn unquote(json: &str) -> serde_json::Result<Cow<'_, str>> {
    match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) if !inner.contains('\\') => Ok(Cow::Borrowed(inner)),
        _ => serde_json::from_str(json).map(Cow::Owned),
    }
}
