//! [`Cx`], the context of a call.

use std::{fmt::Display, future::poll_fn, sync::Arc, task::Poll, time::Duration};

use outlive_protocol::{Call, Notify, Principal, Progress, ProtocolError, Session};
use outlive_wire::{ClientCapabilities, Implementation, LoggingLevel, Meta, RawJson};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::to_raw_value};

use crate::server::{
    durable_error::DurableError,
    env::environment::Env,
    error::{Error, Result},
    run::{progress::TaskProgress, state::RunState},
    text_args::{self, TextArgs},
};

/// The context of a call: the principal, the client and its capabilities, and the channel to the
/// client.
///
/// Every handler can take it as an argument. It is cheap to clone and can be moved into spawned
/// tasks. After the call has ended, its messages are discarded.
#[derive(Clone)]
pub struct Cx {
    call: Arc<Call>,
    env: Arc<Env>,
    /// `None` for a call without a journal, which never becomes a task.
    run: Option<Arc<RunState>>,
    arguments: Arguments,
}

/// Source of a handler's arguments.
#[derive(Clone)]
pub(crate) enum Arguments {
    /// `params.arguments` of a tool call.
    Json,
    /// `params` of a custom method.
    Params,
    /// Strings from a prompt's arguments or a URI template.
    Text(Arc<TextArgs>),
}

impl Cx {
    /// Returns the context of a call without a run.
    pub(crate) fn plain(call: Arc<Call>, env: &Arc<Env>, arguments: Arguments) -> Self {
        Self { call, env: Arc::clone(env), run: None, arguments }
    }

    /// Returns the context of a call with a run.
    pub(crate) fn new(
        call: Arc<Call>,
        env: &Arc<Env>,
        run: Arc<RunState>,
        arguments: Arguments,
    ) -> Self {
        Self { call, env: Arc::clone(env), run: Some(run), arguments }
    }

    /// Returns the run, or `None` for a call without one.
    pub(crate) fn run(&self) -> Option<&Arc<RunState>> {
        self.run.as_ref()
    }

    /// Returns the context with a run. Creates a run if the handler's requirements did not declare
    /// one.
    pub(crate) fn with_run(&self) -> (Self, Arc<RunState>) {
        let new = || Arc::new(RunState::new(&self.env, &self.call));
        let run = self.run.clone().unwrap_or_else(new);
        (Self { run: Some(Arc::clone(&run)), ..self.clone() }, run)
    }

    /// Reports progress if the client requested it. `done` must increase. Updates that are too
    /// frequent are coalesced, and the newest is sent. An empty message is omitted.
    ///
    /// On 2026-07-28, or if the client sent no progress token, the progress of a task becomes its
    /// status message instead, such as `packing (3 of 10)`; see [`Cx::set_status_message`].
    pub fn progress(&self, done: f64, total: impl Into<Option<f64>>, message: impl Into<String>) {
        let keeps = |run: &RunState| run.used_journal().is_some() || run.is_promotable();
        let is_task = self.run.as_ref().is_some_and(|run| run.is_task());
        let kept = self.run.as_ref().filter(|run| is_task || keeps(run));
        if self.call.progress_token().is_none() && kept.is_none() {
            return;
        }
        let message = Some(message.into()).filter(|message| !message.is_empty());
        let progress = Progress { done, total: total.into(), message };
        match kept {
            Some(run) if is_task => return TaskProgress::note(&self.call, run, progress),
            // Stored, because the call may be promoted to a task.
            Some(run) => TaskProgress::keep(run, &progress),
            None => {}
        }
        if self.call.progress_token().is_some() {
            self.call.port().progress(progress);
        }
    }

    /// Sends a log message to the client if it requested this level. The message must not contain
    /// secrets.
    pub fn log(&self, level: LoggingLevel, data: impl Serialize) {
        self.write_log(None, level, data);
    }

    /// Sends a log message as [`Cx::log`] does, with the name of a logger.
    pub fn log_from(&self, logger: &str, level: LoggingLevel, data: impl Serialize) {
        self.write_log(Some(logger), level, data);
    }

