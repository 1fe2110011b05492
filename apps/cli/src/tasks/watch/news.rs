//! What there is to show of a task.

use serde_json::Value;

/// What is heard of a call.
pub(super) struct News {
    /// Which call.
    pub(super) at: usize,
    pub(super) what: What,
}

pub(super) enum What {
    /// It looks like this. If it asks something new, with what it has printed before that.
    Seen { call: Value, asks: Option<Vec<String>> },
    /// Its server does not answer, for this reason.
    Unreachable(String),
    /// Its server answers again.
    Reachable,
}
