//! Joins the lists of all upstreams into a view.

use std::sync::Arc;

use outlive::server::Scopes;

use crate::{
    catalog::Definitions,
    entries::EntryMaker,
    member::Member,
    names::{Filter, Names, UriTemplate, qualified, ui_uri},
    settings::{Pin, Upstream},
    shared::Shared,
    upstream::{CatalogKey, ConnectionKey},
    view::{Reader, ShownResource, ShownTool, View, ViewKey, is_own},
};

/// Returns the view of a key, made of the catalogs in memory.
pub(crate) fn view(shared: &Arc<Shared>, key: &ViewKey) -> Arc<View> {
    if let Some(known) = shared.known_view(key) {
        return known;
    }
    let generation = shared.generation();
    let mut view = View { generation, ..View::default() };
    let config = shared.config();
    let mut prompts = Names::default();
    let mut listed = Vec::new();
    for member in &config.members {
        let settings = member.settings();
        let own = member.catalogs.get(&catalog_of(&settings, key));
        if own.is_none() {
            view.missing.push(Arc::clone(&settings.name));
        }
        // Most upstreams list the same for all clients, so other lists are better than none. Those of
        // other users are not.
        let others = || member.catalogs.largest().filter(|_| !settings.has_user_credentials());
        let Some(lists) = own.or_else(others) else { continue };
        add(shared, member, &settings, &lists, &mut prompts, &mut view);
        listed.push((member, settings, lists));
    }
    // After all resources: the URI of a tool's view depends on them.
    let mut names = Names::with(config.settings.taken_names.iter());
    if let Some(handle) = shared.handle() {
        for (member, settings, lists) in &listed {
            let maker = EntryMaker { shared, member, settings, handle };
            add_tools(&maker, lists, &mut names, &mut view);
        }
    }
    let view = Arc::new(view);
    shared.keep_view(key, &view);
    view
}

/// Returns the key of the catalog that clients of a view see.
pub(crate) fn catalog_of(settings: &Upstream, key: &ViewKey) -> CatalogKey {
    CatalogKey {
        class: ConnectionKey::class_for(settings, key.class, key.is_unrelated),
        principal: key.principal.clone().filter(|_| settings.has_user_credentials()),
    }
}

fn add(
    shared: &Arc<Shared>,
    member: &Arc<Member>,
    settings: &Upstream,
    lists: &Definitions,
    prompts: &mut Names,
    view: &mut View,
) {
    let Some(handle) = shared.handle() else { return };
    let maker = EntryMaker { shared, member, settings, handle };
    let filter = Filter::new(&settings.only, &settings.hide);
    for prompt in lists.prompts.iter().filter(|prompt| filter.shows(&prompt.name)) {
        let shown =
            prompts.take(&settings.name, settings.shown_prefix(), &prompt.name, &prompt.name);
        if let Some(entry) = maker.prompt(prompt, &shown) {
            view.prompts.push(&shown, entry);
        }
    }
    if lists.has_resources() {
        add_resources(&maker, lists, view);
    }
}

fn add_tools(maker: &EntryMaker<'_>, lists: &Definitions, names: &mut Names, view: &mut View) {
    let settings = maker.settings;
    let filter = Filter::new(&settings.only, &settings.hide);
    for (tool, digest) in lists.tools.iter().zip(lists.tool_digests()) {
        let own = settings.tools.get(&tool.name);
        let is_hidden = own.is_some_and(|own| own.hide) || !filter.shows(&tool.name);
        let is_denied = settings.pin == Pin::Deny && maker.member.pins.is_changed(&tool.name);
        // A hidden tool keeps its name, so that hiding one renames none.
        let name = own.and_then(|own| own.name.as_deref()).unwrap_or(&tool.name);
        let shown = names.take(&settings.name, settings.shown_prefix(), name, &tool.name);
        if is_hidden || is_denied {
            continue;
        }
        let ui = tool.meta.as_ref().and_then(|meta| ui_uri(&meta.0));
        let ui = ui.and_then(|uri| view.changed_ui_uri(&settings.name, uri));
        if let Some(entry) = maker.tool(tool, *digest, &shown, ui) {
            let policy = own.map(|own| own.policy.over(&settings.policy));
            let scopes = policy.as_ref().unwrap_or(&settings.policy).scopes.iter().flatten();
            let is_eager = own.is_some_and(|own| own.eager);
            view.tools.push(&shown, ShownTool { entry, is_eager, scopes: Scopes::of(scopes) });
        }
    }
}

fn add_resources(maker: &EntryMaker<'_>, lists: &Definitions, view: &mut View) {
    let name = &maker.settings.name;
    let Some(entry) = maker.any_resource() else { return };
    let reader = view.readers.len();
    for resource in &lists.resources {
        // For an exact URI, the first upstream wins.
        let is_free = !view.resources.has(&resource.uri) && !is_own(&resource.uri);
        let shown = match is_free {
            true => resource.uri.clone(),
            false => qualified(name, &resource.uri),
        };
        if let Some(entry) = maker.resource(resource, &shown) {
            view.resources.push(&shown, ShownResource { entry, reader });
        }
    }
    let mut templates = Vec::new();
    for template in &lists.templates {
        let text = &template.uri_template;
        let is_free = !view.templates.has(text) && !is_own(text);
        let shown = if is_free { text.clone() } else { qualified(name, text) };
        if let Some(entry) = maker.template(template, &shown) {
            view.templates.push(&shown, entry);
        }
        if is_free {
            templates.extend(UriTemplate::new(text));
        }
    }
    view.readers.push(Reader { upstream: Arc::clone(name), entry, templates });
}
