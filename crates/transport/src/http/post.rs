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
use tokio::time::{Instant, Sleep};

use super::{
    Body, HttpConfig, negotiate,
    portable::Named,
    reply,
    service::{SESSION_ID, Shared},
    sessions::HttpSession,
};
use crate::{
    budget::{Budget, Charge, Exceeded, SMALL},
    caller::Caller,
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
    let reading = Reading::of_message(shared, &head.principal, head.peer);
    let message = match read(body, reading).await {
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
    // A call holds what it needs of its message: what is released with it can be used again at once.
    drop(message);
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
    let Head { parts, principal, peer } = &head;
    let named = match shared.settle(&parts.headers, principal, *peer, here).await {
        Ok(Some(entry)) => Named::Here(entry),
        Ok(None) => Named::Unknown,
        Err(response) => return *response,
    };
    let (accepted, entry) = accept(shared, head, &message, named);
    drop(message);
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
    let caller = Caller::new(session.principal(), run.call().peer());
    let entry = match shared.open_session(session, caller).await {
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

/// How a body is read.
pub(super) struct Reading<'a> {
    /// How many bytes it may have.
    limit: usize,
    /// How long its next piece may take.
    pause: Duration,
    /// How long all of it may take.
    timeout: Duration,
    /// Whose bytes they are, if they count.
    counted: Option<(&'a Budget, &'a Principal, Option<IpAddr>)>,
}

impl<'a> Reading<'a> {
    /// A message of a caller.
    pub(super) fn of_message(
        shared: &'a Shared,
        principal: &'a Principal,
        peer: Option<IpAddr>,
    ) -> Self {
        let limit = shared.endpoint.profile().limits.message_bytes;
        Self { counted: Some((&shared.requests, principal, peer)), ..Self::of_body(shared, limit) }
    }

    /// A small body of this many bytes at most.
    pub(super) fn of_body(shared: &'a Shared, limit: usize) -> Self {
        let HttpConfig { idle_connection: pause, body_timeout: timeout, .. } = shared.config;
        Self { limit, pause, timeout, counted: None }
    }

    /// Counts bytes that have come. Those of a plain call are not worth it.
    async fn count(
        &self,
        charge: &mut Option<Charge>,
        before: usize,
        more: usize,
    ) -> Result<(), Box<Response<Body>>> {
        let Some((budget, principal, peer)) = self.counted else { return Ok(()) };
        let bytes = if charge.is_some() { more } else { before + more };
        if bytes <= SMALL && charge.is_none() {
            return Ok(());
        }
        let charge = charge.get_or_insert_with(|| budget.open(Caller::new(principal, peer)));
        if charge.grow(bytes).is_ok() {
            return Ok(());
        }
        // In a box: the future of a plain call is small.
        let grown = Box::pin(charge.grow_within(bytes, ROOM_TIMEOUT)).await;
        grown.map_err(|Exceeded(limit)| {
            let what = "too many bytes of requests are held; wait for the running calls to end";
            Box::new(reply::over_limit(StatusCode::TOO_MANY_REQUESTS, limit, what))
        })
    }
}

/// How long a request waits for others of its caller to end when they hold too many bytes.
const ROOM_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads a body up to the limit. One that comes in one piece is not copied, and one of which no
/// more comes for too long is given up.
pub(super) async fn read<B>(body: B, reading: Reading<'_>) -> Result<Bytes, Box<Response<Body>>>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let limit = reading.limit;
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
    let mut charge = None;
    let mut deadline = None;
    while let Some(frame) = next_frame(&mut body, &reading, &mut deadline).await? {
        let Ok(data) = frame.into_data() else { continue };
        let before = first.len() + rest.len();
        if before + data.len() > limit {
            return Err(too_large());
        }
        reading.count(&mut charge, before, data.len()).await?;
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
    let whole = if rest.is_empty() { first } else { rest.freeze() };
    Ok(match charge {
        Some(charge) => charge.own(whole),
        None => whole,
    })
}

/// How long a body may be that nobody wants.
const UNWANTED: usize = 64 << 10;

/// How long its next piece may take.
const UNWANTED_PAUSE: Duration = Duration::from_secs(1);

/// How long all of it may take.
const UNWANTED_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers a request that needs no reading. What is on its way of it is taken all the same: if it
/// came a moment later, hyper would close the connection, and a client that asks again on it, with a
/// token this time, would hear nothing. Where that is too much, the client is told that it ends.
pub(super) async fn unread<B>(body: B, mut response: Response<Body>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let (pause, timeout) = (UNWANTED_PAUSE, UNWANTED_TIMEOUT);
    let reading = Reading { limit: UNWANTED, pause, timeout, counted: None };
    if read(body, reading).await.is_err() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The next piece of a body. Most are there when they are asked for: no timer is made for those.
async fn next_frame<B>(
    body: &mut Pin<&mut B>,
    reading: &Reading<'_>,
    deadline: &mut Option<Instant>,
) -> Result<Option<Frame<Bytes>>, Box<Response<Body>>>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let broken = |error: B::Error| {
        let message = format!("the request's body broke off: {error}");
        Box::new(reply::problem(StatusCode::BAD_REQUEST, &message))
    };
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|cx| {
        if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
            return Poll::Ready(frame.transpose().map_err(broken));
        }
        let timer = timer.get_or_insert_with(|| {
            let now = Instant::now();
            let last = *deadline.get_or_insert(now + reading.timeout);
            Box::pin(tokio::time::sleep_until(last.min(now + reading.pause)))
        });
        timer.as_mut().poll(cx).map(|()| {
            let message = "the rest of the message did not come in time";
            Err(Box::new(reply::problem(StatusCode::REQUEST_TIMEOUT, message)))
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        pin::Pin,
        task::{Context, Poll, ready},
        time::Duration,
    };

    use bytes::Bytes;
    use http::{StatusCode, header};
    use http_body::Frame;
    use tokio::time::{Instant, Interval, interval};

    use super::{Reading, read, reply, unread};

    /// A body of which one byte comes at a time, for ever.
    struct Trickle(Interval);

    impl Trickle {
        fn every(pause: Duration) -> Self {
            Self(interval(pause))
        }
    }

    impl http_body::Body for Trickle {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            ready!(self.0.poll_tick(cx));
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn trickling_body_is_given_up_at_its_deadline() {
        let (pause, timeout) = (Duration::from_secs(75), Duration::from_secs(60));
        let begun = Instant::now();
        let reading = Reading { limit: 10_000, pause, timeout, counted: None };
        let body = Trickle::every(Duration::from_secs(1));
        let refused = Box::pin(read(body, reading)).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(begun.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn trickling_body_that_nobody_wants_is_given_up_after_five_seconds() {
        let begun = Instant::now();
        let refused = reply::problem(StatusCode::FORBIDDEN, "no");
        let body = Trickle::every(Duration::from_millis(900));
        let response = Box::pin(unread(body, refused)).await;
        assert_eq!(response.headers()[header::CONNECTION], "close");
        assert_eq!(begun.elapsed().as_secs(), 5);
    }
}
