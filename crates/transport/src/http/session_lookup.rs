//! Sessions that all replicas of a server share.
//!
//! With a [`SessionStore`], the session map of this process is a cache. A session missing from the
//! map may have been opened by another replica or before a restart. Another replica may have ended
//! a session in the map. Without a store, the map contains all sessions.

use std::{net::IpAddr, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use outlive_protocol::{MisroutedReply, Principal, Session};

use super::{
    body::Body,
    head::Head,
    headers::SESSION_ID,
    lifecycle::CONFIRMED,
    reply,
    sessions::{Full, HttpSession, is_id, new_id},
    state::HttpState,
};
use crate::caller::Caller;

/// Result of a session lookup in this process.
#[derive(Debug)]
pub(super) enum Named {
    /// The request has no session ID.
    None,
    /// The principal has no session with this ID.
    Unknown,
    Here(Arc<HttpSession>),
    /// The session store must decide. Contains the session of this process, if there is one.
    Unsure(Option<Arc<HttpSession>>),
}

impl HttpState {
    /// Looks up the session ID of a request in this process.
    pub(super) fn named_session(&self, headers: &HeaderMap, principal: &Principal) -> Named {
        let Some(id) = headers.get(SESSION_ID) else { return Named::None };
        let Ok(id) = id.to_str() else { return Named::Unknown };
        let now = self.now();
        match self.sessions.get(id, principal, now) {
            Some(entry) if entry.session.portable().is_none() => Named::Here(entry),
            Some(entry) if !self.sessions.is_to_be_confirmed(&entry, now, CONFIRMED) => {
                Named::Here(entry)
            }
            Some(entry) => Named::Unsure(Some(entry)),
            None if is_id(id) && self.session_store().is_some() => Named::Unsure(None),
            None => Named::Unknown,
        }
    }

    /// Looks up the session ID of a request in the session store.
    ///
    /// If the store is unavailable, sessions in this process continue. Unknown session IDs get 503,
    /// because 404 would tell the client that the session is gone.
    pub(super) async fn settle(
        self: &Arc<Self>,
        headers: &HeaderMap,
        principal: &Principal,
        peer: Option<IpAddr>,
        here: Option<Arc<HttpSession>>,
    ) -> Result<Option<Arc<HttpSession>>, Box<Response<Body>>> {
        let id = headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
        let (Some(store), Some(id)) = (self.session_store(), id) else { return Ok(here) };
        if let Some(entry) = here {
            return Ok(self.confirm(store, &entry).await.then_some(entry));
        }
        match store.load(id, principal).await {
            Ok(None) => Ok(None),
            Ok(Some(session)) => {
                session.share(id.into(), self.kept_for());
                // A session that is replaced here continues on other replicas.
                match self.enter(id.into(), session, Caller::new(principal, peer)) {
                    Ok((entry, _)) => Ok(Some(entry)),
                    Err(full) => Err(self.refused(full)),
                }
            }
            Err(error) => {
                tracing::warn!(%error, "session lookup failed");
                let message = "sessions cannot be looked up at the moment; retry";
                Err(try_again(message))
            }
        }
    }

    /// Returns the session of a request that requires one.
    pub(super) async fn required_session(
        self: &Arc<Self>,
        head: &Head,
    ) -> Result<Arc<HttpSession>, Box<Response<Body>>> {
        let (headers, principal) = (&head.parts.headers, &head.principal);
        let named = match self.named_session(headers, principal) {
            Named::None => None,
            Named::Unknown => Some(None),
            Named::Here(entry) => Some(Some(entry)),
            Named::Unsure(here) => {
                Some(Box::pin(self.settle(headers, principal, head.peer, here)).await?)
            }
        };
        let entry = match named {
            Some(Some(entry)) => entry,
            Some(None) => {
                let message = "unknown session; send `initialize` again";
                return Err(Box::new(reply::problem(StatusCode::NOT_FOUND, message)));
            }
            None => {
                let message = "the Mcp-Session-Id header is missing; send `initialize` first";
                return Err(Box::new(reply::problem(StatusCode::BAD_REQUEST, message)));
            }
        };
        match outlive_protocol::era::check_version_header(
            &entry.session,
            self.endpoint.profile(),
            headers,
        ) {
            Ok(()) => Ok(entry),
            Err(error) => {
                Err(Box::new(reply::problem(StatusCode::BAD_REQUEST, &error.to_string())))
            }
        }
    }

    /// Opens a session. The client gets the session ID only after the session is stored.
    pub(super) async fn open_session(
        self: &Arc<Self>,
        session: Arc<Session>,
        caller: Option<Caller>,
    ) -> Result<Arc<HttpSession>, Box<Response<Body>>> {
        let Some(id) = new_id() else { return Err(self.refused(Full::Total)) };
        let store = self.session_store();
        if let Some(store) = store {
            session.share(Arc::clone(&id), self.kept_for());
            if let Err(error) = store.insert(&session).await {
                if let Some(times) = self.session_warnings.count(self.now()) {
                    tracing::warn!(%error, times, "storing a session failed");
                }
                if let Some(limit) = error.limit() {
                    let status = StatusCode::TOO_MANY_REQUESTS;
                    return Err(Box::new(reply::over_limit(status, limit, &error.to_string())));
                }
                return Err(try_again("sessions cannot be opened at the moment; retry"));
            }
        }
        let (entry, ended) = match self.enter(id, Arc::clone(&session), caller) {
            Ok(entered) => entered,
            Err(full) => {
                if let Some(store) = store {
                    // No client has its ID; if it cannot be deleted now, it expires.
                    let _ = store.delete(&session).await;
                }
                return Err(self.refused(full));
            }
        };
        // A caller that replaces its own sessions must not leave them in the store. Replaced
        // sessions of other callers continue on other replicas, or here when they are used again.
        if let (Some(store), Some(ended)) = (store, ended)
            && entry.caller().is_some()
            && entry.caller() == ended.caller()
            && let Err(error) = store.delete(&ended.session).await
        {
            tracing::warn!(%error, "deleting a session failed; it expires in the store");
        }
        Ok(entry)
    }

    /// Ends a session on all replicas.
    pub(super) async fn close_session(
        &self,
        entry: &HttpSession,
    ) -> Result<(), Box<Response<Body>>> {
        if let (Some(store), Some(_)) = (self.session_store(), entry.session.portable())
            && let Err(error) = store.delete(&entry.session).await
        {
            tracing::warn!(%error, "deleting a session failed");
            return Err(try_again("the session cannot be ended at the moment; retry"));
        }
        self.end_session(&entry.id);
        Ok(())
    }

    /// Forwards a client's response to the replica that sent the request. Acknowledges the response
    /// after it is stored.
    pub(super) async fn hand_on(&self, reply: MisroutedReply) -> Response<Body> {
        let Some(store) = self.session_store() else { return reply::accepted() };
        match store.forward_reply(reply).await {
            Ok(()) => reply::accepted(),
            Err(error) => {
                if let Some(times) = self.misrouted_warnings.count(self.now()) {
                    tracing::warn!(%error, times, "forwarding a response to another replica failed");
                }
                if let Some(limit) = error.limit() {
                    let what = format!("{error}; wait before sending the next response");
                    return reply::over_limit(StatusCode::TOO_MANY_REQUESTS, limit, &what);
                }
                *try_again("responses cannot be accepted at the moment; retry")
            }
        }
    }

    /// Returns the response to a client whose session exceeds a limit.
    fn refused(&self, full: Full) -> Box<Response<Body>> {
        let (status, limit, max) = match full {
            Full::Total => {
                (StatusCode::SERVICE_UNAVAILABLE, "max_sessions", self.config.max_sessions)
            }
            Full::Caller => {
                let max = self.config.max_sessions_per_caller;
                (StatusCode::TOO_MANY_REQUESTS, "max_sessions_per_caller", max)
            }
        };
        let what = format!("all {max} sessions are in use; end one, or retry later");
        Box::new(reply::over_limit(status, limit, &what))
    }

    /// Returns the TTL of a session in the store: twice the idle timeout, so that a session in use
    /// is refreshed long before it expires.
    fn kept_for(&self) -> Duration {
        self.config.session_idle_timeout.saturating_mul(2)
    }
}

/// Returns a 503 response for an unavailable session store.
fn try_again(message: &str) -> Box<Response<Body>> {
    let mut response = reply::problem(StatusCode::SERVICE_UNAVAILABLE, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    Box::new(response)
}
