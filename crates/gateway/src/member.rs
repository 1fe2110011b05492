//! One upstream of the gateway: what it runs, what it lists, and the entries made of that.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use outlive::server::catalog::{PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};

use crate::{
    catalog::{Catalogs, Digest, Pins},
    credentials::Credentials,
    metrics::Meter,
    settings::{Pin, Upstream, closest},
    status::{State, UpstreamStatus},
    upstream::{ProcessLimit, Runtime, Supervisor, UpstreamEvents, UpstreamState},
};

/// Entries that are retained per kind. Lists of more entries are made again for each view.
const MAX_ENTRIES: usize = 8_192;

/// One upstream of the gateway. It lives as long as its connection settings.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) runtime: Runtime,
    pub(crate) catalogs: Catalogs,
    pub(crate) pins: Pins,
    pub(crate) entries: Entries,
}

/// Entries by their definition and the name under which clients see it. Principals and capability
/// classes share them.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) tools: EntryCache<ToolEntry>,
    pub(crate) prompts: EntryCache<PromptEntry>,
    pub(crate) resources: EntryCache<ResourceEntry>,
    pub(crate) templates: EntryCache<TemplateEntry>,
}

/// Entries of one kind. `None` stands for a definition that the server refuses.
#[derive(Debug)]
pub(crate) struct EntryCache<T>(Mutex<HashMap<(String, Digest), Option<T>>>);

impl<T> Default for EntryCache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> EntryCache<T> {
    /// Returns the entry of a definition under a name, which is made once.
    pub(crate) fn get(
        &self,
        name: &str,
        digest: Digest,
        make: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        let key = (name.to_owned(), digest);
        if let Some(known) = self.lock().get(&key) {
            return known.clone();
        }
        // Without the lock: a schema takes time to compile.
        let made = make();
        let mut entries = self.lock();
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        entries.insert(key, made.clone());
        made
    }

    fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, Digest), Option<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    pub(crate) fn new(
        settings: Upstream,
        meter: Arc<Meter>,
        events: Arc<dyn UpstreamEvents>,
        limit: &Arc<ProcessLimit>,
        supervisor: Option<&Arc<Supervisor>>,
        credentials: &Arc<Credentials>,
    ) -> Arc<Self> {
        Arc::new(Self {
            runtime: Runtime::new(settings, meter, events, limit, supervisor, credentials),
            catalogs: Catalogs::default(),
            pins: Pins::default(),
            entries: Entries::default(),
        })
    }

    pub(crate) fn settings(&self) -> Arc<Upstream> {
        self.state().settings()
    }

    pub(crate) fn state(&self) -> &Arc<UpstreamState> {
        &self.runtime.state
    }

    /// Replaces the settings that need no new connections.
    pub(crate) fn set_settings(&self, settings: Upstream) {
        self.state().set_settings(settings);
        self.entries.tools.clear();
        self.entries.prompts.clear();
        self.entries.resources.clear();
        self.entries.templates.clear();
    }

    /// Returns the status with the numbers of the newest catalog.
    pub(crate) fn report(&self) -> UpstreamStatus {
        let mut status = self.runtime.report();
        status.changed_tools = self.pins.changed();
        let settings = self.settings();
        let changed = match (status.changed_tools.len(), self.pins.has_changed_instructions()) {
            (0, false) => None,
            (0, true) => Some("changed instructions are not accepted".to_owned()),
            (changed, _) => Some(format!("definitions of {changed} tools are not accepted")),
        };
        if settings.pin != Pin::Off && changed.is_some() && status.reason.is_none() {
            status.state = State::Changed;
            status.reason = changed;
            status.remedy = Some(format!("outlive upstreams accept {}", settings.name));
        }
        let Some(lists) = self.catalogs.largest() else { return status };
        status.tools = lists.tools.len();
        status.prompts = lists.prompts.len();
        status.resources = lists.resources.len();
        status.templates = lists.templates.len();
        status.warnings.extend(lists.left_out.iter().cloned());
        let listed: Vec<&str> = lists.tools.iter().map(|tool| tool.name.as_str()).collect();
        for name in settings.tools.keys() {
            if listed.contains(&name.as_str()) {
                continue;
            }
            status.warnings.push(match closest(name, &listed) {
                Some(close) => format!("it has no tool `{name}`; did you mean `{close}`?"),
                None => format!("it has no tool `{name}`, which the settings name"),
            });
        }
        status
    }
}
