//! Answers calls: one JSON body if that is all there is to say, a stream of events otherwise.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Response, StatusCode, header};
use outlive_protocol::{
    Accepted, Fault, Held, Message, Notify, Outcome, Run,
    era::{Abandoned, Frame},
};

use super::stream::{CallStream, Numbered};
use crate::http::{
    Body,
    negotiate::Takes,
    reply::{self, event_response},
    service::Shared,
    sessions::HttpSession,
};

/// A run that may have to wait, with its place in the table of what is running.
pub(in crate::http) struct Running {
    run: Option<Run>,
    held: Option<Held>,
    shared: Arc<Shared>,
    /// Where its events go when nobody reads them.
    pub(super) numbered: Option<Numbered>,
}

impl Running {
    pub(in crate::http) fn new(run: Run, shared: &Arc<Shared>) -> Self {
        Self { run: Some(run), held: None, shared: Arc::clone(shared), numbered: None }
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
        if run.call().era().abandoned() == Abandoned::GoOn {
            let pump = super::stream::pump(run, self.held.take(), self.numbered.take());
            self.shared.tasks.spawn(pump);
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
        Poll::Ready(Some(message @ Message::Last(Err(Fault::MissingScopes { .. })))) => {
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
    if !matches!(first, Poll::Ready(None | Some(Message::Last(_)))) && is_crowded(shared, &run) {
        return whole(shared, &run, Message::Last(Err(TOO_MANY)));
    }
    let mut running = Running::new(run, shared);
    let first = match first {
        Poll::Ready(Some(Message::Notify(notify))) if !takes.events => {
            running.hold();
            last_word(&mut running, Some(notify)).await
        }
        Poll::Ready(first) => First::Said(first),
        Poll::Pending => {
            running.hold();
            match takes.events {
                true => first_word(shared, &mut running).await,
                false => last_word(&mut running, None).await,
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
    let mut answers: Vec<Vec<u8>> = Vec::new();
    let mut waiting: Vec<Running> = Vec::new();
    let mut early: Vec<(usize, Message)> = Vec::new();
    for part in parts {
        match part {
            Accepted::Call(run) if is_running(&run) => {
                // Twice in one batch: neither was running when the other was read.
                let why = format!("id {} is there twice", run.call().id());
                let mut out = Vec::new();
                run.encode(Message::Last(Err(Fault::invalid_request(why))), &mut out);
                answers.push(out);
            }
            Accepted::Call(mut run) => {
                let message = match poll_fn(|cx| Poll::Ready(run.poll_message(cx))).await {
                    Poll::Ready(None) => continue,
                    Poll::Ready(Some(last @ Message::Last(_))) => Some(last),
                    _ if is_crowded(shared, &run) => Some(Message::Last(Err(TOO_MANY))),
                    Poll::Ready(said) => said,
                    Poll::Pending => None,
                };
                if let Some(last @ Message::Last(_)) = message {
                    let mut out = Vec::new();
                    run.encode(last, &mut out);
                    answers.push(out);
                    continue;
                }
                early.extend(message.map(|message| (waiting.len(), message)));
                let mut running = Running::new(run, shared);
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
        return reply::json(200, [b"[", &answers.join(&b',')[..], b"]"].concat());
    }
    let mut stream = CallStream::new(shared, waiting, entry);
    let mut out = stream.begin();
    answers.iter().for_each(|answer| stream.say(answer, &mut out));
    for (index, message) in early {
        stream.write(index, message, &mut out);
    }
    event_response(Body::events(shared, stream, out))
}

/// A session that has so much running takes on no more: its client may have left long ago.
fn is_crowded(shared: &Shared, run: &Run) -> bool {
    let limit = shared.endpoint.profile().limits.in_flight;
    run.call().session().is_some_and(|session| session.in_flight().len() >= limit)
}

/// What a crowded session hears. Nobody knows when one of its calls ends.
const TOO_MANY: Fault = Fault::Busy { retry_after: Duration::from_secs(1) };

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
}

async fn first_word(shared: &Shared, running: &mut Running) -> First {
    let mut patience: Pin<Box<tokio::time::Sleep>> =
        Box::pin(tokio::time::sleep(shared.config.sse_after));
    poll_fn(|cx| match running.poll(cx) {
        Poll::Ready(message) => Poll::Ready(First::Said(message)),
        Poll::Pending => patience.as_mut().poll(cx).map(|()| First::Silence),
    })
    .await
}

/// Waits for the end of a call whose client takes no stream, or for the first of several responses;
/// what else is said before it is lost.
async fn last_word(running: &mut Running, mut said: Option<Notify>) -> First {
    loop {
        match &said {
            // A subscription is nothing but what it says on the way.
            Some(Notify::Acknowledged(_)) => return First::Unspeakable,
            Some(notify) => running.drop_question(notify),
            None => {}
        }
        match poll_fn(|cx| running.poll(cx)).await {
            Some(Message::Notify(notify)) => said = Some(notify),
            last => return First::Said(last),
        }
    }
}

fn whole(shared: &Shared, run: &Run, message: Message) -> Response<Body> {
    let mut out = Vec::with_capacity(512);
    let challenges = match (&message, &shared.config.authenticator) {
        (Message::Last(Err(Fault::MissingScopes { needed })), Some(authenticator)) => {
            authenticator.missing_scopes(run.call().principal(), needed)
        }
        _ => Vec::new(),
    };
    let retry = match &message {
        Message::Last(Err(
            Fault::Busy { retry_after }
            | Fault::OverLimit { retry_after, .. }
            | Fault::Unavailable { retry_after },
        )) => Some(*retry_after),
        Message::Last(Ok(Outcome::InputRequired(required))) => required.retry_after,
        _ => None,
    };
    let status = match run.encode(message, &mut out) {
        Frame::End { status } => status,
        _ => 200,
    };
    let mut response = reply::json(status, out);
    for challenge in challenges {
        response.headers_mut().append(header::WWW_AUTHENTICATE, challenge);
    }
    if let Some(retry) = retry {
        let seconds = retry.as_secs() + u64::from(retry.subsec_nanos() > 0);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    }
    response
}

fn events(
    mut stream: CallStream,
    first: Option<(usize, Message)>,
    shared: &Shared,
) -> Response<Body> {
    let mut out = stream.begin();
    // A subscription says something once in a while, for as long as its client is there.
    let is_held = matches!(first, Some((_, Message::Notify(Notify::Acknowledged(_)))));
    if let Some((index, message)) = first {
        stream.write(index, message, &mut out);
    }
    event_response(match is_held {
        true => Body::held(shared, stream, out),
        false => Body::events(shared, stream, out),
    })
}
