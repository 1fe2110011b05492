//! Client responses that arrive at another replica than the one that sent the request.
//!
//! The receiving replica stores the response as a key-value entry. The sending replica polls for it
//! while its request is open. One background task polls for all requests, and only while there are
//! any.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use outlive_protocol::{ClientReply, Clock, MisroutedReply, Session, SessionStoreError};
use outlive_tasks::store::{KeyValueStore, StoreError};
use outlive_wire::{ErrorObject, RawJson};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use crate::server::{
    sessions::charge::{MaxBytes, digest},
    throttle::{Busy, RateLimit, Throttle},
};

/// Poll interval: short for a person, and cheap for a store.
const LOOK: Duration = Duration::from_millis(250);

/// Factor between the duration of a poll and the next delay, which bounds the load on a slow store.
const SHARE: u32 = 4;

/// TTL of a stored response. The waiting replica finds it long before.
const KEPT: Duration = Duration::from_secs(120);

/// Rate limit on responses to requests that this replica did not send. Each is stored, even if the
/// client invented it.
const MOST: f64 = 5.0;
const AT_ONCE: u32 = 100;

/// Maximum bytes of such a response. Responses to requests of this replica may be larger.
const MAX_BYTES: usize = 64 << 10;

/// Responses that are forwarded between replicas.
pub(crate) struct Replies {
    store: Arc<dyn KeyValueStore>,
    clock: Arc<dyn Clock>,
    posts: Arc<Throttle>,
    max_bytes: MaxBytes,
    watched: Arc<Watched>,
}

/// Sessions of this process with open requests, by ID.
// A std mutex: no code awaits while it is held.
#[derive(Default)]
struct Watched(Mutex<Watching>);

#[derive(Default)]
struct Watching {
    sessions: HashMap<Arc<str>, Weak<Session>>,
    /// Whether the background task runs.
    looking: bool,
}

/// A stored response.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Kept {
    Result(RawJson),
    Error(ErrorObject),
}

impl Replies {
    pub(crate) fn new(
        store: &Arc<dyn KeyValueStore>,
        clock: &Arc<dyn Clock>,
        max_bytes: MaxBytes,
    ) -> Self {
        let rate = RateLimit::per_second(MOST).burst(AT_ONCE);
        Self {
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            posts: Arc::new(Throttle::new(Some(rate), None)),
            max_bytes,
            watched: Arc::default(),
        }
    }

    /// Stores a response for the replica that waits for it.
    pub(crate) async fn post(&self, reply: MisroutedReply) -> Result<(), SessionStoreError> {
        let MisroutedReply { session: asked, id, reply } = reply;
        let Some(name) = asked.portable() else { return Ok(()) };
        if !asked.may_have_asked(id) {
            // No replica sent this request, so the response is ignored like a late one.
            return Ok(());
        }
        let session = digest(&name.id);
        let (now, principal) = (self.clock.now(), asked.principal());
        // The rate limit of an authenticated caller covers all its sessions.
        let caller = if principal.is_anonymous() { &session } else { principal.key() };
        let _permit = self.posts.enter(caller, now).map_err(|Busy { .. }| {
            SessionStoreError::over_limit(
                "AT_ONCE",
                "the client sends more responses than it got requests",
            )
        })?;
        let kept = match reply {
            Ok(result) => Kept::Result(result),
            Err(error) => Kept::Error(error),
        };
        let note = to_raw_value(&kept).map_err(SessionStoreError::new)?;
        if note.get().len() > MAX_BYTES {
            return Err(SessionStoreError::over_limit("MAX_BYTES", "the response is too large"));
        }
        let (charge, limit) = self.max_bytes.charge(principal);
        // The first response wins, as it does on the replica that sent the request.
        let before =
            self.store.put_if_absent(&place(&session, id), note, KEPT, Some(&charge)).await;
        before.map(drop).map_err(|error| match error {
            StoreError::BytesExceeded => SessionStoreError::over_limit(limit, error),
            error => SessionStoreError::new(error),
        })
    }

    /// Polls for the responses to a session's open requests, as long as there are any.
    pub(crate) fn watch(&self, session: &Arc<Session>) {
        let Some(name) = session.portable() else { return };
        let mut watching = self.watched.lock();
        watching.sessions.insert(Arc::clone(&name.id), Arc::downgrade(session));
        if !watching.looking && tokio::runtime::Handle::try_current().is_ok() {
            watching.looking = true;
            let looking = Looking(Some(Arc::clone(&self.watched)));
            tokio::spawn(look(looking, Arc::clone(&self.store)));
        }
    }
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, Watching> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of the background task. Its drop lets the next request start a new task.
struct Looking(Option<Arc<Watched>>);

impl Looking {
    /// Returns the sessions with open requests. If no request is open, returns `None` and ends the
    /// task.
    fn sessions(&mut self) -> Option<Vec<Arc<Session>>> {
        let watched = self.0.as_ref()?;
        let mut watching = watched.lock();
        let mut waiting = Vec::new();
        watching.sessions.retain(|_, session| {
            let session = session.upgrade().filter(|session| session.asked().is_waiting());
            let waits = session.is_some();
            waiting.extend(session);
            waits
        });
        if waiting.is_empty() {
            // Reset under the lock, so that a request that opens now starts a new task.
            watching.looking = false;
            drop(watching);
            self.0 = None;
            return None;
        }
        Some(waiting)
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        if let Some(watched) = &self.0 {
            watched.lock().looking = false;
        }
    }
}

async fn look(mut looking: Looking, store: Arc<dyn KeyValueStore>) {
    let mut pause = LOOK;
    let mut failed = false;
    loop {
        tokio::time::sleep(pause).await;
        let Some(sessions) = looking.sessions() else { return };
        let began = Instant::now();
        let found = find(&sessions, &*store).await;
        if let (Err(error), false) = (&found, failed) {
            tracing::warn!(%error, "cannot poll for client responses that arrived at other replicas");
        }
        failed = found.is_err();
        pause = LOOK.max(began.elapsed() * SHARE);
    }
}

/// Delivers the stored responses.
async fn find(sessions: &[Arc<Session>], store: &dyn KeyValueStore) -> Result<(), StoreError> {
    for session in sessions {
        let Some(name) = session.portable() else { continue };
        let digest = digest(&name.id);
        for id in session.asked().waiting() {
            let place = place(&digest, id);
            let Some(note) = store.get_value(&place).await? else { continue };
            let reply: ClientReply = match serde_json::from_str(note.get()) {
                Ok(Kept::Result(result)) => Ok(result),
                Ok(Kept::Error(error)) => Err(error),
                Err(error) => Err(ErrorObject {
                    code: outlive_wire::code::INTERNAL,
                    message: format!("the stored response cannot be decoded: {error}"),
                    data: None,
                }),
            };
            session.asked().answer(id, reply);
            store.delete(&place).await?;
        }
    }
    Ok(())
}

fn place(session: &str, id: u64) -> String {
    format!("reply/{session}/{id}")
}
