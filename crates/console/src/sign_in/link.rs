//! One-time links: every process that can read the key file of a server can sign a browser in.
//!
//! A link is `in/KEY` below the address of the console. It works once, within ten minutes, and only
//! for a browser on the same machine.

use std::{sync::Arc, time::Duration};

use outlive::{
    people::{Purpose, Vault},
    server::SealKeys,
    store::{MemoryStore, StoreError},
};

use super::session::{digest, random_text};

/// Time for which a link works.
const LIFETIME: Duration = Duration::from_secs(600);

/// Permitted difference between the clocks of the process that creates a link and the server.
const SKEW: Duration = Duration::from_secs(30);

/// Context of all links.
const CONTEXT: [&str; 1] = ["link"];

/// Returns the key of a one-time link, which signs a browser on this machine in to the console of
/// the server with these keys. The link is `in/KEY` below the address of the console.
///
/// Returns `None` if the operating system provides no random bytes.
pub fn sign_in_key(keys: &SealKeys) -> Option<String> {
    create(&Vault::open(Arc::new(MemoryStore::new()), keys.clone()))
}

/// Returns the key of a new link.
pub(crate) fn create(vault: &Vault) -> Option<String> {
    let lifetime = u64::try_from(LIFETIME.as_millis()).unwrap_or(u64::MAX);
    let content = format!("{} {}", vault.now().saturating_add(lifetime), random_text()?);
    vault.seal(Purpose::SignIn, &CONTEXT, content.as_bytes())
}

/// Uses a link. Returns `false` if the key is not valid, has expired, or was used before. The
/// reasons are indistinguishable.
///
/// # Errors
///
/// If the store cannot be written. The link is not used then.
pub(crate) async fn redeem(vault: &Vault, key: &str) -> Result<bool, StoreError> {
    let Some(id) = open(vault, key) else { return Ok(false) };
    let entry = format!("console/link/{}", digest(&id));
    vault.put_if_absent(&entry, "used", LIFETIME + 2 * SKEW, None).await
}

/// Returns the ID of a link that has not expired.
fn open(vault: &Vault, key: &str) -> Option<String> {
    let content = String::from_utf8(vault.unseal(Purpose::SignIn, &CONTEXT, key)?).ok()?;
    let (expires_at, id) = content.split_once(' ')?;
    (vault.now() < expires_at.parse().ok()?).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outlive::{people::Vault, server::SealKeys, store::MemoryStore};

    use super::{redeem, sign_in_key};

    #[tokio::test]
    async fn link_works_once_and_only_with_the_keys_of_the_server() {
        let keys = SealKeys::new([7; 32]);
        let vault = Vault::open(Arc::new(MemoryStore::new()), keys.clone());
        let key = sign_in_key(&keys).expect("random bytes");
        let foreign = sign_in_key(&SealKeys::new([8; 32])).expect("random bytes");
        assert!(!redeem(&vault, &foreign).await.expect("the store responds"));
        assert!(redeem(&vault, &key).await.expect("the store responds"));
        assert!(!redeem(&vault, &key).await.expect("the store responds"));
        assert!(!redeem(&vault, "").await.expect("the store responds"));
    }
}
