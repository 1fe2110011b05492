//! The keys of an issuer, kept so that checking a token asks nobody.
//!
//! They are fetched when they are first needed, and again: in the background when they have been
//! kept for a while, and at once when a token names a key that is not among them, because issuers
//! change their keys. Anybody can make up names of keys, so that is done every so often at most, and
//! one fetch serves all who wait.

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

/// After how long keys are fetched again while the old ones still serve.
const FRESH: Duration = Duration::from_secs(600);

/// For how long keys serve when no others can be fetched. An outage of the issuer should not be ours;
/// a key that was withdrawn should not live for ever.
const STALE: Duration = Duration::from_secs(86_400);

/// The pause between two fetches, whatever the reason.
const PAUSE: Duration = Duration::from_secs(10);

/// Without a name every key that fits is tried; no issuer has more than a few of them.
const TRIED: usize = 8;

/// Where keys come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// They were configured.
    Fixed(Arc<JwkSet>),
    /// They are published at this URL.
    Url(Arc<str>),
    /// They are published where the issuer's metadata says.
    Issuer,
}

/// The keys of an issuer.
pub(super) struct Keys {
    issuer: Arc<str>,
    source: Source,
    fetch: Arc<Fetcher>,
    clock: Arc<dyn Clock>,
    // A std mutex: nothing awaits while it is held.
    state: Mutex<State>,
    /// Held by whoever fetches.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    keys: Option<Arc<JwkSet>>,
    /// When they were asked for.
    fetched: Option<Instant>,
    /// When somebody last asked, with or without success.
    tried: Option<Instant>,
}

/// What can be said about the key of a token without asking anybody.
pub(super) enum Found {
    /// It is among these.
    Here(Arc<JwkSet>),
    /// It is not there, and that was checked not long ago.
    Unknown,
    /// The issuer has to be asked.
    Ask,
    /// The issuer could not be asked not long ago.
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

    /// The keys, if the one that a token names is among them.
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

    /// Asks the issuer, or waits for whoever does. `Found::Ask` never comes of it.
    pub(super) async fn ask(self: &Arc<Self>, header: &Header) -> Found {
        self.refresh().await;
        match self.find(header) {
            // Somebody else has begun to fetch again meanwhile; what we have fetched is what counts.
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

    /// Fetches while the old keys serve.
    fn refresh_later(self: &Arc<Self>) {
        // Only one at a time, and without a runtime nobody can.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.fetching.try_lock().is_err() {
            return;
        }
        let keys = Arc::clone(self);
        // Owned by nobody, because it ends by itself when the fetch does, which has a time-out.
        runtime.spawn(async move { keys.refresh().await });
    }

    async fn refresh(&self) {
        let _fetching = self.fetching.lock().await;
        let begun = self.clock.now();
        {
            let mut state = self.state();
            if !self.may_ask(&state, begun) {
                // Whoever had the lock before us has done it.
                return;
            }
            // Before, not after: a fetch that is given up counts as well.
            state.tried = Some(begun);
        }
        match self.fetch().await {
            Ok(keys) => {
                let mut state = self.state();
                state.keys = Some(Arc::new(keys));
                state.fetched = Some(begun);
            }
            Err(error) => {
                tracing::warn!(issuer = &*self.issuer, %error, "could not fetch the keys of an issuer");
            }
        }
    }

    /// Fetches them; why not, for people.
    pub(super) async fn fetch(&self) -> Result<JwkSet, String> {
        let url = match &self.source {
            Source::Fixed(keys) => return Ok(JwkSet::clone(keys)),
            Source::Url(url) => Arc::clone(url),
            Source::Issuer => discover::keys_of(&self.fetch, &self.issuer).await?,
        };
        let fetched = self.fetch.get(&url, HeaderMap::new()).await;
        let fetched = fetched.map_err(|error| error.to_string())?;
        if !fetched.status.is_success() {
            return Err(format!("{url} answered HTTP {}", fetched.status.as_u16()));
        }
        JwkSet::from_json(&fetched.body).map_err(|_| format!("{url} has no set of keys"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has(keys: &JwkSet, header: &Header) -> bool {
    candidates(keys, header).next().is_some()
}

/// The keys that may have signed a token.
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
