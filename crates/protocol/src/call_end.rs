//! How a call ends, for code that counts and logs calls.

use crate::{Outcome, ProtocolError};

/// How a call has ended.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "every watcher must handle each")]
pub enum CallEnd<'a> {
    /// The server responded.
    Answered(&'a Result<Outcome, ProtocolError>),
    /// Its caller has cancelled it, or left.
    Cancelled,
    /// The server responded with a task before, and the run of the task has ended.
    Task {
        /// The task.
        task_id: &'a str,
        /// What its handler returned.
        result: &'a Result<Outcome, ProtocolError>,
    },
    /// The server responded with a task before, and the handler has stopped because the task was
    /// cancelled.
    TaskCancelled {
        /// The task.
        task_id: &'a str,
    },
}
