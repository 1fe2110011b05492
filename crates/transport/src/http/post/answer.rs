//! Answers calls: one JSON body if that is all there is to say, a stream of events otherwise.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use outlive_protocol::{
    Accepted, ChangeFilter, Frame, InFlightGuard, Message, Notify, OnDisconnect, Outcome,
    ProtocolError, Run,
};
use outlive_wire::Method;

use super::stream::{CallStream, Numbered};
use crate::{
    budget::{Exceeded, SMALL},
    caller::Caller,
    http::{
        Body,
        negotiate::Takes,
        reply::{self, event_response},
        service::Shared,
        sessions::HttpSession,
    },
    shares::Share,
};

/// A run that may have to wait, with its place in the table of what is running.
pub(in crate::http) struct Running {
    run: Option<Run>,
    held: Option<InFlightGuard>,
    /// Its place among the calls of its caller that wait.
    share: Option<Share<Caller>>,
    shared: Arc<Shared>,
    /// Where its events go when nobody reads them.
    pub(super) numbered: Option<Numbered>,
}

impl Running {
    fn new(run: Run, share: Option<Share<Caller>>, shared: &Arc<Shared>) -> Self {
        Self { run: Some(run), held: None, share, shared: Arc::clone(shared), numbered: None }
    }

    pub(in crate::http) fn run(&mut self) -> Option<&mut Run> {
        self.run.as_mut()
    }

    pub(in crate::http) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        match &mut self.run {
            Some(run) => run.poll_message(cx),
            None => Poll::Ready(None),
        }
    }

    /// Enters the call into its session's table, where a cancellation finds it.
    fn hold(&mut self) {
        let session = self.run.as_ref().and_then(|run| run.call().session().cloned());
        if let (Some(run), Some(session), None) = (&self.run, session, &self.held) {
            self.held = Some(session.in_flight().hold(run.call()));
        }
    }

    /// Something was said that goes nowhere. A question must not be waited for then.
    fn drop_question(&self, notify: &Notify) {
        if let Some(run) = &self.run {
            refuse_question(run, notify);
        }
    }

    /// The call has ended; nothing is left to go on with. `false` if that was known.
    pub(in crate::http) fn end(&mut self) -> bool {
        self.held = None;
        self.share = None;
        self.run.take().is_some()
    }
}

/// Answers a question that cannot reach the client.
pub(super) fn refuse_question(run: &Run, notify: &Notify) {
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
            let pump = super::stream::pump(run, self.numbered.take());
            self.shared.tasks.spawn(async move {
                let _entered = (held, share);
                pump.await;
            });
        }
    }
}

/// Answers one call.
pub(in crate::http) async fn one(
    shared: &Arc<Shared>,
    mut run: Run,
    entry: Option<Arc<HttpSession>>,
    takes: Takes,
) -> Response<Body> {
    // Most calls are ready when they are first asked: nothing is made for those.
    let first = poll_fn(|cx| Poll::Ready(run.poll_message(cx))).await;
    match first {
        Poll::Ready(Some(message @ Message::Last(_))) if takes.json => {
            return whole(shared, &run, message);
        }
        // A stream has no status, and this one is an instruction to the client.
        Poll::Ready(Some(message @ Message::Last(Err(ProtocolError::MissingScopes { .. })))) => {
            return whole(shared, &run, message);
        }
        _ => {}
    }
    Box::pin(wait(shared, run, first, entry, takes)).await
}

/// Answers a call that was not ready, or has something to say before its result.
async fn wait(
    shared: &Arc<Shared>,
    run: Run,
    first: Poll<Option<Message>>,
    entry: Option<Arc<HttpSession>>,
    takes: Takes,
) -> Response<Body> {
    let share = match first {
        Poll::Ready(None | Some(Message::Last(_))) => None,
        _ => match place(shared, &run) {
            Ok(share) => share,
            Err(fault) => return whole(shared, &run, Message::Last(Err(fault))),
        },
    };
    let mut running = Running::new(run, share, shared);
    let first = match first {
        Poll::Ready(Some(Message::Notify(notify))) if !takes.events => {
            running.hold();
            last_word(shared, &mut running, Some(notify)).await
        }
        Poll::Ready(first) => First::Said(first),
        Poll::Pending => {
            running.hold();
            match takes.events {
                true => first_word(shared, &mut running).await,
                false => last_word(shared, &mut running, None).await,
            }
        }
    };
    match first {
        // A piece is all that a client gets which takes no stream: it asks for the rest.
        First::Said(Some(message @ (Message::Last(_) | Message::Partial(_))))
            if takes.json && (!takes.events || matches!(message, Message::Last(_))) =>
        {
            let Some(run) = running.run() else { return reply::accepted() };
            let response = whole(shared, run, message);
            running.end();
            response
        }
        // Cancelled by the client itself, which waits for nothing any more.
        First::Said(None) => {
            running.end();
            reply::accepted()
        }
        First::Said(Some(message)) => {
            running.hold();
            events(CallStream::new(shared, vec![running], entry), Some((0, message)), shared)
        }
        First::Cut => {
            let what = "the server shuts down; call again";
            reply::problem(StatusCode::SERVICE_UNAVAILABLE, what)
        }
        First::Silence => events(CallStream::new(shared, vec![running], entry), None, shared),
        First::Unspeakable => reply::problem(
            StatusCode::NOT_ACCEPTABLE,
            "this is answered with a stream; the Accept header must list text/event-stream",
        ),
    }
}

