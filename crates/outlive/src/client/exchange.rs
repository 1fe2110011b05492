//! One request and all messages that belong to it.
//!
//! On a pipe the messages come from a mailbox. Over HTTP they come from the response body, which
//! legacy clients can resume after a disconnect. Dropping an exchange before its response cancels
//! the request.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use outlive_protocol::{
    Incoming, IncomingKind, OnDisconnect,
    era::client::{Outgoing, client_codec},
};
use outlive_transport::client::{
    TransportError, TransportErrorKind,
    http::{HttpLink, HttpReply},
    pipe::Mailbox,
};
use outlive_wire::{ErrorObject, Method};

use super::{
    error::{Error, ServerError, ServerErrorKind},
    event_stream::EventStream,
    link::{Connection, Link, SESSION},
    relay::PointCell,
};

/// An open request.
#[derive(Debug)]
pub(crate) struct Exchange {
    here: Arc<Connection>,
    id: u64,
    way: Way,
    /// HTTP status of the response.
    status: Option<u16>,
    /// Session ID that the server assigned with the response.
    pub(crate) session: Option<HeaderValue>,
    is_terminal: bool,
    /// Whether dropping the exchange cancels the request at the server. A handshake is never
    /// cancelled.
    cancels: bool,
}

#[derive(Debug)]
enum Way {
    Mail(Mailbox),
    /// Messages of a complete body.
    Whole(std::vec::IntoIter<Bytes>),
    Events(EventStream),
}

/// Failure of an exchange.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The server does not know the session, so it has not executed the request.
    SessionGone,
    /// An HTTP error status, with the JSON-RPC error of its body.
    Status { status: u16, error: Option<ErrorObject>, retry_after: Option<Duration> },
    /// Any other failure.
    Error(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<TransportError> for Failed {
    fn from(error: TransportError) -> Self {
        Self::Error(error.into())
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Error(error) => error,
            Failed::SessionGone => {
                Error::Transport(TransportError::unsent(TransportErrorKind::Status(404)))
            }
            Failed::Status { status, error: Some(error), retry_after } => {
                let mut refused = ServerError::of(error, Some(status));
                if let (ServerErrorKind::RateLimited { retry_after: none @ None }, Some(_)) =
                    (&mut refused.kind, retry_after)
                {
                    *none = retry_after;
                }
                refused.into()
            }
            Failed::Status { status, error: None, retry_after } => {
                let message = StatusCode::from_u16(status)
                    .ok()
                    .and_then(|status| status.canonical_reason())
                    .unwrap_or("unknown status");
                let reason = match status {
                    401 => ServerErrorKind::Unauthorized,
                    403 => ServerErrorKind::Forbidden,
                    429 => ServerErrorKind::RateLimited { retry_after },
                    503 if retry_after.is_some() => ServerErrorKind::RateLimited { retry_after },
                    _ => {
                        return TransportError::after_sending(TransportErrorKind::Status(status))
                            .into();
                    }
                };
                let mut refused = ServerError::plain(reason, i32::from(status), message);
                refused.status = Some(status);
                refused.into()
            }
        }
    }
}

impl Exchange {
    /// Sends a request.
    pub(crate) async fn open(
        here: &Arc<Connection>,
        request: &Outgoing<'_>,
    ) -> Result<Self, Failed> {
        let id = request.id.unwrap_or_default();
        let exchange = |id, way, status, session| Self {
            here: Arc::clone(here),
            id,
            way,
            status,
            session,
            is_terminal: false,
            cancels: Method::parse(request.method) != Some(Method::Initialize),
        };
        match &here.link {
            Link::Pipe { pipe, .. } => {
                // Dropping the exchange cancels the request from here on, even during the send.
                let exchange = exchange(id, Way::Mail(pipe.expect(id)), None, None);
                pipe.send(here.write(request)).await?;
                Ok(exchange)
            }
            Link::Http { link, .. } => {
                let id = AtomicU64::new(id);
                let guard = Unanswered {
                    here,
                    id: &id,
                    armed: here.rules.on_disconnect != OnDisconnect::Cancel,
                };
                let reply = post(here, link, request, &id).await;
                guard.disarm();
                let reply = reply?;
                let session = reply.headers.get(SESSION).cloned();
                let status = reply.status.as_u16();
                let way = receive(reply).await?;
                Ok(exchange(id.into_inner(), way, Some(status), session))
            }
        }
    }

    /// Continues a request that another process sent on the same pipe. Returns `None` over HTTP.
    pub(crate) fn attach(here: &Arc<Connection>, id: u64) -> Option<Self> {
        let Link::Pipe { pipe, .. } = &here.link else { return None };
        Some(Self::continued(here, id, Way::Mail(pipe.expect(id))))
    }

    /// Returns the exchange of a request whose stream another process has read until an event.
    pub(crate) fn resumed(here: &Arc<Connection>, id: u64, last: HeaderValue) -> Self {
        Self::continued(here, id, Way::Events(EventStream::resumed(last)))
    }

    fn continued(here: &Arc<Connection>, id: u64, way: Way) -> Self {
        Self {
            here: Arc::clone(here),
            id,
            way,
            status: None,
            session: None,
            is_terminal: false,
            cancels: true,
        }
    }

