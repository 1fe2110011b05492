//! A connection that carries messages of both eras in both directions.
//!
//! A call is polled once by the reader of its message. Most calls finish there; only a call that
//! waits needs a task.

use std::{
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use outlive_protocol::{
    Accepted, Endpoint, Frame, InFlight, InFlightGuard, Message, MessageContext, Principal,
    ProtocolError, Receipt, Run, Session, era::codec,
};
use outlive_wire::Method;
use tokio::sync::mpsc;

use super::outbox::{Meter, Outbox, Unread};
use crate::{budget::Budget, caller::Caller, tasks::Tasks};

/// First bytes of every notification, as the codecs write them.
const NOTIFICATION: &[u8] = br#"{"jsonrpc":"2.0","method":"#;

/// Maximum number of messages of a call that the reader writes. The call then continues in a task,
/// so that a handler that never waits does not block other calls.
const AT_ONCE: usize = 16;

/// A connection that carries messages in both directions.
pub(crate) struct Pipe {
    endpoint: Endpoint,
    principal: Principal,
    // Replaced by every `initialize` and read for every message. Never locked across an await.
    session: Mutex<Option<Arc<Session>>>,
    in_flight: Arc<InFlight>,
    tasks: Tasks,
    outbox: Outbox,
    legacy_only: bool,
}

impl Pipe {
    /// Opens a pipe. The receiver returns messages that calls send later, each followed by a line
    /// break.
    ///
    /// The reader of the client's messages must stop while too many bytes are unread.
    pub(crate) fn open(
        endpoint: Endpoint,
        principal: Principal,
    ) -> (Arc<Self>, mpsc::Receiver<Unread>) {
        let outbox = Outbox::waiting(endpoint.profile().limits.max_stream_bytes);
        Self::with_outbox(endpoint, principal, outbox, false)
    }

    /// Opens a pipe for legacy clients only. The pipe closes if its client does not read.
    pub(crate) fn open_legacy(
        endpoint: Endpoint,
        principal: Principal,
        budget: Budget,
        caller: Option<Caller>,
    ) -> (Arc<Self>, mpsc::Receiver<Unread>) {
        let max = endpoint.profile().limits.max_stream_bytes;
        Self::with_outbox(endpoint, principal, Outbox::ending(max, budget, caller), true)
    }

    fn with_outbox(
        endpoint: Endpoint,
        principal: Principal,
        (outbox, messages): (Outbox, mpsc::Receiver<Unread>),
        legacy_only: bool,
    ) -> (Arc<Self>, mpsc::Receiver<Unread>) {
        let pipe = Self {
            endpoint,
            principal,
            session: Mutex::default(),
            in_flight: Arc::default(),
            tasks: Tasks::default(),
            outbox,
            legacy_only,
        };
        (Arc::new(pipe), messages)
    }

    /// Returns the counter of unread bytes.
    pub(crate) fn unread(&self) -> &Arc<Meter> {
        self.outbox.meter()
    }

    /// Returns the maximum bytes of a message.
    pub(crate) fn message_limit(&self) -> usize {
        self.endpoint.profile().limits.max_message_bytes
    }

    /// Handles one message. Appends immediate responses to `out`, line by line; later messages go
    /// to the outbox. Must be called inside a runtime.
    pub(crate) fn accept(self: &Arc<Self>, message: &Bytes, out: &mut Vec<u8>) {
        let arrival = MessageContext {
            principal: self.principal.clone(),
            session: self.session(),
            in_flight: Some(&self.in_flight),
            peer: None,
            http: None,
            stateless: false,
            lost_session: false,
            legacy_only: self.legacy_only,
        };
        match self.endpoint.accept(message, arrival) {
            Accepted::Batch(parts) => self.answer_batch(parts, out),
            accepted => self.answer(accepted, out),
        }
    }

    /// Handles one message and sends all responses to the outbox. Returns `false` if the pipe is
    /// closed.
    pub(crate) async fn post(self: &Arc<Self>, message: &Bytes) -> bool {
        let mut out = Vec::new();
        self.accept(message, &mut out);
        out.is_empty() || self.outbox.send(out).await.is_ok()
    }

    /// Returns the principal of the client.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Rejects a message that exceeds the size limit.
    pub(crate) fn refuse_too_long(&self, out: &mut Vec<u8>) {
        let limit = self.message_limit();
        out.extend_from_slice(
            format!(
                r#"{{"jsonrpc":"2.0","error":{{"code":{},"message":"the message exceeds {limit} bytes"}}}}"#,
                outlive_wire::code::INVALID_REQUEST
            )
            .as_bytes(),
        );
        out.push(b'\n');
    }

    /// Waits until all running calls have ended. First ends the calls that would never end:
    /// subscriptions and the session's change feed.
    pub(crate) async fn drained(&self) {
        // If the bus is closed, the server ends subscriptions with a result. Otherwise the client
        // has disconnected, and they are cancelled.
        if !self.endpoint.profile().bus.is_closed() {
            self.in_flight.cancel_method(Method::Listen);
        }
        if let Some(session) = self.session() {
            session.feed().close();
            // A client that has closed its side sends no more responses.
            session.asked().close();
        }
        self.tasks.finished().await;
    }

    /// Closes the connection and cancels running calls.
    pub(crate) fn close(&self) {
        self.in_flight.cancel_all();
        self.tasks.abort_all();
        // Wakes a reader that waits on the outbox.
        self.outbox.wake();
        if let Some(session) = self.replace_session(None) {
            self.endpoint.service().session_closed(&session);
        }
    }

    fn answer(self: &Arc<Self>, accepted: Accepted, out: &mut Vec<u8>) {
        match accepted {
            Accepted::Call(run) => self.begin(run, out),
            Accepted::Handshake(run, session) => {
                self.open_session(session);
                self.begin(run, out);
            }
            Accepted::Refused(refusal) if refusal.wants_answer => {
                out.extend_from_slice(&refusal.body);
                out.push(b'\n');
            }
            // A session of a pipe belongs to one process, so no other replica sends requests in it.
            Accepted::Refused(_) | Accepted::Noted | Accepted::Misrouted(_) => {}
            Accepted::Batch(parts) => parts.into_iter().for_each(|part| self.answer(part, out)),
        }
    }

    /// Responds to a batch. Responses that are available at once form a batch; the protocol version
    /// allows later ones to be sent separately. Notifications are sent before it, because a batch
    /// contains only responses.
    fn answer_batch(self: &Arc<Self>, parts: Vec<Accepted>, out: &mut Vec<u8>) {
        let mut lines = Vec::new();
        parts.into_iter().for_each(|part| self.answer(part, &mut lines));
        let lines = lines.split_inclusive(|byte| *byte == b'\n');
        let (notifications, answers): (Vec<&[u8]>, Vec<&[u8]>) =
            lines.partition(|line| line.starts_with(NOTIFICATION));
        notifications.iter().for_each(|line| out.extend_from_slice(line));
        let answers: Vec<&[u8]> = answers.into_iter().map(<[u8]>::trim_ascii_end).collect();
        if !answers.is_empty() {
            out.push(b'[');
            out.extend_from_slice(&answers.join(&b','));
            out.extend_from_slice(b"]\n");
        }
    }

    /// Polls a run. A run that waits continues in its own task.
    fn begin(self: &Arc<Self>, mut run: Run, out: &mut Vec<u8>) {
        let mut cx = Context::from_waker(Waker::noop());
        let start = out.len();
        for _ in 0..AT_ONCE {
            match run.poll_message(&mut cx) {
                Poll::Ready(Some(message)) => {
                    write(&run, message, out);
                    // The reader writes immediate responses before it reads on.
                    run.take_receipt().into_iter().for_each(Receipt::delivered);
                }
                Poll::Ready(None) => return,
                Poll::Pending => break,
            }
        }
        if self.in_flight.contains(run.call().id()) {
            // The same ID occurs twice in the batch. No duplicate was running when the batch was
            // parsed.
            let error = ProtocolError::invalid_request(format!(
                "request ID {} occurs twice in the batch",
                run.call().id()
            ));
            write(&run, Message::Last(Err(error)), out);
            return;
        }
        if self.in_flight.len() >= self.endpoint.profile().limits.max_in_flight {
            tracing::warn!("rejecting a call: too many calls in flight on the connection");
            write(&run, Message::Last(Err(ProtocolError::over_limit("in_flight"))), out);
            return;
        }
        let held = self.in_flight.hold(run.call());
        // Earlier messages use the outbox too, so that messages stay in order.
        self.tasks.spawn(drive(run, held, out.split_off(start), self.outbox.clone()));
    }

    fn open_session(self: &Arc<Self>, session: Arc<Session>) {
        if let Some(before) = self.replace_session(Some(Arc::clone(&session))) {
            before.feed().close();
            // Responses to open requests would otherwise be matched in the new session.
            before.asked().close();
            self.endpoint.service().session_closed(&before);
        }
        self.endpoint.service().session_opened(&session);
        self.tasks.spawn(tell_changes(session, self.outbox.clone()));
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace_session(&self, session: Option<Arc<Session>>) -> Option<Arc<Session>> {
        std::mem::replace(
            &mut *self.session.lock().unwrap_or_else(PoisonError::into_inner),
            session,
        )
    }
}

/// Runs a waiting call to its end.
async fn drive(mut run: Run, _held: InFlightGuard, mut out: Vec<u8>, outbox: Outbox) {
    loop {
        let receipt = run.take_receipt();
        if !out.is_empty() && outbox.send_tracked(std::mem::take(&mut out), receipt).await.is_err()
        {
            // The pipe is closed; dropping the run cancels it.
            return;
        }
        let Some(message) = run.next().await else { return };
        write(&run, message, &mut out);
    }
}

/// Sends change notifications to a legacy client until its session ends.
async fn tell_changes(session: Arc<Session>, outbox: Outbox) {
    while let Some(change) = session.feed().next().await {
        if !session.is_initialized() {
            continue;
        }
        let mut out = Vec::new();
        codec(session.rules().era).encode_change(&change, &mut out);
        out.push(b'\n');
        if outbox.send(out).await.is_err() {
            return;
        }
    }
}

/// Appends a message as a line, if the era can represent it.
fn write(run: &Run, message: Message, out: &mut Vec<u8>) {
    let refused = matches!(message, Message::Last(Err(_)));
    match run.encode(message, out) {
        Frame::Message => out.push(b'\n'),
        Frame::End { .. } => {
            out.push(b'\n');
            if !refused && codec(run.call().rules().era).encode_trailer(run.call(), out) {
                out.push(b'\n');
            }
        }
        // A pipe stays open and has no resumable streams.
        Frame::Detach { .. } | Frame::Silent => {}
    }
}
