//! Tokens and logins as sealed entries of the store. All replicas share them.

use std::time::Duration;

use outlive::{
    auth::client::{CredentialStore, CredentialStoreError, SecretString},
    people::{Purpose, Vault},
    server::Principal,
    store::StoreError,
};
use tokio::runtime::Handle;

use crate::{digest::digest_of, settings::Upstream};

/// Time for which an unused login or registration is stored.
const LOGIN_TTL: Duration = Duration::from_secs(365 * 86_400);

/// Time after which another replica renews a token whose renewal was not finished.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that a replica waits for the renewal by another one.
const RENEWAL_WAIT: Duration = Duration::from_secs(20);

/// Interval in which a replica checks whether another one has renewed a token.
const RENEWAL_POLL: Duration = Duration::from_millis(50);

/// The entries of one credential.
pub(super) struct Entries {
    vault: Vault,
    upstream: String,
    /// Hash of the kind and the client, whose registration all principals share.
    client: String,
    /// Hash of that and of the principal.
    credential: String,
    owner: Option<Principal>,
    /// The OAuth client calls credential stores on threads that may block.
    runtime: Handle,
}

impl Entries {
    /// Creates the entries of an upstream's credential. Those of another client, server or principal
    /// are other entries.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub(super) fn new(vault: Vault, upstream: &Upstream, owner: Option<Principal>) -> Self {
        let auth = upstream.oauth().map(|auth| auth.fingerprint()).unwrap_or_default();
        let principal = owner.as_ref().map_or("", Principal::key);
        Self {
            vault,
            upstream: upstream.name().to_owned(),
            client: digest_of([auth.as_str()]),
            credential: digest_of([auth.as_str(), principal]),
            owner,
            runtime: Handle::current(),
        }
    }

    /// Returns the key of an entry. The names of the OAuth client contain the URL of the server, so
    /// a token for one URL is never sent to another.
    fn key(&self, kind: &str, name: &str) -> String {
        let credential = if is_token(name) { &self.credential } else { &self.client };
        let id = digest_of([credential.as_str(), name]);
        format!("gateway/{kind}/{}/{id}", self.upstream)
    }

    fn put_sealed(
        &self,
        key: &str,
        value: &SecretString,
        owner: Option<&Principal>,
    ) -> Result<(), CredentialStoreError> {
        let text = value.expose().as_bytes();
        let sealed = self.vault.seal(Purpose::UpstreamLogin, &[key], text);
        let sealed = sealed.ok_or_else(|| CredentialStoreError::new("no random bytes; retry"))?;
        let put = self.vault.put(key, &sealed, LOGIN_TTL, owner);
        self.runtime.block_on(put).map_err(|error| failed(&error))
    }
}

impl CredentialStore for Entries {
    fn get(&self, name: &str) -> Result<Option<SecretString>, CredentialStoreError> {
        let key = self.key("login", name);
        let sealed = self.runtime.block_on(self.vault.get(&key)).map_err(|error| failed(&error))?;
        let opened =
            sealed.and_then(|text| self.vault.unseal(Purpose::UpstreamLogin, &[&key], &text));
        Ok(opened.and_then(|text| String::from_utf8(text).ok()).map(SecretString::new))
    }

    fn put(&self, name: &str, value: &SecretString) -> Result<(), CredentialStoreError> {
        // The tokens of a principal count in its bytes.
        let owner = self.owner.as_ref().filter(|_| is_token(name));
        self.put_sealed(&self.key("login", name), value, owner)
    }

    fn remove(&self, name: &str) -> Result<(), CredentialStoreError> {
        let key = self.key("login", name);
        self.runtime.block_on(self.vault.delete(&key)).map_err(|error| failed(&error))
    }

    fn begin_renewal(&self, name: &str) -> Result<(), CredentialStoreError> {
        let key = self.key("renewal", name);
        let reserved = async {
            for _ in 0..RENEWAL_WAIT.as_millis() / RENEWAL_POLL.as_millis() {
                if self.vault.put_if_absent(&key, "", RENEWAL_TIMEOUT, None).await? {
                    return Ok(true);
                }
                self.vault.sleep(RENEWAL_POLL).await;
            }
            Ok(false)
        };
        match self.runtime.block_on(reserved).map_err(|error| failed(&error))? {
            true => Ok(()),
            false => Err(CredentialStoreError::new(
                "another replica has been renewing the token for a long time; retry",
            )),
        }
    }

