//! Entries of the login store, each sealed for its key.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

use super::{login_store::LoginStoreError, reply::Fault, state::ProxyState};

/// Key of an entry in the login store.
pub(super) fn key(kind: &str, name: &str) -> String {
    format!("proxy/{kind}/{name}")
}

/// Stores an entry of a grant, and deletes it if the grant has ended meanwhile: either that is seen
/// here, or the end deletes the entry after it was stored.
pub(super) async fn put_unless_ended(
    proxy: &ProxyState,
    id: &str,
    kind: &str,
    value: &impl Serialize,
) -> Result<(), Fault> {
    let place = key(kind, id);
    put(proxy, &place, value, proxy.spans.refresh).await?;
    if proxy.logins.get(&key("ended", id)).await?.is_some() {
        proxy.logins.delete(&place).await?;
        return Err(Fault::USED);
    }
    Ok(())
}

/// Keeps a value, sealed for its place.
pub(super) async fn put(
    proxy: &ProxyState,
    key: &str,
    value: &impl Serialize,
    ttl: Duration,
) -> Result<(), LoginStoreError> {
    let sealed = proxy.keys.seal(value, &["note", key]);
    let sealed = sealed.ok_or_else(|| LoginStoreError::new("the system gave no random bytes"))?;
    proxy.logins.put(key, sealed, ttl).await
}

/// A value that was kept at this place.
pub(super) async fn read<T: DeserializeOwned>(
    proxy: &ProxyState,
    key: &str,
) -> Result<Option<T>, LoginStoreError> {
    let entry = proxy.logins.get(key).await?;
    Ok(entry.and_then(|sealed| proxy.keys.open(&sealed, &["note", key])))
}
