//! Request bodies: read with a size limit and timeouts, and charged to the caller.

use std::{
    future::{Future, poll_fn},
    net::IpAddr,
    pin::Pin,
    task::Poll,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use outlive_protocol::Principal;
use tokio::time::{Instant, Sleep};

use super::{body::Body, reply};
use crate::{
    budget::{Budget, Charge, Exceeded, SMALL},
    caller::Caller,
};

/// Limits for reading a body.
pub(super) struct Reading<'a> {
    /// Maximum bytes.
    pub(super) limit: usize,
    /// Maximum time between two chunks.
    pub(super) pause: Duration,
    /// Maximum time for the whole body.
    pub(super) timeout: Duration,
    /// Budget and caller that the bytes count against. `None` if the bytes are not counted.
    pub(super) counted: Option<(&'a Budget, &'a Principal, Option<IpAddr>)>,
}

impl Reading<'_> {
    /// Charges received bytes to the caller, except those of a small message.
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
        // Boxed because waiting is rare: the future of a plain call stays small.
        let grown = Box::pin(charge.grow_within(bytes, ROOM_TIMEOUT)).await;
        grown.map_err(|Exceeded(limit)| {
            let what = "the running requests use too many bytes; wait for the running calls to end";
            Box::new(reply::over_limit(StatusCode::TOO_MANY_REQUESTS, limit, what))
        })
    }
}

/// Time that a request waits for other requests of its caller to release bytes.
const ROOM_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads a body up to the limit. A body in one chunk is not copied.
///
/// Returns an error response if the body exceeds a limit or a timeout.
pub(super) async fn read<B>(body: B, reading: Reading<'_>) -> Result<Bytes, Box<Response<Body>>>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let limit = reading.limit;
    let too_large = || {
        let message = format!("the message exceeds {limit} bytes");
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
                // Reserve the announced size, to avoid further copies. If the client announces too
                // much, the unused pages are never touched and cost no memory.
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

/// Maximum bytes of a body that is read and discarded.
const UNWANTED: usize = 64 << 10;

/// Maximum time between two chunks of such a body.
const UNWANTED_PAUSE: Duration = Duration::from_secs(1);

/// Maximum time for such a body.
const UNWANTED_TIMEOUT: Duration = Duration::from_secs(5);

/// Responds to a request without using its body.
///
/// Reads and discards the body first: otherwise hyper would close the connection, and a client that
/// retries on it with a token would get no response. If the body is too large or too slow, the
/// response announces that the connection closes.
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

/// Returns the next chunk of a body. Most chunks are available at once and need no timer.
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
        let message = format!("reading the request body failed: {error}");
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
            let message = "the rest of the message did not arrive in time";
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

    /// A body that sends one byte at a time forever.
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
    async fn trickling_body_is_rejected_at_its_deadline() {
        let (pause, timeout) = (Duration::from_secs(75), Duration::from_secs(60));
        let started = Instant::now();
        let reading = Reading { limit: 10_000, pause, timeout, counted: None };
        let body = Trickle::every(Duration::from_secs(1));
        let refused = Box::pin(read(body, reading)).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(started.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn trickling_body_of_rejected_request_closes_connection_after_five_seconds() {
        let started = Instant::now();
        let refused = reply::problem(StatusCode::FORBIDDEN, "no");
        let body = Trickle::every(Duration::from_millis(900));
        let response = Box::pin(unread(body, refused)).await;
        assert_eq!(response.headers()[header::CONNECTION], "close");
        assert_eq!(started.elapsed().as_secs(), 5);
    }
}
