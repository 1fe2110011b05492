//! `initialize`: the client names a revision and itself; a session begins.

use std::{collections::BTreeSet, sync::Arc};

use outlive_wire::Str;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Legacy, newest, revision};
use crate::{Bus, Fault, Lists, Principal, Session, Wants, era::Request};

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

/// Agrees on a revision and opens the session. A revision we do not know is answered with our
/// newest legacy one: that is a normal result, and the client decides whether it can live with it.
pub(crate) fn open_session(
    request: &Request<'_>,
    principal: Principal,
    bus: &Bus,
) -> Result<(&'static Legacy, Arc<Session>), Fault> {
    let hello = read(request)?;
    let era = revision(&hello.protocol_version).unwrap_or_else(newest);
    let object = |raw: Option<&RawValue>| {
        raw.map(RawValue::get).filter(|text| text.starts_with('{')).map(Box::from)
    };
    let capabilities = object(hello.capabilities).unwrap_or_else(|| "{}".into());
    let feed = bus.subscribe(wants(BTreeSet::new()));
    let session = Session::new(era, principal, object(hello.client_info), capabilities, feed);
    Ok((era, Arc::new(session)))
}

/// What is known of a session that was opened elsewhere.
#[derive(Debug)]
pub(crate) struct Reopened<'a> {
    pub(crate) version: &'a str,
    pub(crate) client_info: Option<Box<str>>,
    pub(crate) client_capabilities: Box<str>,
    pub(crate) resources: BTreeSet<Arc<str>>,
}

/// Opens a session again that was opened elsewhere; `None` if its revision is not known here.
pub(crate) fn reopen_session(
    known: Reopened<'_>,
    principal: Principal,
    bus: &Bus,
) -> Option<Session> {
    let era = revision(known.version)?;
    let feed = bus.subscribe(wants(known.resources));
    let session = Session::new(era, principal, known.client_info, known.client_capabilities, feed);
    // Nobody uses a session that is not.
    session.set_initialized();
    Some(session)
}

/// A session hears of all lists, and of the resources that it has subscribed to.
fn wants(resources: BTreeSet<Arc<str>>) -> Wants {
    Wants { lists: Lists { tools: true, prompts: true, resources: true }, resources }
}

/// The revision that a handshake asks for, for the message that refuses it.
pub(in crate::era) fn requested_version(request: &Request<'_>) -> Option<String> {
    read(request).ok().map(|hello| hello.protocol_version.0.into_owned())
}

fn read<'a>(request: &Request<'a>) -> Result<Hello<'a>, Fault> {
    serde_json::from_str(request.params())
        .map_err(|error| Fault::invalid_params(format!("`params` of initialize: {error}")))
}
