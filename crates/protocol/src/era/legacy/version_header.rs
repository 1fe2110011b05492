//! The `MCP-Protocol-Version` header of legacy requests.

use http::HeaderMap;

use crate::{Era, Profile, ProtocolError, Session, VersionRules, era::headers, error::short};

/// Checks the version header of a request in a session.
///
/// A supported version other than the session's is accepted: some clients send their newest
/// version. The rules of the session apply.
///
/// # Errors
///
/// If the header names a version that the server does not support.
pub fn check_version_header(
    session: &Session,
    profile: &Profile,
    headers: &HeaderMap,
) -> Result<(), ProtocolError> {
    match value(headers)? {
        None => Ok(()),
        Some(value) if value == session.rules().version.as_str().as_bytes() => Ok(()),
        Some(_) => named_in(headers, profile).map(drop),
    }
}

/// Returns the version that the headers of a request without a session name. Without the header, it
/// is the newest version that does not have the header.
pub(in crate::era) fn named_in(
    headers: &HeaderMap,
    profile: &Profile,
) -> Result<&'static VersionRules, ProtocolError> {
    let versions = &profile.versions;
    let Some(value) = value(headers)? else {
        let mut before = versions.in_era(Era::Legacy).filter(|rules| !rules.version_header);
        return before.next().ok_or_else(|| {
            ProtocolError::invalid_request("the MCP-Protocol-Version header is missing")
        });
    };
    let named = str::from_utf8(value).ok().and_then(|date| versions.find(Era::Legacy, date));
    named.ok_or_else(|| {
        let value = String::from_utf8_lossy(value);
        ProtocolError::invalid_request(format!(
            "unsupported MCP-Protocol-Version `{}`",
            short(&value)
        ))
    })
}

/// Returns the value of the header. Duplicates are an invalid request, because the legacy era has
/// no error code for a header mismatch.
fn value(headers: &HeaderMap) -> Result<Option<&[u8]>, ProtocolError> {
    headers::single(headers, &headers::VERSION)
        .map_err(|fault| ProtocolError::invalid_request(fault.to_string()))
}
