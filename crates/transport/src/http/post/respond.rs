//! Responses to calls: one JSON body if the call has only a result, an event stream otherwise.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use outlive_protocol::{Frame, Message, Notify, Outcome, ProtocolError, Run};
use outlive_wire::Method;

use super::{running::Running, stream::CallStream};
use crate::{
    budget::{Exceeded, SMALL},
    caller::Caller,
    http::{
        body::Body,
        negotiate::Takes,
        reply::{self, event_response},
        sessions::HttpSession,
        state::HttpState,
    },
    shares::Share,
};

/// Responds to one call.
pub(super) async fn respond(
    state: &Arc<HttpState>,
    mut run: Run,
    entry: Option<Arc<HttpSession>>,
    takes: Takes,
) -> Response<Body> {
    // Most calls end when they are first polled, and need no further state.
    let first = poll_fn(|cx| Poll::Ready(run.poll_message(cx))).await;
    match first {
        Poll::Ready(Some(message @ Message::Last(_))) if takes.json => {
            return whole(state, &mut run, message);
        }
        // This error needs its HTTP status, which tells the client to authorize; a stream always
        // has status 200.
        Poll::Ready(Some(message @ Message::Last(Err(ProtocolError::MissingScopes { .. })))) => {
            return whole(state, &mut run, message);
        }
        _ => {}
    }
    Box::pin(wait(state, run, first, entry, takes)).await
}

/// Responds to a call that is pending, or that sends a message before its result.
async fn wait(
    state: &Arc<HttpState>,
    mut run: Run,
    first: Poll<Option<Message>>,
    entry: Option<Arc<HttpSession>>,
    takes: Takes,
) -> Response<Body> {
    let share = match first {
        Poll::Ready(None | Some(Message::Last(_))) => None,
        _ => match place(state, &run) {
            Ok(share) => share,
            Err(error) => return whole(state, &mut run, Message::Last(Err(error))),
        },
    };
    let mut running = Running::new(run, share, state);
    let first = match first {
        Poll::Ready(Some(Message::Notify(notify))) if !takes.events => {
            running.hold();
            last_word(state, &mut running, Some(notify)).await
        }
        Poll::Ready(first) => First::Said(first),
        Poll::Pending => {
            running.hold();
            match takes.events {
                true => first_word(state, &mut running).await,
                false => last_word(state, &mut running, None).await,
            }
        }
    };
    match first {
        // A client that does not accept a stream gets the first segment only, and requests the
        // others.
        First::Said(Some(message @ (Message::Last(_) | Message::Partial(_))))
            if takes.json && (!takes.events || matches!(message, Message::Last(_))) =>
        {
            let Some(run) = running.run() else { return reply::accepted() };
            let response = whole(state, run, message);
            running.end();
            response
        }
        // The client has cancelled the call and expects no response.
        First::Said(None) => {
            running.end();
            reply::accepted()
        }
        First::Said(Some(message)) => {
            running.hold();
            events(CallStream::new(state, vec![running], entry), Some((0, message)), state)
        }
        First::Cut => {
            let what = "the server is shutting down; retry the call";
            reply::problem(StatusCode::SERVICE_UNAVAILABLE, what)
        }
        First::Silence => events(CallStream::new(state, vec![running], entry), None, state),
        First::Unspeakable => reply::problem(
            StatusCode::NOT_ACCEPTABLE,
            "the response is a stream; the Accept header must list text/event-stream",
        ),
    }
}

/// Reserves a slot for a waiting call, in its session and for its caller.
///
/// The limit bounds calls whose clients may have disconnected long ago. Subscriptions are exempt:
/// the limit on connections bounds them.
pub(super) fn place(state: &HttpState, run: &Run) -> Result<Option<Share<Caller>>, ProtocolError> {
    let call = run.call();
    let limit = state.endpoint.profile().limits.max_in_flight;
    let running = call.session().and_then(|session| session.running());
    if running.is_some_and(|running| running.len() >= limit) {
        return Err(ProtocolError::over_limit("in_flight"));
    }
    let caller = Caller::new(call.principal(), call.peer_addr());
    match caller.filter(|_| call.method() != Some(Method::Listen)) {
        None => Ok(None),
        Some(caller) => match state.waiting.enter(caller) {
            None => Err(ProtocolError::over_limit("max_waiting_calls_per_caller")),
            share => Ok(share),
        },
    }
}

