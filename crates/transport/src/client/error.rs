//! Errors of the transport between a client and a server.

use std::{error::Error, fmt, io, net::IpAddr};

use super::TokenError;

/// Failure to send a message or to receive its response.
#[derive(Debug)]
pub struct TransportError {
    kind: TransportErrorKind,
    /// Whether the server may have received the request.
    sent: bool,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// Kind of a transport error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// The URL cannot be used. The text says what to change.
    Address(String),
    /// No server accepts connections at the address.
    Connect,
    /// The network policy does not allow the IP address of the host.
    BlockedAddress(IpAddr),
    /// The server's certificate is not trusted, or the TLS handshake failed.
    Tls,
    /// The connection is closed, or the server process exited.
    Closed,
    /// A stream ended before the response.
    ConnectionLost,
    /// A message exceeds the limit, which is given in bytes.
    TooLarge(usize),
    /// The server sent malformed HTTP or malformed events.
    Malformed(String),
    /// An HTTP status without a JSON-RPC response.
    Status(u16),
    /// The server process could not be started.
    Start,
    /// No access token is available. The server rejected any request that was sent before.
    Token(TokenError),
}

impl TransportError {
    /// Creates an error for a request that did not reach the server.
    pub fn unsent(kind: TransportErrorKind) -> Self {
        Self { kind, sent: false, source: None }
    }

    /// Creates an error for a request that the server may have executed.
    pub fn after_sending(kind: TransportErrorKind) -> Self {
        Self { kind, sent: true, source: None }
    }

    /// Adds the source of the error.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns an equal error for another caller, with its source as text.
    #[must_use]
    pub fn again(&self) -> Self {
        let source = self.source.as_ref().map(|source| source.to_string().into());
        Self { kind: self.kind.clone(), sent: self.sent, source }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> &TransportErrorKind {
        &self.kind
    }

    /// Returns whether the server may have received and executed the request.
    pub fn may_have_been_sent(&self) -> bool {
        self.sent
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            TransportErrorKind::Address(why) => f.write_str(why),
            TransportErrorKind::Connect => f.write_str(
                "could not connect; check that the server runs and the address is right",
            ),
            TransportErrorKind::BlockedAddress(ip) => {
                write!(f, "the network policy does not allow the host's address {ip}")
            }
            TransportErrorKind::Tls => f.write_str(
                "TLS failed; check the server's certificate, or set the root certificates to trust",
            ),
            TransportErrorKind::Closed => f.write_str("the connection to the server is closed"),
            TransportErrorKind::ConnectionLost => {
                f.write_str("the stream ended before the response arrived")
            }
            TransportErrorKind::TooLarge(limit) => write!(
                f,
                "the server sent a message of more than {limit} bytes; raise `message_bytes` to accept it"
            ),
            TransportErrorKind::Malformed(what) => write!(f, "the response is malformed: {what}"),
            TransportErrorKind::Status(status) => write!(f, "the server returned HTTP {status}"),
            TransportErrorKind::Token(error) => error.fmt(f),
            TransportErrorKind::Start => {
                f.write_str("the program could not be started; check its path and permissions")
            }
        }?;
        match &self.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<TransportError> for io::Error {
    fn from(error: TransportError) -> Self {
        io::Error::other(error)
    }
}
