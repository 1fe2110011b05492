//! Sessions that every replica of a server knows.
//!
//! Where the server has a [`SessionStore`], the map of sessions is what this process remembers of
//! what the keeper has. A session that is not in it may have been opened by another replica, or
//! before a restart; one that is in it may have been ended elsewhere. Without a keeper the map is
//! all there is, and nothing of this happens.

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

/// What is known about the session of a request.
#[derive(Debug)]
pub(super) enum Named {
    /// The request names none.
    None,
    /// There is no such session for this caller.
    Unknown,
    Here(Arc<HttpSession>),
    /// Only the keeper knows, whether it is known here or not.
    Unsure(Option<Arc<HttpSession>>),
}

impl HttpState {
    /// The session that a request's headers name, as far as that is known here.
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
            None if is_id(id) && self.keeper().is_some() => Named::Unsure(None),
            None => Named::Unknown,
        }
    }

    /// Asks the keeper about the session that a request's headers name.
    ///
    /// A keeper that cannot be asked does not end a session: one that is known here goes on, and who
    /// names another is told to try again, since 404 would say that it is gone.
    pub(super) async fn settle(
        self: &Arc<Self>,
        headers: &HeaderMap,
        principal: &Principal,
        peer: Option<IpAddr>,
        here: Option<Arc<HttpSession>>,
    ) -> Result<Option<Arc<HttpSession>>, Box<Response<Body>>> {
        let id = headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
        let (Some(keeper), Some(id)) = (self.keeper(), id) else { return Ok(here) };
        if let Some(entry) = here {
            return Ok(self.confirm(keeper, &entry).await.then_some(entry));
        }
        match keeper.load(id, principal).await {
            Ok(None) => Ok(None),
            Ok(Some(session)) => {
                session.share(id.into(), self.kept_for());
                // One that has to make room goes on at other replicas.
                match self.enter(id.into(), session, Caller::new(principal, peer)) {
                    Ok((entry, _)) => Ok(Some(entry)),
                    Err(full) => Err(self.refused(full)),
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a session could not be looked up");
                let message = "sessions cannot be looked up at the moment; try again";
                Err(try_again(message))
            }
        }
    }

    /// The session of a request that makes no sense without one.
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
            Err(fault) => {
                Err(Box::new(reply::problem(StatusCode::BAD_REQUEST, &fault.to_string())))
            }
        }
    }

    /// Opens a session. Its id leaves only when all replicas know it.
    pub(super) async fn open_session(
        self: &Arc<Self>,
        session: Arc<Session>,
        caller: Option<Caller>,
    ) -> Result<Arc<HttpSession>, Box<Response<Body>>> {
        let Some(id) = new_id() else { return Err(self.refused(Full::Total)) };
        let keeper = self.keeper();
        if let Some(keeper) = keeper {
            session.share(Arc::clone(&id), self.kept_for());
            if let Err(error) = keeper.insert(&session).await {
                if let Some(times) = self.session_warnings.count(self.now()) {
                    tracing::warn!(%error, times, "a session could not be kept");
                }
                if let Some(limit) = error.limit() {
                    let status = StatusCode::TOO_MANY_REQUESTS;
                    return Err(Box::new(reply::over_limit(status, limit, &error.to_string())));
                }
                return Err(try_again("sessions cannot be opened at the moment; try again"));
            }
        }
        let (entry, ended) = match self.enter(id, Arc::clone(&session), caller) {
            Ok(entered) => entered,
            Err(full) => {
                if let Some(keeper) = keeper {
                    // No client has its ID; if it cannot be deleted now, it expires.
                    let _ = keeper.delete(&session).await;
                }
                return Err(self.refused(full));
            }
        };
        // A caller that replaces its own sessions must not leave them in the store. Those of others go
        // on at other replicas, or here when they are used again.
        if let (Some(keeper), Some(ended)) = (keeper, ended)
            && entry.caller().is_some()
            && entry.caller() == ended.caller()
            && let Err(error) = keeper.delete(&ended.session).await
        {
            tracing::warn!(%error, "a session could not be ended; the store forgets it later");
        }
        Ok(entry)
    }

    /// Ends a session, for all replicas.
    pub(super) async fn close_session(
        &self,
        entry: &HttpSession,
    ) -> Result<(), Box<Response<Body>>> {
        if let (Some(keeper), Some(_)) = (self.keeper(), entry.session.portable())
            && let Err(error) = keeper.delete(&entry.session).await
        {
            tracing::warn!(%error, "a session could not be ended");
            return Err(try_again("the session cannot be ended at the moment; try again"));
        }
        self.end_session(&entry.id);
        Ok(())
    }

    /// Hands on an answer that is for another replica, perhaps. It is acknowledged when that one
    /// can find it.
    pub(super) async fn hand_on(&self, stray: MisroutedReply) -> Response<Body> {
        let Some(keeper) = self.keeper() else { return reply::accepted() };
        match keeper.forward_reply(stray).await {
            Ok(()) => reply::accepted(),
            Err(error) => {
                if let Some(times) = self.stray_warnings.count(self.now()) {
                    tracing::warn!(%error, times, "an answer could not be handed on");
                }
                if let Some(limit) = error.limit() {
                    let what = format!("{error}; wait before the next one");
                    return reply::over_limit(StatusCode::TOO_MANY_REQUESTS, limit, &what);
                }
                *try_again("answers cannot be taken at the moment; try again")
            }
        }
    }

    /// What a client is told for whose session there is no room.
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
        let what = format!("all {max} sessions are in use; end one, or try again later");
        Box::new(reply::over_limit(status, limit, &what))
    }

    /// Twice as long as it may be idle here: whoever uses it refreshes it long before.
    fn kept_for(&self) -> Duration {
        self.config.session_idle_timeout.saturating_mul(2)
    }
}

/// What the keeper is needed for, while it cannot be asked.
fn try_again(message: &str) -> Box<Response<Body>> {
    let mut response = reply::problem(StatusCode::SERVICE_UNAVAILABLE, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    Box::new(response)
}
