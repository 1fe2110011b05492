//! Fetches documents and tokens within bounds.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use outlive_transport::client::http::{Address, HttpLink, HttpOptions};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    error::{FetchError, FetchErrorKind},
    form,
    network_policy::{NetworkPolicy, is_loopback},
};

/// How often a document may be somewhere else of the same origin.
const REDIRECTS: usize = 3;

/// Origins whose connections are kept.
const ORIGINS: usize = 64;

/// Fetches, within bounds.
pub struct Fetcher {
    network_policy: NetworkPolicy,
    plain_http: bool,
    timeout: Duration,
    bytes: usize,
    roots: Option<PathBuf>,
    // A std mutex: nothing awaits while it is held.
    links: Mutex<HashMap<String, HttpLink>>,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher")
            .field("network_policy", &self.network_policy)
            .finish_non_exhaustive()
    }
}

impl Default for Fetcher {
    fn default() -> Self {
        Self::new()
    }
}

impl Fetcher {
    /// Public addresses, over TLS, 256 KiB, ten seconds.
    pub fn new() -> Self {
        Self {
            network_policy: NetworkPolicy::Public,
            plain_http: false,
            timeout: Duration::from_secs(10),
            bytes: 256 << 10,
            roots: None,
            links: Mutex::default(),
        }
    }

    /// Says which addresses may be connected to.
    #[must_use]
    pub fn network_policy(mut self, policy: NetworkPolicy) -> Self {
        self.network_policy = policy;
        self
    }

    /// Whether `http:` to other machines is allowed; off by default. Anyone on the path can read the
    /// tokens, so use it only on a network you trust.
    #[must_use]
    pub fn allow_http(mut self, allowed: bool) -> Self {
        self.plain_http = allowed;
        self
    }

    /// How long one fetch may take, connecting included.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many bytes an answer may have.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// A PEM file of the certificates to trust, in place of the system's.
    #[must_use]
    pub fn root_certificates(mut self, file: impl Into<PathBuf>) -> Self {
        self.roots = Some(file.into());
        self
    }

    /// Reads a document. A redirect is followed within its origin.
    ///
    /// # Errors
    ///
    /// When the URL may not be fetched, or nothing whole comes back. A status is no error.
    pub async fn get(&self, url: &str, headers: HeaderMap) -> Result<FetchResponse, FetchError> {
        let mut address = self.address(url)?;
        for _ in 0..=REDIRECTS {
            let fetched = self.send(&address, Method::GET, headers.clone(), Bytes::new()).await?;
            if !fetched.status.is_redirection() {
                return Ok(fetched);
            }
            let location = fetched.headers.get(header::LOCATION).and_then(|it| it.to_str().ok());
            let failed =
                |to: &str| FetchError::new(&address, FetchErrorKind::Redirected(to.to_owned()));
            let location = location.ok_or_else(|| failed("nowhere"))?;
            // No query: it may hold what is nobody's business.
            let shown = location.split(['?', '#']).next().unwrap_or_default();
            address = address.resolve(location).map_err(|_| failed(shown))?;
        }
        Err(FetchError::new(
            &address,
            FetchErrorKind::Redirected("one place after the other".to_owned()),
        ))
    }

    /// Sends a form. Redirects are not followed: a form has secrets.
    ///
    /// # Errors
    ///
    /// When the URL may not be fetched, or nothing whole comes back. A status is no error.
    pub async fn post_form<'a>(
        &self,
        url: &str,
        mut headers: HeaderMap,
        fields: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<FetchResponse, FetchError> {
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, form);
        let body = Bytes::from(form::encode(fields));
        self.send(&self.address(url)?, Method::POST, headers, body).await
    }

    /// Sends JSON. Redirects are not followed.
    ///
    /// # Errors
    ///
    /// When the URL may not be fetched, or nothing whole comes back. A status is no error.
    pub async fn post_json(
        &self,
        url: &str,
        mut headers: HeaderMap,
        body: &impl Serialize,
    ) -> Result<FetchResponse, FetchError> {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let address = self.address(url)?;
        let body = serde_json::to_vec(body)
            .map_err(|error| FetchError::new(&address, FetchErrorKind::Json(error.to_string())))?;
        self.send(&address, Method::POST, headers, Bytes::from(body)).await
    }

    /// Judges a URL without fetching it.
    ///
    /// # Errors
    ///
    /// When it is none that may be fetched.
    pub fn check(&self, url: &str) -> Result<(), FetchError> {
        self.address(url).map(drop)
    }

    fn address(&self, url: &str) -> Result<Address, FetchError> {
        let address = Address::parse(url).map_err(FetchError::unreadable)?;
        match address.is_tls() || self.plain_http || is_loopback_host(address.host()) {
            true => Ok(address),
            false => Err(FetchError::new(&address, FetchErrorKind::Insecure)),
        }
    }

    async fn send(
        &self,
        address: &Address,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<FetchResponse, FetchError> {
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        let failed = |kind| FetchError::new(address, kind);
        let link = self.link(address)?;
        let fetching = async {
            let mut reply = link.send(method, headers, body).await?;
            let (status, headers) = (reply.status, std::mem::take(&mut reply.headers));
            Ok(FetchResponse {
                url: format!("{address:?}"),
                status,
                headers,
                body: reply.bytes().await?,
            })
        };
        match tokio::time::timeout(self.timeout, Box::pin(fetching)).await {
            Ok(fetched) => fetched.map_err(|error| failed(FetchErrorKind::Transport(error))),
            Err(_) => Err(failed(FetchErrorKind::TimedOut(self.timeout))),
        }
    }

    /// The connections to an origin.
    fn link(&self, address: &Address) -> Result<HttpLink, FetchError> {
        let origin = address.origin();
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = links.get(&origin) {
            return Ok(link.at(address.clone()));
        }
        let mut options = HttpOptions::default();
        options.connect_timeout = self.timeout;
        options.message_bytes = self.bytes;
        options.idle_connections = 2;
        options.roots = self.roots.clone();
        options.admits = self.admits(address);
        let link = HttpLink::new(&address.url(), options)
            .map_err(|error| FetchError::new(address, FetchErrorKind::Transport(error)))?;
        if links.len() >= ORIGINS {
            links.clear();
        }
        links.insert(origin, link.clone());
        Ok(link)
    }

    fn admits(&self, address: &Address) -> Option<fn(IpAddr) -> bool> {
        // Without TLS only what a name says keeps it on this machine, so the name is held to it.
        if !address.is_tls() && !self.plain_http {
            return Some(is_loopback);
        }
        self.network_policy.admits()
    }
}

/// Returns whether the name of a host is that of this machine.
pub fn is_loopback_host(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
        || host.parse().is_ok_and(is_loopback)
}

/// What came back.
#[non_exhaustive]
pub struct FetchResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// All of it.
    pub body: Bytes,
    url: String,
}

impl fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The body may hold tokens.
        f.debug_struct("FetchResponse")
            .field("url", &self.url)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl FetchResponse {
    /// Its status, as the error that it may be.
    pub fn refusal(&self) -> FetchError {
        FetchError::at(&self.url, FetchErrorKind::Status(self.status.as_u16()))
    }

    /// The body of a success, as JSON.
    ///
    /// # Errors
    ///
    /// When the status is no success, or the body not what it should be.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, FetchError> {
        if !self.status.is_success() {
            return Err(self.refusal());
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            // serde's own text may quote the body.
            let why = format!("line {}, column {}", error.line(), error.column());
            FetchError::at(&self.url, FetchErrorKind::Json(why))
        })
    }
}
