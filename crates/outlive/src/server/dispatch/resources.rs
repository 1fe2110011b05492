//! `resources/read`: finds the resource or template of a URI, and executes it.

use std::{future::ready, sync::Arc};

use outlive_protocol::{Call, CallFuture, MethodResult, Outcome, Principal, ProtocolError};
use outlive_wire::{CacheHints, ReadResourceResult, ResourceContents};

use crate::server::{
    dispatch::{core::ServerCore, results},
    exec::{bridge::has_view, executable::Invocation, execute::execute},
    extract::cx::Arguments,
    register::resource::{Offered, RegisteredTemplate},
    view,
};

/// Returns whether a principal can read a URI: `false` if it does not exist, an error if a scope is
/// missing.
pub(crate) fn readable(
    core: &ServerCore,
    uri: &str,
    principal: &Principal,
) -> Result<bool, ProtocolError> {
    if let Some(resource) = core.catalog.resources.get(uri, principal) {
        return resource.offered.access.check(principal).map(|()| true);
    }
    if core.catalog.unlisted.as_ref().is_some_and(|unlisted| unlisted.has(uri)) {
        return Ok(true);
    }
    let fits = |entry: &Arc<RegisteredTemplate>| {
        entry.template.matches(uri).map(|_| entry.offered.access.check(principal))
    };
    core.catalog.templates.find(principal, fits).map_or(Ok(false), |checked| checked.map(|()| true))
}

/// Reads the resource of the URI, or the first template that matches.
pub(crate) fn read(core: &Arc<ServerCore>, call: Arc<Call>) -> CallFuture {
    find(core, call).unwrap_or_else(|error| Box::pin(ready(Err(error))))
}

fn find(core: &ServerCore, call: Arc<Call>) -> Result<CallFuture, ProtocolError> {
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
    if let Some(resource) = core.catalog.resources.get(&uri, principal) {
        drop(uri);
        return start(core, call, &resource.offered, Arguments::Text(Arc::default()));
    }
    if let Some(contents) = core.catalog.unlisted.as_ref().and_then(|unlisted| unlisted.read(&uri))
    {
        let result = ReadResourceResult { contents: vec![contents], meta: None };
        let result = MethodResult::Resource(result, core.env.cache);
        return Ok(Box::pin(ready(Ok(Outcome::Complete(result)))));
    }
    let matched = core
        .catalog
        .templates
        .find(principal, |entry| Some((Arc::clone(entry), entry.template.matches(&uri)?)));
    match matched {
        Some((template, variables)) => {
            drop(uri);
            start(core, call, &template.offered, Arguments::Text(Arc::new(variables)))
        }
        None => Err(ProtocolError::UnknownResource { uri: uri.into_owned() }),
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
        let Outcome::Complete(MethodResult::Resource(mut result, hints)) = outcome else {
            return Ok(outcome);
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
