//! The task members of a request, before the task policy is applied.

use crate::{ProtocolError, ResponseModes};

/// The task members of a request.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the codecs build it, and the server reads it")]
pub struct TaskRequest {
    /// Task support of the client.
    pub support: ClientTaskSupport,
    /// Response modes that the client accepts. An error matters only if the server has response
    /// modes.
    pub response_modes: Result<Option<ResponseModes>, ProtocolError>,
    /// Sequence number of the last segment that the client has. An error matters only if the task
    /// has segments.
    pub after_seq: Result<Option<u64>, ProtocolError>,
    /// Whether the client declares the extension for partial results.
    pub reads_segments: bool,
}

/// Task support of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every policy must handle each")]
pub enum ClientTaskSupport {
    /// The protocol version has no tasks.
    Unsupported,
    /// The client does not declare that it accepts tasks.
    NotDeclared,
    /// The client could request a task but does not.
    NotRequested,
    /// The client accepts a task if the server creates one.
    Accepts,
    /// The client requests a task.
    Requests {
        /// Requested TTL in milliseconds.
        ttl: Option<u64>,
    },
}
