//! Finds items for a call: registered ones, else those of the catalog.

use std::sync::Arc;

use outlive_protocol::{Call, ProtocolError};

use crate::server::{
    dispatch::{core::ServerCore, listed::Listed},
    register::{
        catalog::Lookup,
        prompt::RegisteredPrompt,
        registered_tool::RegisteredTool,
        registry::Entry as _,
        resource::{RegisteredResource, RegisteredTemplate},
    },
};

impl ServerCore {
    /// Returns the tool with this name that the principal of a call can see.
    pub(crate) fn tool(&self, call: &Arc<Call>, name: &str) -> Lookup<Arc<RegisteredTool>> {
        match self.registered.tools.get(name, call.principal()) {
            Some(tool) => Lookup::Found(tool),
            None => self.catalog_tool(call, name),
        }
    }

    /// Returns the tool of the catalog with this name that the principal of a call can see.
    pub(crate) fn catalog_tool(&self, call: &Arc<Call>, name: &str) -> Lookup<Arc<RegisteredTool>> {
        let Some(port) = &self.catalog else { return Lookup::Unknown };
        visible(port.items.tool(call, name), call)
    }

    /// Returns the tool with this name, as [`ServerCore::tool`]. Waits if it is not in memory.
    ///
    /// # Errors
    ///
    /// Returns the error of the catalog.
    pub(crate) async fn find_tool(
        &self,
        call: &Arc<Call>,
        name: &str,
    ) -> Result<Option<Arc<RegisteredTool>>, ProtocolError> {
        self.tool(call, name).found().await
    }

    /// Returns the prompt with this name that the principal of a call can see.
    pub(crate) fn prompt(&self, call: &Arc<Call>, name: &str) -> Lookup<Arc<RegisteredPrompt>> {
        if let Some(prompt) = self.registered.prompts.get(name, call.principal()) {
            return Lookup::Found(prompt);
        }
        let Some(port) = &self.catalog else { return Lookup::Unknown };
        visible(port.items.prompt(call, name), call)
    }

    /// Returns the template with this text that the principal of a call can see.
    pub(crate) fn template(&self, call: &Arc<Call>, text: &str) -> Lookup<Arc<RegisteredTemplate>> {
        if let Some(template) = self.registered.templates.get(text, call.principal()) {
            return Lookup::Found(template);
        }
        let Some(port) = &self.catalog else { return Lookup::Unknown };
        visible(port.items.template(call, text), call)
    }

    /// Returns the item of the catalog that reads a URI and that the principal of a call can see.
    pub(crate) fn catalog_resource(
        &self,
        call: &Arc<Call>,
        uri: &str,
    ) -> Lookup<Arc<RegisteredResource>> {
        let Some(port) = &self.catalog else { return Lookup::Unknown };
        visible(port.items.resource(call, uri), call)
    }
}

/// Leaves out an entry that the principal of the call cannot see.
fn visible<L: Listed>(lookup: Lookup<L>, call: &Arc<Call>) -> Lookup<Arc<L::Item>> {
    let shown = |call: &Call, entry: &L| {
        let item = entry.item();
        item.access().is_visible_to(call.principal()).then(|| Arc::clone(item))
    };
    match lookup {
        Lookup::Found(entry) => shown(call, &entry).map_or(Lookup::Unknown, Lookup::Found),
        Lookup::Unknown => Lookup::Unknown,
        Lookup::Pending(pending) => {
            let call = Arc::clone(call);
            Lookup::Pending(Box::pin(async move {
                Ok(pending.await?.and_then(|entry| shown(&call, &entry)))
            }))
        }
    }
}