    fn end_renewal(&self, name: &str) {
        let key = self.key("renewal", name);
        if let Err(error) = self.runtime.block_on(self.vault.delete(&key)) {
            tracing::debug!(%error, "a reserved renewal expires by itself");
        }
    }
}

/// Returns whether an entry of the OAuth client has tokens, and not a registration.
fn is_token(name: &str) -> bool {
    name.starts_with("tokens ")
}

fn failed(error: &StoreError) -> CredentialStoreError {
    CredentialStoreError::new(format!("{error}; retry"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outlive::{
        server::SealKeys,
        store::{KeyValueStore, MemoryStore},
    };

    use super::*;
    use crate::settings::UpstreamAuth;

    fn upstream() -> Upstream {
        Upstream::url("up", "https://up.example/mcp").auth(UpstreamAuth::login())
    }

    fn vault(store: &Arc<MemoryStore>) -> Vault {
        Vault::open(Arc::clone(store) as Arc<dyn KeyValueStore>, SealKeys::new([7; 32]))
    }

    /// Runs credential stores where they may block.
    async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        tokio::task::spawn_blocking(work).await.unwrap()
    }

    #[tokio::test]
    async fn entry_is_sealed_and_belongs_to_its_principal_and_client() {
        let store = Arc::new(MemoryStore::new());
        let ada = Entries::new(vault(&store), &upstream(), Some(Principal::named("ada")));
        let bob = Entries::new(vault(&store), &upstream(), Some(Principal::named("bob")));
        let gateway = Entries::new(vault(&store), &upstream(), None);
        let client = upstream().auth(UpstreamAuth::login().client_id("other"));
        let client = Entries::new(vault(&store), &client, Some(Principal::named("ada")));
        let again = Entries::new(vault(&store), &upstream(), Some(Principal::named("ada")));
        let key = ada.key("login", "tokens x");
        let read = blocking(move || {
            ada.put("tokens x", &SecretString::new("secret-of-ada")).unwrap();
            let read = |entries: &Entries| entries.get("tokens x").unwrap();
            let others = [&bob, &gateway, &client].map(read);
            let other_url = ada.get("tokens y").unwrap();
            (read(&again), others, other_url)
        });
        let (own, others, other_url) = read.await;
        assert_eq!(own, Some(SecretString::new("secret-of-ada")));
        assert!(others.iter().all(Option::is_none) && other_url.is_none());
        let stored = store.get_value(&key).await.unwrap().unwrap();
        assert!(!stored.get().contains("secret-of-ada"), "{stored}");
        assert!(!key.contains("ada"), "{key}");
    }

    #[tokio::test]
    async fn entry_does_not_open_under_the_key_of_another_principal() {
        let store = Arc::new(MemoryStore::new());
        let ada = Entries::new(vault(&store), &upstream(), Some(Principal::named("ada")));
        let bob = Entries::new(vault(&store), &upstream(), Some(Principal::named("bob")));
        let keys = [ada.key("login", "tokens x"), bob.key("login", "tokens x")];
        blocking(move || ada.put("tokens x", &SecretString::new("secret")).unwrap()).await;
        let moved = store.get_value(&keys[0]).await.unwrap().unwrap();
        store.put(&keys[1], moved, LOGIN_TTL, None).await.unwrap();
        assert!(blocking(move || bob.get("tokens x").unwrap()).await.is_none());
    }

    #[tokio::test]
    async fn renewal_waits_for_another_one() {
        let store = Arc::new(MemoryStore::new());
        let one = Entries::new(vault(&store), &upstream(), None);
        let two = Entries::new(vault(&store), &upstream(), None);
        let key = one.key("renewal", "tokens x");
        let one = blocking(move || {
            one.begin_renewal("tokens x").unwrap();
            one
        })
        .await;
        let waiting = tokio::task::spawn_blocking(move || two.begin_renewal("tokens x"));
        assert!(!waiting.is_finished() && store.get_value(&key).await.unwrap().is_some());
        blocking(move || one.end_renewal("tokens x")).await;
        waiting.await.unwrap().unwrap();
    }
}
