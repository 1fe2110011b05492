//! HTTP/1.1 to one server: requests on connections that are used again, answers as bodies or events.
//!
//! hyper's connections with a pool of our own, because a client of this protocol talks to one
//! origin, never follows a redirect, and wants to know whether a request has left.

mod address;
mod http_sse;
mod pool;
mod reply;
mod request_body;

pub use address::Address;
pub use http_sse::HttpSse;
pub use reply::HttpReply;

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};

use super::{TokenRequest, TokenResponse, Tokens, TransportError, TransportErrorKind};
use pool::Pool;
use request_body::RequestBody;

/// How often a request is sent, whatever the source of tokens says: a nonce, a new token, and scopes
/// that are asked for one after the other.
const ATTEMPTS: u32 = 8;

/// How connections are made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpOptions {
    /// How long connecting may take, TLS included.
    pub connect_timeout: Duration,
    /// Bytes of one message, in a body or in an event.
    pub message_bytes: usize,
    /// Connections without a request that are kept for the next one.
    pub idle_connections: usize,
    /// PEM file of the certificates to trust for `https:`; the system's otherwise.
    pub roots: Option<std::path::PathBuf>,
    /// Which addresses may be connected to, asked of each that the host's name stands for; any if
    /// there is none. For URLs that others have chosen.
    pub admits: Option<fn(IpAddr) -> bool>,
    /// Where the tokens of requests come from; they go without if there is none.
    pub tokens: Option<Tokens>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            message_bytes: 16 << 20,
            idle_connections: 32,
            roots: None,
            admits: None,
            tokens: None,
        }
    }
}

/// A way to one server over HTTP. Clones share their connections.
#[derive(Clone)]
pub struct HttpLink {
    address: Address,
    /// The path and the `Host` of every request.
    path: Uri,
    host: HeaderValue,
    pool: Arc<Pool>,
    options: HttpOptions,
}

impl fmt::Debug for HttpLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpLink").field("address", &self.address).finish_non_exhaustive()
    }
}

impl HttpLink {
    /// Prepares the way; nothing is connected yet.
    ///
    /// # Errors
    ///
    /// When the address cannot be used, or the certificates to trust cannot be read.
    pub fn new(url: &str, options: HttpOptions) -> Result<Self, TransportError> {
        let address = Address::parse(url)?;
        let pool = Arc::new(Pool::new(&address, &options)?);
        Ok(Self::over(pool, address, options))
    }

    /// The same connections, with another path of the same origin.
    #[must_use]
    pub fn at(&self, address: Address) -> Self {
        Self::over(Arc::clone(&self.pool), address, self.options.clone())
    }

    fn over(pool: Arc<Pool>, address: Address, options: HttpOptions) -> Self {
        let (path, host) = (address.path(), address.host_header());
        Self { address, path, host, pool, options }
    }

    /// Where it leads.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a message. The answer may be a body or a stream of events.
    ///
    /// # Errors
    ///
    /// When there is no answer at all.
    pub async fn post(
        &self,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpReply, TransportError> {
        as_message(&mut headers);
        self.send(Method::POST, headers, body).await
    }

    /// The same for a message that is written anew if it has to be sent again with another token: a
    /// request does not have the id of one before it.
    ///
    /// # Errors
    ///
    /// When there is no answer at all.
    pub async fn post_anew(
        &self,
        mut headers: HeaderMap,
        mut write: impl FnMut() -> Bytes + Send,
    ) -> Result<HttpReply, TransportError> {
        as_message(&mut headers);
        match &self.options.tokens {
            None => self.send_once(Method::POST, headers, write()).await,
            Some(tokens) => {
                Box::pin(self.send_with(tokens, Method::POST, headers, &mut write)).await
            }
        }
    }

    /// Opens a stream of events.
    ///
    /// # Errors
    ///
    /// When there is no answer at all.
    pub async fn get(&self, mut headers: HeaderMap) -> Result<HttpReply, TransportError> {
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        self.send(Method::GET, headers, Bytes::new()).await
    }

    /// Ends what the headers name.
    ///
    /// # Errors
    ///
    /// When there is no answer at all.
    pub async fn delete(&self, headers: HeaderMap) -> Result<HttpReply, TransportError> {
        self.send(Method::DELETE, headers, Bytes::new()).await
    }

    /// Sends a request with the given headers, and a token if there is a source of them. With
    /// another one if the source has it sent again.
    ///
    /// # Errors
    ///
    /// When there is no answer at all, or no token.
    pub async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpReply, TransportError> {
        match &self.options.tokens {
            None => self.send_once(method, headers, body).await,
            // In a box, so that requests without tokens have no room for getting them.
            Some(tokens) => {
                Box::pin(self.send_with(tokens, method, headers, &mut || body.clone())).await
            }
        }
    }

    async fn send_with(
        &self,
        tokens: &Tokens,
        method: Method,
        headers: HeaderMap,
        write: &mut (dyn FnMut() -> Bytes + Send),
    ) -> Result<HttpReply, TransportError> {
        let refused = |error| TransportError::unsent(TransportErrorKind::Token(error));
        let url = self.address.url();
        let request = TokenRequest::new(&method, &url);
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut headers = headers.clone();
            let token = tokens.authorize(&request, &mut headers).await.map_err(refused)?;
            let mut reply = self.send_once(method.clone(), headers, write()).await?;
            let (status, token) = (reply.status, token.as_ref());
            let answer = TokenResponse { request, token, attempt, status, headers: &reply.headers };
            match tokens.answered(&answer).await {
                Ok(true) if attempt < ATTEMPTS => drop(reply.bytes().await),
                Ok(_) => return Ok(reply),
                // Who was let in is not turned away because of what comes next.
                Err(_) if status.is_success() => return Ok(reply),
                Err(error) => return Err(refused(error)),
            }
        }
    }

    async fn send_once(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpReply, TransportError> {
        let mut request = Request::new(RequestBody::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = headers;
        request.headers_mut().insert(header::HOST, self.host.clone());
        let mut request = request;
        loop {
            let (mut connection, is_new) = self.pool.take().await?;
            match connection.try_send_request(request).await {
                Ok(response) => {
                    return Ok(HttpReply::new(
                        response,
                        connection,
                        Arc::clone(&self.pool),
                        self.options.message_bytes,
                    ));
                }
                Err(mut error) => match error.take_message() {
                    // A connection that the server closed while it was idle: the request is still
                    // here, so it has not left.
                    Some(unsent) if !is_new => request = unsent,
                    unsent => {
                        let kind = TransportErrorKind::Closed;
                        let failed = match unsent {
                            Some(_) => TransportError::unsent(kind),
                            None => TransportError::after_sending(kind),
                        };
                        return Err(failed.because(error.into_error()));
                    }
                },
            }
        }
    }
}

/// The headers of a message, which may be answered with one or with events.
fn as_message(headers: &mut HeaderMap) {
    let either = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, either);
}
