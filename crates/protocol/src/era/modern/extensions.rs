//! The extensions that a request declares in its capabilities.

use outlive_wire::{ClientCapabilities, RawJson};
use serde_json::value::to_raw_value;

use crate::Call;

/// MCP's extension for tasks.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Outlive's extension for partial results of running tasks.
pub(super) const PARTIALS: &str = "dev.outlive/task-partials";

/// Returns whether the request declares an extension.
pub(super) fn declares(call: &Call, extension: &str) -> bool {
    let declared: ClientCapabilities =
        serde_json::from_str(call.client_capabilities()).unwrap_or_default();
    declared.extensions.is_some_and(|extensions| extensions.contains_key(extension))
}

/// Returns the capabilities that a client must declare to accept tasks.
pub fn tasks_capability() -> RawJson {
    let capability = serde_json::json!({"extensions": {TASKS: {}}});
    to_raw_value(&capability).expect("a JSON value serializes")
}
