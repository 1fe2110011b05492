//! The body of a request: read up to a limit, within a time, and counted for its caller.

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

/// How a body is read.
pub(super) struct Reading<'a> {
    /// How many bytes it may have.
    pub(super) limit: usize,
    /// How long its next piece may take.
    pub(super) pause: Duration,
    /// How long all of it may take.
    pub(super) timeout: Duration,
    /// Whose bytes they are, if they count.
    pub(super) counted: Option<(&'a Budget, &'a Principal, Option<IpAddr>)>,
}

impl Reading<'_> {
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
