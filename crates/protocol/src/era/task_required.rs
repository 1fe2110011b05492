//! The error for a client without task support that calls a tool which runs only as a task.

use outlive_wire::{ErrorObject, code};

use super::modern::tasks_capability;
use crate::{ProtocolError, TaskDialect, VersionRules};

/// Returns the error for a client without task support that calls a tool which runs only as a task.
pub fn task_required(rules: &VersionRules) -> ProtocolError {
    match rules.tasks {
        TaskDialect::Offered => ProtocolError::MissingCapability { required: tasks_capability() },
        TaskDialect::Requested | TaskDialect::None => ProtocolError::Custom(ErrorObject {
            code: code::METHOD_NOT_FOUND,
            message: "this tool runs only as a task; call it with `params.task`".to_owned(),
            data: None,
        }),
    }
}
