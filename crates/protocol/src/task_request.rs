//! What the client of a call says about tasks, before a policy decides.

use crate::{ProtocolError, ResponseModes};

/// What the client of a call says about tasks.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the codecs build it, and the server reads it")]
pub struct TaskRequest {
    /// What the client can do with a task.
    pub support: ClientTaskSupport,
    /// The response modes that the client names, if it names any. An error counts only where the
    /// server has response modes.
    pub response_modes: Result<Option<ResponseModes>, ProtocolError>,
    /// The sequence number after which the client wants the segments of a task, if it names one. An
    /// error counts only where the task has segments.
    pub after_seq: Result<Option<u64>, ProtocolError>,
    /// Whether the client declares that it reads segments while a task runs.
    pub reads_segments: bool,
}

/// What the client of a call can do with a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every policy must handle each")]
pub enum ClientTaskSupport {
    /// Its version has no tasks.
    Unsupported,
    /// The client does not declare that it accepts tasks.
    NotDeclared,
    /// The client could request a task, and does not.
    NotRequested,
    /// The client accepts a task if the server creates one.
    Accepts,
    /// The client requests a task.
    Requests {
        /// How many milliseconds the task should exist, if the client says so.
        ttl: Option<u64>,
    },
}
