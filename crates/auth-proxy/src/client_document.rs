//! Clients that publish a document about themselves: its address is their id.
//!
//! [`Gate`] decides when a document is fetched. A document that cannot be had costs its own client the
//! login, and no other.
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

/// For how long a document is taken for true.
const FRESH: Duration = Duration::from_secs(600);

/// Number of documents in the cache. A further one replaces the oldest.
const MAX_CACHED: usize = 256;

/// Number of documents of one host in the cache.
const MAX_CACHED_PER_HOST: usize = 16;

/// Number of redirect URIs of a document.
const MAX_REDIRECT_URIS: usize = 32;

/// Length of a client's name, in bytes. The rest is cut off.
const MAX_NAME: usize = 128;

const BUSY: &str = "Too many applications log in at the moment. Try again later.";

/// The longest id. It stands in cookies and in tokens.
const LONGEST: usize = 256;

/// The documents of clients.
pub(super) struct Documents {
    fetch: Fetcher,
    /// Whether a document on this machine may come without TLS, because we do too.
    pub(super) plain_local: bool,
    gate: Gate,
    clock: Arc<dyn Clock>,
    // A std mutex: nothing awaits while it is held.
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
        // To public addresses only: it is strangers who name them.
        let fetch = Fetcher::new().timeout(Duration::from_secs(5)).max_bytes(64 << 10);
        Self { fetch, plain_local, gate: Gate::default(), clock, known: Mutex::default() }
    }

    /// Returns the client whose document is at this address, or what to tell the person. `caller` is the
    /// address that the request came from.
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
        // A fetch that was ahead of this one may have brought it.
        if let Some(client) = self.cached(id) {
            return Ok(client);
        }
        let client = tokio::select! {
            fetched = self.fetched(id) => fetched?,
            () = turn.taken() => {
                tracing::debug!(id, "a slow client document made room for others");
                return Err("The application's description of itself takes too long. Try again later.");
            }
        };
        self.cache(id, client.clone());
        Ok(client)
    }

    async fn fetched(&self, id: &str) -> Result<Client, &'static str> {
        let fetched = self.fetch.get(id, HeaderMap::new()).await;
        let document = fetched.and_then(|fetched| fetched.json::<Document>());
        let document = document.map_err(|error| {
            tracing::debug!(%error, "the document of a client could not be read");
            "The application's description of itself cannot be read."
        })?;
        if document.client_id != id {
            return Err("The application's description of itself is about another one.");
        }
        if document.redirect_uris.len() > MAX_REDIRECT_URIS {
            return Err("The application's description of itself has too many redirect URIs.");
        }
        // What is no redirect URI would never be compared, and could be long.
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

    /// Whether an address may be that of a document: as one would write it, and over TLS. `http:` to
    /// this machine would let strangers have us ask our own programs.
    fn check(&self, id: &str) -> Result<(), &'static str> {
        let odd = "The application's id is not the address of a description.";
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

/// The host of a document's address, without its port.
fn host(id: &str) -> &str {
    let authority = id.split('/').nth(2).unwrap_or(id);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|it| it.is_ascii_digit()) => host,
        _ => authority,
    }
}
