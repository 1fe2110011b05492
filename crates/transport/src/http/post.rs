//! POST: a message comes in. Most calls are answered with one JSON body; a call that speaks
//! before its result, or takes long, is answered with a stream of events.

mod answer;
mod stream;

use std::{
    future::{Future, poll_fn},
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use http_body::Frame;
use outlive_protocol::{Accepted, Arrival, Principal, Run, Session, era};
use tokio::time::Sleep;

use super::{
    Body, negotiate,
    portable::Named,
    reply,
    service::{SESSION_ID, Shared},
    sessions::HttpSession,
};

/// A request's head and who sent it.
pub(super) struct Head {
    pub(super) parts: Box<Parts>,
    pub(super) principal: Principal,
    pub(super) peer: Option<IpAddr>,
}

/// Takes one POST.
pub(super) async fn post<B>(shared: &Arc<Shared>, head: Head, body: B) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let headers = &head.parts.headers;
    if !negotiate::is_json(headers) {
        let refused = reply::problem(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the Content-Type must be application/json",
        );
        return Box::pin(unread(body, refused)).await;
    }
    let takes = negotiate::takes(headers);
    if !takes.json && !takes.events {
        let refused = reply::problem(
            StatusCode::NOT_ACCEPTABLE,
            "the Accept header must list application/json and text/event-stream",
        );
        return Box::pin(unread(body, refused)).await;
    }
    let limit = shared.endpoint.profile().limits.message_bytes;
    let message = match read(body, limit, shared.config.idle_connection).await {
        Ok(message) => message,
        Err(response) => return *response,
    };
    // Modern requests have no session, whatever their headers say beside it.
    let named = match shared.config.sessions && !era::headers_look_modern(&head.parts.headers) {
        true => shared.named_session(&head.parts.headers, &head.principal),
        false => Named::None,
    };
    if let Named::Unsure(here) = named {
        // Boxed is what is rare, so that the future of a plain call is small.
        return Box::pin(settled(shared, head, message, here, takes)).await;
    }
    let (accepted, entry) = accept(shared, head, &message, named);
    match accepted {
        Accepted::Call(run) => answer::one(shared, run, entry, takes).await,
        Accepted::Noted => reply::accepted(),
        Accepted::Refused(refusal) => reply::refusal(refusal),
        other => Box::pin(rest(shared, other, entry, takes)).await,
    }
}

/// Takes a message whose session only the keeper knows.
async fn settled(
    shared: &Arc<Shared>,
    head: Head,
    message: Bytes,
    here: Option<Arc<HttpSession>>,
    takes: negotiate::Takes,
) -> Response<Body> {
    let named = match shared.settle(&head.parts.headers, &head.principal, here).await {
        Ok(Some(entry)) => Named::Here(entry),
        Ok(None) => Named::Unknown,
        Err(response) => return *response,
    };
    let (accepted, entry) = accept(shared, head, &message, named);
    rest(shared, accepted, entry, takes).await
}

/// Hands a message to the server.
fn accept(
    shared: &Shared,
    head: Head,
    message: &Bytes,
    named: Named,
) -> (Accepted, Option<Arc<HttpSession>>) {
    let lost_session = matches!(named, Named::Unknown);
    let entry = match named {
        Named::Here(entry) => Some(entry),
        _ => None,
    };
    let session = entry.as_ref().map(|entry| Arc::clone(&entry.session));
    let arrival = Arrival {
        principal: head.principal,
        in_flight: session.as_deref().map(|session| &**session.in_flight()),
        session: session.clone(),
        peer: head.peer,
        http: Some(head.parts),
        stateless: !shared.config.sessions,
        lost_session,
        legacy_only: false,
    };
    (shared.endpoint.accept(message, arrival), entry)
}

/// Answers whatever a message was.
async fn rest(
    shared: &Arc<Shared>,
    accepted: Accepted,
    entry: Option<Arc<HttpSession>>,
    takes: negotiate::Takes,
) -> Response<Body> {
    match accepted {
        Accepted::Call(run) => answer::one(shared, run, entry, takes).await,
        Accepted::Handshake(run, session) => handshake(shared, run, session, takes).await,
        Accepted::Noted => reply::accepted(),
        Accepted::Stray(stray) => shared.hand_on(*stray).await,
        Accepted::Refused(refusal) => reply::refusal(refusal),
        Accepted::Batch(parts) => answer::batch(shared, parts, entry, takes).await,
    }
}

/// Answers `initialize`, and opens the session if servers keep sessions here.
async fn handshake(
    shared: &Arc<Shared>,
    run: Run,
    session: Arc<Session>,
    takes: negotiate::Takes,
) -> Response<Body> {
    if !shared.config.sessions {
        return answer::one(shared, run, None, takes).await;
    }
    let entry = match shared.open_session(session).await {
        Ok(entry) => entry,
        Err(response) => return *response,
    };
    let id = HeaderValue::from_str(&entry.id);
    let mut response = answer::one(shared, run, Some(entry), takes).await;
    if let Ok(id) = id {
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
}

/// Reads a body up to the limit. One that comes in one piece is not copied, and one of which no
/// more comes for too long is given up.
pub(super) async fn read<B>(
    body: B,
    limit: usize,
    patience: Duration,
) -> Result<Bytes, Box<Response<Body>>>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let too_large = || {
        let message = format!("the message is larger than {limit} bytes");
        Box::new(reply::problem(StatusCode::PAYLOAD_TOO_LARGE, &message))
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = next_frame(&mut body, patience).await? {
        let frame = frame.map_err(|error| {
            let message = format!("the request's body broke off: {error}");
            Box::new(reply::problem(StatusCode::BAD_REQUEST, &message))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > limit {
            return Err(too_large());
        }
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                // Room for all that was announced, so that nothing is copied again. A page of it
                // that nothing comes for is never touched, and so costs a liar's victim nothing.
                let announced = usize::try_from(body.size_hint().lower()).unwrap_or(limit);
                rest.reserve(first.len() + data.len() + announced.min(limit));
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// How long a body may be that nobody wants.
const UNWANTED: usize = 64 << 10;

/// How long its next piece may take.
const UNWANTED_PATIENCE: Duration = Duration::from_secs(1);

/// Answers a request that needs no reading. What is on its way of it is taken all the same: if it
/// came a moment later, hyper would close the connection, and a client that asks again on it, with a
/// token this time, would hear nothing. Where that is too much, the client is told that it ends.
pub(super) async fn unread<B>(body: B, mut response: Response<Body>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    if read(body, UNWANTED, UNWANTED_PATIENCE).await.is_err() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The next piece of a body. Most are there when they are asked for: no timer is made for those.
async fn next_frame<B>(
    body: &mut Pin<&mut B>,
    patience: Duration,
) -> Result<Option<Result<Frame<Bytes>, B::Error>>, Box<Response<Body>>>
where
    B: http_body::Body<Data = Bytes>,
{
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|cx| {
        if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
            return Poll::Ready(Ok(frame));
        }
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        timer.as_mut().poll(cx).map(|()| {
            let message = "the rest of the message did not come";
            Err(Box::new(reply::problem(StatusCode::REQUEST_TIMEOUT, message)))
        })
    })
    .await
}
