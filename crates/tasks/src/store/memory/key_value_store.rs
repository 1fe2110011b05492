//! [`KeyValueStore`] of the memory store.

use std::time::Duration;

use outlive_wire::RawJson;

use super::{
    key_values::KeyValue,
    state::{MemoryStore, done, locked},
};
use crate::{
    store::{Charge, KeyValueStore, StoreError, StoreFuture, budget},
    time::millis,
};

impl KeyValueStore for MemoryStore {
    fn put_if_absent<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, Option<RawJson>> {
        done(self.insert(key, value, ttl, Existing::Keep, charge))
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, ()> {
        done(self.insert(key, value, ttl, Existing::Replace, charge).map(drop))
    }

    fn get_value<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<RawJson>> {
        done(Ok(locked(&self.key_values).get(key, self.now())))
    }

    fn delete<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        let removed = locked(&self.key_values).remove(key);
        if let Some(entry) = removed {
            self.discharge(key, entry);
        }
        done(Ok(()))
    }
}

/// Treatment of an existing entry.
#[derive(PartialEq, Eq)]
enum Existing {
    Keep,
    Replace,
}

impl MemoryStore {
    /// Stores an entry. Returns the existing value instead if it is kept.
    fn insert(
        &self,
        key: &str,
        value: RawJson,
        ttl: Duration,
        existing: Existing,
        charge: Option<&Charge>,
    ) -> Result<Option<RawJson>, StoreError> {
        let now = self.now();
        let mut entries = locked(&self.key_values);
        if let (Some(value), Existing::Keep) = (entries.get(key, now), existing) {
            return Ok(Some(value));
        }
        let bytes = budget::key_value(key, value.get());
        let mut tasks = self.lock();
        let old = entries.entry(key).and_then(|old| {
            Some((old.principal.clone()?, budget::key_value(key, old.value.get())))
        });
        if let Some(Charge { principal, max_bytes }) = charge {
            let freed = old.as_ref().filter(|(owner, _)| owner == principal);
            let stored = tasks.bytes(principal) - freed.map_or(0, |(_, bytes)| *bytes);
            if (stored + bytes) as u64 > *max_bytes {
                return Err(StoreError::BytesExceeded);
            }
        }
        if let Some((principal, bytes)) = old {
            tasks.discharge(&principal, bytes);
        }
        let principal = charge.map(|charge| charge.principal.clone());
        if let Some(principal) = &principal {
            tasks.charge(principal, bytes);
        }
        let expires_at = now.saturating_add(millis(ttl));
        entries.insert(key, KeyValue { value, expires_at, principal });
        Ok(None)
    }

    /// Subtracts the bytes of a removed entry from its principal.
    pub(super) fn discharge(&self, key: &str, entry: KeyValue) {
        if let Some(principal) = entry.principal {
            self.lock().discharge(&principal, budget::key_value(key, entry.value.get()));
        }
    }
}
