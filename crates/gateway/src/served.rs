//! The catalog of the server. It finds items in memory where it can, and else waits for upstreams.

use std::sync::{Arc, OnceLock};

use outlive::server::catalog::{
    Call, Catalog, CatalogHandle, CatalogPage, Lookup, PageRequest, PromptEntry, ResourceEntry,
    TemplateEntry, ToolEntry,
};

use crate::{
    assemble, instructions,
    member::Member,
    own_tools::{self, FIND_TOOLS, OwnTools, UPSTREAM_PROBLEMS},
    refresh,
    relay::{CALL_TOOL, Inner, is_loop},
    settings::Discovery,
    shared::Shared,
    subscriptions::Subscriptions,
    view::View,
};

/// The catalog of a server with a gateway.
pub(crate) struct ServedCatalog {
    shared: Arc<Shared>,
    own: OnceLock<OwnTools>,
    subscriptions: Arc<Subscriptions>,
}

impl ServedCatalog {
    pub(crate) fn new(shared: &Arc<Shared>, subscriptions: &Arc<Subscriptions>) -> Self {
        Self {
            shared: Arc::clone(shared),
            own: OnceLock::new(),
            subscriptions: Arc::clone(subscriptions),
        }
    }

    fn view(&self, call: &Call) -> Arc<View> {
        assemble::view(&self.shared, &self.shared.view_key(call))
    }

    /// Finds an item. If lists are missing and `name` is not in the others, waits for them.
    fn find<T: Send + 'static>(
        &self,
        call: &Arc<Call>,
        name: &str,
        get: impl Fn(&View, &str) -> Option<T> + Send + 'static,
    ) -> Lookup<T> {
        let view = self.view(call);
        if let Some(found) = get(&view, name) {
            return Lookup::Found(found);
        }
        if view.missing.is_empty() {
            return Lookup::Unknown;
        }
        let (shared, call, name) = (Arc::clone(&self.shared), Arc::clone(call), name.to_owned());
        Lookup::Pending(Box::pin(async move {
            let mut config = shared.config();
            for _ in 0..MAX_RELOADS {
                let missing = refresh::ensure(&shared, &config.members, &call);
                // A list can have arrived since the last view.
                let view = assemble::view(&shared, &shared.view_key(&call));
                if let Some(found) = get(&view, &name) {
                    return Ok(Some(found));
                }
                for missing in missing {
                    // The upstream whose prefix the name has is worth a longer wait.
                    let settings = missing.member.settings();
                    let is_likely = is_named_by(&missing.member, &name);
                    let list_wait = config.settings.list_wait;
                    let wait = if is_likely { settings.start_timeout } else { list_wait };
                    let _ = tokio::time::timeout(wait, missing.wait()).await;
                    let view = assemble::view(&shared, &shared.view_key(&call));
                    if let Some(found) = get(&view, &name) {
                        return Ok(Some(found));
                    }
                }
                let now = shared.config();
                if Arc::ptr_eq(&now, &config) {
                    break;
                }
                // The settings changed meanwhile, and other upstreams must be listed.
                config = now;
            }
            Ok(None)
        }))
    }

    /// Returns a page. Waits for upstreams that were never listed.
    fn page<T: Send + 'static>(
        &self,
        call: &Arc<Call>,
        request: PageRequest,
        get: impl Fn(&View, &PageRequest) -> (Vec<T>, Option<String>) + Send + 'static,
    ) -> Lookup<CatalogPage<T>> {
        if is_loop(call, &self.shared.id) {
            // An upstream that leads back here must not list its own tools again.
            return Lookup::Found(CatalogPage::default());
        }
        let view = self.view(call);
        if view.missing.is_empty() {
            let (items, next) = get(&view, &request);
            return Lookup::Found(CatalogPage::new(items, next));
        }
        let config = self.shared.config();
        let missing = refresh::ensure(&self.shared, &config.members, call);
        let (shared, call) = (Arc::clone(&self.shared), Arc::clone(call));
        let wait = config.settings.list_wait;
        Lookup::Pending(Box::pin(async move {
            let all = async {
                for missing in missing {
                    missing.wait().await;
                }
            };
            // Late upstreams follow with a notification.
            let _ = tokio::time::timeout(wait, all).await;
            let view = assemble::view(&shared, &shared.view_key(&call));
            let (items, next) = get(&view, &request);
            Ok(Some(CatalogPage::new(items, next)))
        }))
    }

    /// Returns an own tool by its name.
    fn own_tool(&self, name: &str) -> Option<&ToolEntry> {
        let own = self.own.get()?;
        let settings = &self.shared.config().settings;
        let searches = settings.discovery == Discovery::Search;
        match name {
            UPSTREAM_PROBLEMS if settings.report_problems => Some(&own.problems),
            FIND_TOOLS if searches => Some(&own.find),
            CALL_TOOL if searches => Some(&own.call),
            _ => None,
        }
    }
}

/// Changes of the settings that a call follows while it waits for lists.
const MAX_RELOADS: usize = 16;

