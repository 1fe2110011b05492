//! What belongs to no request of ours: questions of legacy servers, and notifications.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use http::HeaderValue;
use outlive_protocol::{Incoming, IncomingKind, InputMode, TaskDialect, era::client};
use outlive_transport::client::http::{HttpLink, HttpReply};
use outlive_wire::{InputRequest, Meta, Method, RequestId, code};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::{
    sync::{Semaphore, broadcast, mpsc},
    task::JoinSet,
};

use super::{
    cache::Cache,
    core::{Core, Established},
    exchange::LAST_EVENT,
    hosted_tasks::{Hosted, Outcome, wants_task},
    input::{DynAnswerer, InputOrigin, PendingInput, Settled, cancelled, settle},
    limits::ClientLimits,
    notice::ServerNotification,
    tool_cache::ToolBook,
};

pub(crate) struct Dispatch {
    label: Arc<str>,
    answerer: Option<Arc<dyn DynAnswerer>>,
    notices: broadcast::Sender<ServerNotification>,
    gate: Semaphore,
    cache: Cache,
    book: ToolBook,
    /// Questions that are answered with tasks.
    hosted: Arc<Hosted>,
}

impl fmt::Debug for Dispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatch").field("label", &self.label).finish_non_exhaustive()
    }
}

impl Dispatch {
    pub(crate) fn new(
        label: String,
        answerer: Option<Arc<dyn DynAnswerer>>,
        limits: &ClientLimits,
    ) -> Self {
        let (notices, _) = broadcast::channel(limits.max_queued_notifications.max(1));
        Self {
            label: label.into(),
            answerer,
            notices,
            gate: Semaphore::new(limits.max_open_inputs),
            cache: Cache::new(limits.max_cache_bytes),
            book: ToolBook::default(),
            hosted: Arc::default(),
        }
    }

