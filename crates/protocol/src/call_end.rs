//! The end of a call, for metrics and logs.

use crate::{Outcome, ProtocolError};

/// The end of a call.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "every watcher must handle each")]
pub enum CallEnd<'a> {
    /// The server responded.
    Answered(&'a Result<Outcome, ProtocolError>),
    /// The client cancelled the call or disconnected.
    Cancelled,
    /// The server had responded with a task, and the run of the task has ended.
    Task {
        /// ID of the task.
        task_id: &'a str,
        /// Result of the handler.
        result: &'a Result<Outcome, ProtocolError>,
    },
    /// The server had responded with a task, and the handler stopped because the task was
    /// cancelled.
    TaskCancelled {
        /// ID of the task.
        task_id: &'a str,
    },
}
