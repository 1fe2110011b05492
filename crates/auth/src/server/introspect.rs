//! Token introspection (RFC 7662).

use std::{fmt, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use outlive_transport::client::SecretString;
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::{
    fetch::{Fetcher, form},
    json,
};

/// Maximum number of concurrent introspection requests. Clients can trigger requests with forged
/// tokens.
const AT_ONCE: usize = 32;

/// Time that a request waits for a free slot.
const PATIENCE: Duration = Duration::from_secs(5);

/// Introspection endpoint and its credentials.
#[derive(Clone)]
pub(super) struct Asking {
    url: Arc<str>,
    /// `Authorization` header. Secret.
    credentials: Option<HeaderValue>,
    turns: Arc<Semaphore>,
}

/// Reason why an introspection failed.
#[derive(Debug)]
pub(super) struct Unanswered(String);

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Deserialize)]
struct State {
    active: bool,
}

impl Asking {
    pub(super) fn new(url: String, client: &str, secret: &SecretString) -> Self {
        let pair = format!("{}:{}", form::escaped(client), form::escaped(secret.expose()));
        let mut credentials =
            HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))).ok();
        if let Some(credentials) = &mut credentials {
            credentials.set_sensitive(true);
        }
        Self { url: url.into(), credentials, turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the issuer's claims about a token as JSON, or `None` if the token is not active.
    pub(super) async fn about(
        &self,
        fetch: &Fetcher,
        token: &str,
    ) -> Result<Option<Bytes>, Unanswered> {
        let turn = tokio::time::timeout(PATIENCE, self.turns.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Err(Unanswered("too many introspection requests are in progress".to_owned()));
        };
        let mut headers = HeaderMap::new();
        if let Some(credentials) = &self.credentials {
            headers.insert(header::AUTHORIZATION, credentials.clone());
        }
        let fields = [("token", token), ("token_type_hint", "access_token")];
        let fetched = fetch.post_form(&self.url, headers, fields).await;
        let fetched = fetched.map_err(|error| Unanswered(error.to_string()))?;
        if !fetched.status.is_success() {
            // A failed request says nothing about the token.
            let status = fetched.status.as_u16();
            return Err(Unanswered(format!("{} returned HTTP {status}", self.url)));
        }
        let Some(state) = json::object::<State>(&fetched.body) else {
            return Err(Unanswered(format!("the response of {} has no member `active`", self.url)));
        };
        Ok(state.active.then_some(fetched.body))
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("url", &self.url).finish_non_exhaustive()
    }
}
