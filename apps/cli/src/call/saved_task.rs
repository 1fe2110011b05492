//! The task of a saved call.

use outlive::client::saved::{CallStage, SavedCall};

/// The task that a call has become.
pub(crate) fn task_id(call: &SavedCall) -> Option<&str> {
    match &call.stage {
        CallStage::Task(task) => Some(&task.id),
        _ => None,
    }
}

/// The protocol version on which the task of a call was made.
pub(crate) fn task_version(call: &SavedCall) -> Option<&str> {
    match &call.stage {
        CallStage::Task(task) => Some(&task.version),
        _ => None,
    }
}
