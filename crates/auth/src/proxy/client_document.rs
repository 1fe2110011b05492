//! Clients that publish a document about themselves: its address is their id.
//! Spec: <https://datatracker.ietf.org/doc/draft-ietf-oauth-client-id-metadata-document/>

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use http::HeaderMap;
use outlive_protocol::Clock;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::client::Client;
use crate::{fetch::Fetch, server::resource_uri::ResourceUri};

/// For how long a document is taken for true.
const FRESH: Duration = Duration::from_secs(600);

/// How many are remembered.
const MOST: usize = 256;

/// How many are fetched at once. Anybody can cause that; more are refused.
const AT_ONCE: usize = 8;

/// The longest id. It stands in cookies and in tokens.
const LONGEST: usize = 256;

/// The documents of clients.
pub(super) struct Documents {
    fetch: Fetch,
    /// Whether a document on this machine may come without TLS, because we do too.
    pub(super) plain_local: bool,
    gate: Semaphore,
    clock: Arc<dyn Clock>,
    // A std mutex: nothing awaits while it is held.
    known: Mutex<HashMap<String, (Client, Instant)>>,
}

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
        let fetch = Fetch::new().timeout(Duration::from_secs(5)).max_bytes(64 << 10);
        let gate = Semaphore::new(AT_ONCE);
        Self { fetch, plain_local, gate, clock, known: Mutex::default() }
    }

    /// The client whose document is at this address, or why there is none.
    pub(super) async fn read(&self, id: &str) -> Result<Client, &'static str> {
        self.check(id)?;
        let now = self.clock.now();
        let is_fresh = |at: Instant| now.saturating_duration_since(at) < FRESH;
        if let Some((client, at)) = self.known().get(id)
            && is_fresh(*at)
        {
            return Ok(client.clone());
        }
        let busy = |_| "Too many applications log in at the moment. Try again later.";
        let _permit = self.gate.try_acquire().map_err(busy)?;
        let fetched = self.fetch.get(id, HeaderMap::new()).await;
        let document = fetched.and_then(|fetched| fetched.json::<Document>());
        let document = document.map_err(|error| {
            tracing::debug!(%error, "the document of a client could not be read");
            "The application's description of itself cannot be read."
        })?;
        if document.client_id != id {
            return Err("The application's description of itself is about another one.");
        }
        let client = Client { name: document.client_name, redirect_uris: document.redirect_uris };
        let mut known = self.known();
        if known.len() >= MOST {
            known.retain(|_, (_, at)| is_fresh(*at));
        }
        if known.len() < MOST {
            known.insert(id.to_owned(), (client.clone(), now));
        }
        Ok(client)
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

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Client, Instant)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
