//! Cached keys of an issuer.
//!
//! The cache fetches the keys when they are first needed. It refreshes old keys in the background,
//! and immediately if a token has an unknown key ID, because issuers rotate keys. Clients can forge
//! key IDs, so fetches are rate limited, and one fetch serves all waiting requests.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use http::HeaderMap;
use outlive_protocol::Clock;

use super::discover;
use crate::{
    fetch::Fetcher,
    jose::{Header, JwkSet},
};

/// Age at which keys are refreshed in the background.
const FRESH: Duration = Duration::from_secs(600);

/// Maximum age of keys if a refresh fails. Long, to survive an outage of the issuer, and finite, to
/// drop revoked keys.
const STALE: Duration = Duration::from_secs(86_400);

/// Minimum time between two fetches.
const PAUSE: Duration = Duration::from_secs(10);

/// Maximum number of keys that are tried for a token without a key ID.
const TRIED: usize = 8;

/// Source of the keys.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Configured keys.
    Fixed(Arc<JwkSet>),
    /// URL of the keys.
    Url(Arc<str>),
    /// URL in the metadata of the issuer.
    Issuer,
}

/// Keys of an issuer.
pub(super) struct Keys {
    issuer: Arc<str>,
    source: Source,
    fetch: Arc<Fetcher>,
    clock: Arc<dyn Clock>,
    // A std mutex: no code awaits while it is held.
    state: Mutex<State>,
    /// Held during a fetch.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    keys: Option<Arc<JwkSet>>,
    /// Time when the fetch of these keys started.
    fetched: Option<Instant>,
    /// Time of the last attempt to fetch, successful or not.
    tried: Option<Instant>,
}

/// Result of a lookup without network access.
pub(super) enum Found {
    /// The set contains a matching key.
    Here(Arc<JwkSet>),
    /// No key matches, and the keys were fetched recently.
    Unknown,
    /// The keys must be fetched.
    Ask,
    /// No keys are available, and a recent fetch failed.
    Unavailable,
}

impl Keys {
    pub(super) fn new(
        issuer: Arc<str>,
        source: Source,
        fetch: Arc<Fetcher>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { issuer, source, fetch, clock, state: Mutex::default(), fetching: Default::default() }
    }

    /// Returns the keys if one of them matches the header of a token.
    pub(super) fn find(self: &Arc<Self>, header: &Header) -> Found {
        if let Source::Fixed(keys) = &self.source {
            return if has(keys, header) { Found::Here(Arc::clone(keys)) } else { Found::Unknown };
        }
        let now = self.clock.now();
        let state = self.state();
        let age = state.fetched.map(|fetched| now.saturating_duration_since(fetched));
        let keys = state.keys.clone().filter(|_| age.is_some_and(|age| age < STALE));
        let may_ask = self.may_ask(&state, now);
        drop(state);
        match keys {
            Some(keys) if has(&keys, header) => {
                if may_ask && age.is_some_and(|age| age >= FRESH) {
                    self.refresh_later();
                }
                Found::Here(keys)
            }
            _ if may_ask || self.fetching.try_lock().is_err() => Found::Ask,
            Some(_) => Found::Unknown,
            None => Found::Unavailable,
        }
    }

    /// Fetches the keys, or waits for a fetch in progress. Never returns `Found::Ask`.
    pub(super) async fn ask(self: &Arc<Self>, header: &Header) -> Found {
        self.refresh().await;
        match self.find(header) {
            // Another fetch has started meanwhile; use the keys that were just fetched.
            Found::Ask => match self.state().keys.clone() {
                Some(keys) if has(&keys, header) => Found::Here(keys),
                Some(_) => Found::Unknown,
                None => Found::Unavailable,
            },
            found => found,
        }
    }

    fn may_ask(&self, state: &State, now: Instant) -> bool {
        state.tried.is_none_or(|tried| now.saturating_duration_since(tried) >= PAUSE)
    }

    /// Fetches the keys in the background.
    fn refresh_later(self: &Arc<Self>) {
        // Only one fetch runs at a time, and it needs a runtime.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.fetching.try_lock().is_err() {
            return;
        }
        let keys = Arc::clone(self);
        // The task is detached: the fetch has a timeout, so it ends by itself.
        runtime.spawn(async move { keys.refresh().await });
    }

    async fn refresh(&self) {
        let _fetching = self.fetching.lock().await;
        let started = self.clock.now();
        {
            let mut state = self.state();
            if !self.may_ask(&state, started) {
                // The previous holder of the lock has fetched the keys.
                return;
            }
            // The time is set before the fetch, so that a cancelled fetch counts too.
            state.tried = Some(started);
        }
        match self.fetch().await {
            Ok(keys) => {
                let mut state = self.state();
                state.keys = Some(Arc::new(keys));
                state.fetched = Some(started);
            }
            Err(error) => {
                tracing::warn!(issuer = &*self.issuer, %error, "fetching the keys of an issuer failed");
            }
        }
    }

    /// Fetches the keys. The error is a message for people.
    pub(super) async fn fetch(&self) -> Result<JwkSet, String> {
        let url = match &self.source {
            Source::Fixed(keys) => return Ok(JwkSet::clone(keys)),
            Source::Url(url) => Arc::clone(url),
            Source::Issuer => discover::keys_of(&self.fetch, &self.issuer).await?,
        };
        let fetched = self.fetch.get(&url, HeaderMap::new()).await;
        let fetched = fetched.map_err(|error| error.to_string())?;
        if !fetched.status.is_success() {
            return Err(format!("{url} returned HTTP {}", fetched.status.as_u16()));
        }
        JwkSet::from_json(&fetched.body).map_err(|_| format!("{url} has no JSON Web Key Set"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has(keys: &JwkSet, header: &Header) -> bool {
    candidates(keys, header).next().is_some()
}

/// Returns the keys that may have signed a token.
pub(super) fn candidates<'a>(
    keys: &'a JwkSet,
    header: &'a Header,
) -> impl Iterator<Item = &'a crate::jose::Jwk> {
    keys.candidates(header.key_id.as_deref(), header.algorithm).take(TRIED)
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}
