//! What a handler can know and say while it works.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use outlive_protocol::{Call, Notify, Principal, Progress, ProtocolError, Session};
use outlive_wire::{ClientCapabilities, Implementation, LoggingLevel, Meta, RawJson};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::to_raw_value};

use crate::server::{
    env::environment::Env,
    error::{Error, Result},
    run::{progress::TaskProgress, state::RunState},
    text_args::{self, TextArgs},
};

/// The context of a call: who calls, what they can do, and the way back to them.
///
/// Take it as an argument of any handler. Cheap to clone, and it may be moved into tasks the
/// handler starts; after the call has ended it says nothing any more.
#[derive(Clone)]
pub struct Cx {
    call: Arc<Call>,
    env: Arc<Env>,
    /// `None` for a plain call, which has no journal and never becomes a task.
    run: Option<Arc<RunState>>,
    arguments: Arguments,
}

/// Where the arguments of a handler come from.
#[derive(Clone)]
pub(crate) enum Arguments {
    /// `params.arguments`, of a tool.
    Json,
    /// `params` itself, of a method of the application's own.
    Params,
    /// Texts, of a prompt or from a URI.
    Text(Arc<TextArgs>),
}

impl Cx {
    /// Returns the context of a plain call.
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

    /// Returns the run; `None` for a plain call.
    pub(crate) fn run(&self) -> Option<&Arc<RunState>> {
        self.run.as_ref()
    }

    /// Returns the context with a run. A handler that does not declare that it needs one gets a run
    /// of its own.
    pub(crate) fn with_run(&self) -> (Self, Arc<RunState>) {
        let new = || Arc::new(RunState::new(&self.env, &self.call));
        let run = self.run.clone().unwrap_or_else(new);
        (Self { run: Some(Arc::clone(&run)), ..self.clone() }, run)
    }

