//! The token that a request presents in its head.

use http::{HeaderName, header, request::Parts};

use super::challenge::Scheme;

const DPOP: HeaderName = HeaderName::from_static("dpop");

/// A presented token and its scheme.
pub(super) struct Shown<'a> {
    pub(super) scheme: Scheme,
    pub(super) token: &'a [u8],
}

/// Reason why no token could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotShown {
    /// The request has no token.
    Nothing,
    /// The token is presented in a way that is not allowed.
    Malformed(&'static str),
}

impl<'a> Shown<'a> {
    pub(super) fn of(parts: &'a Parts, longest: usize) -> Result<Self, NotShown> {
        // RFC 6750 allows tokens in the query, but MCP forbids it, because URLs end up in logs.
        if parts.uri.query().is_some_and(has_token) {
            return Err(NotShown::Malformed("send the token in the Authorization header only"));
        }
        let mut values = parts.headers.get_all(header::AUTHORIZATION).iter();
        let Some(value) = values.next() else { return Err(NotShown::Nothing) };
        if values.next().is_some() {
            return Err(NotShown::Malformed("send one Authorization header"));
        }
        let value = value.as_bytes();
        let name_ends = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
        let (name, rest) = value.split_at(name_ends);
        let scheme = match name {
            _ if name.eq_ignore_ascii_case(b"bearer") => Scheme::Bearer,
            _ if name.eq_ignore_ascii_case(b"dpop") => Scheme::Dpop,
            // Another scheme counts as no token.
            _ => return Err(NotShown::Nothing),
        };
        let token = rest.trim_ascii();
        if token.len() > longest {
            return Err(NotShown::Malformed("the token is too long"));
        }
        Ok(Self { scheme, token })
    }

    /// Returns the token as text, if its characters are valid. Called only for uncached tokens,
    /// because the check takes longer than hashing the token.
    pub(super) fn text(&self) -> Result<&'a str, NotShown> {
        match str::from_utf8(self.token) {
            Ok(token) if !token.is_empty() && token.bytes().all(is_of_token) => Ok(token),
            _ => Err(NotShown::Malformed("the Authorization header has no token of a valid form")),
        }
    }
}

/// Returns the DPoP proof of a request. Returns `Err` if there is more than one.
pub(super) fn proof(parts: &Parts) -> Result<Option<&str>, ()> {
    let mut values = parts.headers.get_all(DPOP).iter();
    let first = values.next();
    match (first, values.next()) {
        (None, _) => Ok(None),
        (Some(proof), None) => proof.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

/// Returns whether a byte is allowed in a `b64token` of RFC 6750.
fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
}

fn has_token(query: &str) -> bool {
    query.split('&').any(|pair| pair.split('=').next() == Some("access_token"))
}
