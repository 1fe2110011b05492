//! Joins the lists of all upstreams into a view.

use std::sync::Arc;

use outlive::{client::relay::CapabilityClass, server::Scopes};

use crate::{
    catalog::Definitions,
    entries::EntryMaker,
    member::Member,
    names::{Filter, Names, UriTemplate, qualified},
    settings::{Pin, Upstream},
    shared::Shared,
    upstream::ConnectionKey,
    view::{Joined, Reader, ShownResource, ShownTool, View, ViewKey, is_own},
};

/// Returns the view of a key, made of the catalogs in memory.
pub(crate) fn view(shared: &Arc<Shared>, key: ViewKey) -> Arc<View> {
    if let Some(known) = shared.known_view(key) {
        return known;
    }
    let generation = shared.generation();
    let mut view = View { generation, ..View::default() };
    let config = shared.config();
    let mut names =
        Named { tools: Names::with(config.settings.taken_names.iter()), prompts: Names::default() };
    for member in &config.members {
        let settings = member.settings();
        let class = class_of(&settings, key);
        match member.catalogs.get(class) {
            Some(lists) => add(shared, member, &settings, &lists, &mut names, &mut view),
            None => view.is_partial = true,
        }
    }
    let view = Arc::new(view);
    shared.keep_view(key, &view);
    view
}

/// Returns the capability class of the catalog that clients of a view see.
fn class_of(settings: &Upstream, key: ViewKey) -> CapabilityClass {
    ConnectionKey::class_for(settings, key.class, key.is_unrelated)
}

/// Names that are taken, for each list.
struct Named {
    tools: Names,
    prompts: Names,
}

fn add(
    shared: &Arc<Shared>,
    member: &Arc<Member>,
    settings: &Upstream,
    lists: &Definitions,
    names: &mut Named,
    view: &mut View,
) {
    let Some(handle) = shared.handle() else { return };
    let maker = EntryMaker { shared, member, settings, handle };
    let filter = Filter::new(&settings.only, &settings.hide);
    add_tools(&maker, lists, &filter, &mut names.tools, &mut view.tools);
    for prompt in lists.prompts.iter().filter(|prompt| filter.shows(&prompt.name)) {
        let shown =
            names.prompts.take(&settings.name, settings.shown_prefix(), &prompt.name, &prompt.name);
        if let Some(entry) = maker.prompt(prompt, &shown) {
            view.prompts.push(&shown, entry);
        }
    }
    if lists.has_resources() {
        add_resources(&maker, lists, view);
    }
}

fn add_tools(
    maker: &EntryMaker<'_>,
    lists: &Definitions,
    filter: &Filter,
    names: &mut Names,
    tools: &mut Joined<ShownTool>,
) {
    let settings = maker.settings;
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
        if let Some(entry) = maker.tool(tool, *digest, &shown) {
            let policy = own.map(|own| own.policy.over(&settings.policy));
            let scopes = policy.as_ref().unwrap_or(&settings.policy).scopes.iter().flatten();
            let is_eager = own.is_some_and(|own| own.eager);
            tools.push(&shown, ShownTool { entry, is_eager, scopes: Scopes::of(scopes) });
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
