//! A decoded request together with its caller, session and HTTP context.
//!
//! A codec builds a [`Call`] from a message, the router dispatches it, and the run keeps it until
//! the response. The call owns the bytes of the message once; every part is a [`Span`] into them.

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

use crate::{
    CallEnd, CancelReason, Outbox, Principal, ProtocolError, RunningCall, Session, VersionRules,
};

/// Position of a part of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Returns the position of `part` in `whole`. `part` must be borrowed from `whole`.
    pub(crate) fn of(whole: &str, part: &str) -> Self {
        let start = part.as_ptr() as usize - whole.as_ptr() as usize;
        // `u32` suffices: `max_message_bytes` is far below 4 GiB.
        Self { start: start as u32, end: (start + part.len()) as u32 }
    }
}

/// Observer of how calls end.
pub trait CallWatcher: Send + Sync + 'static {
    /// Called once when the call gets its response or is cancelled, and once when its task ends.
    fn ended(&self, call: &Call, how: CallEnd<'_>, took: Duration);
}

/// The observer of a call, and when the call started.
pub(crate) struct Watch {
    watcher: Arc<dyn CallWatcher>,
    began: Instant,
    exit_code: OnceLock<i32>,
}

/// One decoded request with its caller.
pub struct Call {
    pub(crate) rules: &'static VersionRules,
    pub(crate) message: ByteString,
    pub(crate) id: Span,
    pub(crate) method: Option<Method>,
    /// Name of a method that is not part of the MCP specification.
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
    pub(crate) rerun_of: Option<Box<str>>,
}

