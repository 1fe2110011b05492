//! Requests and notifications that a server initiates.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use http::HeaderValue;
use outlive_protocol::{Incoming, IncomingKind, InputMode, TaskDialect, era::client};
use outlive_transport::client::http::{HttpLink, HttpReply};
use outlive_wire::{Method, RequestId, code};
use serde_json::value::RawValue;
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    dispatch::related_task,
    error::Result,
    event_stream::LAST_EVENT,
    hosted_tasks::{Outcome, wants_task},
    link::{Connection, Link},
    relay::{Destination, NotOpened, RelayInput, RoutedEvent, Watched, required_class},
};

/// Requests of a server that are handled at once on one connection. Further ones get no response.
const MAX_ASKED: usize = 256;

/// Takes a request from the server. Returns the work that responds to it, if there is any.
///
/// An input request is registered at once, so that a later notification can withdraw it.
pub(crate) fn asked(
    here: &Arc<Connection>,
    message: Incoming,
) -> Option<impl Future<Output = ()> + Send + use<>> {
    let IncomingKind::Request { id, method, .. } = message.kind() else { return None };
    if here.rules.input_mode != InputMode::Stream {
        tracing::warn!(
            "ignored a request from the server, which its protocol version does not allow"
        );
        return None;
    }
    let is_input =
        matches!(method, Some(Method::Elicit | Method::CreateMessage | Method::RootsList));
    if let (true, Some(routed)) = (is_input, &here.env.settings.input_events) {
        route(here, routed, message);
        return None;
    }
    let limit = here.env.limits().max_open_inputs;
    let watched = is_input.then(|| here.inputs.watch(id, limit));
    let here = Arc::clone(here);
    Some(async move { answer(&here, &message, watched).await })
}

async fn answer(
    here: &Arc<Connection>,
    message: &Incoming,
    watched: Option<std::result::Result<Watched, NotOpened>>,
) {
    let (dispatch, declared) = (&here.env.dispatch, &here.env.declared);
    let IncomingKind::Request { id, method, .. } = message.kind() else { return };
    let replied = match method {
        Some(Method::Ping) => here.reply(id, Ok(empty()), None).await,
        Some(Method::Elicit | Method::CreateMessage)
            if declared.hosts_tasks
                && here.rules.tasks == TaskDialect::Requested
                && wants_task(message.params_text()) =>
        {
            let answering = Arc::clone(dispatch).answer_later(message.clone());
            let told = dispatch.hosted.host(message.params_text(), answering);
            reply(here, id, told).await
        }
        Some(Method::Elicit | Method::CreateMessage | Method::RootsList) => {
            answer_question(here, id, message, watched).await
        }
        Some(
            method @ (Method::TasksGet
            | Method::TasksResult
            | Method::TasksCancel
            | Method::TasksList),
        ) if declared.hosts_tasks => {
            let told = dispatch.about_hosted(*method, message.params_text()).await;
            reply(here, id, told).await
        }
        _ => here.reply(id, Err((code::METHOD_NOT_FOUND, "method not found")), None).await,
    };
    if let Err(error) = replied {
        tracing::warn!(%error, "cannot send a response to the server");
    }
}

/// Passes an input request to the program that routes them.
fn route(here: &Arc<Connection>, routed: &mpsc::Sender<RoutedEvent>, message: Incoming) {
    let task = related_task(message.params_text());
    let to = task.and_then(|task| here.inputs.of_task(&task));
    let to = to.unwrap_or_else(|| Destination { events: routed.clone(), settled: None });
    if let Some(input) = open_input(here, message, &to) {
        // A full channel drops the input request, which rejects it.
        let _ = to.events.try_send(RoutedEvent::Input(input));
    }
}

/// Registers an input request for a program that relays it. Rejects it if the client does not
/// declare it.
pub(crate) fn open_input(
    here: &Arc<Connection>,
    message: Incoming,
    to: &Destination,
) -> Option<RelayInput> {
    let IncomingKind::Request { id, method: Some(method), .. } = message.kind() else {
        return None;
    };
    let (id, method) = (id.clone(), *method);
    let required = required_class(method, message.params_text())?;
    let opened = match here.env.class.contains(required) {
        true => {
            let task = related_task(message.params_text());
            let path: Weak<Connection> = Arc::downgrade(here);
            let limit = here.env.limits().max_open_inputs;
            here.inputs.open(message, task, path, to, limit)
        }
        false => Err(NotOpened::Undeclared),
    };
    let (code, why) = match opened {
        Ok(input) => return Some(input),
        Err(NotOpened::Duplicate) => {
            tracing::warn!(%id, "ignored an input request whose ID is in use");
            return None;
        }
        Err(NotOpened::Undeclared) => {
            here.env.dispatch.unexpected.input_request();
            (code::METHOD_NOT_FOUND, "this client does not declare this kind of input request")
        }
        Err(NotOpened::TooMany) => (code::INTERNAL, "too many open input requests; retry later"),
    };
    tracing::debug!(%id, method = method.as_str(), why, "rejected an input request");
    let here = Arc::clone(here);
    tokio::spawn(async move {
        let _ = here.reply(&id, Err((code, why)), None).await;
    });
    None
}

