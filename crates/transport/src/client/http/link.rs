//! A way to one MCP server over HTTP: messages, streams of events, and their tokens.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};

use super::{address::Address, client::HttpClient, reply::HttpReply};
use crate::client::{
    error::{TransportError, TransportErrorKind},
    http_options::HttpOptions,
    token::{TokenRequest, TokenResponse, Tokens},
};

/// How often a request is sent, whatever the source of tokens says: a nonce, a new token, and scopes
/// that are asked for one after the other.
const ATTEMPTS: u32 = 8;

/// A way to one server over HTTP. Clones share their connections.
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
    /// Prepares the way; nothing is connected yet.
    ///
    /// # Errors
    ///
    /// When the address cannot be used, or the certificates to trust cannot be read.
    pub fn new(url: &str, options: HttpOptions) -> Result<Self, TransportError> {
        let address = Address::parse(url)?;
        let client = HttpClient::new(&options, address.is_tls())?;
        Ok(Self { address, client, tokens: options.tokens })
    }

    /// The same connections, with another path of the same origin.
    #[must_use]
    pub fn with_address(&self, address: Address) -> Self {
        Self { address, client: self.client.clone(), tokens: self.tokens.clone() }
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
        match &self.tokens {
            None => self.client.send(&self.address, Method::POST, headers, write()).await,
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
        match &self.tokens {
            None => self.client.send(&self.address, method, headers, body).await,
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
            let mut reply =
                self.client.send(&self.address, method.clone(), headers, write()).await?;
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
}

/// The headers of a message, which may be answered with one or with events.
fn as_message(headers: &mut HeaderMap) {
    let either = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, either);
}
