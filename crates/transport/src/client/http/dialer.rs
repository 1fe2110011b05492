//! Connects to a server, directly or through a proxy from the environment.
//!
//! Under a network policy, this module resolves and checks the address of a tunnel itself, so that
//! the proxy cannot resolve the name to another address.

use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderValue, Uri, uri::Scheme};
use hyper_util::client::{
    legacy::connect::{
        HttpConnector,
        proxy::{SocksV5, Tunnel},
    },
    proxy::matcher::{Intercept, Matcher},
};
use tower_service::Service;

use super::{resolver::PolicyResolver, stream::Stream};
use crate::client::{
    error::{TransportError, TransportErrorKind},
    http_options::HttpOptions,
    network_policy::{NetworkPolicy, is_loopback_host},
};

/// Proxies of the client.
#[derive(Clone, Debug)]
pub(super) struct Proxies(Arc<Matcher>);

impl Proxies {
    /// Reads the proxies from the environment variables.
    pub(super) fn from_env() -> Self {
        Self(Arc::new(Matcher::from_env()))
    }

    #[cfg(test)]
    pub(super) fn all(proxy: &str) -> Self {
        Self(Arc::new(Matcher::builder().all(proxy.to_owned()).build()))
    }

    /// Returns the proxy for a request, or `None` if the host is a loopback address.
    fn find(&self, uri: &Uri) -> Option<Intercept> {
        uri.host().filter(|host| !is_loopback_host(host)).and_then(|_| self.0.intercept(uri))
    }
}

/// Opens TCP connections to servers and proxies.
#[derive(Clone)]
pub(super) struct Dialer {
    direct: HttpConnector<PolicyResolver>,
    /// Connector to the proxy. It has no network policy, because the operator chose the proxy.
    to_proxy: HttpConnector<PolicyResolver>,
    resolver: PolicyResolver,
    proxies: Proxies,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("network_policy", &self.resolver.0)
            .field("proxies", &self.proxies)
            .finish_non_exhaustive()
    }
}

impl Dialer {
    pub(super) fn new(options: &HttpOptions, proxies: Proxies) -> Self {
        let connector = |policy| {
            let mut connector = HttpConnector::new_with_resolver(PolicyResolver(policy));
            connector.enforce_http(false);
            // Messages are small, and a caller waits for each of them.
            connector.set_nodelay(true);
            connector
        };
        Self {
            direct: connector(options.network_policy),
            to_proxy: connector(NetworkPolicy::Anywhere),
            resolver: PolicyResolver(options.network_policy),
            proxies,
        }
    }

    /// Returns the `Proxy-Authorization` header of a request that a proxy forwards.
    pub(super) fn forward_authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        if !self.is_forwarded(uri) {
            return None;
        }
        self.proxies.find(uri)?.basic_auth().cloned()
    }

    /// Returns whether a proxy forwards requests to `uri` instead of opening a tunnel.
    fn is_forwarded(&self, uri: &Uri) -> bool {
        uri.scheme() == Some(&Scheme::HTTP) && self.resolver.0 == NetworkPolicy::Anywhere
    }

    pub(super) async fn connect(mut self, uri: Uri) -> Result<Stream, TransportError> {
        let host = uri.host().unwrap_or_default();
        self.resolver.check_literal(host)?;
        let Some(proxy) = self.proxies.find(&uri) else {
            let connected = self.direct.call(uri).await;
            return connected.map(Stream::direct).map_err(|error| connect_error(&error));
        };
        let address = proxy.uri().clone();
        match proxy.uri().scheme_str() {
            Some("http") if self.is_forwarded(&uri) => {
                let connected = self.to_proxy.call(address).await;
                connected.map(Stream::forwarded).map_err(|error| connect_error(&error))
            }
            Some("http") => {
                let target = self.target(&uri).await?;
                let mut tunnel = Tunnel::new(address, self.to_proxy);
                if let Some(value) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(value.clone());
                }
                let connected = tunnel.call(target).await;
                connected.map(Stream::direct).map_err(|error| connect_error(&error))
            }
            Some("socks5" | "socks5h") => {
                let target = self.target(&uri).await?;
                let mut socks = SocksV5::new(address, self.to_proxy);
                if let Some((user, password)) = proxy.raw_auth() {
                    socks = socks.with_auth(user.to_owned(), password.to_owned());
                }
                let connected = socks.call(target).await;
                connected.map(Stream::direct).map_err(|error| connect_error(&error))
            }
            other => Err(TransportError::unsent(TransportErrorKind::Address(format!(
                "a proxy with the scheme `{}` is not supported; use one with `http:` or `socks5:`",
                other.unwrap_or_default()
            )))),
        }
    }

    /// Returns host and port of the tunnel's target. Under a network policy, the host is a checked
    /// IP address.
    async fn target(&self, uri: &Uri) -> Result<Uri, TransportError> {
        let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let host = uri.host().unwrap_or_default();
        let authority = match self.resolver.0 {
            NetworkPolicy::Anywhere => format!("{host}:{port}"),
            _ => {
                let found = self.resolver.resolve(host.trim_matches(['[', ']']), port).await?;
                found.first().map(ToString::to_string).unwrap_or_default()
            }
        };
        let target = Uri::builder().scheme(Scheme::HTTPS).authority(authority).path_and_query("/");
        target
            .build()
            .map_err(|error| TransportError::unsent(TransportErrorKind::Connect).because(error))
    }
}

