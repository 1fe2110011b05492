//! A call at work: a boxed future and its port, which together yield messages.
//!
//! Whoever owns a run polls it: the request, then the response's body, then a session. Moving a
//! call is moving this box; no channel and no task of its own stand between handler and wire.

use std::{
    any::Any,
    fmt,
    future::{Future, poll_fn, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use crate::{
    Call, CallEnd, Frame, Message, Outcome, Profile, ProtocolError, era::codec, outbox::Next,
};

/// The work that answers a call.
pub type CallFuture = Pin<Box<dyn Future<Output = Result<Outcome, ProtocolError>> + Send>>;

/// A call at work. Dropping it cancels the call.
pub struct Run {
    call: Arc<Call>,
    profile: Arc<Profile>,
    work: Option<CallFuture>,
    // The result, while something that was said before it still waits. Boxed, because that is rare,
    // and runs are handed on and kept.
    last: Option<Box<Result<Outcome, ProtocolError>>>,
    // Made only while a progress notification is held back.
    timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    ended: bool,
    /// Whether the watcher of the call knows how it has ended.
    reported: bool,
}

impl Run {
    /// Joins a call and the work that answers it. Nothing has run yet.
    pub fn new(call: Arc<Call>, profile: Arc<Profile>, work: CallFuture) -> Self {
        Self {
            call,
            profile,
            work: Some(work),
            last: None,
            timer: None,
            ended: false,
            reported: false,
        }
    }

    /// The call that is being answered.
    pub fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// The server it is answered by.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Polls for the next message. `None` after the last one, or when the call was cancelled:
    /// then nothing more is said for it.
    pub fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            if self.call.port.is_cancelled() {
                self.end();
                return Poll::Ready(None);
            }
            if let Some(result) = self.last.take() {
                return Poll::Ready(self.finish(*result));
            }
            // The work first: a call that is answered at once never touches the queue's waker.
            if let Poll::Ready(result) = self.poll_work(cx) {
                return Poll::Ready(self.finish(result));
            }
            let limits = &self.profile.limits;
            match self.call.port.next(
                || self.profile.clock.now(),
                limits.progress_interval,
                cx.waker(),
            ) {
                Next::Say(message) => return Poll::Ready(Some(message)),
                Next::Nothing => {
                    self.timer = None;
                    return Poll::Pending;
                }
                Next::Later(rest) => {
                    let clock = &self.profile.clock;
                    let timer = self.timer.get_or_insert_with(|| clock.sleep(rest));
                    if timer.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    self.timer = None;
                }
            }
        }
    }

    /// Waits for the next message; see [`Run::poll_message`].
    pub async fn next(&mut self) -> Option<Message> {
        poll_fn(|cx| self.poll_message(cx)).await
    }

    /// Writes a message of this run, as its era has it, on one line: what handlers bring as raw
    /// JSON may be spread over several, and lines are what pipes and event streams count by.
    pub fn encode(&self, message: Message, out: &mut Vec<u8>) -> Frame {
        let start = out.len();
        let codec = codec(self.call.rules.era);
        let frame = codec.encode(&self.call, message, &self.profile, out);
        let mut rest = &mut out[start..];
        // Within strings they are escaped, so these are white space.
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            rest[at] = b' ';
            rest = &mut rest[at + 1..];
        }
        frame
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<Result<Outcome, ProtocolError>> {
        let Some(work) = &mut self.work else {
            return Poll::Ready(Err(ProtocolError::Internal));
        };
        // A handler that panics ends its own call and no other; its future is dropped unpolled.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(result)) => {
                self.work = None;
                Poll::Ready(result)
            }
            Err(panic) => {
                self.work = None;
                Poll::Ready(Err(panicked(&self.call, &*panic)))
            }
        }
    }

    /// What was said before the result and is still waiting; then the result.
    fn finish(&mut self, result: Result<Outcome, ProtocolError>) -> Option<Message> {
        // While it was at work, too, the call may have been cancelled.
        if self.call.port.is_cancelled() {
            self.end();
            return None;
        }
        self.report(CallEnd::Answered(&result));
        match self.call.port.drain() {
            Some(message) => {
                self.last = Some(Box::new(result));
                Some(message)
            }
            None => {
                self.ended = true;
                self.timer = None;
                Some(Message::Last(result))
            }
        }
    }

    /// Tells how the call has ended, once.
    fn report(&mut self, how: CallEnd<'_>) {
        if !std::mem::replace(&mut self.reported, true) {
            self.call.report(how, || self.profile.clock.now());
        }
    }

    fn end(&mut self) {
        self.report(CallEnd::Cancelled);
        self.ended = true;
        self.work = None;
        self.timer = None;
        self.call.port.close();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.ended {
            self.report(CallEnd::Cancelled);
            self.call.port.cancel();
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("call", &self.call)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// Makes the work that answers a call. What handlers do before they are first polled happens here,
/// and a panic in it, too, ends this call and no other.
pub fn catch_panic(call: &Call, start: impl FnOnce() -> CallFuture) -> CallFuture {
    catch_unwind(AssertUnwindSafe(start))
        .unwrap_or_else(|panic| Box::pin(ready(Err(panicked(call, &*panic)))))
}

fn panicked(call: &Call, panic: &(dyn Any + Send)) -> ProtocolError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(
        method = call.method_name(),
        panic = text.unwrap_or("no text"),
        "a handler panicked"
    );
    ProtocolError::Internal
}