    /// Reports the position in the response stream from now on, if there is one.
    pub(crate) fn report_to(&mut self, cell: &Arc<PointCell>) {
        if let Way::Events(stream) = &mut self.way {
            stream.report_to(cell, &self.here, self.id);
        }
    }

    /// Returns the next message, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<Incoming>, Failed> {
        loop {
            let message = match &mut self.way {
                Way::Mail(mail) => match mail.next().await {
                    Ok(message) => return Ok(Some(message)),
                    Err(error) => {
                        self.is_terminal = true;
                        return Err(error.into());
                    }
                },
                Way::Whole(messages) => match messages.next() {
                    Some(message) => message,
                    None => return Ok(None),
                },
                Way::Events(stream) => match stream.next(&self.here).await? {
                    Some(data) => data,
                    None => {
                        self.is_terminal = true;
                        return Ok(None);
                    }
                },
            };
            match Incoming::read(message) {
                Ok(message) => return Ok(Some(message)),
                // A stream may continue after an invalid message; a single body is the response
                // itself.
                Err(why) if matches!(self.way, Way::Whole(_)) => {
                    return Err(Error::broke(why).into());
                }
                Err(why) => tracing::warn!(error = why, "skipped an invalid message"),
            }
        }
    }

    /// Returns whether a message is the response to this request.
    pub(crate) fn is_answer(&self, message: &Incoming) -> bool {
        match message.kind() {
            IncomingKind::Result { .. } => message.answers() == Some(self.id),
            // An error without an ID on a request's own stream belongs to this request.
            IncomingKind::Error { unnamed, .. } => {
                message.answers() == Some(self.id)
                    || (*unnamed && !matches!(self.way, Way::Mail(_)))
            }
            _ => false,
        }
    }

    /// Returns the connection of the request.
    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.here
    }

    /// Cancels the request at the server.
    pub(crate) fn cancel(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.is_terminal, true) && self.cancels {
            self.here.withdraw(self.id, reason);
        }
    }

    /// Marks the request as done, so that dropping the exchange does not cancel it.
    pub(crate) fn settle(&mut self) {
        self.is_terminal = true;
    }

    pub(crate) fn status(&self) -> Option<u16> {
        self.status
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.cancel("the client no longer waits for the result");
    }
}

/// Guard for a request whose response has not started. Dropping it cancels the request explicitly,
/// for protocol versions in which a disconnect is not a cancellation.
struct Unanswered<'a> {
    here: &'a Arc<Connection>,
    /// ID of the latest attempt.
    id: &'a AtomicU64,
    armed: bool,
}

impl Unanswered<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.armed {
            let id = self.id.load(Ordering::Relaxed);
            self.here.withdraw(id, "the client no longer waits for the result");
        }
    }
}

/// Sends a request over HTTP and stores the ID of the latest attempt in `id`.
async fn post(
    here: &Connection,
    link: &HttpLink,
    request: &Outgoing<'_>,
    id: &AtomicU64,
) -> Result<HttpReply, Failed> {
    let mut headers = here.headers();
    client_codec(here.rules.era).headers(here.rules, request, &mut headers);
    let had_session = headers.contains_key(SESSION);
    let mut is_first = true;
    let write = || {
        // A rejected attempt has used its ID, and a session must not reuse an ID.
        if !std::mem::take(&mut is_first) && request.id.is_some() {
            id.store(here.env.next_id(), Ordering::Relaxed);
        }
        let id = request.id.map(|_| id.load(Ordering::Relaxed));
        here.write(&Outgoing { id, ..*request })
    };
    let mut reply = link.post_anew(headers, write).await?;
    let status = reply.status;
    if status.is_success() {
        return Ok(reply);
    }
    if status == StatusCode::NOT_FOUND && had_session {
        let _ = reply.bytes().await;
        return Err(Failed::SessionGone);
    }
    Err(refusal(&mut reply).await)
}

/// Reads an HTTP error response.
async fn refusal(reply: &mut HttpReply) -> Failed {
    let (status, retry_after) = (reply.status.as_u16(), reply.retry_after());
    // An unreadable body still leaves the status.
    let body = reply.bytes().await.unwrap_or_default();
    let error = match Incoming::read(body).map(|message| message.kind().clone()) {
        Ok(IncomingKind::Error { error, .. }) => Some(error),
        _ => None,
    };
    Failed::Status { status, error, retry_after }
}

/// Reads a successful HTTP response.
async fn receive(mut reply: HttpReply) -> Result<Way, Failed> {
    if reply.is_events() {
        return Ok(Way::Events(EventStream::new(reply)));
    }
    if !reply.is_json() {
        return Err(Error::broke(format!(
            "the response with status {} is neither JSON nor an event stream",
            reply.status
        ))
        .into());
    }
    let body = reply.bytes().await?;
    let messages = match body.trim_ascii_start().first() {
        // 2025-03-26 allows batches.
        Some(b'[') => {
            let parts: Vec<&serde_json::value::RawValue> =
                serde_json::from_slice(&body).map_err(|error| {
                    Error::broke(format!("the response is not valid JSON: {error}"))
                })?;
            parts.into_iter().map(|part| body.slice_ref(part.get().as_bytes())).collect()
        }
        _ => vec![body],
    };
    Ok(Way::Whole(messages.into_iter()))
}
