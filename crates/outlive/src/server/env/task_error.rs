//! Errors that clients receive for tasks and stores.

use outlive_protocol::ProtocolError;
use outlive_tasks::store::StoreError;
use outlive_wire::{ErrorObject, code};

/// Returns one error for a task that does not exist, belongs to another principal, or has expired.
pub(crate) fn unknown_task() -> ProtocolError {
    ProtocolError::invalid_params("unknown task; it may have expired")
}

/// Returns the error of a failed store. The message reveals nothing about the task.
pub(crate) fn unavailable(error: &StoreError) -> ProtocolError {
    match error {
        StoreError::Unavailable(_) => ProtocolError::unavailable(error),
        _ => ProtocolError::internal(error),
    }
}

/// Returns the error of a large result whose parts were not read. `Engine::get` reads them, so this
/// is a defect of the server.
pub(crate) fn not_loaded() -> ProtocolError {
    ProtocolError::internal("the parts of a large result were not read")
}

/// Returns an internal error as an object.
pub(crate) fn internal(message: &str) -> ErrorObject {
    ErrorObject { code: code::INTERNAL, message: message.to_owned(), data: None }
}
