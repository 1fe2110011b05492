//! [`Vault`]: sealed values and expiring entries of a console and of a gateway.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use outlive_protocol::{Clock, Principal, Seal};
use outlive_tasks::store::{Charge, KeyValueStore, StoreError, UnixMillis};
use outlive_transport::TokioClock;
use outlive_wire::RawJson;
use serde_json::value::to_raw_value;

use crate::server::{SealKeys, Server, wall_millis};

/// The keys, the clock and the key-value entries of a server, for the sessions of its console and
/// the logins of its gateway. Clones belong to the same server.
///
/// Entries are texts. All replicas of a server share them.
#[derive(Clone)]
pub struct Vault {
    seal: Seal,
    clock: Arc<dyn Clock>,
    store: Arc<dyn KeyValueStore>,
    /// Maximum stored bytes of a caller.
    max_bytes: u64,
}

/// Purpose of a sealed value. A value opens only for its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// Form token of a page.
    FormToken,
    /// Credential of a session.
    Session,
    /// One-time link or started login.
    SignIn,
    /// Token or login of a gateway at an upstream.
    UpstreamLogin,
}

impl Vault {
    /// Returns the vault of a server. Returns `None` if the server has no task store.
    pub fn new(server: &Server) -> Option<Self> {
        let env = server.env();
        let tasks = env.tasks.as_ref()?;
        Some(Self {
            seal: env.profile.seal.clone(),
            clock: Arc::clone(&env.profile.clock),
            store: Arc::clone(&tasks.config.store) as _,
            max_bytes: tasks.config.store_per_caller,
        })
    }

    /// Creates a vault with its own keys, for a console without a server, or for a gateway that is
    /// built before its server.
    pub fn open(store: Arc<dyn KeyValueStore>, keys: SealKeys) -> Self {
        let clock = Arc::new(TokioClock::new());
        Self { seal: keys.into_seal(), clock, store, max_bytes: u64::MAX }
    }

    /// Returns the time.
    pub fn now(&self) -> UnixMillis {
        wall_millis(&*self.clock)
    }

    /// Returns the monotonic time.
    pub fn instant(&self) -> Instant {
        self.clock.now()
    }

    /// Waits for `span`.
    pub async fn sleep(&self, span: Duration) {
        self.clock.sleep(span).await;
    }

    /// Seals a value. Only the same purpose and context open it. Returns `None` if the operating
    /// system provides no random bytes.
    pub fn seal(&self, purpose: Purpose, context: &[&str], value: &[u8]) -> Option<String> {
        self.seal.seal(value, &bind(purpose, context))
    }

    /// Opens a sealed value. Returns `None` if it was changed, or sealed with another key, purpose
    /// or context.
    pub fn unseal(&self, purpose: Purpose, context: &[&str], sealed: &str) -> Option<Vec<u8>> {
        self.seal.open(sealed, &bind(purpose, context))
    }

    /// Stores an entry if its key is absent. Returns whether it was stored. Exactly one of several
    /// concurrent callers gets `true`.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub async fn put_if_absent(
        &self,
        key: &str,
        value: &str,
        ttl: Duration,
        owner: Option<&Principal>,
    ) -> Result<bool, StoreError> {
        let charge = owner.map(|owner| self.charge(owner));
        let existing = self.store.put_if_absent(key, json(value)?, ttl, charge.as_ref()).await?;
        Ok(existing.is_none())
    }

    /// Stores an entry, and replaces an existing one. Its bytes count in those of `owner`.
    ///
    /// # Errors
    ///
    /// If the store cannot be written, or `owner` has used up its bytes.
    pub async fn put(
        &self,
        key: &str,
        value: &str,
        ttl: Duration,
        owner: Option<&Principal>,
    ) -> Result<(), StoreError> {
        let charge = owner.map(|owner| self.charge(owner));
        self.store.put(key, json(value)?, ttl, charge.as_ref()).await
    }

    /// Returns an entry, unless it has expired.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn get(&self, key: &str) -> Result<Option<String>, StoreError> {
        let value = self.store.get_value(key).await?;
        let read = |value: RawJson| {
            serde_json::from_str(value.get())
                .map_err(|error| StoreError::Incompatible(format!("entry `{key}`: {error}")))
        };
        value.map(read).transpose()
    }

    /// Deletes an entry.
    ///
    /// # Errors
    ///
    /// If the store cannot be written.
    pub async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.store.delete(key).await
    }

    fn charge(&self, owner: &Principal) -> Charge {
        Charge::new(owner.key(), self.max_bytes)
    }
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::FormToken => Seal::FORM_TOKEN,
            Self::Session => Seal::SESSION,
            Self::SignIn => Seal::SIGN_IN,
            Self::UpstreamLogin => Seal::UPSTREAM_LOGIN,
        }
    }

    /// Returns the program part that uses the purpose, which separates it from others.
    fn user(self) -> &'static str {
        match self {
            Self::UpstreamLogin => "gateway",
            Self::FormToken | Self::Session | Self::SignIn => "console",
        }
    }
}

/// Returns the context of a value. The second part separates the users of a purpose.
fn bind<'a>(purpose: Purpose, context: &[&'a str]) -> Vec<&'a str> {
    [purpose.name(), purpose.user()].into_iter().chain(context.iter().copied()).collect()
}

fn json(value: &str) -> Result<RawJson, StoreError> {
    to_raw_value(value).map_err(|error| StoreError::Incompatible(error.to_string()))
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use outlive_tasks::store::MemoryStore;

    use super::{Purpose, Vault};
    use crate::server::SealKeys;

    fn vault(key: u8) -> Vault {
        Vault::open(Arc::new(MemoryStore::new()), SealKeys::new([key; 32]))
    }

    #[test]
    fn sealed_value_opens_only_for_its_key_purpose_and_context() {
        let (one, other) = (vault(1), vault(2));
        let sealed = one.seal(Purpose::Session, &["a"], b"x").expect("random bytes");
        assert_eq!(one.unseal(Purpose::Session, &["a"], &sealed).as_deref(), Some(&b"x"[..]));
        assert_eq!(one.unseal(Purpose::Session, &["b"], &sealed), None);
        assert_eq!(one.unseal(Purpose::SignIn, &["a"], &sealed), None);
        assert_eq!(other.unseal(Purpose::Session, &["a"], &sealed), None);
    }

    #[tokio::test]
    async fn entry_is_stored_once_and_deleted() {
        let (vault, hour) = (vault(1), Duration::from_secs(3_600));
        assert!(vault.put_if_absent("k", "one", hour, None).await.expect("stores"));
        assert!(!vault.put_if_absent("k", "two", hour, None).await.expect("stores"));
        assert_eq!(vault.get("k").await.expect("reads").as_deref(), Some("one"));
        vault.put("k", "three", hour, None).await.expect("stores");
        assert_eq!(vault.get("k").await.expect("reads").as_deref(), Some("three"));
        vault.delete("k").await.expect("deletes");
        assert_eq!(vault.get("k").await.expect("reads"), None);
    }
}
