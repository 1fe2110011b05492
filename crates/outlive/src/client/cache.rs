//! Cache of results whose server allows caching; 2026-07-28.
//!
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching>

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use outlive_wire::{CacheScope, Method};
use serde::Deserialize;
use tokio::time::Instant;

use super::notice::ServerNotification;

/// Longest time that a result is cached, even if the server allows more: one day.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Cached results by request.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    kept: Mutex<Kept>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Kept {
    changes: u64,
    entries: HashMap<Key, Entry>,
    bytes: usize,
}

/// A request, with its caller unless the result is public.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    method: String,
    params: String,
    /// Digest of the caller's token; `None` if the cache scope is `public`.
    caller: Option<String>,
}

#[derive(Debug)]
struct Entry {
    result: Bytes,
    until: Instant,
}

impl Cache {
    pub(crate) fn new(limit: usize) -> Self {
        Self { kept: Mutex::default(), limit }
    }

    pub(super) fn get(&self, method: &str, params: &str, caller: Option<&str>) -> Option<Bytes> {
        let kept = self.lock();
        let now = Instant::now();
        let mut key = Key { method: method.to_owned(), params: params.to_owned(), caller: None };
        let fresh = |key: &Key| {
            kept.entries.get(key).filter(|entry| entry.until > now).map(|it| it.result.clone())
        };
        fresh(&key).or_else(|| {
            key.caller = Some(caller.unwrap_or_default().to_owned());
            fresh(&key)
        })
    }

    pub(super) fn put(
        &self,
        (method, params): (String, String),
        caller: Option<String>,
        result: &Bytes,
    ) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hints {
            ttl_ms: Option<f64>,
            cache_scope: Option<CacheScope>,
        }
        let Ok(hints) = serde_json::from_slice::<Hints>(result) else { return };
        let Some(ttl) = hints.ttl_ms.filter(|ttl| *ttl > 0.0) else { return };
        let ttl = Duration::try_from_secs_f64(ttl / 1000.0).unwrap_or(LONGEST).min(LONGEST);
        let caller = match hints.cache_scope {
            Some(CacheScope::Public) => None,
            _ => Some(caller.unwrap_or_default()),
        };
        let size = method.len() + params.len() + result.len();
        if size > self.limit {
            return;
        }
        let mut kept = self.lock();
        let now = Instant::now();
        if kept.bytes + size > self.limit {
            kept.entries.retain(|_, entry| entry.until > now);
            kept.count();
        }
        if kept.bytes + size > self.limit {
            kept.entries.clear();
        }
        let entry = Entry { result: Bytes::copy_from_slice(result), until: now + ttl };
        kept.entries.insert(Key { method, params, caller }, entry);
        kept.count();
    }

    /// Removes the results that a notification invalidates.
    pub(crate) fn heard(&self, notice: &ServerNotification) {
        let mut kept = self.lock();
        let list = |methods: &[Method], key: &Key| {
            methods.iter().any(|method| method.as_str() == key.method)
        };
        match notice {
            ServerNotification::ToolsChanged => kept.forget(|key| list(&[Method::ToolsList], key)),
            ServerNotification::PromptsChanged => {
                kept.forget(|key| list(&[Method::PromptsList], key))
            }
            ServerNotification::ResourcesChanged => kept
                .forget(|key| list(&[Method::ResourcesList, Method::ResourceTemplatesList], key)),
            // The URI may name only a part of a resource, so every read result is removed.
            ServerNotification::ResourceUpdated(_) => {
                kept.forget(|key| list(&[Method::ResourcesRead], key))
            }
            ServerNotification::Reconnected => kept.forget(|_| true),
            _ => {}
        }
    }

    /// Number of invalidations. A response that was in flight during one is not cached.
    pub(super) fn changes(&self) -> u64 {
        self.lock().changes
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn forget(&mut self, is_old: impl Fn(&Key) -> bool) {
        self.entries.retain(|key, _| !is_old(key));
        self.changes += 1;
        self.count();
    }

    fn count(&mut self) {
        let size =
            |(key, entry): (&Key, &Entry)| key.method.len() + key.params.len() + entry.result.len();
        self.bytes = self.entries.iter().map(size).sum();
    }
}