    fn write_log(&self, logger: Option<&str>, level: LoggingLevel, data: impl Serialize) {
        if !self.env.logging || self.call.log_level().is_none_or(|lowest| level < lowest) {
            return;
        }
        match to_raw_value(&data) {
            Ok(data) => self.say(Notify::Log { level, logger: logger.map(Arc::from), data }),
            Err(error) => {
                tracing::warn!(%error, "log message cannot be serialized as JSON; dropped")
            }
        }
    }

    /// Sends a custom notification. Prefix its method name with a domain that you own.
    ///
    /// # Errors
    ///
    /// Returns an error if the parameters cannot be serialized as a JSON object.
    pub fn notify(&self, method: &str, params: impl Serialize) -> Result<()> {
        let params = to_raw_value(&params)?;
        if !params.get().starts_with('{') {
            return Err(Error::new("notification parameters must be a JSON object"));
        }
        self.say(Notify::Custom { method: method.into(), params: Some(params) });
        Ok(())
    }

    /// Closes the stream but not the call. A client that supports resumption reconnects after
    /// `retry` and receives the rest. Has no effect if the stream cannot be resumed.
    pub fn close_stream(&self, retry: Duration) {
        if self.call.rules().event_ids != outlive_protocol::EventIdMode::None {
            self.say(Notify::Detach { retry });
        }
    }

    /// Returns the task ID if the call is a task.
    pub fn task_id(&self) -> Option<String> {
        Some(self.run.as_ref()?.task_id()?.as_str().to_owned())
    }

