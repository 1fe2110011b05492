//! State that all connections of a client share for messages that servers initiate: the input
//! handler, the subscribers and the caches.

use std::{fmt, sync::Arc};

use outlive_protocol::{Incoming, IncomingKind};
use outlive_wire::{InputRequest, Meta, Method, code};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::sync::{Semaphore, broadcast};

use super::{
    cache::Cache,
    hosted_tasks::{Hosted, Outcome},
    input::{
        DynAnswerer, InputCapabilities, InputKind, InputOrigin, PendingInput, Settled, cancelled,
        settle,
    },
    input_events::{EventRouter, InputEvents},
    limits::ClientLimits,
    notice::ServerNotification,
    tool_cache::ToolBook,
    unexpected::Unexpected,
};

pub(crate) struct Dispatch {
    label: Arc<str>,
    answerer: Option<Arc<dyn DynAnswerer>>,
    /// Input handler of a client that declares capabilities without an input handler.
    events: Option<EventRouter>,
    notices: broadcast::Sender<ServerNotification>,
    pub(super) unexpected: Arc<Unexpected>,
    pub(super) gate: Semaphore,
    cache: Cache,
    book: ToolBook,
    /// Input requests that the client responds to with tasks.
    pub(super) hosted: Arc<Hosted>,
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
        declared: Option<InputCapabilities>,
        limits: &ClientLimits,
    ) -> Self {
        let (notices, _) = broadcast::channel(limits.max_queued_notifications.max(1));
        Self {
            label: label.into(),
            answerer,
            events: declared.map(EventRouter::new),
            notices,
            unexpected: Arc::default(),
            gate: Semaphore::new(limits.max_open_inputs),
            cache: Cache::new(limits.max_cache_bytes),
            book: ToolBook::default(),
            hosted: Arc::default(),
        }
    }

    /// Name of the server in input requests.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Returns the input handler, or the router to the readers of events.
    pub(crate) fn answerer(&self) -> Option<&dyn DynAnswerer> {
        let events = self.events.as_ref().map(|events| events as &dyn DynAnswerer);
        self.input_handler().or(events)
    }

    /// Returns the input handler of the client.
    pub(crate) fn input_handler(&self) -> Option<&dyn DynAnswerer> {
        self.answerer.as_deref()
    }

    /// Returns the input requests of a call, for the reader of its events.
    pub(crate) fn input_events(&self, max_open: usize) -> InputEvents {
        let capabilities = self.answerer().map(DynAnswerer::can).unwrap_or_default();
        let inputs = InputEvents::new(capabilities, max_open);
        if let Some(events) = &self.events {
            events.add(inputs.handler());
        }
        inputs
    }

    /// Subscribes to the notifications that arrive outside of calls.
    pub(crate) fn notices(&self) -> broadcast::Receiver<ServerNotification> {
        self.notices.subscribe()
    }

    /// Handles a notification.
    pub(crate) fn heard(&self, message: &Incoming) {
        if let Some(notice) = ServerNotification::read(message) {
            self.tell(notice);
        }
    }

    /// Results that the server allows to be cached.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Tools that the server listed.
    pub(crate) fn book(&self) -> &ToolBook {
        &self.book
    }

    pub(crate) fn tell(&self, notice: ServerNotification) {
        self.cache.heard(&notice);
        self.book.heard(&notice);
        // Without subscribers the send fails, which is fine.
        let _ = self.notices.send(notice);
    }

    /// Informs subscribers that notifications may be lost because the client reconnected.
    pub(crate) fn reconnected(&self, again: bool) {
        if again {
            self.tell(ServerNotification::Reconnected);
        }
    }

    /// Returns the response to an input request that the client handles as a task.
    pub(super) async fn answer_later(self: Arc<Self>, message: Incoming) -> Outcome {
        self.settled(&message).await
    }

    /// Returns the response to an input request.
    pub(super) async fn settled(&self, message: &Incoming) -> Outcome {
        let task = related_task(message.params_text());
        let question = question_in(message).and_then(|request| {
            let origin = InputOrigin::Request { task };
            PendingInput::read(request, origin, &self.label, None)
                .map_err(|error| error.to_string())
        });
        let question = question.map_err(|why| (code::INVALID_PARAMS, why))?;
        let is_form = matches!(question.request, InputKind::Form(_) | InputKind::Url(_));
        match settle(self.answerer(), question).await {
            Settled::Send(json) => Ok(json),
            Settled::Undeclared(kind) => {
                Err((code::METHOD_NOT_FOUND, format!("this client does not declare {kind}")))
            }
            Settled::Refused(_) if is_form => Ok(cancelled()),
            // The specification's code for a user who rejects sampling.
            Settled::Refused(why) => Err((-1, why)),
            Settled::Bad(why) => {
                tracing::error!(error = why, "the input handler returned an invalid response");
                Err((code::INTERNAL, "the input handler of the client failed".to_owned()))
            }
        }
    }

    /// Handles a server's request about a task that this client runs.
    pub(super) async fn about_hosted(&self, method: Method, params: &str) -> Outcome {
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
}

/// Returns the ID of the task that a message belongs to, if it names one.
pub(super) fn related_task(params: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Option<Meta>,
    }
    let params: Params = serde_json::from_str(params).ok()?;
    let related = params.meta?.get(Meta::RELATED_TASK)?.get("taskId")?.as_str()?.to_owned();
    Some(related)
}

/// Parses the input request of a message.
fn question_in(message: &Incoming) -> Result<InputRequest, String> {
    let IncomingKind::Request { method: Some(method), .. } = message.kind() else {
        return Err("not an input request".to_owned());
    };
    let params: &RawValue =
        serde_json::from_str(message.params_text()).map_err(|error| error.to_string())?;
    let method = Value::from(method.as_str());
    let whole = format!(r#"{{"method":{method},"params":{}}}"#, params.get());
    serde_json::from_str(&whole).map_err(|error| error.to_string())
}
