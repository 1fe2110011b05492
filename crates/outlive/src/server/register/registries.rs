//! The registries of a server: its items by kind.

use std::sync::Arc;

use outlive_protocol::Change;
use outlive_wire::ResourceContents;

use crate::server::register::{
    prompt::RegisteredPrompt,
    registered_tool::RegisteredTool,
    registry::{Notifier, Registry},
    resource::{RegisteredResource, RegisteredTemplate},
};

/// Resources that every caller can read but that lists omit: the files of skills.
pub(crate) trait UnlistedResources: Send + Sync {
    /// Returns whether the resource exists.
    fn has(&self, uri: &str) -> bool;

    /// Returns the contents of a resource.
    fn read(&self, uri: &str) -> Option<ResourceContents>;
}

/// All registered items of a server, by name and in order of registration.
pub(crate) struct Registries {
    pub(crate) tools: Registry<RegisteredTool>,
    pub(crate) resources: Registry<RegisteredResource>,
    pub(crate) templates: Registry<RegisteredTemplate>,
    pub(crate) prompts: Registry<RegisteredPrompt>,
    pub(crate) unlisted: Option<Arc<dyn UnlistedResources>>,
}

impl Registries {
    /// Returns empty registries with the given unlisted resources.
    pub(crate) fn new(
        unlisted: Option<Arc<dyn UnlistedResources>>,
        notifier: impl Fn(Change) -> Arc<Notifier>,
    ) -> Self {
        let resources = notifier(Change::Resources);
        Self {
            tools: Registry::new(notifier(Change::Tools)),
            resources: Registry::new(Arc::clone(&resources)),
            templates: Registry::new(resources),
            prompts: Registry::new(notifier(Change::Prompts)),
            unlisted,
        }
    }
}
