//! Errors of fetches.

use std::{error::Error, fmt, net::IpAddr, time::Duration};

use outlive_transport::client::{TransportError, TransportErrorKind, http::Address};

/// A failed fetch. Contains the URL without its query.
#[derive(Debug)]
pub struct FetchError {
    url: String,
    kind: FetchErrorKind,
}

/// Kind of a fetch error.
#[derive(Debug)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// The URL is invalid.
    Url(TransportError),
    /// The URL uses `http:` to another machine.
    Insecure,
    /// The response redirects to another origin, or too often.
    Redirected(String),
    /// The fetch exceeded this timeout.
    TimedOut(Duration),
    /// The transport failed; see also [`FetchError::refused_address`].
    Transport(TransportError),
    /// The HTTP status is not a success.
    Status(u16),
    /// The response is not the expected JSON.
    Json(String),
}

impl FetchError {
    pub(super) fn new(address: &Address, kind: FetchErrorKind) -> Self {
        // The debug format of an address omits the query.
        Self { url: format!("{address:?}"), kind }
    }

    pub(super) fn at(url: &str, kind: FetchErrorKind) -> Self {
        Self { url: url.to_owned(), kind }
    }

    pub(super) fn unreadable(error: TransportError) -> Self {
        Self { url: String::new(), kind: FetchErrorKind::Url(error) }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> &FetchErrorKind {
        &self.kind
    }

    /// Returns the IP address of the host, if the network policy blocked it.
    pub fn refused_address(&self) -> Option<IpAddr> {
        match &self.kind {
            FetchErrorKind::Transport(error) => match error.kind() {
                TransportErrorKind::BlockedAddress(ip) => Some(*ip),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns whether a later retry may succeed.
    pub fn is_transient(&self) -> bool {
        match &self.kind {
            FetchErrorKind::TimedOut(_) => true,
            FetchErrorKind::Status(status) => *status >= 500 || *status == 429,
            FetchErrorKind::Transport(error) => matches!(
                error.kind(),
                TransportErrorKind::Connect
                    | TransportErrorKind::Closed
                    | TransportErrorKind::ConnectionLost
            ),
            _ => false,
        }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = &self.url;
        match &self.kind {
            FetchErrorKind::Url(error) => error.fmt(f),
            FetchErrorKind::Insecure => write!(
                f,
                "{url} is not fetched: authorization requires https:, except for loopback addresses"
            ),
            FetchErrorKind::Redirected(to) => write!(
                f,
                "{url} redirects to {to}, and redirects to another origin are not followed; configure the final URL"
            ),
            FetchErrorKind::TimedOut(after) => write!(
                f,
                "{url} did not respond within {} ms; retry, or raise the timeout",
                after.as_millis()
            ),
            FetchErrorKind::Transport(error) => match error.kind() {
                TransportErrorKind::BlockedAddress(ip) => write!(
                    f,
                    "{url} is not fetched: the network policy does not allow its address {ip}; widen `network_policy` to allow it"
                ),
                TransportErrorKind::TooLarge(bytes) => {
                    write!(f, "{url} sent more than {bytes} bytes; raise `max_bytes` to accept it")
                }
                _ => write!(f, "fetching {url} failed: {error}"),
            },
            FetchErrorKind::Status(status) => write!(f, "{url} returned HTTP {status}"),
            FetchErrorKind::Json(why) => {
                write!(
                    f,
                    "{url} did not return the expected JSON ({why}); report it to its operator"
                )
            }
        }
    }
}

impl Error for FetchError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            FetchErrorKind::Url(error) | FetchErrorKind::Transport(error) => Some(error),
            _ => None,
        }
    }
}
