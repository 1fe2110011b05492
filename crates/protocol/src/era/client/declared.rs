//! The client info and capabilities, serialized once for all requests of a client.

use std::fmt;

use outlive_wire::{ClientCapabilities, Implementation};

use crate::era::modern::client_meta;

/// The info and capabilities of a client.
#[derive(Clone)]
pub struct Declared {
    /// Name and version of the client.
    pub info: Implementation,
    /// Capabilities in the format of 2026-07-28.
    pub capabilities: ClientCapabilities,
    /// Whether a legacy handshake declares that the client runs input requests as tasks.
    pub hosts_tasks: bool,
    /// Whether a legacy handshake declares that the client accepts partial results.
    pub streams: bool,
    /// Members of `_meta` after the version, for a modern request that does not accept tasks.
    plain: Box<str>,
    /// Members of `_meta` after the version, for a modern request that accepts tasks.
    holding: Box<str>,
}

impl Declared {
    /// Serializes the info and capabilities. `with_info` controls whether requests carry the client
    /// info.
    pub fn new(
        info: Implementation,
        capabilities: ClientCapabilities,
        with_info: bool,
        hosts_tasks: bool,
    ) -> Self {
        let shown = with_info.then_some(&info);
        let plain = client_meta(shown, &capabilities, false);
        let holding = client_meta(shown, &capabilities, true);
        Self { info, capabilities, hosts_tasks, streams: false, plain, holding }
    }

    /// Returns the members of `_meta` after the version, for a modern request.
    pub(in crate::era) fn modern_meta(&self, holds_tasks: bool) -> &str {
        if holds_tasks { &self.holding } else { &self.plain }
    }
}

impl fmt::Debug for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared")
            .field("info", &self.info)
            .field("capabilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}
