//! Everything that a server offers.

use std::sync::Arc;

use outlive_protocol::{Change, Principal};

use crate::server::{
    register::{
        prompt::RegisteredPrompt,
        registered_tool::RegisteredTool,
        registry::{Notifier, Registry},
        resource::{RegisteredResource, RegisteredTemplate},
    },
    skills::catalog::Catalog as SkillCatalog,
};

/// Everything that a server offers, by name and in order.
pub(crate) struct Catalog {
    pub(crate) tools: Registry<RegisteredTool>,
    pub(crate) resources: Registry<RegisteredResource>,
    pub(crate) templates: Registry<RegisteredTemplate>,
    pub(crate) prompts: Registry<RegisteredPrompt>,
    /// The files of skills, which can be read and are not listed.
    pub(crate) skills: Option<Arc<SkillCatalog>>,
}

impl Catalog {
    /// Returns an empty catalog, with the files of skills.
    pub(crate) fn new(
        skills: Option<Arc<SkillCatalog>>,
        notifier: impl Fn(Change) -> Arc<Notifier>,
    ) -> Self {
        let resources = notifier(Change::Resources);
        Self {
            tools: Registry::new(notifier(Change::Tools)),
            resources: Registry::new(Arc::clone(&resources)),
            templates: Registry::new(resources),
            prompts: Registry::new(notifier(Change::Prompts)),
            skills,
        }
    }

    /// Returns a tool, if the caller may know of it.
    pub(crate) fn find(&self, tool: &str, principal: &Principal) -> Option<Arc<RegisteredTool>> {
        self.tools.get(tool, principal)
    }
}
