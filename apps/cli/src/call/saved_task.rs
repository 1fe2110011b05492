//! The task of a saved call.

use outlive::client::saved::{CallStage, SavedCall};

/// Returns the ID of the task that a call became, if it is a task.
pub(crate) fn task_id(call: &SavedCall) -> Option<&str> {
    match &call.stage {
        CallStage::Task(task) => Some(&task.id),
        _ => None,
    }
}

/// Returns the protocol version with which the task of a call was created.
pub(crate) fn task_version(call: &SavedCall) -> Option<&str> {
    match &call.stage {
        CallStage::Task(task) => Some(&task.version),
        _ => None,
    }
}
