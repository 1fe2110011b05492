//! Sessions of browsers.
//!
//! The browser has a random session ID. The store has two entries, which contain only a digest of
//! the ID. The *session* entry has the credential, sealed, and never changes. The *slot* entry says
//! that the session is one of at most eight of its person, and expires when the session is idle.
//! A session needs both: ending it deletes the first, and a ninth session takes the slot of the
//! oldest one. So neither a concurrent request nor another replica revives an ended session.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use outlive::{
    people::{Purpose, Vault},
    server::Principal,
    store::{StoreError, UnixMillis},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Maximum number of sessions per person. A further one ends the oldest.
const MAX_SESSIONS: usize = 8;

/// Default time after which an unused session ends.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(43_200);

/// Default time after which every session ends.
pub(crate) const TTL: Duration = Duration::from_secs(604_800);

/// Interval in which the store records that a session is used.
const TOUCH_INTERVAL: Duration = Duration::from_secs(60);

/// Credential of a session.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Credential {
    /// A one-time link, which only a process with the key file can create.
    Link,
    /// A token of the authenticator.
    Token(String),
    /// OAuth tokens, which are in an entry of their own, because they are refreshed.
    OAuth,
}

/// An open session.
#[derive(Clone)]
pub(crate) struct Session {
    /// Digest of the session ID.
    pub(crate) digest: String,
    pub(crate) credential: Credential,
    /// Person who signed in.
    pub(crate) person: String,
}

/// A new session ID. Only the browser keeps it.
pub(crate) struct SessionId(String);

impl SessionId {
    /// Creates a random ID. Returns `None` if the operating system provides no random bytes.
    pub(crate) fn random() -> Option<Self> {
        random_text().map(Self)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn digest(&self) -> String {
        digest(&self.0)
    }
}

/// Returns 256 random bits as text. Returns `None` if the operating system provides none.
pub(crate) fn random_text() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns a digest of a secret, under which the store has its entry.
pub(crate) fn digest(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(secret))
}

/// Content of the session entry.
#[derive(Serialize, Deserialize)]
struct Stored {
    credential: Credential,
    person: String,
    slot: usize,
    created_at: UnixMillis,
}

/// Content of the slot entry.
#[derive(Serialize, Deserialize)]
struct Slot {
    digest: String,
    created_at: UnixMillis,
    used_at: UnixMillis,
}

/// The sessions of a console.
pub(crate) struct Sessions {
    vault: Vault,
    idle_timeout: Duration,
    ttl: Duration,
}

impl Sessions {
    pub(crate) fn new(vault: Vault, idle_timeout: Duration, ttl: Duration) -> Self {
        Self { vault, idle_timeout: idle_timeout.min(ttl), ttl }
    }

    /// Returns the time after which every session ends.
    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Creates a session of a person. Its bytes count in those of `owner`.
    ///
    /// # Errors
    ///
    /// If the store cannot be written, or `owner` has used up its bytes.
    pub(crate) async fn create(
        &self,
        id: &SessionId,
        owner: &Principal,
        person: &str,
        credential: Credential,
    ) -> Result<Session, StoreError> {
        let (digest, now) = (id.digest(), self.vault.now());
        let slot = self.take_slot(person, &digest, now).await?;
        let stored = Stored { credential, person: person.to_owned(), slot, created_at: now };
        let content = serde_json::to_vec(&stored).unwrap_or_default();
        let sealed = self.vault.seal(Purpose::Session, &[&digest], &content);
        let sealed = sealed.ok_or_else(|| StoreError::Unavailable("no random bytes".to_owned()))?;
        self.vault.put(&session_key(&digest), &sealed, self.ttl, Some(owner)).await?;
        Ok(Session { digest, credential: stored.credential, person: stored.person })
    }

