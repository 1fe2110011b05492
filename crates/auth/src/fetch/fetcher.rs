//! Fetches documents and tokens with limits.

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

/// Maximum number of redirects within an origin.
const REDIRECTS: usize = 3;

/// HTTP fetcher with limits on addresses, size and time.
pub struct Fetcher {
    options: HttpOptions,
    plain_http: bool,
    /// Clients for `https:` and for `http:`.
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
    /// Creates a fetcher for public addresses over TLS, with a limit of 256 KiB and ten seconds.
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

    /// Sets whether `http:` to other machines is allowed. Disabled by default, because tokens can
    /// be intercepted. Use it only on a trusted network.
    #[must_use]
    pub fn allow_http(mut self, allowed: bool) -> Self {
        self.plain_http = allowed;
        self.with(|_| {})
    }

    /// Sets the timeout of a fetch, including the connection.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|options| options.connect_timeout = timeout)
    }

    /// Sets the maximum bytes of a response.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Self {
        self.with(|options| options.message_bytes = bytes)
    }

    /// Sets a PEM file of root certificates, which replaces those of the platform.
    #[must_use]
    pub fn ca_file(self, file: impl Into<PathBuf>) -> Self {
        self.with(|options| options.ca_file = Some(file.into()))
    }

    /// Changes the options. Drops clients with the old options.
    fn with(mut self, change: impl FnOnce(&mut HttpOptions)) -> Self {
        change(&mut self.options);
        self.clients = Default::default();
        self
    }

    /// Fetches a document. Follows redirects within the origin.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not allowed, or if no complete response arrives. An HTTP
    /// error status is not an error.
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
            let location = location.ok_or_else(|| failed("no location"))?;
            // The query may contain a secret, so it is not shown.
            let shown = location.split(['?', '#']).next().unwrap_or_default();
            address = address.resolve(location).map_err(|_| failed(shown))?;
        }
        Err(FetchError::new(&address, FetchErrorKind::Redirected("too many locations".to_owned())))
    }

    /// Sends a form. Does not follow redirects, because a form contains secrets.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not allowed, or if no complete response arrives. An HTTP
    /// error status is not an error.
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

    /// Sends JSON. Does not follow redirects.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not allowed, or if no complete response arrives. An HTTP
    /// error status is not an error.
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

    /// Checks a URL without fetching it.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not allowed.
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

    /// Returns the client for an address.
    fn client(&self, address: &Address) -> Result<&HttpClient, FetchError> {
        let client = &self.clients[usize::from(!address.is_tls())];
        if let Some(client) = client.get() {
            return Ok(client);
        }
        let mut options = self.options.clone();
        if !address.is_tls() && !self.plain_http {
            // Without TLS, only the host name restricts a request to loopback, so the resolved
            // address is checked.
            options.network_policy = NetworkPolicy::Loopback;
        }
        let made = HttpClient::new(&options, address.is_tls())
            .map_err(|error| FetchError::new(address, FetchErrorKind::Transport(error)))?;
        Ok(client.get_or_init(|| made))
    }
}

/// Response to a fetch.
#[non_exhaustive]
pub struct FetchResponse {
    /// HTTP status.
    pub status: StatusCode,
    /// Response headers.
    pub headers: HeaderMap,
    /// Whole body.
    pub body: Bytes,
    url: String,
}

impl fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The body may contain tokens.
        f.debug_struct("FetchResponse")
            .field("url", &self.url)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl FetchResponse {
    /// Returns an error with the status of the response.
    pub fn status_error(&self) -> FetchError {
        FetchError::at(&self.url, FetchErrorKind::Status(self.status.as_u16()))
    }

    /// Parses the body of a successful response as JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the status is not a success, or if the body is not the expected JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, FetchError> {
        if !self.status.is_success() {
            return Err(self.status_error());
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            // The error text of serde may quote the body.
            let why = format!("line {}, column {}", error.line(), error.column());
            FetchError::at(&self.url, FetchErrorKind::Json(why))
        })
    }
}
