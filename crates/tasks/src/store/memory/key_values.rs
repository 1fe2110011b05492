//! Key-value entries in memory.

use std::collections::HashMap;

use outlive_wire::RawJson;

use crate::store::UnixMillis;

/// Key-value entries by their key.
#[derive(Default)]
pub(super) struct KeyValues(HashMap<String, KeyValue>);

pub(super) struct KeyValue {
    pub(super) value: RawJson,
    pub(super) expires_at: UnixMillis,
    /// Principal that is charged for the entry.
    pub(super) principal: Option<String>,
}

impl KeyValues {
    /// Inserts an entry. The entry that it replaces is dropped.
    pub(super) fn insert(&mut self, key: &str, entry: KeyValue) {
        self.0.insert(key.to_owned(), entry);
    }

    /// Returns the entry under a key, expired or not.
    pub(super) fn entry(&self, key: &str) -> Option<&KeyValue> {
        self.0.get(key)
    }

    /// Returns the value under a key, unless it has expired.
    pub(super) fn get(&self, key: &str, now: UnixMillis) -> Option<RawJson> {
        let entry = self.0.get(key)?;
        (entry.expires_at > now).then(|| entry.value.clone())
    }

    /// Returns the unexpired entries whose key starts with `prefix`, in any order.
    pub(super) fn starting_with(&self, prefix: &str, now: UnixMillis) -> Vec<(String, RawJson)> {
        let found =
            self.0.iter().filter(|(key, entry)| key.starts_with(prefix) && entry.expires_at > now);
        found.map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<KeyValue> {
        self.0.remove(key)
    }

    /// Removes the expired entries, and returns them.
    pub(super) fn sweep(&mut self, now: UnixMillis) -> Vec<(String, KeyValue)> {
        self.0.extract_if(|_, entry| entry.expires_at <= now).collect()
    }
}
