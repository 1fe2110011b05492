//! Legacy sessions as key-value entries of the store.
//!
//! A session ID grants access, so the store has only its hash. The entry names the principal; for
//! other principals the session does not exist. If two replicas write an entry, the later write
//! wins. A replica that finds an older state than its own writes the entry again.

use std::{sync::Arc, time::Duration};

use outlive_protocol::{
    MisroutedReply, Principal, Profile, Session, SessionStore, SessionStoreError,
    SessionStoreFuture, StoredSession,
};
use outlive_tasks::store::{KeyValueStore, StoreError};
use serde_json::value::{RawValue, to_raw_value};

use crate::server::sessions::{
    charge::{MaxBytes, digest},
    replies::Replies,
};

/// TTL of the record that a session has ended. Only a replica that is writing the session needs the
/// record, and two store requests take less time.
const ENDED: Duration = Duration::from_secs(60);

/// Stores sessions in the task store.
pub(crate) struct SharedSessions {
    store: Arc<dyn KeyValueStore>,
    profile: Arc<Profile>,
    max_bytes: MaxBytes,
    pub(crate) replies: Replies,
}

impl SharedSessions {
    pub(crate) fn new(
        store: Arc<dyn KeyValueStore>,
        profile: &Arc<Profile>,
        max_bytes: MaxBytes,
    ) -> Self {
        let replies = Replies::new(&store, &profile.clock, max_bytes);
        Self { store, profile: Arc::clone(profile), max_bytes, replies }
    }

    /// Polls for responses that arrive at other replicas, while the session has an open request.
    pub(crate) fn watch(&self, session: &Arc<Session>) {
        self.replies.watch(session);
    }

    async fn read(&self, id: &str) -> Result<Option<StoredSession>, SessionStoreError> {
        let note = self.store.get_value(&place(id)).await.map_err(SessionStoreError::new)?;
        let read = note.map(|note| serde_json::from_str(note.get())).transpose();
        Ok(read.unwrap_or_else(|error| {
            // Treated as absent: the client opens a new session.
            tracing::warn!(%error, "stored session cannot be decoded; treating it as absent");
            None
        }))
    }

    /// Writes the entry of a session. Returns `false` if the session has ended meanwhile. The entry
    /// counts against the caller's byte quota. Only a new session can exceed the quota; updates are
    /// bounded by the limits of a session.
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
            StoreError::BytesExceeded => SessionStoreError::over_limit(limit, error),
            error => SessionStoreError::new(error),
        })?;
        // A replica that ends a session records the end first and then deletes the entry. So either
        // the end is seen here, or the deletion follows this write.
        match self.store.get_value(&grave(&name.id)).await.map_err(SessionStoreError::new)? {
            None => Ok(true),
            Some(_) => {
                self.store.delete(&place).await.map_err(SessionStoreError::new)?;
                Ok(false)
            }
        }
    }
}

impl SessionStore for SharedSessions {
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

    fn forward_reply(&self, reply: MisroutedReply) -> SessionStoreFuture<'_, ()> {
        Box::pin(self.replies.post(reply))
    }
}

fn place(id: &str) -> String {
    format!("session/{}", digest(id))
}

/// Returns the key that records the end of a session.
fn grave(id: &str) -> String {
    format!("session-ended/{}", digest(id))
}
