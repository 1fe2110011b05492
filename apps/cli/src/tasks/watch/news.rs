//! Updates about watched calls.

use serde_json::Value;

/// An update about a call.
pub(super) struct News {
    /// Index of the call.
    pub(super) at: usize,
    pub(super) what: What,
}

pub(super) enum What {
    /// Status of the call. With a new input request, also the output before it.
    Seen { call: Value, asks: Option<Vec<String>> },
    /// The server does not respond, with the reason.
    Unreachable(String),
    /// The server responds again.
    Reachable,
}
