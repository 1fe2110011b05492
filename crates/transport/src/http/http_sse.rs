//! HTTP+SSE, the transport of 2024-11-05: one stream for all that the server says, and a second
//! path to which the client posts. The connection is the session; losing the stream ends it.
//! Spec: <https://modelcontextprotocol.io/specification/2024-11-05/basic/transports>

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Response, StatusCode};
use tokio::sync::mpsc;

use super::{
    Body,
    body::{ENOUGH, Source},
    negotiate,
    post::{self, Head},
    reply::{self, event_response},
    service::Shared,
    sessions::new_id,
    sse,
};
use crate::pipe::Pipe;

/// The streams that are open, by the id in the path that their clients post to.
#[derive(Default)]
pub(super) struct Streams(Mutex<HashMap<Arc<str>, Arc<Pipe>>>);

impl Streams {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Pipe>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// GET: opens the stream. Its first event tells where to post.
pub(super) fn open(shared: &Arc<Shared>, head: &Head, messages_path: &str) -> Response<Body> {
    if !negotiate::takes(&head.parts.headers).events {
        return reply::problem(
            StatusCode::NOT_ACCEPTABLE,
            "the Accept header must list text/event-stream",
        );
    }
    let Some(id) = new_id().filter(|_| shared.streams.lock().len() < shared.config.max_sessions)
    else {
        return reply::problem(
            StatusCode::SERVICE_UNAVAILABLE,
            "this server has as many streams as it can hold",
        );
    };
    let (pipe, messages) = Pipe::open_legacy(shared.endpoint.clone(), head.principal.clone());
    shared.streams.lock().insert(Arc::clone(&id), Arc::clone(&pipe));
    let mut first = Vec::new();
    sse::named(&mut first, "endpoint", format!("{messages_path}?session={id}").as_bytes());
    let source = Listener { shared: Arc::clone(shared), id, pipe, messages };
    event_response(Body::events(shared, source, first))
}

/// POST: a message for a stream. What it brings about is told there.
pub(super) async fn message<B>(shared: &Arc<Shared>, head: Head, body: B) -> Response<Body>
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
    let pipe = id.and_then(|id| shared.streams.lock().get(id).cloned());
    // A foreign stream answers like one that does not exist.
    let Some(pipe) = pipe.filter(|pipe| *pipe.principal() == head.principal) else {
        return reply::problem(StatusCode::NOT_FOUND, "no such stream; open one with GET first");
    };
    let message = match post::read(body, pipe.message_limit(), shared.config.idle_connection).await
    {
        Ok(message) => message,
        Err(response) => return *response,
    };
    match pipe.post(&message).await {
        true => reply::accepted(),
        false => {
            reply::problem(StatusCode::NOT_FOUND, "the stream has ended; open one with GET first")
        }
    }
}

/// What the client listens to. Dropping it ends the session.
struct Listener {
    shared: Arc<Shared>,
    id: Arc<str>,
    pipe: Arc<Pipe>,
    messages: mpsc::Receiver<Vec<u8>>,
}

impl Source for Listener {
    fn poll_fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        if self.shared.is_closing() {
            return Poll::Ready(());
        }
        while out.len() < ENOUGH {
            match self.messages.poll_recv(cx) {
                Poll::Ready(Some(lines)) => {
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
        self.shared.streams.lock().remove(&self.id);
        self.pipe.close();
    }
}

/// Ends every stream.
pub(super) fn close_all(shared: &Shared) {
    let pipes: Vec<_> = shared.streams.lock().drain().map(|(_, pipe)| pipe).collect();
    pipes.iter().for_each(|pipe| pipe.close());
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").field("open", &self.lock().len()).finish()
    }
}
