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
    exchange::LAST_EVENT,
    hosted_tasks::{Outcome, wants_task},
    link::Connection,
};

/// Responds to a request from the server.
pub(crate) async fn answer(here: &Connection, message: Incoming) {
    let (dispatch, declared) = (&here.env.dispatch, &here.env.declared);
    let IncomingKind::Request { id, method, .. } = message.kind() else { return };
    if here.rules.input_mode != InputMode::Stream {
        tracing::warn!(
            "ignored a request from the server, which its protocol version does not allow"
        );
        return;
    }
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
            answer_question(here, id, &message).await
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

async fn answer_question(here: &Connection, id: &RequestId, message: &Incoming) -> Result<()> {
    let Ok(_open) = here.env.dispatch.gate.try_acquire() else {
        let error = (code::INTERNAL, "too many open input requests; retry later");
        return here.reply(id, Err(error), None).await;
    };
    let task = related_task(message.params_text());
    let answer = here.env.dispatch.settled(message).await;
    match &answer {
        Ok(json) => here.reply(id, Ok(json), task.as_deref()).await,
        Err((code, why)) => here.reply(id, Err((*code, why)), task.as_deref()).await,
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
            return;
        };
        take(&here, message, &mut asked);
    }
}

fn take(here: &Arc<Connection>, message: Incoming, asked: &mut JoinSet<()>) {
    match message.kind() {
        IncomingKind::Request { .. } => {
            let here = Arc::clone(here);
            asked.spawn(async move { answer(&here, message).await });
        }
        IncomingKind::Notification { .. } => here.env.dispatch.heard(&message),
        _ => tracing::warn!("dropped a response without a pending request"),
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
