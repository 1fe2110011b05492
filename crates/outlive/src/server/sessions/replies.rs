//! Answers of clients that come to another replica than the one that has asked.
//!
//! Whoever gets such an answer keeps it as a note, and who has asked looks for it for as long as it
//! waits. One task in the background looks for all of them; where nobody waits there is none.

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

/// How often answers are looked for: a person does not notice it, and a store does not either.
const LOOK: Duration = Duration::from_millis(250);

/// Looking takes at most this part of the time, however many wait and however slow the store is.
const SHARE: u32 = 4;

/// How long an answer is kept. Who waits for it finds it long before, and if nobody waits, it goes.
const KEPT: Duration = Duration::from_secs(120);

/// How many answers a client may give to questions that this replica did not ask. Each is a note,
/// and one that was made up is a note as well.
const MOST: f64 = 5.0;
const AT_ONCE: u32 = 100;

/// How many bytes such an answer may have. Those that this replica has asked for may be larger.
const MAX_BYTES: usize = 64 << 10;

/// Answers on their way from one replica to another.
pub(crate) struct Replies {
    store: Arc<dyn KeyValueStore>,
    clock: Arc<dyn Clock>,
    posts: Arc<Throttle>,
    max_bytes: MaxBytes,
    watched: Arc<Watched>,
}

/// The sessions of this process whose clients are being asked, by id.
// A std mutex: nothing awaits while it is held.
#[derive(Default)]
struct Watched(Mutex<Watching>);

#[derive(Default)]
struct Watching {
    sessions: HashMap<Arc<str>, Weak<Session>>,
    /// Whether somebody looks for their answers.
    looking: bool,
}

/// An answer as it is kept.
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

    /// Keeps an answer for the replica that waits for it.
    pub(crate) async fn post(&self, stray: MisroutedReply) -> Result<(), SessionStoreError> {
        let MisroutedReply { session: asked, id, reply } = stray;
        let Some(name) = asked.portable() else { return Ok(()) };
        if !asked.may_have_asked(id) {
            // No replica has asked for it: as good as an answer that comes too late.
            return Ok(());
        }
        let session = digest(&name.id);
        let (now, principal) = (self.clock.now(), asked.principal());
        // A caller with a name has its share however many sessions it has.
        let caller = if principal.is_anonymous() { &session } else { principal.key() };
        let _permit = self.posts.enter(caller, now).map_err(|Busy { .. }| {
            SessionStoreError::over_limit(
                "AT_ONCE",
                "the client responds to more than it was asked",
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
        // The first answer counts, as it does where it was asked.
        let before =
            self.store.put_if_absent(&place(&session, id), note, KEPT, Some(&charge)).await;
        before.map(drop).map_err(|error| match error {
            StoreError::BytesExceeded => SessionStoreError::over_limit(limit, error),
            error => SessionStoreError::new(error),
        })
    }

    /// Looks for the answers to what is being asked in a session, for as long as something is.
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

/// Somebody looks. However it ends, the next question finds that nobody does.
struct Looking(Option<Arc<Watched>>);

impl Looking {
    /// The sessions to look for; `None` if nobody waits any more, and then nobody looks.
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
            // Under the lock: a question that comes now starts another to look.
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
            tracing::warn!(%error, "answers that came to other replicas cannot be looked for");
        }
        failed = found.is_err();
        pause = LOOK.max(began.elapsed() * SHARE);
    }
}

/// Hands over the answers that are there.
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
                    message: format!("the answer cannot be read: {error}"),
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