    /// Tells the client how far the work is, if it wants to know. `done` has to grow; what comes
    /// too fast is held back and the newest is sent. An empty message is none.
    ///
    /// Where a task cannot say so, on 2026-07-28 or to a client that gave no token, it becomes what
    /// the task is doing: `packing (3 of 10)`; see [`Cx::set_status_message`].
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
            // The call may become a task, and is as far then.
            Some(run) => TaskProgress::keep(run, &progress),
            None => {}
        }
        if self.call.progress_token().is_some() {
            self.call.port().progress(progress);
        }
    }

    /// Sends a line of log to the client, if it wants lines of this level. Never put secrets in.
    pub fn log(&self, level: LoggingLevel, data: impl Serialize) {
        self.write_log(None, level, data);
    }

    /// As [`Cx::log`], with the name of who says it.
    pub fn log_from(&self, logger: &str, level: LoggingLevel, data: impl Serialize) {
        self.write_log(Some(logger), level, data);
    }

    fn write_log(&self, logger: Option<&str>, level: LoggingLevel, data: impl Serialize) {
        if !self.env.logging || self.call.log_level().is_none_or(|lowest| level < lowest) {
            return;
        }
        match to_raw_value(&data) {
            Ok(data) => self.say(Notify::Log { level, logger: logger.map(Arc::from), data }),
            Err(error) => tracing::warn!(%error, "a log message could not be written as JSON"),
        }
    }

    /// Sends a notification of your own. Its name should carry your prefix.
    ///
    /// # Errors
    ///
    /// When the parameters cannot be written as a JSON object.
    pub fn notify(&self, method: &str, params: impl Serialize) -> Result<()> {
        let params = to_raw_value(&params)?;
        if !params.get().starts_with('{') {
            return Err(Error::new("the parameters of a notification must be an object"));
        }
        self.say(Notify::Custom { method: method.into(), params: Some(params) });
        Ok(())
    }

    /// Closes the connection but not the call: a client that can resume comes back after `retry`
    /// and gets the rest. Does nothing where that cannot be.
    pub fn close_stream(&self, retry: Duration) {
        if self.call.rules().event_ids != outlive_protocol::EventIdMode::None {
            self.say(Notify::Detach { retry });
        }
    }

    /// The task that the call has become, if it has.
    pub fn task_id(&self) -> Option<String> {
        Some(self.run.as_ref()?.task_id()?.as_str().to_owned())
    }

    /// Says what the work is doing, in words, to whoever looks at its task: the status message of
    /// the protocol. It may reach a user or a model. Where the call is no task, nobody looks.
    pub fn set_status_message(&self, message: impl Into<String>) {
        let message = message.into();
        let run = self.run.as_ref();
        let used = |run: &&Arc<RunState>| run.used_journal().is_some() || run.is_promotable();
        if let Some(run) = run.filter(used) {
            run.journal().set_status_message(message);
        }
    }

    /// Whether the client does not want the result any more. A client that leaves takes its call along,
    /// but not its task.
    pub fn is_cancelled(&self) -> bool {
        match &self.run {
            Some(run) if run.is_task() => run.is_task_cancelled(),
            _ => self.call.port().is_cancelled(),
        }
    }

    /// Completes when the client does not want the result any more.
    ///
    /// The handler of a call is dropped then; this is for what it has started. The handler of a task
    /// goes on: it is asked to stop, and has `cancel_grace` (30 seconds by default) for it before it is
    /// dropped. If it returns an error meanwhile the task is `cancelled`; if it returns a result, that
    /// counts. [`Durable`](crate::server::Durable) stops by itself at its next step, timer or question.
    pub async fn cancelled(&self) {
        // The engine polls a handler after it has cancelled its task, so no waker is missed.
        poll_fn(|cx| match self.call.port().poll_cancelled(cx) {
            Poll::Ready(()) if self.is_cancelled() => Poll::Ready(()),
            _ => Poll::Pending,
        })
        .await;
    }

    /// Who is calling.
    pub fn principal(&self) -> &Principal {
        self.call.principal()
    }

    /// The request's `_meta`.
    ///
    /// A call that runs for its request has all keys. A stored task keeps only `progressToken`, the trace
    /// (`traceparent`, `tracestate`, `baggage`), and keys that begin with `io.modelcontextprotocol/` or `dev.outlive/`:
    /// the others are gone when the task runs again from its store, such as after a restart. Record what a handler
    /// needs of them in a step.
    pub fn meta(&self) -> Option<Meta> {
        #[derive(serde::Deserialize)]
        struct Params {
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }
        serde_json::from_str::<Params>(self.call.params()).ok().and_then(|params| params.meta)
    }

    /// What the client says it can do.
    pub fn client_capabilities(&self) -> ClientCapabilities {
        serde_json::from_str(self.call.client_capabilities()).unwrap_or_default()
    }

    /// What the client calls itself. Proof of nothing: clients write it themselves.
    pub fn client_info(&self) -> Option<Implementation> {
        serde_json::from_str(self.call.client_info()?).ok()
    }

    /// Refuses the call unless the client has declared these capabilities: an object such as
    /// `json!({"sampling": {}})`.
    ///
    /// # Errors
    ///
    /// When one is missing. Return it: the client learns what to declare.
    pub fn require_capabilities(&self, capabilities: &Value) -> Result<()> {
        let declared: Value = serde_json::from_str(self.call.client_capabilities())?;
        if contains(&declared, capabilities) {
            return Ok(());
        }
        Err(ProtocolError::MissingCapability { required: to_raw_value(capabilities)? }.into())
    }

    /// The head of the HTTP request, if the call came over HTTP.
    pub fn http_parts(&self) -> Option<&http::request::Parts> {
        self.call.http()
    }

    /// The legacy session, if the call came in on one.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.call.session()
    }

    /// The call itself: id, method, raw parameters.
    pub fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// Adds the exit code of a command that the handler has run to the log line of the call.
    pub fn exit_code(&self, code: i32) {
        self.call.set_exit_code(code);
    }

    pub(crate) fn env(&self) -> &Arc<Env> {
        &self.env
    }

    pub(crate) fn say(&self, notify: Notify) {
        self.call.port().send(notify, self.env.profile.limits.max_queued_notifications);
    }

    /// The arguments as `T`.
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
            // A type without fields, such as `()`, is read from nothing rather than from an object.
            "{}" => serde_json::from_str("null").map_err(|_| Unreadable::Json(error)),
            _ => Err(Unreadable::Json(error)),
        })
    }

    /// The parameters, verbatim.
    pub(crate) fn raw_params(&self) -> Result<RawJson> {
        Ok(RawJson::from(
            serde_json::from_str::<&serde_json::value::RawValue>(self.call.params())?.to_owned(),
        ))
    }
}

/// Why arguments could not be read.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// They do not fit the type.
    Json(serde_json::Error),
    /// The request is refused for them.
    Refused(ProtocolError),
}

/// Whether every member of `wanted` is in `declared`.
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
