//! Selects the era of a message.
//!
//! Runs after the envelope is parsed and before the message is decoded. A request is modern if its
//! `_meta` names a version, on any transport. `initialize` without it is the legacy handshake.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>

use http::HeaderMap;
use outlive_wire::Method;

use super::{headers, legacy, params::Request};
use crate::{Era, MessageContext, Profile, ProtocolError, VersionRules, version::FIRST_MODERN};

/// The rules that apply to a request.
#[derive(Debug)]
pub(crate) enum Selection {
    Version(&'static VersionRules),
    /// `initialize`, which opens a session.
    Handshake,
}

/// An error, and the rules whose codec encodes it.
pub(crate) type SelectError = (&'static VersionRules, ProtocolError);

/// Selects the rules for a request, or returns the error if none apply.
pub(crate) fn select(
    request: &Request<'_>,
    arrival: &MessageContext<'_>,
    profile: &Profile,
) -> Result<Selection, SelectError> {
    let versions = &profile.versions;
    let (modern, legacy) = (versions.newest(Era::Modern), versions.newest(Era::Legacy));
    let headers = arrival.http.as_ref().map(|parts| &parts.headers);
    if &*request.method == Method::Initialize.as_str() && request.head.version().is_none() {
        return match legacy {
            Some(_) => Ok(Selection::Handshake),
            None => Err((FIRST_MODERN, modern_only(request, arrival, modern))),
        };
    }
    let is_modern = !arrival.legacy_only
        && (request.head.looks_modern() || headers.is_some_and(headers_look_modern));
    if let Some(newest) = modern.filter(|_| is_modern || legacy.is_none()) {
        let named = request.head.version().and_then(|date| versions.find(Era::Modern, date));
        return Ok(Selection::Version(named.unwrap_or(newest)));
    }
    if let Some(session) = &arrival.session {
        let rules = session.rules();
        if let Some(headers) = headers {
            legacy::check_version_header(session, profile, headers)
                .map_err(|error| (rules, error))?;
        }
        return Ok(Selection::Version(rules));
    }
    match (headers, legacy) {
        (Some(headers), _) => {
            legacy_without_session(headers, arrival, profile).map(Selection::Version)
        }
        (None, Some(newest)) if &*request.method == Method::Ping.as_str() => {
            Ok(Selection::Version(newest))
        }
        (None, _) => Err((FIRST_MODERN, missing_meta(modern.is_some()))),
    }
}

/// Checks a notification or response. The message itself does not show its era. On HTTP it needs
/// the headers of a legacy request, unless its headers are modern.
pub(crate) fn check_notification(
    arrival: &MessageContext<'_>,
    profile: &Profile,
) -> Result<(), SelectError> {
    let Some(headers) = arrival.http.as_ref().map(|parts| &parts.headers) else { return Ok(()) };
    if profile.versions.newest(Era::Legacy).is_none() || headers_look_modern(headers) {
        return Ok(());
    }
    match &arrival.session {
        Some(session) => legacy::check_version_header(session, profile, headers)
            .map_err(|error| (session.rules(), error)),
        None => legacy_without_session(headers, arrival, profile).map(drop),
    }
}

fn legacy_without_session(
    headers: &HeaderMap,
    arrival: &MessageContext<'_>,
    profile: &Profile,
) -> Result<&'static VersionRules, SelectError> {
    let rules = legacy::named_in(headers, profile)
        .map_err(|error| (VersionRules::newest(Era::Legacy), error))?;
    match () {
        () if arrival.lost_session => Err((rules, ProtocolError::UnknownSession)),
        () if arrival.stateless => Ok(rules),
        () => Err((
            rules,
            ProtocolError::invalid_request(
                "the Mcp-Session-Id header is missing; send `initialize` first",
            ),
        )),
    }
}

/// Returns whether a message with this context may be a batch.
pub(crate) fn allows_batch(arrival: &MessageContext<'_>, profile: &Profile) -> bool {
    if profile.versions.newest(Era::Legacy).is_none() {
        return false;
    }
    if let Some(session) = &arrival.session {
        return session.rules().batches;
    }
    let Some(http) = &arrival.http else { return false };
    arrival.stateless
        && !headers_look_modern(&http.headers)
        && legacy::named_in(&http.headers, profile).is_ok_and(|rules| rules.batches)
}

/// Returns whether the headers alone make a request modern: they name a version without a
/// handshake, or a version newer than this crate.
pub fn headers_look_modern(headers: &HeaderMap) -> bool {
    let version = headers.get(headers::VERSION).map(|value| value.as_bytes().trim_ascii());
    match version {
        // ISO dates compare like their text.
        Some(version) => is_date(version) && version >= FIRST_MODERN.version.as_str().as_bytes(),
        None => headers.contains_key(headers::METHOD),
    }
}

fn is_date(text: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.iter().enumerate().all(fits)
}

/// Returns the error for a legacy client of a server that supports modern versions only.
fn modern_only(
    request: &Request<'_>,
    arrival: &MessageContext<'_>,
    newest: Option<&VersionRules>,
) -> ProtocolError {
    if arrival.http.is_some() {
        let supported = newest.unwrap_or(FIRST_MODERN).version;
        return ProtocolError::HeaderMismatch(
            format!("this server supports {supported} only and has no `initialize`; send the MCP-Protocol-Version header")
                .into(),
        );
    }
    let requested = legacy::requested_version(request).unwrap_or_default();
    ProtocolError::UnsupportedProtocolVersion { requested, needs_handshake: false }
}

fn missing_meta(modern: bool) -> ProtocolError {
    ProtocolError::invalid_params(match modern {
        true => {
            "`_meta` lacks `io.modelcontextprotocol/protocolVersion`; send it, or `initialize` first"
        }
        false => "send `initialize` first",
    })
}
