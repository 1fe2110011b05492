//! Link to one MCP server over HTTP: sends messages, opens event streams and attaches access
//! tokens.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};

use super::{address::Address, client::HttpClient, reply::HttpReply};
use crate::client::{
    error::{TransportError, TransportErrorKind},
    http_options::HttpOptions,
    token::{TokenRequest, TokenResponse, Tokens},
};

/// Maximum number of attempts per request. A request may need a nonce, a new token, and one more
/// attempt for each scope that the server requires.
const ATTEMPTS: u32 = 8;

/// A link to one server over HTTP. Clones share their connections.
#[derive(Clone)]
pub struct HttpLink {
    address: Address,
    client: HttpClient,
    tokens: Option<Tokens>,
}

impl fmt::Debug for HttpLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpLink").field("address", &self.address).finish_non_exhaustive()
    }
}

impl HttpLink {
    /// Creates a link without connecting.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL cannot be used, or if the certificates to trust cannot be read.
    pub fn new(url: &str, options: HttpOptions) -> Result<Self, TransportError> {
        let address = Address::parse(url)?;
        let client = HttpClient::new(&options, address.is_tls())?;
        Ok(Self { address, client, tokens: options.tokens })
    }

    /// Returns a link to another path on the same origin. Both links share their connections.
    #[must_use]
    pub fn with_address(&self, address: Address) -> Self {
        Self { address, client: self.client.clone(), tokens: self.tokens.clone() }
    }

    /// Returns the address of the server.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a message. The response is a JSON body or an event stream.
    ///
    /// # Errors
    ///
    /// Returns an error if no response arrives.
    pub async fn post(
        &self,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpReply, TransportError> {
        as_message(&mut headers);
        self.send(Method::POST, headers, body).await
    }

    /// Sends a message, and calls `write` again for each further attempt with another token,
    /// because each attempt needs a new request ID.
    ///
    /// # Errors
    ///
    /// Returns an error if no response arrives.
    pub async fn post_anew(
        &self,
        mut headers: HeaderMap,
        mut write: impl FnMut() -> Bytes + Send,
    ) -> Result<HttpReply, TransportError> {
        as_message(&mut headers);
        match &self.tokens {
            None => self.client.send(&self.address, Method::POST, headers, write()).await,
            Some(tokens) => {
                Box::pin(self.send_with(tokens, Method::POST, headers, &mut write)).await
            }
        }
    }

    /// Opens an event stream.
    ///
    /// # Errors
    ///
    /// Returns an error if no response arrives.
    pub async fn get(&self, mut headers: HeaderMap) -> Result<HttpReply, TransportError> {
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        self.send(Method::GET, headers, Bytes::new()).await
    }

    /// Ends the session that the headers identify.
    ///
    /// # Errors
    ///
    /// Returns an error if no response arrives.
    pub async fn delete(&self, headers: HeaderMap) -> Result<HttpReply, TransportError> {
        self.send(Method::DELETE, headers, Bytes::new()).await
    }

    /// Sends a request with the given headers and, if the link has a token source, an access token.
    /// Retries with another token if the token source requests a retry.
    ///
    /// # Errors
    ///
    /// Returns an error if no response arrives, or if no token is available.
    pub async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpReply, TransportError> {
        match &self.tokens {
            None => self.client.send(&self.address, method, headers, body).await,
            // Boxed, so that requests without tokens do not pay for the size of this future.
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
            let mut reply =
                self.client.send(&self.address, method.clone(), headers, write()).await?;
            let (status, token) = (reply.status, token.as_ref());
            let answer = TokenResponse { request, token, attempt, status, headers: &reply.headers };
            match tokens.answered(&answer).await {
                Ok(true) if attempt < ATTEMPTS => drop(reply.bytes().await),
                Ok(_) => return Ok(reply),
                // The request succeeded; a failure to prepare the next token must not fail it.
                Err(_) if status.is_success() => return Ok(reply),
                Err(error) => return Err(refused(error)),
            }
        }
    }
}

/// Sets the headers of a message. The client accepts a JSON body or an event stream.
fn as_message(headers: &mut HeaderMap) {
    let either = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, either);
}
