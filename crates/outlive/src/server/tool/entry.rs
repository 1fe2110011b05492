//! A tool that is registered, and what is to be known of it when it is called.

use std::sync::Arc;

use outlive_protocol::{CallFuture, ProtocolError};

use super::ToolHandler;
use crate::server::{
    Cx,
    access::Access,
    durable::{Upgrade, fingerprint},
    meter::ToolMeter,
    registry::Entry,
    tasks::{Hook, OnCrash, TaskPolicy},
    throttle::Throttle,
};
use outlive_schema::Schema;

/// A tool that is registered.
pub(in crate::server) struct ToolEntry {
    pub(in crate::server) info: Arc<outlive_wire::Tool>,
    pub(super) handler: ToolHandler,
    pub(super) upgrade: Upgrade,
    pub(super) policy: TaskPolicy,
    pub(super) on_crash: Option<OnCrash>,
    pub(super) clean_up: Option<Hook>,
    pub(super) immediate: Option<String>,
    pub(super) incremental: bool,
    pub(super) promotes_at_step: bool,
    /// Whether the handler may run again from the top.
    pub(super) durable: bool,
    pub(super) input: Schema,
    /// Whether the handler's own type makes the structural check.
    pub(super) typed_input: bool,
    pub(super) output: Option<Schema>,
    pub(super) typed_output: bool,
    pub(super) access: Access,
    pub(super) all: Option<Arc<Throttle>>,
    pub(super) each: Option<Arc<Throttle>>,
    pub(in crate::server) meter: Arc<ToolMeter>,
}

impl ToolEntry {
    /// Starts the handler.
    pub(in crate::server) fn start(&self, cx: &Cx, entry: &Arc<ToolEntry>) -> CallFuture {
        (self.handler)(cx, entry)
    }

    /// What has to be the same for a call to be the same.
    pub(in crate::server) fn digest(&self, cx: &Cx) -> Result<String, ProtocolError> {
        fingerprint(cx.core(), cx.call(), &self.upgrade.salient)
    }

    /// What becomes of what another revision has recorded.
    pub(in crate::server) fn revisions(&self) -> &Upgrade {
        &self.upgrade
    }

    /// What is done after a task of it that was cancelled or has expired.
    pub(in crate::server) fn hook(&self) -> Option<&Hook> {
        self.clean_up.as_ref()
    }

    /// Whether its calls become tasks.
    pub(in crate::server) fn policy(&self) -> TaskPolicy {
        self.policy
    }

    /// What the model may be told while it runs.
    pub(in crate::server) fn immediate(&self) -> Option<&str> {
        self.immediate.as_deref()
    }

    /// Whether its content is emitted bit by bit.
    pub(in crate::server) fn is_incremental(&self) -> bool {
        self.incremental
    }

    /// Whether a call of it becomes a task before its first step, where it may become one.
    pub(in crate::server) fn promotes_at_step(&self) -> bool {
        self.promotes_at_step
    }

    /// Whether a run of it that was lost may be begun again though it has emitted something. What
    /// goes on from its journal goes on there; all else says so, or does not.
    pub(in crate::server) fn resumes_in_the_middle(&self) -> bool {
        self.durable || self.on_crash == Some(OnCrash::Rerun)
    }

    /// Whether its runs go on from their journal.
    pub(in crate::server) fn is_durable(&self) -> bool {
        self.durable
    }

    /// Whether it is run again when a worker was lost.
    pub(in crate::server) fn resumes(&self) -> bool {
        let hints = self.info.annotations.as_ref();
        let can = self.durable
            || hints.is_some_and(|hints| {
                hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
            });
        self.on_crash.map_or(can, |said| said == OnCrash::Rerun)
    }

    /// The limit on all callers together.
    pub(in crate::server) fn limit_of_all(&self) -> &Option<Arc<Throttle>> {
        &self.all
    }

    /// The limit on each caller.
    pub(in crate::server) fn limit_of_each(&self) -> &Option<Arc<Throttle>> {
        &self.each
    }
}

impl Entry for ToolEntry {
    fn key(&self) -> &str {
        &self.info.name
    }

    fn access(&self) -> &Access {
        &self.access
    }
}
