//! `resources/read`: finds the resource or template of a URI, and executes it.

use std::{future::ready, sync::Arc};

use outlive_protocol::{
    Call, CallFuture, MethodResult, Outcome, Principal, ProtocolError, RelayedKind,
};
use outlive_wire::{CacheHints, ReadResourceResult, ResourceContents};

use crate::server::{
    dispatch::{core::ServerCore, results},
    exec::{bridge::has_view, executable::Invocation, execute::execute},
    extract::cx::Arguments,
    register::{
        catalog::Lookup,
        resource::{Offered, RegisteredTemplate},
    },
    view,
};

/// Returns whether the principal of a call can read a URI: `false` if it does not exist, an error if
/// a scope is missing. Waits if the catalog does not have the resource in memory.
pub(crate) async fn readable_anywhere(
    core: &ServerCore,
    call: &Arc<Call>,
    uri: &str,
) -> Result<bool, ProtocolError> {
    if readable(core, uri, call.principal())? {
        return Ok(true);
    }
    match core.catalog_resource(call, uri).found().await? {
        Some(resource) => resource.offered.access.check(call.principal()).map(|()| true),
        None => Ok(false),
    }
}

/// Returns whether a principal can read a registered URI: `false` if it does not exist, an error if
/// a scope is missing.
pub(crate) fn readable(
    core: &ServerCore,
    uri: &str,
    principal: &Principal,
) -> Result<bool, ProtocolError> {
    if let Some(resource) = core.registered.resources.get(uri, principal) {
        return resource.offered.access.check(principal).map(|()| true);
    }
    if core.registered.unlisted.as_ref().is_some_and(|unlisted| unlisted.has(uri)) {
        return Ok(true);
    }
    let fits = |entry: &Arc<RegisteredTemplate>| {
        entry.matches(uri).map(|_| entry.offered.access.check(principal))
    };
    core.registered
        .templates
        .find(principal, fits)
        .map_or(Ok(false), |checked| checked.map(|()| true))
}

/// Reads the resource of the URI, or the first template that matches.
pub(crate) fn read(core: &Arc<ServerCore>, call: Arc<Call>) -> CallFuture {
    find(core, call).unwrap_or_else(|error| Box::pin(ready(Err(error))))
}

fn find(core: &Arc<ServerCore>, call: Arc<Call>) -> Result<CallFuture, ProtocolError> {
    let (uri, principal) = (call.uri()?, call.principal());
    // Before all others, so that no template of the application can claim these URIs.
    if let Some(read) = results::read(core, &call, &uri) {
        return Ok(read);
    }
    if uri == view::resource::URI && has_view(&core.env, &call) {
        let result = ReadResourceResult::new([view::resource::contents()]);
        let result = MethodResult::Resource(result, core.env.cache);
        return Ok(Box::pin(ready(Ok(Outcome::Complete(result)))));
    }
    if let Some(resource) = core.registered.resources.get(&uri, principal) {
        drop(uri);
        return start(core, call, &resource.offered, Arguments::Text(Arc::default()));
    }
    if let Some(contents) =
        core.registered.unlisted.as_ref().and_then(|unlisted| unlisted.read(&uri))
    {
        let result = ReadResourceResult { contents: vec![contents], meta: None };
        let result = MethodResult::Resource(result, core.env.cache);
        return Ok(Box::pin(ready(Ok(Outcome::Complete(result)))));
    }
    let matched = core
        .registered
        .templates
        .find(principal, |entry| Some((Arc::clone(entry), entry.matches(&uri)?)));
    match matched {
        Some((template, variables)) => {
            drop(uri);
            start(core, call, &template.offered, Arguments::Text(Arc::new(variables)))
        }
        None => {
            let uri = uri.into_owned();
            read_in_catalog(core, call, uri)
        }
    }
}

/// Reads a URI that is not registered.
fn read_in_catalog(
    core: &Arc<ServerCore>,
    call: Arc<Call>,
    uri: String,
) -> Result<CallFuture, ProtocolError> {
    let none = || Arguments::Text(Arc::default());
    match core.catalog_resource(&call, &uri) {
        Lookup::Found(resource) => start(core, call, &resource.offered, none()),
        Lookup::Unknown => Err(ProtocolError::UnknownResource { uri }),
        Lookup::Pending(pending) => {
            let core = Arc::clone(core);
            Ok(Box::pin(async move {
                match pending.await? {
                    Some(resource) => start(&core, call, &resource.offered, none())?.await,
                    None => Err(ProtocolError::UnknownResource { uri }),
                }
            }))
        }
    }
}

fn start(
    core: &ServerCore,
    call: Arc<Call>,
    offered: &Offered,
    arguments: Arguments,
) -> Result<CallFuture, ProtocolError> {
    offered.access.check(call.principal())?;
    let invocation = Invocation { target: Arc::clone(&offered.exec), permits: None };
    let work = execute(&core.env, call, invocation, arguments)?;
    Ok(with_defaults(offered.cache, offered.mime_type.clone(), work))
}

/// Adds the registered cache hints and MIME type to contents that have none.
fn with_defaults(
    cache: Option<CacheHints>,
    mime_type: Option<String>,
    work: CallFuture,
) -> CallFuture {
    if cache.is_none() && mime_type.is_none() {
        return work;
    }
    Box::pin(async move {
        let outcome = work.await?;
        let (mut result, hints) = match outcome {
            Outcome::Complete(MethodResult::Resource(result, hints)) => (result, hints),
            // The other server has set the MIME type.
            Outcome::Complete(MethodResult::Relayed(result, RelayedKind::Resource(hints))) => {
                let kind = RelayedKind::Resource(cache.unwrap_or(hints));
                return Ok(Outcome::Complete(MethodResult::Relayed(result, kind)));
            }
            other => return Ok(other),
        };
        for contents in &mut result.contents {
            let slot = match contents {
                ResourceContents::Text(contents) => &mut contents.mime_type,
                ResourceContents::Blob(contents) => &mut contents.mime_type,
                _ => continue,
            };
            if slot.is_none() {
                slot.clone_from(&mime_type);
            }
        }
        Ok(Outcome::Complete(MethodResult::Resource(result, cache.unwrap_or(hints))))
    })
}
