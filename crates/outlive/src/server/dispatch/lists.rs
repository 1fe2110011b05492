//! Paginated lists. A cursor is sealed and valid only for its principal and its list.

use std::sync::Arc;

use outlive_protocol::{Call, MethodResult, Page, ProtocolError, Seal};
use outlive_wire::PaginatedRequestParams;

use crate::server::{
    dispatch::{core::ServerCore, fallback_tools, results},
    env::environment::Env,
    exec::plan::is_bridged,
    register::registry::{Entry, Registry},
};

pub(crate) fn tools(core: &ServerCore, call: &Call) -> Result<MethodResult, ProtocolError> {
    let hosts = core.env.hosts();
    let is_bridged = hosts.is_some_and(|hosts| is_bridged(call, hosts));
    let mut page = page(&core.env, call, &core.catalog.tools, |entry| match is_bridged {
        true => Arc::clone(&entry.bridged_info),
        false => Arc::clone(&entry.info),
    })?;
    if is_bridged && page.next.is_none() {
        page.items.extend(fallback_tools::listed(core, call));
    }
    Ok(MethodResult::Tools(page))
}

pub(crate) fn resources(core: &ServerCore, call: &Call) -> Result<MethodResult, ProtocolError> {
    page(&core.env, call, &core.catalog.resources, |entry| Arc::clone(&entry.info))
        .map(MethodResult::Resources)
}

pub(crate) fn templates(core: &ServerCore, call: &Call) -> Result<MethodResult, ProtocolError> {
    let mut page = page(&core.env, call, &core.catalog.templates, |entry| Arc::clone(&entry.info))?;
    if page.next.is_none() && results::are_listed(core, call) {
        page.items.push(results::template());
    }
    Ok(MethodResult::ResourceTemplates(page))
}

pub(crate) fn prompts(core: &ServerCore, call: &Call) -> Result<MethodResult, ProtocolError> {
    page(&core.env, call, &core.catalog.prompts, |entry| Arc::clone(&entry.info))
        .map(MethodResult::Prompts)
}

fn page<E: Entry, T>(
    env: &Env,
    call: &Call,
    registry: &Registry<E>,
    show: impl Fn(&E) -> Arc<T>,
) -> Result<Page<T>, ProtocolError> {
    let params: PaginatedRequestParams = serde_json::from_str(call.params()).map_err(|error| {
        ProtocolError::invalid_params(format!("`params.cursor` must be a string: {error}"))
    })?;
    let after = open_cursor(env, call, params.cursor.as_deref())?;
    let (entries, next) =
        registry.page(after, env.profile.limits.page_size.max(1), call.principal());
    let next = next.map(|place| seal_cursor(env, call, place)).transpose()?;
    Ok(Page { items: entries.iter().map(|entry| show(entry)).collect(), next, cache: env.cache })
}

/// Opens a cursor that [`seal_cursor`] returned for this principal and method.
pub(crate) fn open_cursor(
    env: &Env,
    call: &Call,
    cursor: Option<&str>,
) -> Result<Option<u64>, ProtocolError> {
    let Some(cursor) = cursor else { return Ok(None) };
    let invalid = || ProtocolError::invalid_params("invalid cursor; start again without one");
    let place = env.profile.seal.open(cursor, &context(call)).ok_or_else(invalid)?;
    Ok(Some(u64::from_le_bytes(place.try_into().map_err(|_| invalid())?)))
}

/// Returns the cursor for the position at which a list continues.
pub(crate) fn seal_cursor(env: &Env, call: &Call, place: u64) -> Result<String, ProtocolError> {
    let sealed = env.profile.seal.seal(&place.to_le_bytes(), &context(call));
    sealed.ok_or_else(|| ProtocolError::internal("no random bytes for a cursor"))
}

/// Returns the context that a cursor is sealed with.
fn context(call: &Call) -> [&str; 3] {
    [Seal::CURSOR, call.method_name(), call.principal().key()]
}