    /// How the server is called where it asks something.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    pub(crate) fn answerer(&self) -> Option<&dyn DynAnswerer> {
        self.answerer.as_deref()
    }

    /// What is told outside of any call, from now on.
    pub(crate) fn notices(&self) -> broadcast::Receiver<ServerNotification> {
        self.notices.subscribe()
    }

    /// A notification has come.
    pub(crate) fn heard(&self, message: &Incoming) {
        if let Some(notice) = ServerNotification::read(message) {
            self.tell(notice);
        }
    }

    /// Results that may be kept.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The tools that the server has listed.
    pub(crate) fn book(&self) -> &ToolBook {
        &self.book
    }

    pub(crate) fn tell(&self, notice: ServerNotification) {
        self.cache.heard(&notice);
        self.book.heard(&notice);
        // Nobody listening is no failure.
        let _ = self.notices.send(notice);
    }

    /// There is a new connection: whatever was told in between was missed.
    pub(crate) fn reconnected(&self, again: bool) {
        if again {
            self.tell(ServerNotification::Reconnected);
        }
    }

    /// Answers a request of the server.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        core: &Core,
        here: &Established,
        message: Incoming,
    ) {
        let IncomingKind::Request { id, method, .. } = message.kind() else { return };
        if here.rules.input_mode != InputMode::Stream {
            tracing::warn!("the server sent a request, which its revision does not have");
            return;
        }
        let replied = match method {
            Some(Method::Ping) => here.reply(core, id, Ok(empty()), None).await,
            Some(Method::Elicit | Method::CreateMessage)
                if core.declared.hosts_tasks
                    && here.rules.tasks == TaskDialect::Requested
                    && wants_task(message.params_text()) =>
            {
                let answering = Arc::clone(self).answer_later(message.clone());
                let told = self.hosted.host(message.params_text(), answering);
                self.reply(core, here, id, told).await
            }
            Some(Method::Elicit | Method::CreateMessage | Method::RootsList) => {
                self.answer_question(core, here, id, &message).await
            }
            Some(
                method @ (Method::TasksGet
                | Method::TasksResult
                | Method::TasksCancel
                | Method::TasksList),
            ) if core.declared.hosts_tasks => {
                let told = self.about_hosted(*method, message.params_text()).await;
                self.reply(core, here, id, told).await
            }
            _ => here.reply(core, id, Err((code::METHOD_NOT_FOUND, "no such method")), None).await,
        };
        if let Err(error) = replied {
            tracing::warn!(%error, "an answer did not reach the server");
        }
    }

    async fn answer_question(
        &self,
        core: &Core,
        here: &Established,
        id: &RequestId,
        message: &Incoming,
    ) -> super::Result<()> {
        let Ok(_open) = self.gate.try_acquire() else {
            let error = (code::INTERNAL, "too many questions at once; ask again later");
            return here.reply(core, id, Err(error), None).await;
        };
        let task = related_task(message.params_text());
        let answer = self.settled(message).await;
        match &answer {
            Ok(json) => here.reply(core, id, Ok(json), task.as_deref()).await,
            Err((code, why)) => here.reply(core, id, Err((*code, why)), task.as_deref()).await,
        }
    }

    /// The answer to a question, for a server that will come back for it.
    async fn answer_later(self: Arc<Self>, message: Incoming) -> Outcome {
        self.settled(&message).await
    }

    /// What is said to a question.
    async fn settled(&self, message: &Incoming) -> Outcome {
        let task = related_task(message.params_text());
        let question = question_in(message).and_then(|request| {
            let origin = InputOrigin::Request { task };
            PendingInput::read(request, origin, &self.label, None)
                .map_err(|error| error.to_string())
        });
        let question = question.map_err(|why| (code::INVALID_PARAMS, why))?;
        let is_form =
            matches!(question.request, super::InputKind::Form(_) | super::InputKind::Url(_));
        match settle(self.answerer.as_deref(), question).await {
            Settled::Send(json) => Ok(json),
            Settled::Undeclared(kind) => {
                Err((code::METHOD_NOT_FOUND, format!("this client did not declare {kind}")))
            }
            Settled::Refused(_) if is_form => Ok(cancelled()),
            // The code that the specification has for a user who rejects sampling.
            Settled::Refused(why) => Err((-1, why)),
            Settled::Bad(why) => {
                tracing::error!(why, "the answerer gave an answer that does not fit");
                Err((code::INTERNAL, "the client could not answer".to_owned()))
            }
        }
    }

    /// What a server asks about a task that this client runs.
    async fn about_hosted(&self, method: Method, params: &str) -> Outcome {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            task_id: Option<String>,
        }
        let params: Params = serde_json::from_str(params)
            .map_err(|error| (code::INVALID_PARAMS, error.to_string()))?;
        let id = params.task_id.unwrap_or_default();
        match method {
            Method::TasksList => self.hosted.list(),
            Method::TasksCancel => self.hosted.cancel(&id),
            Method::TasksResult => self.hosted.result(&id).await,
            _ => self.hosted.get(&id),
        }
    }

    async fn reply(
        &self,
        core: &Core,
        here: &Established,
        id: &RequestId,
        told: Outcome,
    ) -> super::Result<()> {
        match &told {
            Ok(json) => here.reply(core, id, Ok(json), None).await,
            Err((code, why)) => here.reply(core, id, Err((*code, why)), None).await,
        }
    }
}

fn empty() -> &'static RawValue {
    serde_json::from_str("{}").expect("an empty object is JSON")
}

/// The task that a message belongs to, if it names one.
pub(crate) fn related_task(params: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Option<Meta>,
    }
    let params: Params = serde_json::from_str(params).ok()?;
    let related = params.meta?.get(Meta::RELATED_TASK)?.get("taskId")?.as_str()?.to_owned();
    Some(related)
}

