//! Body of a response: empty, a byte buffer, or an event stream.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use outlive_protocol::{ChangeFeed, GaugeGuard, Profile, Receipt};

use super::sse;
use crate::{
    budget::{Budget, Exceeded, SMALL},
    caller::Caller,
};

/// The body of a response.
pub struct Body(Kind);

enum Kind {
    Full(Bytes),
    /// A full body with callbacks for its delivery. Boxed, because it is rare.
    Tracked(Box<(Bytes, Vec<Receipt>)>),
    // Boxed, so that full responses do not pay for the size of streams.
    Events(Box<Events>),
}

/// Source of the events of a stream. Dropping it signals that the client disconnected.
pub(super) trait Source: Send {
    /// Appends the available events. Returns `Ready` at the end of the stream.
    fn poll_fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()>;

    /// Takes the callbacks for the delivery of the events that were appended.
    fn take_receipts(&mut self) -> Vec<Receipt> {
        Vec::new()
    }
}

/// Server settings that an event stream needs.
#[derive(Clone, Copy)]
pub(super) struct StreamSettings<'a> {
    pub(super) profile: &'a Profile,
    pub(super) keep_alive: Duration,
    /// Budget for the bytes that the client has not read.
    pub(super) unread: &'a Budget,
}

/// Maximum bytes that a stream collects before it sends them.
pub(super) const ENOUGH: usize = 64 << 10;

pub(super) struct Events {
    source: Option<Box<dyn Source>>,
    /// Whether the stream stays open for a long time with few events.
    is_held: bool,
    out: Vec<u8>,
    /// Callbacks for the delivery of the bytes in `out`.
    receipts: Vec<Receipt>,
    interval: Duration,
    // The timer is created when the stream is first idle.
    keep_alive: Option<Pin<Box<Sleep>>>,
    /// Budget for the unread bytes, and the caller that they count against.
    unread: Budget,
    caller: Option<Caller>,
    /// Closes when the process ends.
    cutoff: ChangeFeed,
    _open: GaugeGuard,
}

impl Body {
    pub(super) fn empty() -> Self {
        Self::full(Bytes::new())
    }

    pub(super) fn full(bytes: Bytes) -> Self {
        Self(Kind::Full(bytes))
    }

    /// Creates a full body. The receipts are called when the body was written.
    pub(super) fn tracked(bytes: Bytes, receipts: Vec<Receipt>) -> Self {
        match receipts.is_empty() {
            true => Self::full(bytes),
            false => Self(Kind::Tracked(Box::new((bytes, receipts)))),
        }
    }

    /// Creates a stream that sends `first` and then the events of the source.
    pub(super) fn events(
        settings: StreamSettings<'_>,
        caller: Option<Caller>,
        source: impl Source + 'static,
        first: Vec<u8>,
    ) -> Self {
        Self::stream(settings, caller, Box::new(source), first, false)
    }

    /// Creates a stream that stays open for a long time with few events.
    pub(super) fn held(
        settings: StreamSettings<'_>,
        caller: Option<Caller>,
        source: impl Source + 'static,
        first: Vec<u8>,
    ) -> Self {
        Self::stream(settings, caller, Box::new(source), first, true)
    }

    fn stream(
        settings: StreamSettings<'_>,
        caller: Option<Caller>,
        source: Box<dyn Source>,
        first: Vec<u8>,
        is_held: bool,
    ) -> Self {
        let StreamSettings { profile, keep_alive: interval, unread } = settings;
        Self(Kind::Events(Box::new(Events {
            source: Some(source),
            is_held,
            out: first,
            receipts: Vec::new(),
            interval,
            keep_alive: None,
            unread: unread.clone(),
            caller,
            cutoff: profile.cutoff.closing(),
            _open: profile.streams.enter(),
        })))
    }
}

impl Body {
    pub(super) fn is_held(&self) -> bool {
        matches!(&self.0, Kind::Events(events) if events.is_held)
    }

    pub(super) fn into_events(self) -> Option<Box<Events>> {
        match self.0 {
            Kind::Events(events) => Some(events),
            Kind::Full(_) | Kind::Tracked(_) => None,
        }
    }
}

impl Events {
    /// Returns the next bytes, or `None` at the end of the stream.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(source) = &mut self.source {
            let has_ended =
                self.out.len() < ENOUGH && source.poll_fill(cx, &mut self.out).is_ready();
            self.receipts.append(&mut source.take_receipts());
            if has_ended {
                self.source = None;
            }
        }
        if self.cutoff.poll_next(cx).is_ready() {
            self.source = None;
        }
        if !self.out.is_empty() {
            if let Some(timer) = &mut self.keep_alive {
                timer.as_mut().reset(Instant::now() + self.interval);
            }
            return Poll::Ready(self.counted());
        }
        if self.source.is_none() {
            return Poll::Ready(None);
        }
        let interval = self.interval;
        let timer = self.keep_alive.get_or_insert_with(|| Box::pin(tokio::time::sleep(interval)));
        std::task::ready!(timer.as_mut().poll(cx));
        timer.as_mut().reset(Instant::now() + interval);
        Poll::Ready(Some(Bytes::from_static(sse::KEEP_ALIVE)))
    }
}

impl Events {
    /// Returns the next bytes to send, charged to the caller until the client reads them. Ends the
    /// stream if the caller exceeds its budget.
    fn counted(&mut self) -> Option<Bytes> {
        let out = Bytes::from(std::mem::take(&mut self.out));
        let out = tracked(out, std::mem::take(&mut self.receipts));
        if out.len() <= SMALL {
            return Some(out);
        }
        let mut charge = self.unread.open(self.caller.clone());
        match charge.grow(out.len()) {
            Ok(()) => Some(charge.own(out)),
            Err(Exceeded(limit)) => {
                tracing::debug!(limit, "closing a stream: its client does not read");
                self.source = None;
                None
            }
        }
    }
}

/// Ties receipts to the bytes that hyper writes. hyper drops the bytes after it has written them or
/// copied them into its write buffer.
fn tracked(bytes: Bytes, receipts: Vec<Receipt>) -> Bytes {
    struct Tracked(Bytes, Vec<Receipt>);
    impl AsRef<[u8]> for Tracked {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Tracked {
        fn drop(&mut self) {
            self.1.drain(..).for_each(Receipt::delivered);
        }
    }
    match receipts.is_empty() {
        true => bytes,
        false => Bytes::from_owner(Tracked(bytes, receipts)),
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Tracked(_) => {
                let Kind::Tracked(tracked_body) =
                    std::mem::replace(&mut self.0, Kind::Full(Bytes::new()))
                else {
                    return Poll::Ready(None);
                };
                let (bytes, receipts) = *tracked_body;
                Poll::Ready(Some(Ok(Frame::data(tracked(bytes, receipts)))))
            }
            Kind::Events(events) => {
                events.poll(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Tracked(_) => false,
            Kind::Events(events) => events.source.is_none() && events.out.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Tracked(body) => SizeHint::with_exact(body.0.len() as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Full(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Kind::Tracked(body) => write!(f, "Body({} bytes)", body.0.len()),
            Kind::Events(_) => f.write_str("Body(events)"),
        }
    }
}
