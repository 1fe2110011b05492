//! Batches: several calls in one message, with one response or one stream.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Response, StatusCode};
use outlive_protocol::{Accepted, Frame, Message, Outcome, ProtocolError, Receipt, Run};

use super::{
    respond::{counted, place},
    running::Running,
    stream::CallStream,
};
use crate::{
    budget::Exceeded,
    http::{
        body::Body,
        negotiate::Takes,
        reply::{self, event_response},
        sessions::HttpSession,
        state::HttpState,
    },
};

/// Responds to a batch of calls (2025-03-26 only).
pub(super) async fn batch(
    state: &Arc<HttpState>,
    parts: Vec<Accepted>,
    entry: Option<Arc<HttpSession>>,
    takes: Takes,
) -> Response<Body> {
    let caller = entry.as_ref().and_then(|entry| entry.caller().cloned());
    let mut batch = Batch::default();
    for part in parts {
        match part {
            Accepted::Call(run) => batch.start(state, run).await,
            Accepted::Misrouted(reply) => drop(state.hand_on(*reply).await),
            Accepted::Refused(refusal) if refusal.wants_answer => {
                batch.responses.push(refusal.body);
            }
            _ => {}
        }
    }
    let Batch { mut responses, mut receipts, mut waiting, mut early } = batch;
    if !takes.events {
        for (index, message) in early.drain(..) {
            if let (Message::Notify(notify), Some(running)) = (&message, waiting.get(index)) {
                running.drop_input_request(notify);
            }
        }
        collect(&mut waiting, &mut responses, &mut receipts).await;
    }
    if waiting.is_empty() && responses.is_empty() {
        return reply::accepted();
    }
    if waiting.is_empty() && takes.json {
        let whole = [b"[", &responses.join(&b',')[..], b"]"].concat();
        return match counted(state, || caller, whole) {
            Ok(body) => reply::json_response(200, Body::tracked(body, receipts)),
            Err(Exceeded(limit)) => {
                let what = "responses of this caller are unread; read them first";
                reply::over_limit(StatusCode::TOO_MANY_REQUESTS, limit, what)
            }
        };
    }
    let mut stream = CallStream::new(state, waiting, entry);
    let mut out = stream.begin();
    responses.iter().for_each(|response| stream.say(response, &mut out));
    stream.add_receipts(receipts);
    for (index, message) in early {
        stream.write(index, message, &mut out);
    }
    event_response(Body::events(state.stream_settings(), caller, stream, out))
}

/// The started calls of a batch.
#[derive(Default)]
struct Batch {
    /// Encoded responses of ended calls.
    responses: Vec<Vec<u8>>,
    /// Callbacks for the delivery of the responses.
    receipts: Vec<Receipt>,
    waiting: Vec<Running>,
    /// First messages of waiting calls, with the index of the call.
    early: Vec<(usize, Message)>,
}

impl Batch {
    /// Starts a call. Most calls end when they are first polled.
    async fn start(&mut self, state: &Arc<HttpState>, mut run: Run) {
        if is_running(&run) {
            // The same ID occurs twice in the batch. No duplicate was running when the batch was
            // parsed.
            let reason = format!("request ID {} occurs twice in the batch", run.call().id());
            return self.respond(&mut run, Err(ProtocolError::invalid_request(reason)));
        }
        let message = match poll_fn(|cx| Poll::Ready(run.poll_message(cx))).await {
            Poll::Ready(None) => return,
            Poll::Ready(Some(Message::Last(last))) => return self.respond(&mut run, last),
            Poll::Ready(message) => message,
            Poll::Pending => None,
        };
        let share = match place(state, &run) {
            Ok(share) => share,
            Err(error) => return self.respond(&mut run, Err(error)),
        };
        self.early.extend(message.map(|message| (self.waiting.len(), message)));
        let mut running = Running::new(run, share, state);
        running.hold();
        self.waiting.push(running);
    }

    fn respond(&mut self, run: &mut Run, last: Result<Outcome, ProtocolError>) {
        let mut out = Vec::new();
        run.encode(Message::Last(last), &mut out);
        self.receipts.extend(run.take_receipt());
        self.responses.push(out);
    }
}

fn is_running(run: &Run) -> bool {
    let call = run.call();
    let running = call.session().and_then(|session| session.running());
    running.is_some_and(|running| running.contains(call.id()))
}

/// Waits for all calls of a client that does not accept a stream. Drops the messages before the
/// responses.
async fn collect(
    waiting: &mut Vec<Running>,
    responses: &mut Vec<Vec<u8>>,
    receipts: &mut Vec<Receipt>,
) {
    let mut is_waiting = |running: &mut Running, cx: &mut Context<'_>| loop {
        let message = match running.poll(cx) {
            Poll::Ready(Some(message)) => message,
            Poll::Ready(None) => return false,
            Poll::Pending => return true,
        };
        if let Message::Notify(notify) = &message {
            running.drop_input_request(notify);
        }
        let mut out = Vec::new();
        let Some(run) = running.run() else { return false };
        if let Frame::End { .. } = run.encode(message, &mut out) {
            responses.push(out);
            receipts.extend(run.take_receipt());
            running.end();
        }
    };
    poll_fn(|cx| {
        waiting.retain_mut(|running| is_waiting(running, cx));
        if waiting.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
