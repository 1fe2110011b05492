//! [`CatalogHandle`], with which a catalog creates its entries and notifies clients.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use outlive_protocol::Change;

use crate::server::{
    build_error::BuildError,
    env::environment::Env,
    meter::{ToolMeter, ToolMetrics},
    register::{
        entry::{PromptEntry, ResourceEntry, TemplateEntry, ToolEntry},
        prompt::Prompt,
        resource::{Resource, ResourceTemplate},
        tool::Tool,
    },
};

/// Number of tools of a catalog with own counters. The definitions of other servers decide the
/// names, so there must be a limit.
const MAX_METERS: usize = 4_096;

/// Name of the counters of all further tools.
const OTHER_TOOLS: &str = "_other";

/// Creates the entries of a [`Catalog`](crate::server::catalog::Catalog) and notifies clients of its
/// changes.
///
/// Clones belong to the same server. The handle does not keep the server alive.
#[derive(Clone)]
pub struct CatalogHandle {
    env: Weak<Env>,
    meters: Arc<CatalogMeters>,
}

/// Counters of a catalog's tools by name. Entries with one name share them, so that a changed
/// definition continues its counters.
#[derive(Default)]
pub(crate) struct CatalogMeters(Mutex<HashMap<Box<str>, Arc<ToolMeter>>>);

impl CatalogMeters {
    /// Returns the metrics of all tools, by name.
    pub(crate) fn read(&self) -> Vec<ToolMetrics> {
        let meters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut metrics: Vec<_> = meters.values().map(|meter| meter.read()).collect();
        metrics.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        metrics
    }

    fn named(&self, name: &str) -> Arc<ToolMeter> {
        let mut meters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = match meters.len() >= MAX_METERS && !meters.contains_key(name) {
            true => OTHER_TOOLS,
            false => name,
        };
        Arc::clone(meters.entry(name.into()).or_insert_with(|| ToolMeter::new(name, None)))
    }
}

impl CatalogHandle {
    pub(crate) fn new(env: &Arc<Env>, meters: &Arc<CatalogMeters>) -> Self {
        Self { env: Arc::downgrade(env), meters: Arc::clone(meters) }
    }

    /// Creates the entry of a tool. Create one entry per definition and share its clones.
    ///
    /// # Errors
    ///
    /// Returns an error if the tool is invalid for this server, as
    /// [`ServerBuilder::build`](crate::server::ServerBuilder::build) does, or if the server no
    /// longer exists.
    pub fn tool(&self, tool: Tool) -> Result<ToolEntry, BuildError> {
        let mut tool = tool.validate(&*self.env()?)?;
        tool.meter = tool.meter.counted_by(&self.meters.named(&tool.info.name));
        Ok(ToolEntry(Arc::new(tool)))
    }

    /// Creates the entry of a prompt.
    ///
    /// # Errors
    ///
    /// Fails as [`CatalogHandle::tool`] does.
    pub fn prompt(&self, prompt: Prompt) -> Result<PromptEntry, BuildError> {
        prompt.register(&*self.env()?).map(Arc::new).map(PromptEntry)
    }

    /// Creates the entry of a resource, or one that reads many URIs.
    ///
    /// # Errors
    ///
    /// Fails as [`CatalogHandle::tool`] does.
    pub fn resource(&self, resource: Resource) -> Result<ResourceEntry, BuildError> {
        resource.register(&*self.env()?).map(Arc::new).map(ResourceEntry)
    }

    /// Creates the entry of a resource template, which clients list and complete. Its URIs are read
    /// through [`Catalog::resource`](crate::server::catalog::Catalog::resource).
    ///
    /// # Errors
    ///
    /// Fails as [`CatalogHandle::tool`] does.
    pub fn template(&self, template: ResourceTemplate) -> Result<TemplateEntry, BuildError> {
        template.register(&*self.env()?).map(Arc::new).map(TemplateEntry)
    }

    /// Notifies all subscribed clients of a change.
    pub fn changed(&self, change: &Change) {
        if let Some(env) = self.env.upgrade() {
            env.profile.bus.publish(change);
        }
    }

    /// Notifies the subscribed clients of the principals for whose key `is_meant` returns true.
    pub fn changed_for(&self, change: &Change, is_meant: impl Fn(&str) -> bool) {
        if let Some(env) = self.env.upgrade() {
            env.profile.bus.publish_for(change, is_meant);
        }
    }

    /// Returns whether a client subscribes to changes of lists.
    pub fn has_listeners(&self) -> bool {
        self.env.upgrade().is_some_and(|env| env.profile.bus.has_list_subscribers())
    }

    /// Adds an event to the audit log in the store, without a line in the log. Callers with too many
    /// events get a count instead. Has no effect on a server without a store.
    pub fn audit(&self, principal: &str, task: Option<&str>, action: &'static str, reason: String) {
        if let Some(env) = self.env.upgrade()
            && let Some(tasks) = &env.tasks
        {
            tasks.audit_quietly(principal, task.unwrap_or_default(), action, reason);
        }
    }

    fn env(&self) -> Result<Arc<Env>, BuildError> {
        self.env.upgrade().ok_or_else(|| BuildError("the server no longer exists".to_owned()))
    }
}

impl fmt::Debug for CatalogHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogHandle").finish_non_exhaustive()
    }
}
