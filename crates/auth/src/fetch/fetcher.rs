//! Fetches documents and tokens within bounds.

use std::{fmt, path::PathBuf, sync::OnceLock, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use outlive_transport::client::{
    NetworkPolicy,
    http::{Address, HttpClient, HttpOptions},
    is_loopback_host,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    error::{FetchError, FetchErrorKind},
    form,
};

/// How often a document may be somewhere else of the same origin.
const REDIRECTS: usize = 3;

/// Fetches, within bounds.
pub struct Fetcher {
    options: HttpOptions,
    plain_http: bool,
    /// The client for `https:`, and the one for `http:`.
    clients: [OnceLock<HttpClient>; 2],
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher")
            .field("network_policy", &self.options.network_policy)
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
        let mut options = HttpOptions::default();
        options.connect_timeout = Duration::from_secs(10);
        options.message_bytes = 256 << 10;
        options.idle_connections = 2;
        options.network_policy = NetworkPolicy::Public;
        Self { options, plain_http: false, clients: Default::default() }
    }

    /// Sets the addresses that may be connected to.
    #[must_use]
    pub fn network_policy(self, policy: NetworkPolicy) -> Self {
        self.with(|options| options.network_policy = policy)
    }

    /// Whether `http:` to other machines is allowed; off by default. Anyone on the path can read the
    /// tokens, so use it only on a network you trust.
    #[must_use]
    pub fn allow_http(mut self, allowed: bool) -> Self {
        self.plain_http = allowed;
        self.with(|_| {})
    }

    /// How long one fetch may take, connecting included.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|options| options.connect_timeout = timeout)
    }

    /// Sets the maximum bytes of a response.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Self {
        self.with(|options| options.message_bytes = bytes)
    }

    /// A PEM file of the certificates to trust, in place of the platform's.
    #[must_use]
    pub fn ca_file(self, file: impl Into<PathBuf>) -> Self {
        self.with(|options| options.ca_file = Some(file.into()))
    }

    /// Changes the options; clients that have the old ones are dropped.
    fn with(mut self, change: impl FnOnce(&mut HttpOptions)) -> Self {
        change(&mut self.options);
        self.clients = Default::default();
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
        let (client, timeout) = (self.client(address)?, self.options.connect_timeout);
        let fetching = async {
            let mut reply = client.send(address, method, headers, body).await?;
            let (status, headers) = (reply.status, std::mem::take(&mut reply.headers));
            Ok(FetchResponse {
                url: format!("{address:?}"),
                status,
                headers,
                body: reply.bytes().await?,
            })
        };
        match tokio::time::timeout(timeout, Box::pin(fetching)).await {
            Ok(fetched) => fetched.map_err(|error| failed(FetchErrorKind::Transport(error))),
            Err(_) => Err(failed(FetchErrorKind::TimedOut(timeout))),
        }
    }

    /// The client for an address.
    fn client(&self, address: &Address) -> Result<&HttpClient, FetchError> {
        let client = &self.clients[usize::from(!address.is_tls())];
        if let Some(client) = client.get() {
            return Ok(client);
        }
        let mut options = self.options.clone();
        if !address.is_tls() && !self.plain_http {
            // Without TLS only its name keeps a request on this machine, so the address is checked.
            options.network_policy = NetworkPolicy::Loopback;
        }
        let made = HttpClient::new(&options, address.is_tls())
            .map_err(|error| FetchError::new(address, FetchErrorKind::Transport(error)))?;
        Ok(client.get_or_init(|| made))
    }
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
