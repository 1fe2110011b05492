//! Handles `initialize`: negotiates the version and opens a session.

use std::{collections::BTreeSet, sync::Arc};

use outlive_wire::Str;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    ChangeFilter, Era, Lists, Principal, Profile, ProtocolError, Session, era::params::Request,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hello<'a> {
    #[serde(borrow)]
    protocol_version: Str<'a>,
    #[serde(borrow, default)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, default)]
    client_info: Option<&'a RawValue>,
}

/// Negotiates a protocol version and opens the session. If the server does not support the
/// requested version, it offers its newest legacy version, and the client decides.
pub(crate) fn open_session(
    request: &Request<'_>,
    principal: Principal,
    profile: &Profile,
) -> Result<Arc<Session>, ProtocolError> {
    let hello = read(request)?;
    let versions = &profile.versions;
    let named = versions.find(Era::Legacy, &hello.protocol_version);
    let rules = named.or(versions.newest(Era::Legacy)).ok_or(ProtocolError::Internal)?;
    let (info, capabilities) = kept(&hello, profile.limits.max_handshake_bytes)?;
    let feed = profile.bus.subscribe(&principal, wants(BTreeSet::new()));
    Ok(Arc::new(Session::new(rules, principal, info, capabilities, feed)))
}

/// Returns the `clientInfo` and capabilities that the session stores, with at most `limit` bytes in
/// total.
///
/// Above the limit, only the names and the version of `clientInfo` are stored, because icons can be
/// large. If the rest still exceeds the limit, the handshake fails.
fn kept(hello: &Hello<'_>, limit: usize) -> Result<(Option<Box<str>>, Box<str>), ProtocolError> {
    let object = |raw: Option<&RawValue>| {
        raw.map(RawValue::get).filter(|text| text.starts_with('{')).map(Box::from)
    };
    let capabilities: Box<str> = object(hello.capabilities).unwrap_or_else(|| "{}".into());
    let mut info: Option<Box<str>> = object(hello.client_info);
    let size = |info: &Option<Box<str>>| capabilities.len() + info.as_ref().map_or(0, |i| i.len());
    if size(&info) > limit {
        info = info.and_then(|info| serde_json::from_str::<Names<'_>>(&info).ok()?.to_json());
    }
    match size(&info) {
        size if size > limit => Err(ProtocolError::invalid_params(format!(
            "`clientInfo` and `capabilities` of `initialize` have {size} bytes; `max_handshake_bytes` is {limit}"
        ))),
        _ => Ok((info, capabilities)),
    }
}

/// The members of `clientInfo` that identify the client.
#[derive(Deserialize, Serialize)]
struct Names<'a> {
    #[serde(borrow)]
    name: &'a RawValue,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    title: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    version: Option<&'a RawValue>,
}

impl Names<'_> {
    fn to_json(&self) -> Option<Box<str>> {
        serde_json::to_string(self).ok().map(Into::into)
    }
}

/// The stored data of a session that another replica opened.
#[derive(Debug)]
pub(crate) struct Reopened<'a> {
    pub(crate) version: &'a str,
    pub(crate) client_info: Option<Box<str>>,
    pub(crate) client_capabilities: Box<str>,
    pub(crate) resources: BTreeSet<Arc<str>>,
}

/// Restores a session that another replica opened. Returns `None` if this replica does not support
/// its version.
pub(crate) fn reopen_session(
    known: Reopened<'_>,
    principal: Principal,
    profile: &Profile,
) -> Option<Session> {
    let rules = profile.versions.find(Era::Legacy, known.version)?;
    let feed = profile.bus.subscribe(&principal, wants(known.resources));
    let session =
        Session::new(rules, principal, known.client_info, known.client_capabilities, feed);
    // Clients use a session only after they have initialized it.
    session.set_initialized();
    Some(session)
}

/// Returns the changes that a session receives: those of all lists and of `resources`.
fn wants(resources: BTreeSet<Arc<str>>) -> ChangeFilter {
    ChangeFilter { lists: Lists { tools: true, prompts: true, resources: true }, resources }
}

/// Returns the version that the client requested, for the error message.
pub(in crate::era) fn requested_version(request: &Request<'_>) -> Option<String> {
    read(request).ok().map(|hello| hello.protocol_version.0.into_owned())
}

fn read<'a>(request: &Request<'a>) -> Result<Hello<'a>, ProtocolError> {
    serde_json::from_str(request.params()).map_err(|error| {
        ProtocolError::invalid_params(format!("`params` of `initialize`: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Hello, kept};

    fn remembered(params: &Value) -> Result<(Option<Box<str>>, Box<str>), String> {
        let params = params.to_string();
        let hello: Hello<'_> = serde_json::from_str(&params).unwrap();
        kept(&hello, 1_000).map_err(|fault| fault.to_string())
    }

    #[test]
    fn large_client_icons_are_not_stored() {
        let icon = json!({"src": "x".repeat(5_000)});
        let info = json!({"name": "a", "version": "1", "icons": [icon]});
        let hello =
            json!({"protocolVersion": "x", "capabilities": {"roots": {}}, "clientInfo": info});
        let (info, capabilities) = remembered(&hello).unwrap();
        assert_eq!(info.as_deref(), Some(r#"{"name":"a","version":"1"}"#));
        assert_eq!(&*capabilities, r#"{"roots":{}}"#);
    }

    #[test]
    fn handshake_above_limit_fails_with_name_of_limit() {
        let long = "x".repeat(1_000);
        for hello in [
            json!({"protocolVersion": "x", "capabilities": {"experimental": {&long: {}}}}),
            json!({"protocolVersion": "x", "clientInfo": {"name": long, "version": "1"}}),
        ] {
            assert!(remembered(&hello).unwrap_err().contains("max_handshake_bytes"), "{hello}");
        }
    }
}
