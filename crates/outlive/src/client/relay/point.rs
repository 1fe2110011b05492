//! Position in the response stream of a request, from which another process can continue.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::HeaderValue;
use serde::{Deserialize, Serialize};

use super::input::InputState;

/// Position in the response stream of a request to a legacy server over HTTP. After a restart,
/// [`Client::resume_at`](crate::client::Client::resume_at) continues there.
///
/// It grants access to the response, so store it like a secret. `Debug` hides it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamPoint {
    /// Protocol version of the session.
    #[serde(rename = "version")]
    pub(crate) protocol_version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// ID of the request.
    pub(crate) request: u64,
    /// ID of the last event.
    pub(crate) event: String,
}

impl fmt::Debug for StreamPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamPoint").field("request", &self.request).finish_non_exhaustive()
    }
}

/// The current [`StreamPoint`] of an exchange, which may still change. All clones show the same point.
#[derive(Clone, Debug, Default)]
pub struct StreamPosition(pub(crate) Arc<PointCell>);

impl StreamPosition {
    /// Returns the point from which another process can continue. Returns `None` if the response is
    /// not a stream that can be resumed, or has not started.
    ///
    /// While an input request of the stream is open, the point is before it, so that the server sends
    /// it again.
    pub fn point(&self) -> Option<StreamPoint> {
        self.0.point()
    }
}

/// The point of an exchange, which the reader of its stream updates.
#[derive(Debug, Default)]
pub(crate) struct PointCell {
    // A std mutex: no code awaits while it is held.
    state: Mutex<PointState>,
}

#[derive(Debug, Default)]
struct PointState {
    /// The request, once its stream has started.
    stream: Option<OpenStream>,
    /// ID of the newest event, and of the one before it.
    last: Option<HeaderValue>,
    before: Option<HeaderValue>,
    /// Open input requests, each with the ID of the event before it.
    open: Vec<(Arc<InputState>, Option<HeaderValue>)>,
}

/// A request whose response is a stream with event IDs.
#[derive(Clone, Debug)]
pub(crate) struct OpenStream {
    pub(crate) protocol_version: &'static str,
    pub(crate) session: Option<HeaderValue>,
    pub(crate) request: u64,
}

impl PointCell {
    /// Records the stream.
    pub(crate) fn open(&self, stream: OpenStream, last: Option<HeaderValue>) {
        let mut state = self.lock();
        state.stream = Some(stream);
        state.last = last;
    }

    /// Records an event with the ID of the last event so far.
    pub(crate) fn moved(&self, last: Option<&HeaderValue>) {
        let mut state = self.lock();
        state.before = state.last.take();
        state.last = last.cloned();
    }

    /// Keeps the point before the newest event while its input request is open.
    pub(crate) fn hold(&self, input: Arc<InputState>) {
        let mut state = self.lock();
        let before = state.before.clone();
        state.open.push((input, before));
    }

    fn point(&self) -> Option<StreamPoint> {
        let mut state = self.lock();
        state.open.retain(|(input, _)| input.is_open());
        let stream = state.stream.as_ref()?;
        let event = match state.open.first() {
            Some((_, before)) => before.as_ref()?,
            None => state.last.as_ref()?,
        };
        let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
        Some(StreamPoint {
            protocol_version: stream.protocol_version.to_owned(),
            session: match &stream.session {
                Some(session) => Some(text(session)?),
                None => None,
            },
            request: stream.request,
            event: text(event)?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, PointState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::HeaderValue;
    use outlive_wire::RequestId;

    use super::{InputState, OpenStream, PointCell, StreamPosition};

    fn event(cell: &PointCell, id: &'static str) {
        cell.moved(Some(&HeaderValue::from_static(id)));
    }

    fn input() -> Arc<InputState> {
        let id: RequestId = serde_json::from_str("0").unwrap();
        Arc::new(InputState::new(id, None))
    }

    #[test]
    fn point_stays_before_the_first_open_input_request() {
        let position = StreamPosition::default();
        let cell = &position.0;
        let point = || position.point().map(|point| point.event);
        assert_eq!(point(), None);
        let session = Some(HeaderValue::from_static("s"));
        let stream = OpenStream { protocol_version: "2025-11-25", session, request: 7 };
        cell.open(stream, None);
        assert_eq!(point(), None, "no event has an ID yet");
        event(cell, "a");
        event(cell, "b");
        let (first, second) = (input(), input());
        cell.hold(Arc::clone(&first));
        event(cell, "c");
        cell.hold(Arc::clone(&second));
        event(cell, "d");
        assert_eq!(point().as_deref(), Some("a"));
        first.settle();
        assert_eq!(point().as_deref(), Some("b"));
        second.settle();
        assert_eq!(point().as_deref(), Some("d"));
        let shown = format!("{:?}", position.point().unwrap());
        assert!(!shown.contains("2025") && !shown.contains('d'), "{shown}");
    }

    #[test]
    fn input_request_of_the_first_event_leaves_no_point() {
        let cell = PointCell::default();
        let stream = OpenStream { protocol_version: "2025-06-18", session: None, request: 1 };
        cell.open(stream, None);
        event(&cell, "a");
        let first = input();
        cell.hold(Arc::clone(&first));
        assert!(cell.point().is_none());
        first.settle();
        assert_eq!(cell.point().unwrap().event, "a");
    }
}