/// Positions of the members of `params` that several methods share.
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
    /// Returns the rules of the call's protocol version.
    pub fn rules(&self) -> &'static VersionRules {
        self.rules
    }

    /// Returns the request ID as in the message: a JSON string or integer.
    pub fn id(&self) -> &str {
        self.text(self.id)
    }

    /// Returns the MCP method, or `None` for a custom method of the application.
    pub fn method(&self) -> Option<Method> {
        self.method
    }

    /// Returns the name of the method.
    pub fn method_name(&self) -> &str {
        self.method.map(Method::as_str).or(self.custom_method.as_deref()).unwrap_or_default()
    }

    /// Returns `params` as JSON text: an object, `{}` if the message has none.
    pub fn params(&self) -> &str {
        self.params.map_or("{}", |span| self.text(span))
    }

    /// Returns `params.name`, the name of the requested tool or prompt.
    pub fn name(&self) -> Result<Cow<'_, str>, ProtocolError> {
        self.string(self.parts.name, "name")
    }

    /// Returns `params.uri`, the URI of the requested resource.
    pub fn uri(&self) -> Result<Cow<'_, str>, ProtocolError> {
        self.string(self.parts.uri, "uri")
    }

    /// Returns `params.arguments` as JSON text: an object, `{}` if the message has none.
    pub fn arguments(&self) -> Result<&str, ProtocolError> {
        match self.parts.arguments.map(|span| self.text(span)) {
            None => Ok("{}"),
            Some(text) if text.starts_with('{') => Ok(text),
            Some(_) => Err(ProtocolError::invalid_params("`params.arguments` must be an object")),
        }
    }

    /// Returns `params.inputResponses` as JSON text: the responses to the input requests of the
    /// previous round.
    pub fn input_responses(&self) -> Option<&str> {
        self.parts.input_responses.map(|span| self.text(span))
    }

    /// Returns `params.requestState`, the request state of the previous round.
    pub fn request_state(&self) -> Option<Result<Cow<'_, str>, ProtocolError>> {
        let span = self.parts.request_state?;
        Some(self.string(Some(span), "requestState"))
    }

    /// Returns `params.taskId`.
    pub fn task_id(&self) -> Result<Cow<'_, str>, ProtocolError> {
        self.string(self.parts.task_id, "taskId")
    }

    /// Returns `_meta["dev.outlive/idempotencyKey"]`, the key under which repeated calls take
    /// effect once.
    pub fn idempotency_key(&self) -> Option<Result<Cow<'_, str>, ProtocolError>> {
        let span = self.parts.idempotency_key?;
        Some(self.string(Some(span), "_meta[\"dev.outlive/idempotencyKey\"]"))
    }

    /// Returns whether `params.task` is present. Always `false` for versions without it.
    pub fn requests_task(&self) -> bool {
        self.parts.task.is_some()
    }

    /// Returns `params.task` as JSON text: the client's request to run the call as a task.
    pub(crate) fn task(&self) -> Option<&str> {
        self.parts.task.map(|span| self.text(span))
    }

    /// Returns the progress token as JSON text, if the client wants progress notifications.
    pub fn progress_token(&self) -> Option<&str> {
        self.parts.progress_token.map(|span| self.text(span))
    }

    /// Returns the lowest log level that the client wants, or `None` if the client wants no log
    /// messages.
    pub fn log_level(&self) -> Option<LoggingLevel> {
        match &self.session {
            Some(session) => session.log_level(),
            None => self.log_level,
        }
    }

    /// Returns the declared client capabilities, as the JSON text of a `ClientCapabilities` object.
    pub fn client_capabilities(&self) -> &str {
        match &self.session {
            Some(session) => session.client_capabilities(),
            None => self.parts.client_capabilities.map_or("{}", |span| self.text(span)),
        }
    }

    /// Returns the client's name and version, as the JSON text of an `Implementation` object.
    ///
    /// The client chooses this value freely, so it must not be used for authorization.
    pub fn client_info(&self) -> Option<&str> {
        match &self.session {
            Some(session) => session.client_info(),
            None => self.parts.client_info.map(|span| self.text(span)),
        }
    }

    /// Returns the authenticated identity of the caller.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Returns the session of the call. Modern calls have none.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// Returns the network address of the client, if the transport knows it.
    pub fn peer_addr(&self) -> Option<IpAddr> {
        self.peer
    }

    /// Returns the method, URI and headers of the HTTP request that carried this call.
    pub fn http(&self) -> Option<&Parts> {
        self.http.as_deref()
    }

    /// Returns the HTTP headers, if the protocol version requires them to mirror parts of the body.
    pub fn mirrored_headers(&self) -> Option<&http::HeaderMap> {
        if !self.rules.mirrored_headers {
            return None;
        }
        self.http.as_ref().map(|parts| &parts.headers)
    }

    /// Returns the ID of the task that this call runs again, for a person. No client can set it.
    pub fn rerun_of(&self) -> Option<&str> {
        self.rerun_of.as_deref()
    }

    /// Returns the outbox, which sends messages to the client while the call runs.
    pub fn port(&self) -> &Outbox {
        &self.port
    }

    /// Sets the observer of the call. Only the first observer counts.
    pub fn watch(&self, watcher: Arc<dyn CallWatcher>, began: Instant) {
        let _ = self.watch.set(Watch { watcher, began, exit_code: OnceLock::new() });
    }

    /// Reports the end of the call to its observer, if it has one.
    pub fn report(&self, how: CallEnd<'_>, now: impl FnOnce() -> Instant) {
        if let Some(watch) = self.watch.get() {
            let took = now().saturating_duration_since(watch.began);
            watch.watcher.ended(self, how, took);
        }
    }

    /// Stores the exit code of the command that the call ran, for the observer.
    pub fn set_exit_code(&self, code: i32) {
        if let Some(watch) = self.watch.get() {
            let _ = watch.exit_code.set(code);
        }
    }

    /// Returns the exit code of the command that the call ran.
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

    fn cancel(&self, reason: CancelReason) {
        self.port.cancel(reason);
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

/// Decodes a JSON string literal.
///
/// The scanner accepts invalid escapes, such as half of a surrogate pair. Decoding rejects them
/// here.
fn unquote(json: &str) -> serde_json::Result<Cow<'_, str>> {
    match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) if !inner.contains('\\') => Ok(Cow::Borrowed(inner)),
        _ => serde_json::from_str(json).map(Cow::Owned),
    }
}
