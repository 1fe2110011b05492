//! Chooses the era of a message.
//!
//! Comes after the envelope has been read, before anything is decoded. A request is modern if its
//! `_meta` says so, wherever it arrives; `initialize` without such a `_meta` is the legacy handshake.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>

use http::HeaderMap;
use outlive_wire::{Method, Version};

use super::{
    Era,
    legacy::{self, Legacy},
    modern::Modern,
    params::Request,
};
use crate::{MessageContext, Profile, ProtocolError};

/// Which rules a request is under.
#[derive(Debug)]
pub(crate) enum Selected {
    Modern(&'static Modern),
    Legacy(&'static Legacy),
    /// `initialize`: a session begins.
    Handshake,
}

/// Chooses the rules for a request, or says why there are none. The era that comes with a refusal
/// writes it.
pub(crate) fn select(
    request: &Request<'_>,
    arrival: &MessageContext<'_>,
    profile: &Profile,
) -> Result<Selected, (&'static dyn Era, ProtocolError)> {
    let eras = profile.eras;
    let headers = arrival.http.as_ref().map(|parts| &parts.headers);
    if &*request.method == Method::Initialize.as_str() && request.head.version().is_none() {
        return match eras.legacy {
            true => Ok(Selected::Handshake),
            false => Err((&Modern, modern_only(request, arrival))),
        };
    }
    let modern = eras.modern
        && !arrival.legacy_only
        && (request.head.looks_modern() || headers.is_some_and(headers_look_modern));
    if modern || !eras.legacy {
        return Ok(Selected::Modern(&Modern));
    }
    if let Some(session) = &arrival.session {
        let era =
            legacy::of(session.era()).ok_or((&Modern as &dyn Era, ProtocolError::Internal))?;
        if let Some(headers) = headers {
            legacy::check_version_header(era, headers).map_err(|fault| (era as &dyn Era, fault))?;
        }
        return Ok(Selected::Legacy(era));
    }
    match headers {
        Some(headers) => legacy_without_session(headers, arrival).map(Selected::Legacy),
        None if &*request.method == Method::Ping.as_str() => Ok(Selected::Legacy(legacy::newest())),
        None => Err((&Modern, missing_meta(eras.modern))),
    }
}

/// A notification or response has no mark of its era: on HTTP it must come with what a legacy
/// request would need, unless its headers are modern.
pub(crate) fn check_notification(
    arrival: &MessageContext<'_>,
    profile: &Profile,
) -> Result<(), (&'static dyn Era, ProtocolError)> {
    let Some(headers) = arrival.http.as_ref().map(|parts| &parts.headers) else { return Ok(()) };
    if !profile.eras.legacy || headers_look_modern(headers) {
        return Ok(());
    }
    match &arrival.session {
        Some(session) => {
            let era = session.era();
            legacy::check_version_header(era, headers).map_err(|fault| (era, fault))
        }
        None => legacy_without_session(headers, arrival).map(drop),
    }
}

fn legacy_without_session(
    headers: &HeaderMap,
    arrival: &MessageContext<'_>,
) -> Result<&'static Legacy, (&'static dyn Era, ProtocolError)> {
    let era = legacy::named_in(headers).map_err(|fault| (legacy::newest() as &dyn Era, fault))?;
    match () {
        () if arrival.lost_session => Err((era, ProtocolError::UnknownSession)),
        () if arrival.stateless => Ok(era),
        () => Err((
            era,
            ProtocolError::invalid_request(
                "the Mcp-Session-Id header is missing; send `initialize` first",
            ),
        )),
    }
}

/// The era under whose rules a batch that came with this arrival is read, if there is one.
pub(crate) fn batch_era(
    arrival: &MessageContext<'_>,
    profile: &Profile,
) -> Option<&'static dyn Era> {
    if !profile.eras.legacy {
        return None;
    }
    if let Some(session) = &arrival.session {
        return Some(session.era());
    }
    let headers = &arrival.http.as_ref()?.headers;
    if !arrival.stateless || headers_look_modern(headers) {
        return None;
    }
    legacy::named_in(headers).ok().map(|era| era as &dyn Era)
}

/// Whether the headers alone put a request under modern rules: those of a revision that has no
/// handshake, or that has yet to come.
pub(super) fn headers_look_modern(headers: &HeaderMap) -> bool {
    let version =
        headers.get(super::modern::headers::VERSION).map(|value| value.as_bytes().trim_ascii());
    let first = Version::V2026_07_28.as_str().as_bytes();
    match version {
        // Dates compare like their text.
        Some(version) => is_date(version) && version >= first,
        None => headers.contains_key(super::modern::headers::METHOD),
    }
}

fn is_date(text: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.iter().enumerate().all(fits)
}

/// What a legacy client hears from a server that has left its era behind.
fn modern_only(request: &Request<'_>, arrival: &MessageContext<'_>) -> ProtocolError {
    if arrival.http.is_some() {
        let supported = Version::V2026_07_28;
        return ProtocolError::HeaderMismatch(
            format!("this server speaks {supported} only and has no `initialize`; send the MCP-Protocol-Version header")
                .into(),
        );
    }
    let requested = legacy::requested_version(request).unwrap_or_default();
    ProtocolError::UnsupportedProtocolVersion { requested, needs_handshake: false }
}

fn missing_meta(modern: bool) -> ProtocolError {
    ProtocolError::invalid_params(match modern {
        true => {
            "`_meta` lacks `io.modelcontextprotocol/protocolVersion`, and no `initialize` came before"
        }
        false => "send `initialize` first",
    })
}
