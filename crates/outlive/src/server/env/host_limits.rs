//! The limits of a call's client: its host row, and what the server has learned.

use std::sync::LazyLock;

use outlive_protocol::Call;

use crate::server::{
    env::task_backend::TaskBackend,
    hosts::{
        Hosts, client::Client, learned::LearnedEntry, limits::HostLimits,
        observations::ObservedTimeout,
    },
};

/// Settings of gated calls on a server that bridges no other calls.
static GATED: LazyLock<Hosts> = LazyLock::new(|| Hosts::known().learn(false).view(false));

impl TaskBackend {
    /// Returns the settings of bridged calls. On a server that bridges no calls, they apply to gated
    /// calls only.
    pub(crate) fn bridge_hosts(&self) -> &Hosts {
        self.config.hosts.as_ref().unwrap_or(&GATED)
    }

    /// Returns the limits of a call's client; `None` if the server does not bridge calls.
    pub(crate) async fn host_limits(&self, call: &Call) -> Option<HostLimits> {
        let client = Client::from_call(call);
        let limits = self.config.hosts.as_ref()?.limits(&client);
        let Some((learned, entry)) = self.learned.as_ref().zip(LearnedEntry::of(call)) else {
            return Some(limits);
        };
        let learned = learned.limit(&entry, &client).await;
        Some(learned.map_or(limits, |learned| limits.with_learned(learned)))
    }

    /// Records that the client ended a call by timeout.
    pub(crate) async fn record_timeout(&self, call: &Call, timeout: ObservedTimeout) {
        if let Some((learned, entry)) = self.learned.as_ref().zip(LearnedEntry::of(call)) {
            let charge = self.charge(call.principal());
            learned.record_timeout(&entry, &Client::from_call(call), timeout, &charge).await;
        }
    }
}
