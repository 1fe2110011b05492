//! What a server and a supervisor say to each other: a line of JSON each.
//!
//! A connection carries one request. A server that watches gets a line for each change until it disconnects. A server
//! that responds to an input request learns whether the response was taken.

use serde::{Deserialize, Serialize};

use super::{control::Progress, inputs::MAX_RESPONSE};

/// The first and only line of a server.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ServerRequest {
    /// A socket's name may have been used before, by the supervisor of another job.
    pub(super) job: String,
    pub(super) what: What,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// To be told what there is to read.
    Watch,
    /// To end the command; then as `Watch`.
    End,
    /// To respond to the input request of that number; the first is 1.
    Respond { number: u32, line: String },
}

/// What a supervisor says to who watches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct News {
    /// How long the file `out` is.
    pub(super) out: u64,
    /// How long the file `events` is.
    #[serde(default)]
    pub(super) events: u64,
    /// The newest progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) progress: Option<Progress>,
    /// What went wrong beside the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) warning: Option<String>,
    /// The newest line of standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<String>,
    /// Whether the exit has been written.
    #[serde(default)]
    pub(super) over: bool,
}

/// Reply of a supervisor to a response.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Taken {
    /// The command will find it, or has closed its end of the channel.
    Yes,
    /// This is why not.
    No(String),
}

/// The longest request: the longest response, of which JSON may need six bytes for each byte, and what surrounds it.
pub(super) const MAX_REQUEST: u64 = 6 * MAX_RESPONSE as u64 + 1024;
