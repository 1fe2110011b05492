//! The execution of a call: a boxed future and its outbox, which together produce messages.
//!
//! The owner of a run polls it. Ownership moves from the request to the response body and then to a
//! session, without a channel or a spawned task between handler and transport.

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
    Call, CallEnd, CancelReason, Frame, Message, Outcome, Profile, ProtocolError, Receipt,
    era::codec, outbox::Next,
};

/// The future that handles a call.
pub type CallFuture = Pin<Box<dyn Future<Output = Result<Outcome, ProtocolError>> + Send>>;

/// The execution of a call. Dropping it cancels the call.
pub struct Run {
    call: Arc<Call>,
    profile: Arc<Profile>,
    work: Option<CallFuture>,
    // The result, while earlier messages are still queued. Boxed, because this is rare and runs are
    // moved and stored.
    last: Option<Box<Result<Outcome, ProtocolError>>>,
    // The throttling timer exists only while a progress notification waits.
    timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Callback for the delivery of the result, after the result was returned.
    receipt: Option<Receipt>,
    ended: bool,
    /// Whether the observer of the call was notified of its end.
    reported: bool,
}

impl Run {
    /// Creates a run. Does not poll `work`.
    pub fn new(call: Arc<Call>, profile: Arc<Profile>, work: CallFuture) -> Self {
        Self {
            call,
            profile,
            work: Some(work),
            last: None,
            timer: None,
            receipt: None,
            ended: false,
            reported: false,
        }
    }

    /// Returns the call.
    pub fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// Returns the profile of the server.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Takes the callback for the delivery of the result. The owner calls it after the result was
    /// written.
    pub fn take_receipt(&mut self) -> Option<Receipt> {
        self.receipt.take()
    }

    /// Polls for the next message. Returns `None` after the last message, and after a cancellation.
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
            // The handler is polled first: a call that completes at once never registers a waker.
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

    /// Encodes a message of this run on one line. Raw JSON of handlers may contain line breaks, and
    /// stdio and SSE delimit messages by lines.
    pub fn encode(&self, message: Message, out: &mut Vec<u8>) -> Frame {
        let start = out.len();
        let codec = codec(self.call.rules.era);
        let frame = codec.encode(&self.call, message, &self.profile, out);
        let mut rest = &mut out[start..];
        // Line breaks in strings are escaped, so the others are whitespace.
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
        // A panic ends only this call. The future is dropped without another poll.
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

    /// Returns the queued messages first, then the result.
    fn finish(&mut self, result: Result<Outcome, ProtocolError>) -> Option<Message> {
        // The call may have been cancelled while the handler ran.
        if self.call.port.is_cancelled() {
            self.end();
            return None;
        }
        self.report(CallEnd::Answered(&result));
        match self.call.port.drain() {
            Ok(message) => {
                self.last = Some(Box::new(result));
                Some(message)
            }
            Err(receipt) => {
                self.receipt = receipt;
                self.ended = true;
                self.timer = None;
                Some(Message::Last(result))
            }
        }
    }

    /// Reports the end of the call once.
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
            self.call.port.cancel(CancelReason::Disconnected);
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

/// Creates the future of a call. A panic before the first poll also ends only this call.
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
        "handler panicked"
    );
    ProtocolError::Internal
}
