//! Lifecycle of HTTP sessions and streams: insert, confirm, end and sweep.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use outlive_protocol::{Session, SessionStore};

use super::{
    sessions::{Full, HttpSession, Inserted},
    state::HttpState,
};
use crate::caller::Caller;

/// Time for which a session confirmed by the session store is used without another check. After
/// another replica ends a session, this replica may accept it for this long.
pub(super) const CONFIRMED: Duration = Duration::from_secs(1);

impl HttpState {
    /// Inserts a session. If the caller is at its limit, ends its longest idle session.
    pub(super) fn enter(
        self: &Arc<Self>,
        id: Arc<str>,
        session: Arc<Session>,
        caller: Option<Caller>,
    ) -> Result<(Arc<HttpSession>, Option<Arc<HttpSession>>), Full> {
        let (entry, ended) = match self.sessions.insert(id, session, caller, self.now())? {
            Inserted::Now { entry, ended } => (entry, ended),
            Inserted::Before(entry) => return Ok((entry, None)),
        };
        if let Some(ended) = &ended {
            self.sessions.end(ended);
            self.endpoint.service().session_closed(&ended.session);
        }
        self.endpoint.service().session_opened(&entry.session);
        self.sweeping.call_once(|| self.sweeper.spawn(sweep(Arc::downgrade(self))));
        Ok((entry, ended))
    }

    /// Ends a session in this process.
    pub(super) fn end_session(&self, id: &str) {
        if let Some(entry) = self.sessions.remove(id) {
            self.endpoint.service().session_closed(&entry.session);
        }
    }

    /// Confirms sessions that have an open stream or call but no requests. The store must keep
    /// them, and a session that another replica ended must end here.
    pub(super) async fn confirm_busy(&self) {
        let Some(store) = self.session_store() else { return };
        for entry in self.sessions.busy(self.now(), CONFIRMED) {
            self.confirm(store, &entry).await;
        }
    }

    /// Returns whether the session still exists in the store. Ends it in this process otherwise.
    pub(super) async fn confirm(&self, store: &dyn SessionStore, entry: &HttpSession) -> bool {
        let now = self.now();
        let refresh = self.sessions.is_to_be_refreshed(entry, now);
        match store.refresh(&entry.session, refresh).await {
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
                tracing::warn!(%error, "session lookup failed; the session stays open in this process");
                true
            }
        }
    }

    /// Ends all streams gracefully: subscriptions with their result, sessions with their change
    /// feeds.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.endpoint.profile().bus.close();
        self.sse_streams.close_all();
    }

    /// Ends the remaining sessions and calls after the shutdown timeout.
    pub(super) fn end_all(&self) {
        for entry in self.sessions.drain() {
            self.sessions.end(&entry);
            self.endpoint.service().session_closed(&entry.session);
        }
        self.tasks.abort_all();
        self.sweeper.abort_all();
    }
}

/// Ends idle sessions periodically, until the server is dropped.
async fn sweep(state: Weak<HttpState>) {
    loop {
        let Some((clock, pause)) = state.upgrade().map(|state| {
            let pause = (state.config.session_idle_timeout / 10).max(Duration::from_millis(10));
            (Arc::clone(&state.endpoint.profile().clock), pause)
        }) else {
            return;
        };
        clock.sleep(pause).await;
        let Some(state) = state.upgrade() else { return };
        for entry in state.sessions.sweep(state.now()) {
            state.endpoint.service().session_closed(&entry.session);
        }
        state.confirm_busy().await;
    }
}