/// Answers several calls that came as one (2025-03-26 only).
pub(in crate::http) async fn batch(
    shared: &Arc<Shared>,
    parts: Vec<Accepted>,
    entry: Option<Arc<HttpSession>>,
    takes: Takes,
) -> Response<Body> {
    let caller = entry.as_ref().and_then(|entry| entry.caller().cloned());
    let mut answers: Vec<Vec<u8>> = Vec::new();
    let mut waiting: Vec<Running> = Vec::new();
    let mut early: Vec<(usize, Message)> = Vec::new();
    for part in parts {
        match part {
            Accepted::Call(run) if is_running(&run) => {
                // Twice in one batch: neither was running when the other was read.
                let why = format!("id {} is there twice", run.call().id());
                let mut out = Vec::new();
                run.encode(Message::Last(Err(ProtocolError::invalid_request(why))), &mut out);
                answers.push(out);
            }
            Accepted::Call(mut run) => {
                let mut share = None;
                let message = match poll_fn(|cx| Poll::Ready(run.poll_message(cx))).await {
                    Poll::Ready(None) => continue,
                    Poll::Ready(Some(last @ Message::Last(_))) => Some(last),
                    waits => match place(shared, &run) {
                        Err(fault) => Some(Message::Last(Err(fault))),
                        Ok(place) => {
                            share = place;
                            if let Poll::Ready(said) = waits { said } else { None }
                        }
                    },
                };
                if let Some(last @ Message::Last(_)) = message {
                    let mut out = Vec::new();
                    run.encode(last, &mut out);
                    answers.push(out);
                    continue;
                }
                early.extend(message.map(|message| (waiting.len(), message)));
                let mut running = Running::new(run, share, shared);
                running.hold();
                waiting.push(running);
            }
            Accepted::Stray(stray) => drop(shared.hand_on(*stray).await),
            Accepted::Refused(refusal) if refusal.wants_answer => answers.push(refusal.body),
            _ => {}
        }
    }
    if !takes.events {
        for (index, message) in early.drain(..) {
            if let (Message::Notify(notify), Some(running)) = (&message, waiting.get(index)) {
                running.drop_question(notify);
            }
        }
        collect(&mut waiting, &mut answers).await;
    }
    if waiting.is_empty() && answers.is_empty() {
        return reply::accepted();
    }
    if waiting.is_empty() && takes.json {
        let whole = [b"[", &answers.join(&b',')[..], b"]"].concat();
        return match counted(shared, || caller, whole) {
            Ok(body) => reply::json_body(200, body),
            Err(Exceeded(limit)) => {
                let what = "responses of this caller are unread; read them first";
                reply::over_limit(StatusCode::TOO_MANY_REQUESTS, limit, what)
            }
        };
    }
    let mut stream = CallStream::new(shared, waiting, entry);
    let mut out = stream.begin();
    answers.iter().for_each(|answer| stream.say(answer, &mut out));
    for (index, message) in early {
        stream.write(index, message, &mut out);
    }
    event_response(Body::events(shared, caller, stream, out))
}

/// The place of a call that has to wait, among those of its session and of its caller. Whoever has too
/// many waiting takes on no more: its client may have left long ago. Subscriptions have as many places
/// as there are connections.
fn place(shared: &Shared, run: &Run) -> Result<Option<Share<Caller>>, ProtocolError> {
    let call = run.call();
    let limit = shared.endpoint.profile().limits.max_in_flight;
    if call.session().is_some_and(|session| session.in_flight().len() >= limit) {
        return Err(ProtocolError::over_limit("in_flight"));
    }
    let caller = Caller::new(call.principal(), call.peer_addr());
    match caller.filter(|_| call.method() != Some(Method::Listen)) {
        None => Ok(None),
        Some(caller) => match shared.waiting.enter(caller) {
            None => Err(ProtocolError::over_limit("max_waiting_calls_per_caller")),
            share => Ok(share),
        },
    }
}

fn is_running(run: &Run) -> bool {
    let call = run.call();
    call.session().is_some_and(|session| session.in_flight().contains(call.id()))
}