/// Returns the own tools that a list has: after the others, on the last page. Called when the lists
/// of upstreams were read, because that may find a problem.
fn own_listed(shared: &Shared, own: Option<&OwnTools>, call: &Call) -> Vec<ToolEntry> {
    let Some(own) = own else { return Vec::new() };
    let config = shared.config();
    let mut listed = Vec::new();
    if config.settings.discovery == Discovery::Search {
        listed.extend([own.find.clone(), own.call.clone()]);
    }
    let has_problems = || !own_tools::problems(shared, call.principal()).is_empty();
    if config.settings.report_problems && has_problems() {
        listed.push(own.problems.clone());
    }
    listed
}

/// Returns whether a name or URI has the prefix of an upstream.
fn is_named_by(member: &Member, name: &str) -> bool {
    let settings = member.settings();
    let prefix = settings.shown_prefix();
    prefix.is_empty()
        || name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with("__"))
        || name.strip_prefix(&*settings.name).is_some_and(|rest| rest.starts_with('+'))
}

impl Catalog for ServedCatalog {
    fn attach(&self, handle: CatalogHandle) {
        if let Some(own) = OwnTools::new(&handle, &Arc::downgrade(&self.shared)) {
            let _ = self.own.set(own);
        }
        self.shared.attach(handle);
    }

    fn tool(&self, call: &Arc<Call>, name: &str) -> Lookup<ToolEntry> {
        let Some(own) = self.own_tool(name) else {
            return self.find(call, name, |view, name| Some(view.tools.get(name)?.entry.clone()));
        };
        if name != CALL_TOOL {
            return Lookup::Found(own.clone());
        }
        // The inner tool decides on policy, scopes and approval.
        let arguments = call.arguments().unwrap_or("{}");
        match serde_json::from_str::<Inner<'_>>(arguments) {
            Ok(inner) if self.own_tool(&inner.name).is_none() => {
                self.find(call, &inner.name, |view, name| Some(view.tools.get(name)?.entry.clone()))
            }
            _ => Lookup::Found(own.clone()),
        }
    }

    fn prompt(&self, call: &Arc<Call>, name: &str) -> Lookup<PromptEntry> {
        self.find(call, name, |view, name| view.prompts.get(name).cloned())
    }

    fn resource(&self, call: &Arc<Call>, uri: &str) -> Lookup<ResourceEntry> {
        let found = self.find(call, uri, |view, uri| view.reader(uri).cloned());
        let Lookup::Pending(waiting) = found else { return found };
        let (shared, call, uri) = (Arc::clone(&self.shared), Arc::clone(call), uri.to_owned());
        Lookup::Pending(Box::pin(async move {
            let found = waiting.await?;
            // An upstream that cannot be listed must not hide the resources of another one.
            let guess =
                || assemble::view(&shared, &shared.view_key(&call)).listed_reader(&uri).cloned();
            Ok(found.or_else(guess))
        }))
    }

    fn template(&self, call: &Arc<Call>, uri_template: &str) -> Lookup<TemplateEntry> {
        self.find(call, uri_template, |view, text| view.templates.get(text).cloned())
    }

    fn tools(&self, call: &Arc<Call>, request: PageRequest) -> Lookup<CatalogPage<ToolEntry>> {
        let searches = self.shared.config().settings.discovery == Discovery::Search;
        let (shared, own) = (Arc::clone(&self.shared), self.own.get().cloned());
        let caller = Arc::clone(call);
        self.page(call, request, move |view, request| {
            let (mut items, next) =
                view.tools.page(request.after.as_deref(), request.max, |tool| {
                    (!searches || tool.is_eager).then(|| tool.entry.clone())
                });
            if next.is_none() {
                items.extend(own_listed(&shared, own.as_ref(), &caller));
            }
            (items, next)
        })
    }

    fn prompts(&self, call: &Arc<Call>, request: PageRequest) -> Lookup<CatalogPage<PromptEntry>> {
        self.page(call, request, |view, request| {
            view.prompts.page(request.after.as_deref(), request.max, |entry| Some(entry.clone()))
        })
    }

    fn resources(
        &self,
        call: &Arc<Call>,
        request: PageRequest,
    ) -> Lookup<CatalogPage<ResourceEntry>> {
        self.page(call, request, |view, request| {
            let show = |shown: &crate::view::ShownResource| Some(shown.entry.clone());
            view.resources.page(request.after.as_deref(), request.max, show)
        })
    }

    fn templates(
        &self,
        call: &Arc<Call>,
        request: PageRequest,
    ) -> Lookup<CatalogPage<TemplateEntry>> {
        self.page(call, request, |view, request| {
            view.templates.page(request.after.as_deref(), request.max, |entry| Some(entry.clone()))
        })
    }

    fn shown_tool(&self, name: &str) -> Option<ToolEntry> {
        if let Some(own) = self.own_tool(name) {
            return Some(own.clone());
        }
        self.shared.find_in_views(|view| Some(view.tools.get(name)?.entry.clone()))
    }

    fn instructions(&self, call: &Call) -> Option<String> {
        instructions::instructions(&self.shared, call)
    }

    fn subscribed(&self, principal: &str, uri: &str) {
        self.subscriptions.add(&self.shared, principal, uri);
    }

    fn unsubscribed(&self, principal: &str, uri: &str) {
        self.subscriptions.remove(principal, uri);
    }
}
