//! Sessions that every replica of a server knows.
//!
//! Where the server has a [`SessionKeeper`], the map of sessions is what this process remembers of
//! what the keeper has. A session that is not in it may have been opened by another replica, or
//! before a restart; one that is in it may have been ended elsewhere. Without a keeper the map is
//! all there is, and nothing of this happens.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use outlive_protocol::{Principal, Session, SessionKeeper, Stray};

use super::{
    Body, reply,
    service::{SESSION_ID, Shared},
    sessions::{Full, HttpSession, is_id, new_id},
};

/// For how long a session that the keeper has confirmed is used without asking again: how long one
/// that was ended elsewhere can still be used here.
const CONFIRMED: Duration = Duration::from_secs(1);

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

impl Shared {
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
        here: Option<Arc<HttpSession>>,
    ) -> Result<Option<Arc<HttpSession>>, Box<Response<Body>>> {
        let id = headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
        let (Some(keeper), Some(id)) = (self.keeper(), id) else { return Ok(here) };
        if let Some(entry) = here {
            return Ok(self.confirm(keeper, &entry).await.then_some(entry));
        }
        match keeper.recall(id, principal).await {
            Ok(None) => Ok(None),
            Ok(Some(session)) => {
                session.make_portable(id.into(), self.kept_for());
                match self.enter(id.into(), session) {
                    Ok(entry) => Ok(Some(entry)),
                    Err(Full) => Err(full()),
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a session could not be looked up");
                let message = "sessions cannot be looked up at the moment; try again";
                Err(try_again(message))
            }
        }
    }

    /// Opens a session. Its id leaves only when all replicas know it.
    pub(super) async fn open_session(
        self: &Arc<Self>,
        session: Arc<Session>,
    ) -> Result<Arc<HttpSession>, Box<Response<Body>>> {
        let Some(id) = new_id() else { return Err(full()) };
        let keeper = self.keeper();
        if let Some(keeper) = keeper {
            session.make_portable(Arc::clone(&id), self.kept_for());
            if let Err(error) = keeper.keep(&session).await {
                tracing::warn!(%error, "a session could not be kept");
                return Err(try_again("sessions cannot be opened at the moment; try again"));
            }
        }
        match (self.enter(id, Arc::clone(&session)), keeper) {
            (Ok(entry), _) => Ok(entry),
            (Err(Full), None) => Err(full()),
            (Err(Full), Some(keeper)) => {
                // Nobody has its id; if it cannot be forgotten now, its time will be over.
                let _ = keeper.forget(&session).await;
                Err(full())
            }
        }
    }

    /// Ends a session, for all replicas.
    pub(super) async fn close_session(
        &self,
        entry: &HttpSession,
    ) -> Result<(), Box<Response<Body>>> {
        if let (Some(keeper), Some(_)) = (self.keeper(), entry.session.portable())
            && let Err(error) = keeper.forget(&entry.session).await
        {
            tracing::warn!(%error, "a session could not be ended");
            return Err(try_again("the session cannot be ended at the moment; try again"));
        }
        self.end_session(&entry.id);
        Ok(())
    }

    /// Hands on an answer that is for another replica, perhaps. It is acknowledged when that one
    /// can find it.
    pub(super) async fn hand_on(&self, stray: Stray) -> Response<Body> {
        let Some(keeper) = self.keeper() else { return reply::accepted() };
        match keeper.post(stray).await {
            Ok(()) => reply::accepted(),
            Err(error) => {
                tracing::warn!(%error, "an answer could not be handed on");
                *try_again("answers cannot be taken at the moment; try again")
            }
        }
    }

    /// Confirms the sessions in which something is open though nothing is asked for: they must be
    /// kept, and one that was ended elsewhere has to end here.
    pub(super) async fn confirm_busy(&self) {
        let Some(keeper) = self.keeper() else { return };
        for entry in self.sessions.busy(self.now(), CONFIRMED) {
            self.confirm(keeper, &entry).await;
        }
    }

    /// Whether a session is still there; it ends here if not.
    async fn confirm(&self, keeper: &dyn SessionKeeper, entry: &HttpSession) -> bool {
        let now = self.now();
        let refresh = self.sessions.is_to_be_refreshed(entry, now);
        match keeper.confirm(&entry.session, refresh).await {
            Ok(true) => {
                if refresh {
                    self.sessions.note_refreshed(entry, now);
                }
                true
            }
            Ok(false) => {
                self.end_session(&entry.id);
                false
            }
            Err(error) => {
                tracing::warn!(%error, "a session could not be looked up; it goes on here");
                true
            }
        }
    }

    /// Twice as long as it may be idle here: whoever uses it refreshes it long before.
    fn kept_for(&self) -> Duration {
        self.config.session_idle.saturating_mul(2)
    }

    fn keeper(&self) -> Option<&dyn SessionKeeper> {
        self.endpoint.service().keeper()
    }
}

fn full() -> Box<Response<Body>> {
    let message = "this server has as many sessions as it can hold; try again later";
    Box::new(reply::problem(StatusCode::SERVICE_UNAVAILABLE, message))
}

/// What the keeper is needed for, while it cannot be asked.
fn try_again(message: &str) -> Box<Response<Body>> {
    let mut response = reply::problem(StatusCode::SERVICE_UNAVAILABLE, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    Box::new(response)
}
