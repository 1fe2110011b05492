//! Paginated lists: registered items, then those of the catalog. A cursor is sealed and valid only
//! for its principal and its list.

use std::{future::ready, sync::Arc};

use outlive_protocol::{Call, CallFuture, Outcome, Page, ProtocolError, Seal};
use outlive_wire::PaginatedRequestParams;

use crate::server::{
    dispatch::{core::ServerCore, listed::Listed},
    env::environment::Env,
    exec::plan::is_bridged,
    hosts::reserved::is_fallback,
    register::{
        catalog::{CatalogPage, Lookup, PageRequest},
        registry::Entry as _,
    },
};

/// First bytes of a position in the list of a catalog. No registered item has this place.
const IN_CATALOG: [u8; 8] = u64::MAX.to_le_bytes();

/// Maximum bytes of a position in the list of a catalog.
const MAX_POSITION: usize = 1 << 10;

/// A page as far as the registered items fill it.
struct Begun<L: Listed> {
    page: Page<L::Definition>,
    is_bridged: bool,
    /// The part of the page that the catalog fills.
    rest: Option<PageRequest>,
}

/// Returns a page of one of the four lists.
pub(crate) fn page<L: Listed>(core: &Arc<ServerCore>, call: Arc<Call>) -> CallFuture {
    let begun = match begin::<L>(core, &call) {
        Ok(begun) => begun,
        Err(error) => return Box::pin(ready(Err(error))),
    };
    let (Some(port), Some(request)) = (&core.catalog, &begun.rest) else {
        return Box::pin(ready(Ok(finish(core, &call, begun))));
    };
    let rest = match L::page(&*port.items, &call, request.clone()) {
        Lookup::Found(rest) => rest,
        Lookup::Unknown => CatalogPage::default(),
        Lookup::Pending(pending) => {
            let core = Arc::clone(core);
            return Box::pin(async move {
                let rest = pending.await?.unwrap_or_default();
                add(&core, &call, begun, rest)
            });
        }
    };
    Box::pin(ready(add(core, &call, begun, rest)))
}

/// Reads the registered items of a page.
fn begin<L: Listed>(core: &ServerCore, call: &Call) -> Result<Begun<L>, ProtocolError> {
    let env = &core.env;
    let hosts = env.hosts();
    let is_bridged = hosts.is_some_and(|hosts| is_bridged(call, hosts));
    let params: PaginatedRequestParams = serde_json::from_str(call.params()).map_err(|error| {
        ProtocolError::invalid_params(format!("`params.cursor` must be a string: {error}"))
    })?;
    let max = env.profile.limits.page_size.max(1);
    let mut page = Page { items: Vec::new(), next: None, cache: env.cache };
    let after = match params.cursor.as_deref() {
        None => None,
        Some(cursor) => match Position::open(env, call, cursor)? {
            Position::Registered(place) => Some(place),
            Position::Catalog(after) => {
                let rest = core.catalog.is_some().then_some(PageRequest { after, max });
                return Ok(Begun { page, is_bridged, rest });
            }
        },
    };
    let (entries, next) = L::registry(&core.registered).page(after, max, call.principal());
    page.next = next.map(|place| seal_cursor(env, call, place)).transpose()?;
    page.items = entries.iter().map(|entry| L::shown(entry, is_bridged)).collect();
    let mut rest = None;
    if core.catalog.is_some() && page.next.is_none() {
        match max - page.items.len() {
            0 => page.next = Some(Position::seal(env, call, "")?),
            left => rest = Some(PageRequest { after: None, max: left }),
        }
    }
    Ok(Begun { page, is_bridged, rest })
}

/// Adds the items of the catalog to a page.
fn add<L: Listed>(
    core: &ServerCore,
    call: &Call,
    mut begun: Begun<L>,
    rest: CatalogPage<L>,
) -> Result<Outcome, ProtocolError> {
    let (registry, principal) = (L::registry(&core.registered), call.principal());
    let has_fallback = core.env.hosts().is_some();
    for entry in &rest.items {
        let item = entry.item();
        // The server's own items have precedence.
        let is_hidden = registry.contains(item.key()) || has_fallback && is_fallback(item.key());
        if !is_hidden && item.access().is_listed_for(principal) {
            begun.page.items.push(L::shown(item, begun.is_bridged));
        }
    }
    begun.page.next = match rest.next {
        Some(after) => Some(Position::seal(&core.env, call, &after)?),
        None => None,
    };
    Ok(finish(core, call, begun))
}

fn finish<L: Listed>(core: &ServerCore, call: &Call, begun: Begun<L>) -> Outcome {
    let mut page = begun.page;
    if page.next.is_none() {
        L::add_own(core, call, &mut page.items);
    }
    Outcome::Complete(L::result(page))
}

/// Position at which a list continues.
enum Position {
    /// After the registered item with this place.
    Registered(u64),
    /// After this position in the catalog; `None` for its first item.
    Catalog(Option<String>),
}

impl Position {
    /// Opens a cursor that the server sealed for this principal and method.
    fn open(env: &Env, call: &Call, cursor: &str) -> Result<Self, ProtocolError> {
        let invalid = || ProtocolError::invalid_params("invalid cursor; start again without one");
        let position = env.profile.seal.open(cursor, &context(call)).ok_or_else(invalid)?;
        let (place, after) = position.split_first_chunk::<8>().ok_or_else(invalid)?;
        if *place != IN_CATALOG {
            return Ok(Self::Registered(u64::from_le_bytes(*place)));
        }
        let after = str::from_utf8(after).map_err(|_| invalid())?;
        Ok(Self::Catalog(Some(after.to_owned()).filter(|after| !after.is_empty())))
    }

    /// Returns the cursor of a position in the catalog; an empty one is the start.
    fn seal(env: &Env, call: &Call, after: &str) -> Result<String, ProtocolError> {
        if after.len() > MAX_POSITION {
            return Err(ProtocolError::internal("the position in a catalog is too long"));
        }
        seal(env, call, &[&IN_CATALOG, after.as_bytes()].concat())
    }
}

/// Opens a cursor that [`seal_cursor`] returned for this principal and method.
#[cfg_attr(not(feature = "skills"), allow(dead_code, reason = "only skills use it"))]
pub(crate) fn open_cursor(
    env: &Env,
    call: &Call,
    cursor: Option<&str>,
) -> Result<Option<u64>, ProtocolError> {
    let Some(cursor) = cursor else { return Ok(None) };
    match Position::open(env, call, cursor)? {
        Position::Registered(place) => Ok(Some(place)),
        Position::Catalog(_) => {
            Err(ProtocolError::invalid_params("invalid cursor; start again without one"))
        }
    }
}

/// Returns the cursor for the place at which a list of registered items continues.
pub(crate) fn seal_cursor(env: &Env, call: &Call, place: u64) -> Result<String, ProtocolError> {
    seal(env, call, &place.to_le_bytes())
}

fn seal(env: &Env, call: &Call, position: &[u8]) -> Result<String, ProtocolError> {
    let sealed = env.profile.seal.seal(position, &context(call));
    sealed.ok_or_else(|| ProtocolError::internal("no random bytes for a cursor"))
}

/// Returns the context that a cursor is sealed with.
fn context(call: &Call) -> [&str; 3] {
    [Seal::CURSOR, call.method_name(), call.principal().key()]
}
