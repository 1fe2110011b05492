//! Entries of the login store, each sealed for its key.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

use super::{login_store::LoginStoreError, reply::ErrorReply, state::ProxyState};

/// Returns the key of an entry in the login store.
pub(super) fn key(kind: &str, name: &str) -> String {
    format!("proxy/{kind}/{name}")
}

/// Stores an entry of a grant, and deletes it if the grant has ended meanwhile. Either this
/// function sees the end, or `grant::end` deletes the stored entry.
pub(super) async fn put_unless_ended(
    proxy: &ProxyState,
    id: &str,
    kind: &str,
    value: &impl Serialize,
) -> Result<(), ErrorReply> {
    let place = key(kind, id);
    put(proxy, &place, value, proxy.spans.refresh).await?;
    if proxy.logins.get(&key("ended", id)).await?.is_some() {
        proxy.logins.delete(&place).await?;
        return Err(ErrorReply::USED);
    }
    Ok(())
}

/// Stores a value, sealed for its key.
pub(super) async fn put(
    proxy: &ProxyState,
    key: &str,
    value: &impl Serialize,
    ttl: Duration,
) -> Result<(), LoginStoreError> {
    let sealed = proxy.keys.seal(value, &["note", key]);
    let sealed = sealed.ok_or_else(|| LoginStoreError::new("the system has no random bytes"))?;
    proxy.logins.put(key, sealed, ttl).await
}

/// Returns the value under a key.
pub(super) async fn read<T: DeserializeOwned>(
    proxy: &ProxyState,
    key: &str,
) -> Result<Option<T>, LoginStoreError> {
    let entry = proxy.logins.get(key).await?;
    Ok(entry.and_then(|sealed| proxy.keys.open(&sealed, &["note", key])))
}