/// Waits for calls whose client takes no stream, all at once, and drops what they say on the way.
async fn collect(waiting: &mut Vec<Running>, answers: &mut Vec<Vec<u8>>) {
    let mut is_waiting = |running: &mut Running, cx: &mut Context<'_>| loop {
        let message = match running.poll(cx) {
            Poll::Ready(Some(message)) => message,
            Poll::Ready(None) => return false,
            Poll::Pending => return true,
        };
        if let Message::Notify(notify) = &message {
            running.drop_question(notify);
        }
        let mut out = Vec::new();
        if let Some(Frame::End { .. }) = running.run().map(|run| run.encode(message, &mut out)) {
            answers.push(out);
            running.end();
        }
    };
    poll_fn(|cx| {
        waiting.retain_mut(|running| is_waiting(running, cx));
        if waiting.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// What a call said first.
enum First {
    Said(Option<Message>),
    /// Nothing for so long that a stream is opened, so that proxies and resumption can do their part.
    Silence,
    /// Something that only a stream can say, to a client that takes none.
    Unspeakable,
    /// Nothing until the process had to end.
    Cut,
}

async fn first_word(shared: &Shared, running: &mut Running) -> First {
    let mut patience: Pin<Box<tokio::time::Sleep>> =
        Box::pin(tokio::time::sleep(shared.config.sse_after));
    let cutoff = shared.endpoint.profile().cutoff.subscribe(ChangeFilter::default());
    poll_fn(|cx| match running.poll(cx) {
        Poll::Ready(message) => Poll::Ready(First::Said(message)),
        Poll::Pending if cutoff.poll_next(cx).is_ready() => Poll::Ready(First::Cut),
        Poll::Pending => patience.as_mut().poll(cx).map(|()| First::Silence),
    })
    .await
}

/// Waits for the end of a call whose client takes no stream, or for the first of several responses;
/// what else is said before it is lost.
async fn last_word(shared: &Shared, running: &mut Running, mut said: Option<Notify>) -> First {
    let cutoff = shared.endpoint.profile().cutoff.subscribe(ChangeFilter::default());
    loop {
        match &said {
            // A subscription is nothing but what it says on the way.
            Some(Notify::Acknowledged(_)) => return First::Unspeakable,
            Some(notify) => running.drop_question(notify),
            None => {}
        }
        let next = poll_fn(|cx| match running.poll(cx) {
            Poll::Ready(message) => Poll::Ready(Some(message)),
            Poll::Pending => cutoff.poll_next(cx).map(|_| None),
        });
        match next.await {
            Some(Some(Message::Notify(notify))) => said = Some(notify),
            Some(last) => return First::Said(last),
            None => return First::Cut,
        }
    }
}

fn whole(shared: &Shared, run: &Run, message: Message) -> Response<Body> {
    let mut out = Vec::with_capacity(512);
    let challenges = match (&message, &shared.config.authenticator) {
        (
            Message::Last(Err(ProtocolError::MissingScopes { required: needed })),
            Some(authenticator),
        ) => authenticator.missing_scopes(run.call().principal(), needed),
        _ => Vec::new(),
    };
    let retry = match &message {
        Message::Last(Err(fault)) => fault.retry_after(),
        Message::Last(Ok(Outcome::InputRequired(required))) => required.retry_after,
        _ => None,
    };
    let status = match run.encode(message, &mut out) {
        Frame::End { status } => status,
        _ => 200,
    };
    let mut response = match counted(shared, caller_of(run), out) {
        Ok(body) => reply::json_body(status, body),
        Err(Exceeded(limit)) => {
            return whole(shared, run, Message::Last(Err(ProtocolError::over_limit(limit))));
        }
    };
    for challenge in challenges {
        response.headers_mut().append(header::WWW_AUTHENTICATE, challenge);
    }
    if let Some(retry) = retry {
        let seconds = retry.as_secs() + u64::from(retry.subsec_nanos() > 0);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    }
    response
}

/// A response that counts until its client has read it.
fn counted(
    shared: &Shared,
    caller: impl FnOnce() -> Option<Caller>,
    out: Vec<u8>,
) -> Result<Bytes, Exceeded> {
    if out.len() <= SMALL {
        return Ok(out.into());
    }
    let mut charge = shared.unread.open(caller());
    charge.grow(out.len())?;
    Ok(charge.own(out.into()))
}

/// Whose limits a call counts in.
fn caller_of(run: &Run) -> impl FnOnce() -> Option<Caller> {
    || Caller::new(run.call().principal(), run.call().peer_addr())
}

fn events(
    mut stream: CallStream,
    first: Option<(usize, Message)>,
    shared: &Shared,
) -> Response<Body> {
    let caller = stream.caller();
    let mut out = stream.begin();
    // A subscription says something once in a while, for as long as its client is there.
    let is_held = matches!(first, Some((_, Message::Notify(Notify::Acknowledged(_)))));
    if let Some((index, message)) = first {
        stream.write(index, message, &mut out);
    }
    event_response(match is_held {
        true => Body::held(shared, caller, stream, out),
        false => Body::events(shared, caller, stream, out),
    })
}