impl Service<Uri> for Dialer {
    type Response = Stream;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, TransportError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// Converts an error of a connector. Finds the error for a blocked address among its causes.
fn connect_error(error: &(dyn Error + 'static)) -> TransportError {
    let mut cause = Some(error);
    let mut text = error.to_string();
    while let Some(error) = cause {
        if let Some(failed) = error.downcast_ref::<TransportError>() {
            return failed.again();
        }
        text = error.to_string();
        cause = error.source();
    }
    TransportError::unsent(TransportErrorKind::Connect).because(text)
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
        net::TcpListener,
    };

    use super::{Dialer, Proxies};
    use crate::client::{NetworkPolicy, TransportError, TransportErrorKind, http::HttpOptions};

    fn dialer(policy: NetworkPolicy, proxy: &str) -> Dialer {
        let options = HttpOptions { network_policy: policy, ..HttpOptions::default() };
        Dialer::new(&options, Proxies::all(proxy))
    }

    /// Connects through a proxy and returns the first line that the proxy receives.
    async fn proxy_request_line(
        policy: NetworkPolicy,
        url: &str,
    ) -> Result<String, TransportError> {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", proxy.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let (stream, _) = proxy.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut first = String::new();
            stream.read_line(&mut first).await.unwrap();
            stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            first
        });
        dialer(policy, &address).connect(url.parse().unwrap()).await?;
        Ok(serving.await.unwrap())
    }

    #[tokio::test]
    async fn proxy_for_https_gets_a_connect_request_with_the_host_name() {
        let first =
            proxy_request_line(NetworkPolicy::Anywhere, "https://example.invalid/x").await.unwrap();
        assert_eq!(first.trim_end(), "CONNECT example.invalid:443 HTTP/1.1");
    }

    #[tokio::test]
    async fn proxy_under_a_policy_gets_the_address_that_was_checked() {
        let first = proxy_request_line(NetworkPolicy::Public, "https://8.8.8.8/x").await.unwrap();
        assert_eq!(first.trim_end(), "CONNECT 8.8.8.8:443 HTTP/1.1");
    }

    #[tokio::test]
    async fn blocked_address_is_not_sent_to_the_proxy() {
        for (policy, url) in [
            (NetworkPolicy::Public, "https://10.0.0.1/"),
            (NetworkPolicy::Local, "https://169.254.169.254/"),
            (NetworkPolicy::Loopback, "http://8.8.8.8/"),
        ] {
            // Port 9 is closed: a connection attempt to the proxy would fail with another error.
            let blocked = dialer(policy, "http://127.0.0.1:9").connect(url.parse().unwrap()).await;
            let blocked = blocked.err().unwrap();
            let kind = blocked.kind();
            assert!(matches!(kind, TransportErrorKind::BlockedAddress(_)), "{url}: {blocked}");
        }
    }

    #[tokio::test]
    async fn request_to_loopback_host_bypasses_the_proxy() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://localhost:{}/", server.local_addr().unwrap().port());
        let dialer = dialer(NetworkPolicy::Local, "http://proxy.invalid:1");
        let (connected, accepted) =
            tokio::join!(dialer.connect(url.parse().unwrap()), server.accept());
        assert!(connected.is_ok() && accepted.is_ok());
    }

    #[tokio::test]
    async fn name_that_resolves_to_a_blocked_address_is_not_connected_to() {
        let dialer = dialer(NetworkPolicy::Public, "");
        let blocked = dialer.connect("https://localhost/".parse().unwrap()).await.err().unwrap();
        assert!(
            matches!(blocked.kind(), TransportErrorKind::BlockedAddress(ip) if ip.is_loopback())
        );
    }
}
