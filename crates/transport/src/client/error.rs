//! What can go wrong between a client and the server it talks to, short of what either says.

use std::{error::Error, fmt, io, net::IpAddr};

use super::TokenError;

/// A message could not be brought over, or its answer not back.
#[derive(Debug)]
pub struct TransportError {
    kind: TransportErrorKind,
    /// Whether the server may have seen the request.
    sent: bool,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// The address is none that this transport can use; the text says what to change.
    Address(String),
    /// Nobody answers at the address.
    Connect,
    /// The network policy does not allow the address of the host.
    BlockedAddress(IpAddr),
    /// The server's certificate cannot be trusted, or TLS failed otherwise.
    Tls,
    /// The connection was closed, or the process ended.
    Closed,
    /// A stream ended before the answer.
    ConnectionLost,
    /// A message is larger than the limit of this many bytes.
    TooLarge(usize),
    /// What came is no HTTP, or no events.
    Malformed(String),
    /// An HTTP status that says nothing about the request.
    Status(u16),
    /// The program could not be started.
    Start,
    /// There is no token for it. Whatever was sent before was refused.
    Token(TokenError),
}

impl TransportError {
    /// An error of which nothing reached the server.
    pub fn unsent(kind: TransportErrorKind) -> Self {
        Self { kind, sent: false, source: None }
    }

    /// An error after which nobody knows whether the server did what was asked.
    pub fn after_sending(kind: TransportErrorKind) -> Self {
        Self { kind, sent: true, source: None }
    }

    /// Adds why.
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

    /// What happened.
    pub fn kind(&self) -> &TransportErrorKind {
        &self.kind
    }

    /// Whether the server may have seen the request, and done what it asks.
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
                write!(f, "the host is at {ip}, where requests may not go")
            }
            TransportErrorKind::Tls => f.write_str(
                "TLS failed; check the server's certificate, or name the roots to trust",
            ),
            TransportErrorKind::Closed => f.write_str("the connection to the server is closed"),
            TransportErrorKind::ConnectionLost => {
                f.write_str("the stream ended before the answer came")
            }
            TransportErrorKind::TooLarge(limit) => write!(
                f,
                "the server sent a message of more than {limit} bytes; raise `message_bytes` if it may"
            ),
            TransportErrorKind::Malformed(what) => write!(f, "what came back is malformed: {what}"),
            TransportErrorKind::Status(status) => write!(f, "the server answered HTTP {status}"),
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
