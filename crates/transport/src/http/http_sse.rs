//! HTTP+SSE, the transport of 2024-11-05: an event stream for messages of the server, and a path
//! for POST requests of the client. A session ends with its stream.
//! Spec: <https://modelcontextprotocol.io/specification/2024-11-05/basic/transports>

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Response, StatusCode};
use outlive_protocol::{ChangeFeed, Receipt};
use tokio::sync::mpsc;

use super::{
    body::{Body, ENOUGH, Source},
    head::Head,
    negotiate,
    reply::{self, event_response},
    request_body::read,
    sessions::new_id,
    sse,
    state::HttpState,
};
use crate::{
    caller::Caller,
    pipe::{Pipe, Unread},
    shares::Share,
};

/// Opens the stream of a GET request. Its first event contains the path for messages.
pub(super) fn open(state: &Arc<HttpState>, head: &Head, messages_path: &str) -> Response<Body> {
    if !negotiate::takes(&head.parts.headers).events {
        return reply::problem(
            StatusCode::NOT_ACCEPTABLE,
            "the Accept header must list text/event-stream",
        );
    }
    let caller = Caller::new(&head.principal, head.peer);
    let share = match &caller {
        Some(caller) => match state.sse_streams.per_caller.enter(caller.clone()) {
            Some(share) => Some(share),
            None => {
                let (status, limit) = (StatusCode::TOO_MANY_REQUESTS, "max_sessions_per_caller");
                return reply::over_limit(
                    status,
                    limit,
                    "all streams of this caller are in use; close one",
                );
            }
        },
        None => None,
    };
    let Some(id) = new_id().filter(|_| state.sse_streams.lock().len() < state.config.max_sessions)
    else {
        let (status, limit) = (StatusCode::SERVICE_UNAVAILABLE, "max_sessions");
        return reply::over_limit(status, limit, "all streams are in use; retry later");
    };
    let (endpoint, principal) = (state.endpoint.clone(), head.principal.clone());
    let end = endpoint.profile().bus.closing();
    let (pipe, messages) =
        Pipe::open_legacy(endpoint, principal, state.unread.clone(), caller.clone());
    state.sse_streams.lock().insert(Arc::clone(&id), Arc::clone(&pipe));
    let mut first = Vec::new();
    sse::named(&mut first, "endpoint", format!("{messages_path}?session={id}").as_bytes());
    let source = Listener {
        state: Arc::clone(state),
        id,
        pipe,
        messages,
        end,
        receipts: Vec::new(),
        _share: share,
    };
    event_response(Body::events(state.stream_settings(), caller, source, first))
}

/// Handles a POST with a message for a stream. The responses are sent on the stream.
pub(super) async fn message<B>(state: &Arc<HttpState>, head: Head, body: B) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    if !negotiate::is_json(&head.parts.headers) {
        return reply::problem(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the Content-Type must be application/json",
        );
    }
    let id = head
        .parts
        .uri
        .query()
        .and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("session=")));
    let pipe = id.and_then(|id| state.sse_streams.lock().get(id).cloned());
    // A stream of another principal gets the same response as a stream that does not exist.
    let Some(pipe) = pipe.filter(|pipe| *pipe.principal() == head.principal) else {
        return reply::problem(StatusCode::NOT_FOUND, "no such stream; open one with GET first");
    };
    let reading = state.message_reading(&head.principal, head.peer);
    let message = match read(body, reading).await {
        Ok(message) => message,
        Err(response) => return *response,
    };
    if pipe.post(&message).await {
        return reply::accepted();
    }
    match pipe.unread().exceeded() {
        Some(limit) => {
            // Closed here, because a stream whose client does not read may never be polled again.
            id.inspect(|id| drop(state.sse_streams.lock().remove(*id)));
            pipe.close();
            let what = "the stream has ended, because its client does not read it";
            reply::over_limit(StatusCode::TOO_MANY_REQUESTS, limit, what)
        }
        None => {
            reply::problem(StatusCode::NOT_FOUND, "the stream has ended; open one with GET first")
        }
    }
}

/// Event source of an HTTP+SSE stream. Dropping it ends the session.
struct Listener {
    state: Arc<HttpState>,
    id: Arc<str>,
    pipe: Arc<Pipe>,
    messages: mpsc::Receiver<Unread>,
    /// Closes when the server drains.
    end: ChangeFeed,
    receipts: Vec<Receipt>,
    _share: Option<Share<Caller>>,
}

impl Source for Listener {
    fn take_receipts(&mut self) -> Vec<Receipt> {
        std::mem::take(&mut self.receipts)
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        let has_ended =
            self.end.poll_next(cx).is_ready() || self.pipe.unread().exceeded().is_some();
        if has_ended || self.state.is_closing() {
            return Poll::Ready(());
        }
        while out.len() < ENOUGH {
            match self.messages.poll_recv(cx) {
                Poll::Ready(Some(mut lines)) => {
                    self.receipts.extend(lines.take_receipt());
                    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                        sse::named(out, "message", line);
                    }
                }
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Pending
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.state.sse_streams.lock().remove(&self.id);
        self.pipe.close();
    }
}
