//! A saved call as JSON.

use crate::{
    call::{saved_calls::SavedHandle, saved_task::task_id, saved_task::task_version},
    store::stamp,
};
use outlive::client::saved::CallStage;
use serde_json::{Value, json};

/// Displayed length of the arguments in a table, in characters.
pub(super) const ARGUMENTS: usize = 40;

/// Describes a saved call as JSON.
pub(crate) fn described(saved: &SavedHandle) -> Value {
    let SavedHandle { call, origin } = saved;
    json!({
        "handle": call.id,
        "server": call.server,
        "folder": origin.folder(),
        "version": task_version(call).or(origin.protocol_version.as_deref()),
        "tool": call.tool,
        "arguments": call.arguments,
        "state": state(&call.stage),
        "saved": origin.created.map(stamp),
        "task": task_id(call),
    })
}

/// Returns the state of a call, as last saved.
pub(super) fn state(stage: &CallStage) -> &'static str {
    match stage {
        CallStage::Calling(_) => "calling",
        CallStage::Task(_) => "task",
        CallStage::Done(result) if result.is_error == Some(true) => "failed",
        CallStage::Done(_) => "completed",
        CallStage::Failed(error) => {
            let data = error.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok());
            let data: Value = data.unwrap_or_default();
            if data["status"] == "cancelled" { "cancelled" } else { "failed" }
        }
        _ => "unknown",
    }
}