/// First event of a waiting call.
enum First {
    Said(Option<Message>),
    /// No message within `stream_after`. A stream is opened, so that keep-alives reach proxies and
    /// the client can resume.
    Silence,
    /// A message that requires a stream, for a client that does not accept one.
    Unspeakable,
    /// The process ends before the first message.
    Cut,
}

async fn first_word(state: &HttpState, running: &mut Running) -> First {
    let mut patience: Pin<Box<tokio::time::Sleep>> =
        Box::pin(tokio::time::sleep(state.config.stream_after));
    let cutoff = state.endpoint.profile().cutoff.closing();
    poll_fn(|cx| match running.poll(cx) {
        Poll::Ready(message) => Poll::Ready(First::Said(message)),
        Poll::Pending if cutoff.poll_next(cx).is_ready() => Poll::Ready(First::Cut),
        Poll::Pending => patience.as_mut().poll(cx).map(|()| First::Silence),
    })
    .await
}

/// Waits for the result of a call whose client does not accept a stream, or for its first segment.
/// Drops all messages before it.
async fn last_word(state: &HttpState, running: &mut Running, mut said: Option<Notify>) -> First {
    let cutoff = state.endpoint.profile().cutoff.closing();
    loop {
        match &said {
            // A subscription has no content besides its notifications.
            Some(Notify::Acknowledged(_)) => return First::Unspeakable,
            Some(notify) => running.drop_input_request(notify),
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

fn whole(state: &HttpState, run: &mut Run, message: Message) -> Response<Body> {
    let mut out = Vec::with_capacity(512);
    let challenges = match (&message, &state.config.authenticator) {
        (
            Message::Last(Err(ProtocolError::MissingScopes { required: needed })),
            Some(authenticator),
        ) => authenticator.missing_scopes(run.call().principal(), needed),
        _ => Vec::new(),
    };
    let retry = match &message {
        Message::Last(Err(error)) => error.retry_after(),
        Message::Last(Ok(Outcome::InputRequired(required))) => required.retry_after,
        _ => None,
    };
    let status = match run.encode(message, &mut out) {
        Frame::End { status } => status,
        _ => 200,
    };
    let mut response = match counted(state, caller_of(run), out) {
        Ok(body) => {
            reply::json_response(status, Body::tracked(body, Vec::from_iter(run.take_receipt())))
        }
        Err(Exceeded(limit)) => {
            return whole(state, run, Message::Last(Err(ProtocolError::over_limit(limit))));
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

/// Returns the bytes of a response, charged to the caller until the client has read them.
pub(super) fn counted(
    state: &HttpState,
    caller: impl FnOnce() -> Option<Caller>,
    out: Vec<u8>,
) -> Result<Bytes, Exceeded> {
    if out.len() <= SMALL {
        return Ok(out.into());
    }
    let mut charge = state.unread.open(caller());
    charge.grow(out.len())?;
    Ok(charge.own(out.into()))
}

/// Returns the caller whose limits apply to the call.
fn caller_of(run: &Run) -> impl FnOnce() -> Option<Caller> {
    || Caller::new(run.call().principal(), run.call().peer_addr())
}

fn events(
    mut stream: CallStream,
    first: Option<(usize, Message)>,
    state: &HttpState,
) -> Response<Body> {
    let caller = stream.caller();
    let mut out = stream.begin();
    // A subscription sends few events and stays open until the client disconnects.
    let is_held = matches!(first, Some((_, Message::Notify(Notify::Acknowledged(_)))));
    if let Some((index, message)) = first {
        stream.write(index, message, &mut out);
    }
    let settings = state.stream_settings();
    event_response(match is_held {
        true => Body::held(settings, caller, stream, out),
        false => Body::events(settings, caller, stream, out),
    })
}
