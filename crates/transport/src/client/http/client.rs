//! HTTP client with pooled connections.
//!
//! The client never follows a redirect. Its errors say whether the server may have received the
//! request.

use std::{error::Error, fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};

use super::{address::Address, connector::Connector, reply::HttpReply, request_body::RequestBody};
use crate::client::{
    error::{TransportError, TransportErrorKind},
    http_options::HttpOptions,
};

/// Time after which the client closes an idle connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// An HTTP/1.1 client. Clones share their connections.
///
/// The environment variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` select
/// proxies, as for curl. Requests to loopback addresses never use a proxy.
#[derive(Clone)]
pub struct HttpClient {
    client: Client<Connector, RequestBody>,
    connector: Connector,
    message_bytes: usize,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("connector", &self.connector).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// Creates a client. The first request opens the first connection. `tls` enables `https:`.
    ///
    /// # Errors
    ///
    /// Returns an error if the certificates to trust cannot be read, or if the feature `tls` is
    /// missing.
    pub fn new(options: &HttpOptions, tls: bool) -> Result<Self, TransportError> {
        Ok(Self::with_connector(Connector::new(options, tls)?, options))
    }

    pub(super) fn with_connector(connector: Connector, options: &HttpOptions) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(options.idle_connections)
            .build(connector.clone());
        Self { client, connector, message_bytes: options.message_bytes }
    }

    /// Sends a request and waits for the head of the response.
    ///
    /// # Errors
    ///
    /// Returns an error if no response arrives. An HTTP error status is not an error.
    pub async fn send(
        &self,
        address: &Address,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpReply, TransportError> {
        let mut request = Request::new(RequestBody::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = address.uri().clone();
        *request.headers_mut() = headers;
        request.headers_mut().insert(header::HOST, address.host_header());
        if let Some(value) = self.connector.forward_authorization(address.uri()) {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, value);
        }
        match self.client.request(request).await {
            Ok(response) => Ok(HttpReply::new(response, self.message_bytes)),
            Err(error) => Err(send_error(&error)),
        }
    }
}

fn send_error(error: &legacy::Error) -> TransportError {
    let source = error.source();
    if let Some(failed) = source.and_then(|source| source.downcast_ref::<TransportError>()) {
        return failed.again();
    }
    // hyper cancels a request if it wrote no byte of it.
    let hyper = source.and_then(|source| source.downcast_ref::<hyper::Error>());
    let text = source.map_or_else(|| error.to_string(), ToString::to_string);
    let failed = match hyper.is_some_and(hyper::Error::is_canceled) || error.is_connect() {
        true => TransportError::unsent(TransportErrorKind::Closed),
        false => TransportError::after_sending(TransportErrorKind::Closed),
    };
    failed.because(text)
}
