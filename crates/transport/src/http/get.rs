//! GET: a legacy client listens for changes, or resumes a lost stream.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use http::{Response, StatusCode};
use outlive_protocol::{EventIdMode, era};

use super::{
    body::{Body, ENOUGH, Source},
    events::Event,
    head::Head,
    negotiate,
    reply::{self, event_response},
    resume::{Progress, Stream},
    sessions::HttpSession,
    sse,
    state::HttpState,
};
use crate::budget::Charge;

/// Handles a GET request.
pub(super) async fn get(state: &Arc<HttpState>, head: Head) -> Response<Body> {
    let headers = &head.parts.headers;
    if !state.keeps_sessions() || era::headers_look_modern(headers) {
        return reply::method_not_allowed(state.methods());
    }
    if !negotiate::takes(headers).events {
        return reply::problem(
            StatusCode::NOT_ACCEPTABLE,
            "the Accept header must list text/event-stream",
        );
    }
    let entry = match state.required_session(&head).await {
        Ok(entry) => entry,
        Err(response) => return *response,
    };
    let numbered = entry.session.rules().event_ids != EventIdMode::None;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).filter(|_| numbered);
    match last.map(|id| (id, entry.event_ids().read(id))) {
        None => event_response(changes(state, entry)),
        Some((_, Some((stream, number)))) => match entry.stream(stream) {
            Some(stream) => event_response(resume(state, entry, stream, number)),
            // The stream has expired. The client gets changes from now on, as on a new stream.
            None => event_response(changes(state, entry)),
        },
        Some((id, None)) => {
            let shown: String = id.chars().take(40).collect();
            reply::problem(
                StatusCode::BAD_REQUEST,
                &format!("`{shown}` is not an event id of this session"),
            )
        }
    }
}

/// Returns a new stream of changes.
fn changes(state: &Arc<HttpState>, entry: Arc<HttpSession>) -> Body {
    let stream = entry.open_stream(&state.events);
    let before = entry.listening.swap(stream.key().stream, Ordering::Relaxed);
    if let Some(before) = entry.stream(before) {
        // Wakes the reader of the previous stream, which ends because it gets no more changes.
        before.attach();
    }
    let mut first = Vec::new();
    if entry.session.rules().event_ids == EventIdMode::Primed {
        let number = stream.append(b"");
        sse::numbered(&mut first, stream.id(number), b"");
    }
    let caller = entry.caller().cloned();
    let source = Changes::new(entry, stream);
    Body::held(state.stream_settings(), caller, source, first)
}

/// Returns the rest of a lost stream.
fn resume(
    state: &Arc<HttpState>,
    entry: Arc<HttpSession>,
    stream: Arc<Stream>,
    after: u64,
) -> Body {
    let listens =
        entry.listening.load(Ordering::Relaxed) == stream.key().stream && !stream.has_ended();
    let caller = entry.caller().cloned();
    let charge = state.unread.open(caller.clone());
    let mut tail = Tail::new(Arc::clone(&entry), Arc::clone(&stream), after, charge);
    let changes = listens.then(|| Changes::new(entry, stream));
    if let Some(changes) = &changes {
        // Both sources share one reader ID, so that the second does not take the stream from the
        // first.
        tail.reader = changes.reader;
    }
    let source = Resumed { tail, changes, told: false };
    Body::held(state.stream_settings(), caller, source, Vec::new())
}

/// Source of the changes of a session.
struct Changes {
    entry: Arc<HttpSession>,
    stream: Arc<Stream>,
    reader: u64,
}

impl Changes {
    fn new(entry: Arc<HttpSession>, stream: Arc<Stream>) -> Self {
        entry.open_streams.fetch_add(1, Ordering::Relaxed);
        let reader = stream.attach();
        Self { entry, stream, reader }
    }
}

impl Source for Changes {
    fn poll_fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        // Only the newest stream sends changes, so that no message is sent twice.
        let newest = self.entry.listening.load(Ordering::Relaxed) == self.stream.key().stream;
        if !newest || !self.stream.poll_reader(self.reader, cx) {
            return Poll::Ready(());
        }
        while out.len() < ENOUGH {
            match self.entry.session.feed().poll_next(cx) {
                Poll::Ready(Some(change)) => {
                    let mut data = Vec::new();
                    era::codec(self.entry.session.rules().era).encode_change(&change, &mut data);
                    let number = self.stream.append(&data);
                    match self.entry.session.rules().event_ids {
                        EventIdMode::None => sse::event(out, |out| {
                            out.extend_from_slice(&data);
                            true
                        }),
                        _ => sse::numbered(out, self.stream.id(number), &data),
                    }
                }
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Pending
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.entry.open_streams.fetch_sub(1, Ordering::Relaxed);
    }
}

type Replay = Pin<Box<dyn Future<Output = Vec<Event>> + Send>>;

/// Source that reads a stream from the event store: missed events, then new events of its call.
struct Tail {
    entry: Arc<HttpSession>,
    stream: Arc<Stream>,
    reader: u64,
    last: u64,
    waiting: VecDeque<Event>,
    /// Charge for the bytes of `waiting`.
    charge: Charge,
    /// Pending read of the event store, and the newest event number when the read started.
    replay: Option<(Replay, u64)>,
}

impl Tail {
    fn new(entry: Arc<HttpSession>, stream: Arc<Stream>, last: u64, charge: Charge) -> Self {
        entry.open_streams.fetch_add(1, Ordering::Relaxed);
        let reader = stream.attach();
        Self { entry, stream, reader, last, waiting: VecDeque::new(), charge, replay: None }
    }

    /// Appends the available events. Returns `Ready` with the state of the stream when none are
    /// left.
    fn poll_rest(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<Progress> {
        loop {
            while let Some(event) = self.waiting.pop_front() {
                self.last = event.number;
                sse::numbered(out, self.stream.id(event.number), &event.data);
                if out.len() >= ENOUGH {
                    return Poll::Pending;
                }
            }
            if let Some((replay, newest)) = &mut self.replay {
                let events = std::task::ready!(replay.as_mut().poll(cx));
                if events.is_empty() {
                    // The store has evicted the events; do not request them again.
                    self.last = *newest;
                }
                self.replay = None;
                self.charge.clear();
                if let Err(exceeded) =
                    self.charge.grow(events.iter().map(|event| event.data.len()).sum())
                {
                    tracing::debug!(
                        limit = exceeded.0,
                        "closing a stream: its client does not read"
                    );
                    return Poll::Ready(Progress::Ended);
                }
                self.waiting.extend(events);
                continue;
            }
            match self.stream.poll(self.reader, self.last, cx) {
                Progress::More { newest } => self.replay = Some((self.read(), newest)),
                progress => return Poll::Ready(progress),
            }
        }
    }

    fn read(&self) -> Replay {
        let (stream, last) = (Arc::clone(&self.stream), self.last);
        Box::pin(async move { stream.store().replay(stream.key(), last).await })
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.entry.open_streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Source of a resumed stream: first the missed events, then new ones.
struct Resumed {
    tail: Tail,
    /// For a stream of changes: the source that follows after the missed events.
    changes: Option<Changes>,
    told: bool,
}

impl Source for Resumed {
    fn poll_fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        if let (Some(changes), true) = (&mut self.changes, self.told) {
            return changes.poll_fill(cx, out);
        }
        match (self.tail.poll_rest(cx, out), &mut self.changes) {
            (Poll::Ready(Progress::Waiting), Some(changes)) => {
                self.told = true;
                changes.poll_fill(cx, out)
            }
            (Poll::Ready(Progress::Ended | Progress::TakenOver), _) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}
