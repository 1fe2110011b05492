//! Why nothing was fetched, and what to do about it.

use std::{error::Error, fmt, net::IpAddr, time::Duration};

use outlive_transport::client::{TransportError, TransportErrorKind, http::Address};

/// A fetch that failed. Names the URL without its query.
#[derive(Debug)]
pub struct FetchError {
    url: String,
    kind: FetchErrorKind,
}

/// What happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// It is no URL that can be fetched.
    Url(TransportError),
    /// `http:` to another machine.
    Insecure,
    /// It leads to another origin, or in circles.
    Redirected(String),
    /// It took longer than this.
    TimedOut(Duration),
    /// It did not arrive; see also [`FetchError::refused_address`].
    Transport(TransportError),
    /// A status that is no success.
    Status(u16),
    /// What came is no JSON, or not of the shape that it should have.
    Json(String),
}

impl FetchError {
    pub(super) fn new(address: &Address, kind: FetchErrorKind) -> Self {
        // An address shows itself without its query.
        Self { url: format!("{address:?}"), kind }
    }

    pub(super) fn at(url: &str, kind: FetchErrorKind) -> Self {
        Self { url: url.to_owned(), kind }
    }

    pub(super) fn unreadable(error: TransportError) -> Self {
        Self { url: String::new(), kind: FetchErrorKind::Url(error) }
    }

    /// What happened.
    pub fn kind(&self) -> &FetchErrorKind {
        &self.kind
    }

    /// The address that the host turned out to be at, if that was the reason.
    pub fn refused_address(&self) -> Option<IpAddr> {
        match &self.kind {
            FetchErrorKind::Transport(error) => match error.kind() {
                TransportErrorKind::BlockedAddress(ip) => Some(*ip),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the same may well work a little later.
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
                "{url} is not fetched: authorization needs https: unless it stays on this machine"
            ),
            FetchErrorKind::Redirected(to) => write!(
                f,
                "{url} leads to {to}, and is not followed to another origin; configure where it really is"
            ),
            FetchErrorKind::TimedOut(after) => write!(
                f,
                "{url} did not answer within {} ms; try again, or raise the timeout",
                after.as_millis()
            ),
            FetchErrorKind::Transport(error) => match error.kind() {
                TransportErrorKind::BlockedAddress(ip) => write!(
                    f,
                    "{url} is not fetched: its host is at {ip}, which is not public; widen `network_policy` if it may be"
                ),
                TransportErrorKind::TooLarge(bytes) => {
                    write!(f, "{url} sent more than {bytes} bytes; raise `max_bytes` if it may")
                }
                _ => write!(f, "{url} could not be fetched: {error}"),
            },
            FetchErrorKind::Status(status) => write!(f, "{url} answered HTTP {status}"),
            FetchErrorKind::Json(why) => {
                write!(
                    f,
                    "{url} did not send the JSON that it should ({why}); report it to its operator"
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
