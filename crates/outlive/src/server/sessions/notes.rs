//! Sessions as notes of the task store.
//!
//! A session's id opens it, so the store has a digest of it only. The note says whose it is; for
//! everybody else it is not there. Of two replicas that write one note the later wins, but a note
//! that is behind what a replica knows is written again when that replica next looks at it.

use std::{sync::Arc, time::Duration};

use outlive_protocol::{
    Call, CallFuture, MethodResult, MisroutedReply, Outcome, Principal, Profile, ProtocolError,
    Session, SessionStore, SessionStoreError, SessionStoreFuture, StoredSession,
};
use outlive_tasks::store::{Charge, KeyValueStore, StoreError};
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest, Sha256};

use super::replies::Replies;
use crate::{hex::hex, server::core::Core};

/// For how long it is known that a session has ended. Only who is about to write its note has to
/// know: that takes as long as two requests to the store.
const ENDED: Duration = Duration::from_secs(60);

/// Keeps sessions in the task store.
pub(in crate::server) struct SessionNotes {
    store: Arc<dyn KeyValueStore>,
    profile: Arc<Profile>,
    max_bytes: MaxBytes,
    pub(super) replies: Replies,
}

/// What a caller may have stored, and those without a name together.
#[derive(Clone, Copy)]
pub(in crate::server) struct MaxBytes {
    pub(in crate::server) per_caller: u64,
    pub(in crate::server) anonymous: u64,
}

impl MaxBytes {
    /// Whom something is charged to, and the name of the limit.
    pub(super) fn charge(self, principal: &Principal) -> (Charge, &'static str) {
        let (max_bytes, limit) = match principal.is_anonymous() {
            true => (self.anonymous, "max_anonymous_store"),
            false => (self.per_caller, "max_store_bytes_per_caller"),
        };
        (Charge { principal: principal.key().to_owned(), max_bytes }, limit)
    }
}

impl SessionNotes {
    pub(in crate::server) fn new(
        store: Arc<dyn KeyValueStore>,
        profile: &Arc<Profile>,
        max_bytes: MaxBytes,
    ) -> Self {
        let replies = Replies::new(&store, &profile.clock, max_bytes);
        Self { store, profile: Arc::clone(profile), max_bytes, replies }
    }

    async fn read(&self, id: &str) -> Result<Option<StoredSession>, SessionStoreError> {
        let note = self.store.get_value(&place(id)).await.map_err(SessionStoreError::new)?;
        let read = note.map(|note| serde_json::from_str(note.get())).transpose();
        Ok(read.unwrap_or_else(|error| {
            // As good as none: its client will open another.
            tracing::warn!(%error, "a session that was kept cannot be read any more");
            None
        }))
    }

    /// Writes a session's note; `false` if the session has been ended meanwhile. It counts in the
    /// bytes of its caller. Only a new one can be too much: what a session remembers has a limit of
    /// its own.
    async fn write(&self, session: &Session, is_new: bool) -> Result<bool, SessionStoreError> {
        let Some(name) = session.portable() else { return Ok(true) };
        let stored = StoredSession::of(session).map_err(SessionStoreError::new)?;
        let note = to_raw_value(&stored).map_err(SessionStoreError::new)?;
        let place = place(&name.id);
        let (mut charge, limit) = self.max_bytes.charge(session.principal());
        if !is_new {
            charge.max_bytes = u64::MAX;
        }
        let written = self.store.put(&place, note, name.ttl, Some(&charge)).await;
        written.map_err(|error| match error {
            StoreError::OverBytes => SessionStoreError::over_limit(limit, error),
            error => SessionStoreError::new(error),
        })?;
        // Whoever ends a session says so first and forgets the note then. Either that is seen here,
        // or the note is forgotten after it was written.
        match self.store.get_value(&grave(&name.id)).await.map_err(SessionStoreError::new)? {
            None => Ok(true),
            Some(_) => {
                self.store.delete(&place).await.map_err(SessionStoreError::new)?;
                Ok(false)
            }
        }
    }
}

impl SessionStore for SessionNotes {
    fn insert<'a>(&'a self, session: &'a Session) -> SessionStoreFuture<'a, ()> {
        Box::pin(async move { self.write(session, true).await.map(drop) })
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
        principal: &'a Principal,
    ) -> SessionStoreFuture<'a, Option<Arc<Session>>> {
        Box::pin(async move {
            let stored = self.read(id).await?;
            Ok(stored.and_then(|stored| stored.restore(principal, &self.profile)))
        })
    }

    fn refresh<'a>(&'a self, session: &'a Session, refresh: bool) -> SessionStoreFuture<'a, bool> {
        Box::pin(async move {
            let Some(name) = session.portable() else { return Ok(true) };
            let stored = self.read(&name.id).await?;
            let stored = stored.filter(|stored| stored.belongs_to(session.principal()));
            let Some(stored) = stored else { return Ok(false) };
            match stored.update(session) && !refresh {
                true => Ok(true),
                false => self.write(session, false).await,
            }
        })
    }

    fn delete<'a>(&'a self, session: &'a Session) -> SessionStoreFuture<'a, ()> {
        Box::pin(async move {
            let Some(name) = session.portable() else { return Ok(()) };
            let ended = RawValue::NULL.to_owned();
            self.store
                .put(&grave(&name.id), ended, ENDED, None)
                .await
                .map_err(SessionStoreError::new)?;
            self.store.delete(&place(&name.id)).await.map_err(SessionStoreError::new)
        })
    }

    fn forward_reply(&self, stray: MisroutedReply) -> SessionStoreFuture<'_, ()> {
        Box::pin(self.replies.post(stray))
    }
}

/// Answers a call that changes what its session remembers. Where other replicas know the session,
/// they know of the change when it is answered.
pub(in crate::server) fn remembered(
    core: &Arc<Core>,
    call: Arc<Call>,
    change: impl FnOnce(&Core, &Call) -> Result<MethodResult, ProtocolError> + Send + 'static,
) -> CallFuture {
    let shared = call.session().is_some_and(|session| session.portable().is_some());
    if !shared || core.session_notes().is_none() {
        let answer = change(core, &call).map(Outcome::Complete);
        return Box::pin(std::future::ready(answer));
    }
    let core = Arc::clone(core);
    Box::pin(async move {
        let (Some(notes), Some(session)) = (core.session_notes(), call.session()) else {
            return change(&core, &call).map(Outcome::Complete);
        };
        // What was changed on another replica a moment ago is not to be undone.
        tell(notes, session).await;
        let answer = change(&core, &call)?;
        session.note_change();
        tell(notes, session).await;
        Ok(Outcome::Complete(answer))
    })
}

/// Brings a session and its note up to date. If that cannot be done now, it is when the session is
/// next confirmed.
async fn tell(notes: &SessionNotes, session: &Session) {
    if let Err(error) = notes.refresh(session, false).await {
        tracing::warn!(%error, "other replicas do not know yet what a session was told");
    }
}

impl Core {
    /// Where sessions are kept for all replicas, if they are.
    pub(in crate::server) fn session_notes(&self) -> Option<&SessionNotes> {
        self.tasks.as_ref().map(|tasks| tasks.sessions())
    }
}

fn place(id: &str) -> String {
    format!("session/{}", digest(id))
}

/// Where it is said that a session has ended.
fn grave(id: &str) -> String {
    format!("session-ended/{}", digest(id))
}

/// What the store knows of a session's id.
pub(super) fn digest(id: &str) -> String {
    hex(&Sha256::digest(id))
}
