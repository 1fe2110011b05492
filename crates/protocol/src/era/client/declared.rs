//! Who a client is and what it can do, written once for all its requests.

use std::fmt;

use outlive_wire::{ClientCapabilities, Implementation};

use crate::era::modern::client_meta;

/// Who a client is and what it can do.
#[derive(Clone)]
pub struct Declared {
    /// Who it is.
    pub info: Implementation,
    /// What it can do, in the words of 2026-07-28.
    pub capabilities: ClientCapabilities,
    /// What a legacy handshake says of the tasks that the client itself runs.
    pub hosts_tasks: bool,
    /// Whether it takes results in parts, where a handshake says so.
    pub streams: bool,
    /// The members that every modern request has in its `_meta` after the version, for one that accepts
    /// no task.
    plain: Box<str>,
    /// The same for one that accepts tasks.
    holding: Box<str>,
}

impl Declared {
    /// Says it once.
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

    /// What follows the version in the `_meta` of a modern request.
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
