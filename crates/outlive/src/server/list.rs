//! Lists, page by page. A cursor is sealed: it opens for the caller and the list it was made for.

use std::sync::Arc;

use outlive_protocol::{Call, MethodResult, Page, ProtocolError};
use outlive_wire::PaginatedRequestParams;

use super::{
    core::Core,
    registry::{Entry, Registry},
};

pub(super) fn tools(core: &Core, call: &Call) -> Result<MethodResult, ProtocolError> {
    page(core, call, &core.tools, |entry| Arc::clone(&entry.info)).map(MethodResult::Tools)
}

pub(super) fn resources(core: &Core, call: &Call) -> Result<MethodResult, ProtocolError> {
    page(core, call, &core.resources, |entry| Arc::clone(&entry.info)).map(MethodResult::Resources)
}

pub(super) fn templates(core: &Core, call: &Call) -> Result<MethodResult, ProtocolError> {
    page(core, call, &core.templates, |entry| Arc::clone(&entry.info))
        .map(MethodResult::ResourceTemplates)
}

pub(super) fn prompts(core: &Core, call: &Call) -> Result<MethodResult, ProtocolError> {
    page(core, call, &core.prompts, |entry| Arc::clone(&entry.info)).map(MethodResult::Prompts)
}

fn page<E: Entry, T>(
    core: &Core,
    call: &Call,
    registry: &Registry<E>,
    show: impl Fn(&E) -> Arc<T>,
) -> Result<Page<T>, ProtocolError> {
    let params: PaginatedRequestParams = serde_json::from_str(call.params()).map_err(|error| {
        ProtocolError::invalid_params(format!("`params.cursor` must be a string: {error}"))
    })?;
    let after = open_cursor(core, call, params.cursor.as_deref())?;
    let (entries, next) =
        registry.page(after, core.profile.limits.page_size.max(1), call.principal());
    let next = next.map(|place| seal_cursor(core, call, place)).transpose()?;
    Ok(Page { items: entries.iter().map(|entry| show(entry)).collect(), next, cache: core.cache })
}

/// Opens a cursor that [`seal_cursor`] made for this caller and this method.
pub(super) fn open_cursor(
    core: &Core,
    call: &Call,
    cursor: Option<&str>,
) -> Result<Option<u64>, ProtocolError> {
    let Some(cursor) = cursor else { return Ok(None) };
    let invalid = || ProtocolError::invalid_params("invalid cursor; start again without one");
    let place = core.profile.seal.open(cursor, &context(call)).ok_or_else(invalid)?;
    Ok(Some(u64::from_le_bytes(place.try_into().map_err(|_| invalid())?)))
}

/// Makes a cursor of the place at which a list continues.
pub(super) fn seal_cursor(core: &Core, call: &Call, place: u64) -> Result<String, ProtocolError> {
    let sealed = core.profile.seal.seal(&place.to_le_bytes(), &context(call));
    sealed.ok_or_else(|| ProtocolError::internal("no random bytes for a cursor"))
}

/// What a cursor is sealed with.
fn context(call: &Call) -> [&str; 3] {
    ["cursor", call.method_name(), call.principal().key()]
}