    /// Returns whether the tool has changed since people approved this call. Always false for a call
    /// that needs no approval.
    ///
    /// A call that has recorded a step before a crash resumes with the tool's current code. If that
    /// code is about to start the work itself, such as a command, it must not do so under a stale
    /// approval.
    pub fn is_approval_stale(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.is_approval_stale())
    }

    /// Sets the task's status message. The message may reach a user or a model. Has no effect if
    /// the call does not become a task.
    pub fn set_status_message(&self, message: impl Into<String>) {
        if let Some(run) = self.task_run() {
            run.journal().set_status_message(message.into());
        }
    }

    /// Adds the tag `key=value` to the task. A console lists the tasks with a tag. Has no effect if
    /// the call does not become a task, or if the server has no console.
    ///
    /// # Errors
    ///
    /// Returns an error if the tag has more than 64 bytes, or if the task has 8 other tags.
    pub fn tag(&self, key: &str, value: impl Display) -> Result<()> {
        match self.task_run() {
            Some(run) => {
                let added = run.journal().add_tag(format!("{key}={value}"));
                Ok(added.map_err(DurableError::from)?)
            }
            None => Ok(()),
        }
    }

    /// Returns the run of a call that is a task or can become one.
    fn task_run(&self) -> Option<&Arc<RunState>> {
        let run = self.run.as_ref();
        run.filter(|run| run.used_journal().is_some() || run.is_promotable())
    }

    /// Returns whether the call or its task was cancelled. A disconnect of the client cancels an
    /// inline call but not a task.
    pub fn is_cancelled(&self) -> bool {
        match &self.run {
            Some(run) if run.is_task() => run.is_task_cancelled(),
            _ => self.call.port().is_cancelled(),
        }
    }

    /// Completes when the call or its task is cancelled.
    ///
    /// The handler of an inline call is dropped on cancellation, so use this for work that it
    /// spawned. The handler of a task continues for `cancel_grace` (30 seconds by default) and is
    /// then dropped. If it returns an error in this time, the task is `cancelled`; if it returns a
    /// result, the task completes. [`Durable`](crate::server::Durable) stops at its next step,
    /// timer or input request.
    pub async fn cancelled(&self) {
        // Registers the waker first. The engine polls a handler after it has cancelled its task, so
        // no wakeup is lost.
        poll_fn(|cx| {
            let _: Poll<()> = self.call.port().poll_cancelled(cx);
            match self.is_cancelled() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// Returns the authenticated principal.
    pub fn principal(&self) -> &Principal {
        self.call.principal()
    }

    /// Returns the request's `_meta`.
    ///
    /// An inline call has all keys. A stored task keeps only `progressToken`, the trace context
    /// (`traceparent`, `tracestate`, `baggage`), and keys with the prefix
    /// `io.modelcontextprotocol/` or `dev.outlive/`. Other keys are missing when the task resumes
    /// from the store, such as after a restart. Record values that the handler needs in a step.
    pub fn meta(&self) -> Option<Meta> {
        #[derive(serde::Deserialize)]
        struct Params {
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }
        serde_json::from_str::<Params>(self.call.params()).ok().and_then(|params| params.meta)
    }

    /// Returns the capabilities that the client declares.
    pub fn client_capabilities(&self) -> ClientCapabilities {
        serde_json::from_str(self.call.client_capabilities()).unwrap_or_default()
    }

    /// Returns the name and version that the client reports. They are not authenticated.
    pub fn client_info(&self) -> Option<Implementation> {
        serde_json::from_str(self.call.client_info()?).ok()
    }

    /// Checks that the client declares these capabilities, an object such as `json!({"sampling":
    /// {}})`.
    ///
    /// # Errors
    ///
    /// Returns an error if a capability is missing. Return the error from the handler: it names the
    /// capabilities that the client must declare.
    pub fn require_capabilities(&self, capabilities: &Value) -> Result<()> {
        let declared: Value = serde_json::from_str(self.call.client_capabilities())?;
        if contains(&declared, capabilities) {
            return Ok(());
        }
        Err(ProtocolError::MissingCapability { required: to_raw_value(capabilities)? }.into())
    }

    /// Returns the head of the HTTP request, if the call arrived over HTTP.
    pub fn http_parts(&self) -> Option<&http::request::Parts> {
        self.call.http()
    }

    /// Returns the legacy session, if the call belongs to one.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.call.session()
    }

    /// Returns the call: ID, method, raw parameters.
    pub fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// Adds the exit code of a command that the handler ran to the log line of the call.
    pub fn exit_code(&self, code: i32) {
        self.call.set_exit_code(code);
    }

    pub(crate) fn env(&self) -> &Arc<Env> {
        &self.env
    }

    pub(crate) fn say(&self, notify: Notify) {
        self.call.port().send(notify, self.env.profile.limits.max_queued_notifications);
    }

    /// Decodes the arguments as `T`.
    pub(crate) fn decode_arguments<T: DeserializeOwned>(
        &self,
    ) -> std::result::Result<T, Unreadable> {
        let json = match &self.arguments {
            Arguments::Json => self.call.arguments().map_err(Unreadable::Refused)?,
            Arguments::Params => self.call.params(),
            Arguments::Text(texts) => {
                return text_args::decode(texts).map_err(|error| {
                    Unreadable::Refused(ProtocolError::invalid_params(format!(
                        "`params.arguments`: {error}"
                    )))
                });
            }
        };
        serde_json::from_str(json).or_else(|error| match json.trim_ascii() {
            // A type without fields, such as `()`, decodes from `null` but not from an object.
            "{}" => serde_json::from_str("null").map_err(|_| Unreadable::Json(error)),
            _ => Err(Unreadable::Json(error)),
        })
    }

    /// Returns the parameters verbatim.
    pub(crate) fn raw_params(&self) -> Result<RawJson> {
        Ok(RawJson::from(
            serde_json::from_str::<&serde_json::value::RawValue>(self.call.params())?.to_owned(),
        ))
    }
}

/// Reason why arguments could not be decoded.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// The arguments do not match the type.
    Json(serde_json::Error),
    /// The arguments make the request invalid.
    Refused(ProtocolError),
}

/// Returns whether every member of `wanted` is in `declared`.
fn contains(declared: &Value, wanted: &Value) -> bool {
    match (declared, wanted) {
        (Value::Object(declared), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            declared.get(key).is_some_and(|declared| contains(declared, wanted))
        }),
        (declared, wanted) => declared == wanted,
    }
}

impl std::fmt::Debug for Cx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx").field("call", &self.call).finish_non_exhaustive()
    }
}
