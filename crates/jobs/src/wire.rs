//! Protocol between a server and a supervisor: one JSON object per line.
//!
//! A connection carries one request. A watching server gets a line for each change until it
//! disconnects. A server that responds to an input request gets the result.

use serde::{Deserialize, Serialize};

use super::{control::Progress, inputs::MAX_RESPONSE};

/// Request of a server, the only line that it sends.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ServerRequest {
    /// Job ID. Checked, because a socket name may have been used by the supervisor of another job.
    pub(super) job: String,
    pub(super) what: What,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// Requests a line for each change.
    Watch,
    /// Requests the end of the command, and then a line for each change.
    End,
    /// Responds to the input request with this number. The first one has number 1.
    Respond { number: u32, line: String },
}

/// State of a job that a supervisor sends to watchers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct News {
    /// Length of the file `out`.
    pub(super) out: u64,
    /// Length of the file `events`.
    #[serde(default)]
    pub(super) events: u64,
    /// Newest progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) progress: Option<Progress>,
    /// Failure outside of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) warning: Option<String>,
    /// Newest line of standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<String>,
    /// Whether the exit is recorded.
    #[serde(default)]
    pub(super) over: bool,
}

/// Result of an input response.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Taken {
    /// The response is available to the command, or the command has closed its end of the channel.
    Yes,
    /// The response was rejected for this reason.
    No(String),
}

/// Maximum bytes of a request: the longest response, which may need six bytes per byte in JSON, and
/// the other members.
pub(super) const MAX_REQUEST: u64 = 6 * MAX_RESPONSE as u64 + 1024;
