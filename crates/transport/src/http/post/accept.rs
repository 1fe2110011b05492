//! Handles a POST: reads its message, finds its session and passes both to the server.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use outlive_protocol::{Accepted, MessageContext, Run, Session, era};

use super::{batch::batch, respond::respond};
use crate::{
    caller::Caller,
    http::{
        body::Body,
        head::Head,
        headers::SESSION_ID,
        negotiate, reply,
        request_body::{read, unread},
        session_lookup::Named,
        sessions::HttpSession,
        state::HttpState,
    },
};

/// Handles a POST request.
pub(in crate::http) async fn post<B>(state: &Arc<HttpState>, head: Head, body: B) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let headers = &head.parts.headers;
    if !negotiate::is_json(headers) {
        let refused = reply::problem(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the Content-Type must be application/json",
        );
        return Box::pin(unread(body, refused)).await;
    }
    let takes = negotiate::takes(headers);
    if !takes.json && !takes.events {
        let refused = reply::problem(
            StatusCode::NOT_ACCEPTABLE,
            "the Accept header must list application/json and text/event-stream",
        );
        return Box::pin(unread(body, refused)).await;
    }
    let reading = state.message_reading(&head.principal, head.peer);
    let message = match read(body, reading).await {
        Ok(message) => message,
        Err(response) => return *response,
    };
    // Modern requests have no session, even if they send a session ID.
    let named = match state.config.sessions && !era::headers_look_modern(&head.parts.headers) {
        true => state.named_session(&head.parts.headers, &head.principal),
        false => Named::None,
    };
    if let Named::Unsure(here) = named {
        // Boxed because the lookup is rare: the future of a plain call stays small.
        return Box::pin(settled(state, head, message, here, takes)).await;
    }
    let (accepted, entry) = accept(state, head, &message, named);
    // The call keeps the parts of the message that it needs. Dropping the rest lets its buffer be
    // reused.
    drop(message);
    match accepted {
        Accepted::Call(run) => respond(state, run, entry, takes).await,
        Accepted::Noted => reply::accepted(),
        Accepted::Refused(refusal) => reply::refusal(refusal),
        other => Box::pin(rest(state, other, entry, takes)).await,
    }
}

/// Handles a message whose session must be looked up in the session store.
async fn settled(
    state: &Arc<HttpState>,
    head: Head,
    message: Bytes,
    here: Option<Arc<HttpSession>>,
    takes: negotiate::Takes,
) -> Response<Body> {
    let Head { parts, principal, peer } = &head;
    let named = match state.settle(&parts.headers, principal, *peer, here).await {
        Ok(Some(entry)) => Named::Here(entry),
        Ok(None) => Named::Unknown,
        Err(response) => return *response,
    };
    let (accepted, entry) = accept(state, head, &message, named);
    drop(message);
    rest(state, accepted, entry, takes).await
}

/// Passes a message to the server.
fn accept(
    state: &HttpState,
    head: Head,
    message: &Bytes,
    named: Named,
) -> (Accepted, Option<Arc<HttpSession>>) {
    let lost_session = matches!(named, Named::Unknown);
    let entry = match named {
        Named::Here(entry) => Some(entry),
        _ => None,
    };
    let session = entry.as_ref().map(|entry| Arc::clone(&entry.session));
    let arrival = MessageContext {
        principal: head.principal,
        in_flight: session.as_deref().and_then(Session::running),
        session: session.clone(),
        peer: head.peer,
        http: Some(head.parts),
        stateless: !state.config.sessions,
        lost_session,
        legacy_only: false,
    };
    (state.endpoint.accept(message, arrival), entry)
}

/// Responds to any kind of accepted message.
async fn rest(
    state: &Arc<HttpState>,
    accepted: Accepted,
    entry: Option<Arc<HttpSession>>,
    takes: negotiate::Takes,
) -> Response<Body> {
    match accepted {
        Accepted::Call(run) => respond(state, run, entry, takes).await,
        Accepted::Handshake(run, session) => handshake(state, run, session, takes).await,
        Accepted::Noted => reply::accepted(),
        Accepted::Misrouted(reply) => state.hand_on(*reply).await,
        Accepted::Refused(refusal) => reply::refusal(refusal),
        Accepted::Batch(parts) => batch(state, parts, entry, takes).await,
    }
}

/// Responds to `initialize`. Opens a session if sessions are enabled.
async fn handshake(
    state: &Arc<HttpState>,
    run: Run,
    session: Arc<Session>,
    takes: negotiate::Takes,
) -> Response<Body> {
    if !state.config.sessions {
        return respond(state, run, None, takes).await;
    }
    let caller = Caller::new(session.principal(), run.call().peer_addr());
    let entry = match state.open_session(session, caller).await {
        Ok(entry) => entry,
        Err(response) => return *response,
    };
    let id = HeaderValue::from_str(&entry.id);
    let mut response = respond(state, run, Some(entry), takes).await;
    if let Ok(id) = id {
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
}