/// The question in a request.
fn question_in(message: &Incoming) -> Result<InputRequest, String> {
    let IncomingKind::Request { method: Some(method), .. } = message.kind() else {
        return Err("no question".to_owned());
    };
    let params: &RawValue =
        serde_json::from_str(message.params_text()).map_err(|error| error.to_string())?;
    let method = Value::from(method.as_str());
    let whole = format!(r#"{{"method":{method},"params":{}}}"#, params.get());
    serde_json::from_str(&whole).map_err(|error| error.to_string())
}

/// Takes what a pipe brings beside answers, for as long as its connection is there.
pub(crate) async fn run_pipe(
    core: Weak<Core>,
    here: Weak<Established>,
    mut others: mpsc::Receiver<Incoming>,
) {
    let mut asked = JoinSet::new();
    loop {
        let message = tokio::select! {
            message = others.recv() => message,
            Some(_) = asked.join_next(), if !asked.is_empty() => continue,
        };
        let (Some(message), Some(core), Some(here)) = (message, core.upgrade(), here.upgrade())
        else {
            return;
        };
        take(&core, &here, message, &mut asked);
    }
}

fn take(core: &Arc<Core>, here: &Arc<Established>, message: Incoming, asked: &mut JoinSet<()>) {
    match message.kind() {
        IncomingKind::Request { .. } => {
            let (core, here) = (Arc::clone(core), Arc::clone(here));
            asked.spawn(async move { core.dispatch.answer(&core, &here, message).await });
        }
        IncomingKind::Notification { .. } => core.dispatch.heard(&message),
        _ => tracing::warn!("a response that nobody waits for was dropped"),
    }
}

/// Reads the stream that a legacy server has for what belongs to no request, and opens it again
/// when it ends.
pub(crate) async fn run_stream(
    weak: (Weak<Core>, Weak<Established>),
    link: HttpLink,
    mut stream: HttpReply,
) {
    let mut asked = JoinSet::new();
    let mut last: Option<HeaderValue> = None;
    let mut retry = Duration::from_secs(1);
    let mut breaks = 0;
    loop {
        let event = tokio::select! {
            event = stream.event() => event,
            Some(_) = asked.join_next(), if !asked.is_empty() => continue,
        };
        let (Some(core), Some(here)) = (weak.0.upgrade(), weak.1.upgrade()) else { return };
        if let Ok(Some(event)) = event {
            breaks = 0;
            if let Some(id) = &event.id {
                last = HeaderValue::from_str(id).ok();
            }
            retry = event.retry.unwrap_or(retry);
            if !event.data.is_empty() {
                match Incoming::read(event.data.into()) {
                    Ok(message) => take(&core, &here, message, &mut asked),
                    Err(why) => tracing::warn!(why, "something that is no message was skipped"),
                }
            }
            continue;
        }
        drop((core, here));
        stream = match reopen(&weak, &link, last.as_ref(), retry, &mut breaks).await {
            Some(stream) => stream,
            None => return,
        };
    }
}

/// Opens a stream again; `None` if the server has none any more, or nobody needs it.
async fn reopen(
    (core, here): &(Weak<Core>, Weak<Established>),
    link: &HttpLink,
    last: Option<&HeaderValue>,
    retry: Duration,
    breaks: &mut u32,
) -> Option<HttpReply> {
    loop {
        *breaks += 1;
        tokio::time::sleep(retry * (1 << (*breaks - 1).min(5))).await;
        let (core, here) = (core.upgrade()?, here.upgrade()?);
        if *breaks > core.limits().max_stream_resumptions {
            return None;
        }
        let mut headers = here.headers(&core);
        client::version_header(here.rules, &mut headers);
        if let Some(last) = last {
            headers.insert(LAST_EVENT, last.clone());
        }
        match link.get(headers).await {
            Ok(stream) if stream.status.is_success() && stream.is_events() => return Some(stream),
            Ok(stream) if stream.status.is_client_error() => return None,
            _ => {}
        }
    }
}
