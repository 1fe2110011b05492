//! A waiting call. It runs while its client is connected, and afterwards if its era allows that.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use outlive_protocol::{Frame, InFlightGuard, Message, Notify, OnDisconnect, Run};

use crate::{
    caller::Caller,
    http::{events::EventStore, resume::Stream, sessions::HttpSession, state::HttpState},
    shares::Share,
};

/// A run that may wait, with its entry in the session's table of calls in flight.
pub(super) struct Running {
    run: Option<Run>,
    held: Option<InFlightGuard>,
    /// Slot among the waiting calls of the caller.
    share: Option<Share<Caller>>,
    state: Arc<HttpState>,
    /// Stream that stores the events when the client is disconnected.
    pub(super) numbered: Option<Numbered>,
}

impl Running {
    pub(super) fn new(run: Run, share: Option<Share<Caller>>, state: &Arc<HttpState>) -> Self {
        Self { run: Some(run), held: None, share, state: Arc::clone(state), numbered: None }
    }

    pub(super) fn run(&mut self) -> Option<&mut Run> {
        self.run.as_mut()
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        match &mut self.run {
            Some(run) => run.poll_message(cx),
            None => Poll::Ready(None),
        }
    }

    /// Registers the call in its session's table, where a cancellation finds it.
    pub(super) fn hold(&mut self) {
        let session = self.run.as_ref().and_then(|run| run.call().session().cloned());
        if let (Some(run), Some(session), None) = (&self.run, session, &self.held) {
            self.held = Some(session.in_flight().hold(run.call()));
        }
    }

    /// Handles a dropped message. If it is an input request, the input request fails, so that the
    /// handler does not wait.
    pub(super) fn drop_input_request(&self, notify: &Notify) {
        if let Some(run) = &self.run {
            fail_input_request(run, notify);
        }
    }

    /// Ends the call. Returns `false` if it has already ended.
    pub(super) fn end(&mut self) -> bool {
        self.held = None;
        self.share = None;
        self.run.take().is_some()
    }
}

/// Fails an input request that cannot reach the client.
fn fail_input_request(run: &Run, notify: &Notify) {
    if let (Notify::Ask { id, .. } | Notify::AskTask { id, .. }, Some(session)) =
        (notify, run.call().session())
    {
        session.asked().fail(
            *id,
            "the client does not accept an event stream, so it cannot receive input requests",
        );
    }
}

/// Handles a disconnect: modern calls are cancelled; legacy calls continue and store their events.
impl Drop for Running {
    fn drop(&mut self) {
        let Some(run) = self.run.take() else { return };
        if run.call().rules().on_disconnect == OnDisconnect::Continue {
            let (held, share) = (self.held.take(), self.share.take());
            let pump = pump(run, self.numbered.take());
            self.state.tasks.spawn(async move {
                let _entered = (held, share);
                pump.await;
            });
        }
    }
}

/// A stream with event IDs, and the ID of this reader.
#[derive(Clone)]
pub(super) struct Numbered {
    pub(super) stream: Arc<Stream>,
    pub(super) reader: u64,
    /// Number of calls that may still send messages on the stream.
    calls: Arc<AtomicUsize>,
}

impl Numbered {
    /// Opens a stream for this number of calls.
    pub(super) fn open(entry: &HttpSession, events: &Arc<dyn EventStore>, calls: usize) -> Self {
        let stream = entry.open_stream(events);
        let reader = stream.attach();
        Self { stream, reader, calls: Arc::new(AtomicUsize::new(calls)) }
    }

    /// Records that a call has ended. The stream ends with its last call.
    pub(super) fn call_ended(&self) {
        if self.calls.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.stream.end();
        }
    }
}

/// Runs a call without a reader to its end, and stores its events.
async fn pump(mut run: Run, numbered: Option<Numbered>) {
    run.call().port().disconnect();
    let mut data = Vec::new();
    while let Some(message) = run.next().await {
        if let (Message::Notify(notify), None) = (&message, &numbered) {
            fail_input_request(&run, notify);
        }
        data.clear();
        let frame = run.encode(message, &mut data);
        if let (Frame::Message | Frame::End { .. }, Some(numbered)) = (frame, &numbered) {
            numbered.stream.append(&data);
        }
    }
    if let Some(numbered) = &numbered {
        numbered.call_ended();
    }
}
