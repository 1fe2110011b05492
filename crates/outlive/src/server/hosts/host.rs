//! The row of one host.

use std::time::Duration;

use crate::server::hosts::limits::HostLimits;

/// Limits of one host: how long its client waits, and how large a result may be.
///
/// A limit that is not set comes from the table of known hosts, else from [`Hosts`].
///
/// [`Hosts`]: crate::server::hosts::Hosts
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Host {
    pub(super) call_timeout: Option<Option<Duration>>,
    pub(super) progress_extends: Option<bool>,
    pub(super) result_tokens: Option<Option<usize>>,
    pub(super) input_stops_clock: Option<bool>,
    pub(super) has_tasks: Option<bool>,
}

impl Host {
    /// Returns a row that sets no limit.
    pub const fn new() -> Self {
        Self {
            call_timeout: None,
            progress_extends: None,
            result_tokens: None,
            input_stops_clock: None,
            has_tasks: None,
        }
    }

    /// Sets the time after which the client ends a call. `None`: the client waits without a limit.
    pub fn call_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.call_timeout = Some(timeout.into());
        self
    }

    /// Sets whether a progress notification restarts the client's call timeout. A progress token
    /// alone does not say so.
    pub fn progress_extends(mut self, extends: bool) -> Self {
        self.progress_extends = Some(extends);
        self
    }

    /// Sets the tokens of the largest result that the host delivers to its model. `None`: the host
    /// delivers all results.
    pub fn result_tokens(mut self, tokens: impl Into<Option<usize>>) -> Self {
        self.result_tokens = Some(tokens.into());
        self
    }

    /// Sets whether the client's call timeout stops while the client asks its user.
    pub fn input_stops_clock(mut self, stops: bool) -> Self {
        self.input_stops_clock = Some(stops);
        self
    }

    /// Sets whether the client supports tasks of 2025-11-25 although it does not declare them. The
    /// server then lists no fallback tools for it.
    pub fn has_tasks(mut self, has_tasks: bool) -> Self {
        self.has_tasks = Some(has_tasks);
        self
    }

    /// Returns `limits`, replaced by the limits that this row sets.
    pub(crate) fn apply(&self, limits: HostLimits) -> HostLimits {
        HostLimits {
            call_timeout: self.call_timeout.unwrap_or(limits.call_timeout),
            progress_extends: self.progress_extends.unwrap_or(limits.progress_extends),
            result_tokens: self.result_tokens.unwrap_or(limits.result_tokens),
            input_stops_clock: self.input_stops_clock.unwrap_or(limits.input_stops_clock),
            has_tasks: self.has_tasks.unwrap_or(limits.has_tasks),
            timeout_spans_rounds: limits.timeout_spans_rounds,
        }
    }
}
