//! A tool as people see it who decide about its calls.

use std::sync::Arc;

use outlive_protocol::{Call, CallFuture, Service as _};
use serde_json::value::RawValue;

use crate::server::{api::server::Server, register::registered_tool::CommandWords};

/// A tool as people see it.
pub(crate) struct ShownTool {
    pub(crate) description: Option<String>,
    /// JSON Schema of the arguments, which marks secret ones.
    pub(crate) input_schema: Arc<RawValue>,
    pub(crate) command_words: Option<CommandWords>,
    /// Hash of the definition that approvals cover; `None` if no call needs an approval.
    pub(crate) definition: Option<String>,
    /// Whether answer links may decide about calls of the tool.
    pub(crate) allows_links: bool,
}

impl Server {
    /// Returns a tool, visible to a caller or not.
    pub(crate) fn shown_tool(&self, name: &str) -> Option<ShownTool> {
        let shown = || Some(self.core.catalog.as_ref()?.items.shown_tool(name)?.0);
        let tool = self.core.registered.tools.named(name).or_else(shown)?;
        let gate = tool.exec.policy.gate.as_ref();
        Some(ShownTool {
            description: tool.info.description.clone(),
            input_schema: Arc::clone(&tool.info.input_schema),
            command_words: tool.command_words.clone(),
            definition: gate.map(|gate| gate.definition.clone()),
            allows_links: gate.is_some_and(|gate| gate.approve.links),
        })
    }

    /// Executes a call as if a transport had received it.
    pub(crate) fn execute(&self, call: Arc<Call>) -> CallFuture {
        Arc::clone(&self.core).start(call)
    }
}
