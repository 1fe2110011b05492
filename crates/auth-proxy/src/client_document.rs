//! Client ID metadata documents: the URL of the document is the client ID.
//!
//! [`Gate`] limits the fetches. A document that is slow or missing affects only its own client.
//! Spec: <https://datatracker.ietf.org/doc/draft-ietf-oauth-client-id-metadata-document/>

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use http::HeaderMap;
use outlive_protocol::Clock;
use serde::Deserialize;

use super::{client::Client, client_document_gate::Gate, redirect_uri::RedirectUri};
use outlive_auth::{fetch::Fetcher, server::ResourceUri};

/// Cache time of a document.
const FRESH: Duration = Duration::from_secs(600);

/// Maximum number of cached documents. A further one replaces the oldest.
const MAX_CACHED: usize = 256;

/// Maximum number of cached documents per host.
const MAX_CACHED_PER_HOST: usize = 16;

/// Maximum number of redirect URIs in a document.
const MAX_REDIRECT_URIS: usize = 32;

/// Maximum bytes of a client name. Longer names are truncated.
const MAX_NAME: usize = 128;

const BUSY: &str = "Too many logins are in progress. Try again later.";

/// Maximum length of a document URL, which is stored in cookies and tokens.
const LONGEST: usize = 256;

/// Fetches and caches client documents.
pub(super) struct Documents {
    fetch: Fetcher,
    /// Whether documents on loopback addresses may be fetched without TLS, because the proxy itself
    /// has no TLS.
    pub(super) plain_local: bool,
    gate: Gate,
    clock: Arc<dyn Clock>,
    // A std mutex: no code awaits while it is held.
    known: Mutex<Cache>,
}

type Cache = HashMap<String, (Client, Instant)>;

#[derive(Deserialize)]
struct Document {
    client_id: String,
    #[serde(default)]
    client_name: Option<String>,
    redirect_uris: Vec<String>,
}

impl Documents {
    pub(super) fn new(plain_local: bool, clock: Arc<dyn Clock>) -> Self {
        // The fetcher allows public addresses only, because clients choose the URLs.
        let fetch = Fetcher::new().timeout(Duration::from_secs(5)).max_bytes(64 << 10);
        Self { fetch, plain_local, gate: Gate::default(), clock, known: Mutex::default() }
    }

    /// Returns the client with the document at this URL, or a message for the user. `caller` is the
    /// address of the requesting browser.
    pub(super) async fn read(
        &self,
        id: &str,
        caller: Option<IpAddr>,
    ) -> Result<Client, &'static str> {
        self.check(id)?;
        if let Some(client) = self.cached(id) {
            return Ok(client);
        }
        let turn = self.gate.enter(caller, host(id)).await.ok_or(BUSY)?;
        // A previous fetch may have cached the document meanwhile.
        if let Some(client) = self.cached(id) {
            return Ok(client);
        }
        let client = tokio::select! {
            fetched = self.fetched(id) => fetched?,
            () = turn.taken() => {
                tracing::debug!(id, "cancelling a slow client document fetch for a waiting one");
                return Err("The metadata document of the application takes too long to load. Try again later.");
            }
        };
        self.cache(id, client.clone());
        Ok(client)
    }

    async fn fetched(&self, id: &str) -> Result<Client, &'static str> {
        let fetched = self.fetch.get(id, HeaderMap::new()).await;
        let document = fetched.and_then(|fetched| fetched.json::<Document>());
        let document = document.map_err(|error| {
            tracing::debug!(%error, "fetching a client document failed");
            "The metadata document of the application cannot be read."
        })?;
        if document.client_id != id {
            return Err("The metadata document describes another application.");
        }
        if document.redirect_uris.len() > MAX_REDIRECT_URIS {
            return Err("The metadata document of the application has too many redirect URIs.");
        }
        // Invalid redirect URIs are dropped: they never match, and could be long.
        let is_uri = |uri: &String| RedirectUri::parse(uri).is_some();
        let redirect_uris = document.redirect_uris.into_iter().filter(is_uri).collect();
        let name = document.client_name.map(|name| {
            let fits = |(at, char): &(usize, char)| at + char.len_utf8() <= MAX_NAME;
            name.char_indices().take_while(fits).map(|(_, char)| char).collect()
        });
        Ok(Client { name, redirect_uris })
    }

    fn cached(&self, id: &str) -> Option<Client> {
        let now = self.clock.now();
        let known = self.known();
        let (client, at) = known.get(id)?;
        (now.saturating_duration_since(*at) < FRESH).then(|| client.clone())
    }

    fn cache(&self, id: &str, client: Client) {
        let mut known = self.known();
        known.remove(id);
        let of_host = known.keys().filter(|other| host(other) == host(id)).count();
        let is_full = of_host >= MAX_CACHED_PER_HOST;
        if is_full || known.len() >= MAX_CACHED {
            let candidates = known.iter().filter(|(other, _)| !is_full || host(other) == host(id));
            let oldest = candidates.min_by_key(|(_, (_, at))| *at).map(|(id, _)| id.clone());
            oldest.map(|oldest| known.remove(&oldest));
        }
        known.insert(id.to_owned(), (client, self.clock.now()));
    }

    /// Checks that a URL is a valid document URL: canonical, and over TLS. Plain `http:` to
    /// loopback would let clients make the proxy call local programs.
    fn check(&self, id: &str) -> Result<(), &'static str> {
        let odd = "The ID of the application is not a valid metadata document URL.";
        let uri = ResourceUri::parse(id).map_err(|_| odd)?;
        let has_dots = uri.path().split('/').any(|part| matches!(part, "." | ".."));
        let is_safe = id.starts_with("https://") || self.plain_local;
        let is_plain = uri.as_str() == id && !matches!(uri.path(), "" | "/") && !has_dots;
        if is_safe && is_plain && id.len() <= LONGEST { Ok(()) } else { Err(odd) }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the host of a document URL without its port.
fn host(id: &str) -> &str {
    let authority = id.split('/').nth(2).unwrap_or(id);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|it| it.is_ascii_digit()) => host,
        _ => authority,
    }
}
