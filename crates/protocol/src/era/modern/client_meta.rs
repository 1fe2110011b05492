//! Builds the `_meta` members that describe the client in every modern request.

use outlive_wire::{ClientCapabilities, Implementation, JsonObject, Meta};
use serde_json::Value;

use super::extensions::TASKS;

/// Returns the members of `_meta` after the version, without braces.
pub(in crate::era) fn client_meta(
    info: Option<&Implementation>,
    capabilities: &ClientCapabilities,
    holds_tasks: bool,
) -> Box<str> {
    let mut capabilities = capabilities.clone();
    // `tasks` is a capability of the legacy era only.
    capabilities.tasks = None;
    if let Some(roots) = &mut capabilities.roots {
        roots.list_changed = None;
    }
    if holds_tasks {
        let extensions = capabilities.extensions.get_or_insert_default();
        extensions.insert(TASKS.to_owned(), Value::Object(JsonObject::new()));
    }
    let member = |key: &str, json: serde_json::Result<String>| {
        format!(r#""{key}":{}"#, json.expect("wire types serialize into memory"))
    };
    let capabilities = member(Meta::CLIENT_CAPABILITIES, serde_json::to_string(&capabilities));
    match info {
        Some(info) => {
            let info = member(Meta::CLIENT_INFO, serde_json::to_string(info));
            format!("{info},{capabilities}").into()
        }
        None => capabilities.into(),
    }
}
