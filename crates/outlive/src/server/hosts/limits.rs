//! The limits of one client.

use std::time::Duration;

use crate::server::hosts::{observations::LearnedLimit, slice::slice};

/// Limits of a client: its host row, else the defaults of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostLimits {
    /// Time after which the client ends a request; `None` if it waits without a limit.
    pub(crate) call_timeout: Option<Duration>,
    /// Whether a progress notification restarts the call timeout. A client that sends no progress
    /// token gets no progress, so its requests never qualify.
    pub(crate) progress_extends: bool,
    /// Tokens of the largest result that the client delivers to its model; `None` for all.
    pub(crate) result_tokens: Option<usize>,
    /// Whether the call timeout stops while the client asks its user.
    pub(crate) input_stops_clock: bool,
    /// Whether the client supports tasks of 2025-11-25 without declaring them.
    pub(crate) has_tasks: bool,
    /// Whether the call timeout counts all rounds of a call together, so that rounds gain nothing.
    pub(crate) timeout_spans_rounds: bool,
}

impl HostLimits {
    /// Returns the longest wait of one request; `None` if the client waits without a limit.
    pub(crate) fn slice(&self) -> Option<Duration> {
        self.call_timeout.map(slice)
    }

    /// Returns the limits with a learned limit in place of the call timeout. A client that timed out
    /// does not extend its timeout on progress, whatever its row says.
    pub(crate) fn with_learned(self, learned: LearnedLimit) -> Self {
        Self {
            call_timeout: learned.call_timeout.or(self.call_timeout),
            progress_extends: self.progress_extends && learned.call_timeout.is_none(),
            timeout_spans_rounds: self.timeout_spans_rounds || learned.timeout_spans_rounds,
            ..self
        }
    }
}