    /// Returns the session with an ID, unless it has ended.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub(crate) async fn find(&self, id: &str) -> Result<Option<Session>, StoreError> {
        let digest = digest(id);
        let Some(sealed) = self.vault.get(&session_key(&digest)).await? else { return Ok(None) };
        let content = self.vault.unseal(Purpose::Session, &[&digest], &sealed);
        let stored = content.and_then(|content| serde_json::from_slice::<Stored>(&content).ok());
        let Some(stored) = stored else { return Ok(None) };
        let (now, ends_at) = (self.vault.now(), stored.created_at + millis(self.ttl));
        if now >= ends_at {
            return Ok(None);
        }
        let slot = self.slot(&stored.person, stored.slot).await?;
        let Some(slot) = slot.filter(|slot| slot.digest == digest) else { return Ok(None) };
        if now >= slot.used_at + millis(self.idle_timeout) {
            return Ok(None);
        }
        if now >= slot.used_at + millis(TOUCH_INTERVAL) {
            let ttl = self.idle_timeout.min(Duration::from_millis(ends_at - now));
            self.put_slot(&stored.person, stored.slot, &Slot { used_at: now, ..slot }, ttl).await?;
        }
        Ok(Some(Session { digest, credential: stored.credential, person: stored.person }))
    }

    /// Ends a session.
    ///
    /// # Errors
    ///
    /// If the store cannot be written. The session may continue then.
    pub(crate) async fn end(&self, session: &Session) -> Result<(), StoreError> {
        self.vault.delete(&session_key(&session.digest)).await?;
        // The slot of another session must stay, so the slot is searched.
        for slot in 0..MAX_SESSIONS {
            let found = self.slot(&session.person, slot).await?;
            if found.is_some_and(|found| found.digest == session.digest) {
                self.vault.delete(&slot_key(&session.person, slot)).await?;
            }
        }
        Ok(())
    }

    /// Takes a free slot of a person, or that of the oldest session.
    async fn take_slot(
        &self,
        person: &str,
        digest: &str,
        now: UnixMillis,
    ) -> Result<usize, StoreError> {
        let own = Slot { digest: digest.to_owned(), created_at: now, used_at: now };
        let content = serde_json::to_string(&own).unwrap_or_default();
        let mut oldest = (0, None::<Slot>);
        for slot in 0..MAX_SESSIONS {
            let key = slot_key(person, slot);
            if self.vault.put_if_absent(&key, &content, self.idle_timeout, None).await? {
                return Ok(slot);
            }
            let taken = self.slot(person, slot).await?;
            let age =
                |slot: &Option<Slot>| slot.as_ref().map_or(UnixMillis::MAX, |it| it.created_at);
            if age(&taken) < age(&oldest.1) {
                oldest = (slot, taken);
            }
        }
        let (slot, evicted) = oldest;
        self.put_slot(person, slot, &own, self.idle_timeout).await?;
        if let Some(evicted) = evicted {
            self.vault.delete(&session_key(&evicted.digest)).await?;
        }
        Ok(slot)
    }

    async fn slot(&self, person: &str, slot: usize) -> Result<Option<Slot>, StoreError> {
        let content = self.vault.get(&slot_key(person, slot)).await?;
        Ok(content.and_then(|content| serde_json::from_str(&content).ok()))
    }

    async fn put_slot(
        &self,
        person: &str,
        slot: usize,
        content: &Slot,
        ttl: Duration,
    ) -> Result<(), StoreError> {
        let content = serde_json::to_string(content).unwrap_or_default();
        self.vault.put(&slot_key(person, slot), &content, ttl, None).await
    }
}

fn session_key(digest: &str) -> String {
    format!("console/session/{digest}")
}

/// Returns the key of a slot. The name of a person may be long, or contain any character.
fn slot_key(person: &str, slot: usize) -> String {
    format!("console/slot/{}/{slot}", digest(person))
}

fn millis(span: Duration) -> UnixMillis {
    UnixMillis::try_from(span.as_millis()).unwrap_or(UnixMillis::MAX)
}
