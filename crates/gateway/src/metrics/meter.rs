//! Counters of one upstream, which its parts update while they run.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use outlive::wire::{ElicitRequestParams, InputRequest};

use super::histogram::HistogramCell;

/// Tools of one upstream with own counters. The upstream decides the names, so there is a limit.
const MAX_TOOLS: usize = 1_024;

/// Name of the counters of all further tools.
const OTHER_TOOLS: &str = "_other";

/// End of a relayed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Completed,
    Failed,
    Cancelled,
}

/// Kind of an input request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum InputKind {
    Form,
    Url,
    Sampling,
    Roots,
}

/// Way in which an input request came from the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum InputPath {
    /// On the stream of its call.
    Call,
    /// On the connection, without its call.
    Connection,
    /// As the result of a round.
    Round,
}

/// Counters of one upstream. They survive a change of its settings.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    calls: Mutex<BTreeMap<Box<str>, [u64; 3]>>,
    pub(super) upstream_time: HistogramCell,
    pub(super) added_time: HistogramCell,
    inputs: Mutex<BTreeMap<(InputKind, InputPath), u64>>,
    bridged: AtomicU64,
    starts: AtomicU64,
    exits: AtomicU64,
    catalog_changes: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

impl CallOutcome {
    pub(crate) const ALL: [Self; 3] = [Self::Completed, Self::Failed, Self::Cancelled];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl InputKind {
    pub(crate) fn of(request: &InputRequest) -> Self {
        match request {
            InputRequest::Elicit(ElicitRequestParams::Url(_)) => Self::Url,
            InputRequest::Elicit(_) => Self::Form,
            InputRequest::CreateMessage(_) => Self::Sampling,
            _ => Self::Roots,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Url => "url",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

impl InputPath {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Connection => "connection",
            Self::Round => "round",
        }
    }
}

impl Meter {
    /// Counts a call of a tool, or of another method.
    pub(crate) fn call(&self, tool: &str, outcome: CallOutcome) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let tool = match calls.len() >= MAX_TOOLS && !calls.contains_key(tool) {
            true => OTHER_TOOLS,
            false => tool,
        };
        match calls.get_mut(tool) {
            Some(counts) => counts[outcome as usize] += 1,
            None => {
                let mut counts = [0; 3];
                counts[outcome as usize] = 1;
                calls.insert(tool.into(), counts);
            }
        }
    }

    /// Records how long a call took at the upstream, and how long the gateway worked on it.
    pub(crate) fn time(&self, upstream: Duration, added: Duration) {
        self.upstream_time.add(upstream);
        self.added_time.add(added);
    }

    pub(crate) fn input(&self, kind: InputKind, path: InputPath) {
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        *inputs.entry((kind, path)).or_default() += 1;
    }

    /// Counts a call that became a task while its upstream waits for input.
    pub(crate) fn bridged(&self) {
        add(&self.bridged, 1);
    }

    pub(crate) fn started(&self) {
        add(&self.starts, 1);
    }

    pub(crate) fn exited(&self) {
        add(&self.exits, 1);
    }

    pub(crate) fn catalog_changed(&self) {
        add(&self.catalog_changes, 1);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        add(&self.sent_bytes, bytes as u64);
    }

    pub(crate) fn received(&self, bytes: usize) {
        add(&self.received_bytes, bytes as u64);
    }

    /// Returns the counters without labels, by their names.
    pub(super) fn counts(&self) -> [(&'static str, u64); 6] {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("bridged_calls", read(&self.bridged)),
            ("starts", read(&self.starts)),
            ("exits", read(&self.exits)),
            ("catalog_changes", read(&self.catalog_changes)),
            ("sent_bytes", read(&self.sent_bytes)),
            ("received_bytes", read(&self.received_bytes)),
        ]
    }

    pub(super) fn calls(&self) -> BTreeMap<Box<str>, [u64; 3]> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn inputs(&self) -> BTreeMap<(InputKind, InputPath), u64> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::{CallOutcome, MAX_TOOLS, Meter};

    #[test]
    fn tools_beyond_the_limit_are_counted_together() {
        let meter = Meter::default();
        for number in 0..2 * MAX_TOOLS {
            meter.call(&format!("tool_{number}"), CallOutcome::Completed);
        }
        meter.call("tool_7", CallOutcome::Failed);
        let calls = meter.calls();
        assert_eq!(calls.len(), MAX_TOOLS + 1);
        assert_eq!((calls["tool_7"], calls["_other"]), ([1, 1, 0], [MAX_TOOLS as u64, 0, 0]));
    }
}