async fn answer_question(
    here: &Arc<Connection>,
    id: &RequestId,
    message: &Incoming,
    watched: Option<std::result::Result<Watched, NotOpened>>,
) -> Result<()> {
    let busy = (code::INTERNAL, "too many open input requests; retry later");
    let Ok(_open) = here.env.dispatch.gate.try_acquire() else {
        return here.reply(id, Err(busy), None).await;
    };
    let watched = match watched {
        Some(Err(NotOpened::TooMany)) => return here.reply(id, Err(busy), None).await,
        watched => watched.and_then(std::result::Result::ok),
    };
    let task = related_task(message.params_text());
    let answer = tokio::select! {
        answer = here.env.dispatch.settled(message) => answer,
        // The server does not wait for the response anymore, so the input handler is dropped.
        () = withdrawn(watched.as_ref()) => return Ok(()),
    };
    drop(watched);
    match &answer {
        Ok(json) => here.reply(id, Ok(json), task.as_deref()).await,
        Err((code, why)) => here.reply(id, Err((*code, why)), task.as_deref()).await,
    }
}

async fn withdrawn(watched: Option<&Watched>) {
    match watched {
        Some(watched) => watched.withdrawn().await,
        None => std::future::pending().await,
    }
}

async fn reply(here: &Connection, id: &RequestId, told: Outcome) -> Result<()> {
    match &told {
        Ok(json) => here.reply(id, Ok(json), None).await,
        Err((code, why)) => here.reply(id, Err((*code, why)), None).await,
    }
}

fn empty() -> &'static RawValue {
    serde_json::from_str("{}").expect("an empty object is JSON")
}

/// Handles the messages of a pipe that are not responses, while its connection exists.
pub(crate) async fn run_pipe(here: Weak<Connection>, mut others: mpsc::Receiver<Incoming>) {
    let mut asked = JoinSet::new();
    loop {
        let message = tokio::select! {
            message = others.recv() => message,
            Some(_) = asked.join_next(), if !asked.is_empty() => continue,
        };
        let (Some(message), Some(here)) = (message, here.upgrade()) else {
            return withdraw_all(&here);
        };
        take(&here, message, &mut asked);
        if let Link::Pipe { pipe, .. } = &here.link {
            pipe.count_handled();
        }
    }
}

/// Handles the end of a pipe: its input requests need no response anymore.
fn withdraw_all(here: &Weak<Connection>) {
    if let Some(here) = here.upgrade() {
        here.inputs.close();
    }
}

fn take(here: &Arc<Connection>, message: Incoming, asked: &mut JoinSet<()>) {
    match message.kind() {
        IncomingKind::Request { .. } if asked.len() >= MAX_ASKED => {
            tracing::debug!("dropped a request: the server does not read the responses to others");
        }
        IncomingKind::Request { .. } => {
            if let Some(work) = self::asked(here, message) {
                asked.spawn(work);
            }
        }
        IncomingKind::Notification { .. } => {
            here.inputs.heard(&message);
            here.env.dispatch.heard(&message);
        }
        _ => here.env.dispatch.unexpected.response(),
    }
}

/// Reads the standalone stream of a legacy server and reopens it when it ends.
pub(crate) async fn run_stream(weak: Weak<Connection>, link: HttpLink, mut stream: HttpReply) {
    let mut asked = JoinSet::new();
    let mut last: Option<HeaderValue> = None;
    let mut retry = Duration::from_secs(1);
    let mut breaks = 0;
    loop {
        let event = tokio::select! {
            event = stream.event() => event,
            Some(_) = asked.join_next(), if !asked.is_empty() => continue,
        };
        let Some(here) = weak.upgrade() else { return };
        if let Ok(Some(event)) = event {
            breaks = 0;
            if let Some(id) = &event.id {
                last = HeaderValue::from_str(id).ok();
            }
            retry = event.retry.unwrap_or(retry);
            if !event.data.is_empty() {
                match Incoming::read(event.data.into()) {
                    Ok(message) => take(&here, message, &mut asked),
                    Err(why) => {
                        tracing::warn!(error = why, "skipped an invalid message")
                    }
                }
            }
            continue;
        }
        drop(here);
        stream = match reopen(&weak, &link, last.as_ref(), retry, &mut breaks).await {
            Some(stream) => stream,
            None => return,
        };
    }
}

/// Reopens a stream. Returns `None` if the server no longer offers it or the connection is gone.
async fn reopen(
    here: &Weak<Connection>,
    link: &HttpLink,
    last: Option<&HeaderValue>,
    retry: Duration,
    breaks: &mut u32,
) -> Option<HttpReply> {
    loop {
        *breaks += 1;
        tokio::time::sleep(retry * (1 << (*breaks - 1).min(5))).await;
        let here = here.upgrade()?;
        if *breaks > here.env.limits().max_stream_resumptions {
            return None;
        }
        let mut headers = here.headers();
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
