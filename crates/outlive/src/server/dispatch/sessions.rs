//! Changes of legacy sessions that several replicas share.

use std::sync::Arc;

use outlive_protocol::{
    Call, CallFuture, MethodResult, Outcome, ProtocolError, Session, SessionStore as _,
};

use crate::server::{dispatch::core::ServerCore, sessions::store::SharedSessions};

/// Handles a call that changes its session. The change is stored for other replicas before the
/// client gets its response.
pub(crate) fn remembered(
    core: &Arc<ServerCore>,
    call: Arc<Call>,
    change: impl FnOnce(&ServerCore, &Call) -> Result<MethodResult, ProtocolError> + Send + 'static,
) -> CallFuture {
    let shared = call.session().is_some_and(|session| session.portable().is_some());
    if !shared || core.env.sessions().is_none() {
        let result = change(core, &call).map(Outcome::Complete);
        return Box::pin(std::future::ready(result));
    }
    let core = Arc::clone(core);
    Box::pin(async move {
        let (Some(sessions), Some(session)) = (core.env.sessions(), call.session()) else {
            return change(&core, &call).map(Outcome::Complete);
        };
        // Another replica may have changed the session; its change must not be lost.
        synchronize(sessions, session).await;
        let result = change(&core, &call)?;
        session.note_change();
        synchronize(sessions, session).await;
        Ok(Outcome::Complete(result))
    })
}

/// Synchronizes a session with its stored copy. If the store is unavailable, the next refresh does
/// it.
async fn synchronize(sessions: &SharedSessions, session: &Session) {
    if let Err(error) = sessions.refresh(session, false).await {
        tracing::warn!(%error, "session change not stored; other replicas see it after the next refresh");
    }
}
