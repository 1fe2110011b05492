//! A call that waits, for as long as its client reads, and after that where its era lets it go on.

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

/// A run that may have to wait, with its place in the table of what is running.
pub(super) struct Running {
    run: Option<Run>,
    held: Option<InFlightGuard>,
    /// Its place among the calls of its caller that wait.
    share: Option<Share<Caller>>,
    state: Arc<HttpState>,
    /// Where its events go when nobody reads them.
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

    /// Enters the call into its session's table, where a cancellation finds it.
    pub(super) fn hold(&mut self) {
        let session = self.run.as_ref().and_then(|run| run.call().session().cloned());
        if let (Some(run), Some(session), None) = (&self.run, session, &self.held) {
            self.held = Some(session.in_flight().hold(run.call()));
        }
    }

    /// Something was said that goes nowhere. A question must not be waited for then.
    pub(super) fn drop_question(&self, notify: &Notify) {
        if let Some(run) = &self.run {
            refuse_question(run, notify);
        }
    }

    /// The call has ended; nothing is left to go on with. `false` if that was known.
    pub(super) fn end(&mut self) -> bool {
        self.held = None;
        self.share = None;
        self.run.take().is_some()
    }
}

/// Answers a question that cannot reach the client.
fn refuse_question(run: &Run, notify: &Notify) {
    if let (Notify::Ask { id, .. } | Notify::AskTask { id, .. }, Some(session)) =
        (notify, run.call().session())
    {
        session.asked().fail(*id, "the client takes no stream on which it could be asked");
    }
}

/// Losing the reader: modern calls are cancelled, legacy ones go on and keep what they say.
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

/// A numbered stream and which reader of it we are.
#[derive(Clone)]
pub(super) struct Numbered {
    pub(super) stream: Arc<Stream>,
    pub(super) reader: u64,
    /// How many calls still have something to say on it, whoever owns them.
    calls: Arc<AtomicUsize>,
}

impl Numbered {
    /// Opens a stream for so many calls.
    pub(super) fn open(entry: &HttpSession, events: &Arc<dyn EventStore>, calls: usize) -> Self {
        let stream = entry.open_stream(events);
        let reader = stream.attach();
        Self { stream, reader, calls: Arc::new(AtomicUsize::new(calls)) }
    }

    /// One of the calls has ended; the stream ends with the last of them.
    pub(super) fn call_ended(&self) {
        if self.calls.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.stream.end();
        }
    }
}

/// Owns a call whose reader has gone, until it has ended. What it says is kept.
async fn pump(mut run: Run, numbered: Option<Numbered>) {
    let mut data = Vec::new();
    while let Some(message) = run.next().await {
        if let (Message::Notify(notify), None) = (&message, &numbered) {
            refuse_question(&run, notify);
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
