//! One connection that carries messages both ways, of both eras.
//!
//! A call is polled once where its message was read. Most are answered right there; only a call
//! that has to wait costs a task.

use std::{
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use outlive_protocol::{
    Accepted, Endpoint, Frame, InFlight, InFlightGuard, Message, MessageContext, Principal,
    ProtocolError, Run, Session, era::codec,
};
use outlive_wire::Method;
use tokio::sync::mpsc;

use super::outbox::{Meter, Outbox, Unread};
use crate::{budget::Budget, caller::Caller, tasks::Tasks};

/// What every notification begins with, as the eras write them.
const NOTIFICATION: &[u8] = br#"{"jsonrpc":"2.0","method":"#;

/// Messages of one call that are written where it was read. One that says more goes on in a task:
/// a handler that speaks without ever waiting must not keep everyone else waiting.
const AT_ONCE: usize = 16;

/// One connection that carries messages both ways.
pub(crate) struct Pipe {
    endpoint: Endpoint,
    principal: Principal,
    // Replaced by every `initialize`; read for every message, never across an await.
    session: Mutex<Option<Arc<Session>>>,
    in_flight: Arc<InFlight>,
    tasks: Tasks,
    outbox: Outbox,
    legacy_only: bool,
}

impl Pipe {
    /// Opens a pipe. What its calls say later comes out of the receiver: whole messages, each
    /// followed by a line end. Whoever reads from the client waits while too many are unread.
    pub(crate) fn open(
        endpoint: Endpoint,
        principal: Principal,
    ) -> (Arc<Self>, mpsc::Receiver<Unread>) {
        let outbox = Outbox::waiting(endpoint.profile().limits.max_stream_bytes);
        Self::with_outbox(endpoint, principal, outbox, false)
    }

    /// Opens a pipe that only legacy clients use. One that is not read ends.
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

    /// What waits for the client to read it.
    pub(crate) fn unread(&self) -> &Arc<Meter> {
        self.outbox.meter()
    }

    /// How long a message may be.
    pub(crate) fn message_limit(&self) -> usize {
        self.endpoint.profile().limits.max_message_bytes
    }

    /// Takes one message. What can be said at once is appended to `out`, line by line; the rest
    /// comes through the outbox. Must be called inside a runtime.
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

    /// Takes one message and puts everything it says into the outbox. `false` if nobody reads it.
    pub(crate) async fn post(self: &Arc<Self>, message: &Bytes) -> bool {
        let mut out = Vec::new();
        self.accept(message, &mut out);
        out.is_empty() || self.outbox.send(out).await.is_ok()
    }

    /// Who is at the other end.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Refuses a message that was too long to be read at all.
    pub(crate) fn refuse_too_long(&self, out: &mut Vec<u8>) {
        let limit = self.message_limit();
        out.extend_from_slice(
            format!(
                r#"{{"jsonrpc":"2.0","error":{{"code":{},"message":"the message is longer than {limit} bytes"}}}}"#,
                outlive_wire::code::INVALID_REQUEST
            )
            .as_bytes(),
        );
        out.push(b'\n');
    }

    /// Waits until every running call has been answered. What would go on for ever ends first:
    /// subscriptions, and the feed of a session.
    pub(crate) async fn drained(&self) {
        // A bus that is closed ends subscriptions with an answer. Else it is the client that has
        // left them, and it wants none.
        if !self.endpoint.profile().bus.is_closed() {
            self.in_flight.cancel_method(Method::Listen);
        }
        if let Some(session) = self.session() {
            session.feed().close();
            // Whoever has ended its input answers nothing.
            session.asked().close();
        }
        self.tasks.finished().await;
    }

    /// Ends the connection: what still runs is cancelled.
    pub(crate) fn close(&self) {
        self.in_flight.cancel_all();
        self.tasks.abort_all();
        // Wakes a reader of the outbox that would otherwise wait for a message that never comes.
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
            // Sessions of pipes belong to their process: no other replica asks in them.
            Accepted::Refused(_) | Accepted::Noted | Accepted::Stray(_) => {}
            Accepted::Batch(parts) => parts.into_iter().for_each(|part| self.answer(part, out)),
        }
    }

    /// The answers to a batch are a batch again, if all of them are there at once; else they come
    /// one by one, which the revision allows. Notifications go before it: a batch is of answers only.
    fn answer_batch(self: &Arc<Self>, parts: Vec<Accepted>, out: &mut Vec<u8>) {
        let mut lines = Vec::new();
        parts.into_iter().for_each(|part| self.answer(part, &mut lines));
        let lines = lines.split_inclusive(|byte| *byte == b'\n');
        let (told, answers): (Vec<&[u8]>, Vec<&[u8]>) =
            lines.partition(|line| line.starts_with(NOTIFICATION));
        told.iter().for_each(|line| out.extend_from_slice(line));
        let answers: Vec<&[u8]> = answers.into_iter().map(<[u8]>::trim_ascii_end).collect();
        if !answers.is_empty() {
            out.push(b'[');
            out.extend_from_slice(&answers.join(&b','));
            out.extend_from_slice(b"]\n");
        }
    }

    /// Polls a run where it stands. One that has to wait goes on in a task of its own.
    fn begin(self: &Arc<Self>, mut run: Run, out: &mut Vec<u8>) {
        let mut cx = Context::from_waker(Waker::noop());
        let start = out.len();
        for _ in 0..AT_ONCE {
            match run.poll_message(&mut cx) {
                Poll::Ready(Some(message)) => write(&run, message, out),
                Poll::Ready(None) => return,
                Poll::Pending => break,
            }
        }
        if self.in_flight.contains(run.call().id()) {
            // Twice in one batch: no message was read between the two that could have shown it.
            let fault =
                ProtocolError::invalid_request(format!("id {} is there twice", run.call().id()));
            write(&run, Message::Last(Err(fault)), out);
            return;
        }
        if self.in_flight.len() >= self.endpoint.profile().limits.max_in_flight {
            tracing::warn!("too many calls in flight on one connection; refusing another");
            write(&run, Message::Last(Err(ProtocolError::over_limit("in_flight"))), out);
            return;
        }
        let held = self.in_flight.hold(run.call());
        // What it has said goes the way of what it will say, so that nothing overtakes it.
        self.tasks.spawn(drive(run, held, out.split_off(start), self.outbox.clone()));
    }

    fn open_session(self: &Arc<Self>, session: Arc<Session>) {
        if let Some(before) = self.replace_session(Some(Arc::clone(&session))) {
            before.feed().close();
            // Answers to what it was asked would be answers in the new session.
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

/// Owns a waiting call until it has ended.
async fn drive(mut run: Run, _held: InFlightGuard, mut out: Vec<u8>, outbox: Outbox) {
    loop {
        if !out.is_empty() && outbox.send(std::mem::take(&mut out)).await.is_err() {
            // Nobody reads any more; dropping the run cancels it.
            return;
        }
        let Some(message) = run.next().await else { return };
        write(&run, message, &mut out);
    }
}

/// Tells a legacy client of changes, for as long as its session lasts.
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

/// Appends a message as a line, if the era has words for it.
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
        // A pipe stays open; there is nothing to resume.
        Frame::Detach { .. } | Frame::Silent => {}
    }
}
