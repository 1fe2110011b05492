//! The client info and capabilities, serialized once for all requests of a client.

use std::{fmt, sync::OnceLock};

use outlive_wire::{ClientCapabilities, Implementation};

use super::CapabilityClass;
use crate::era::modern::client_meta;

/// Number of prepared texts: one for each capability class, without and with tasks.
const TEXTS: usize = 2 * 64;

/// The members of `_meta` after the version, by capability class and acceptance of tasks. Each is
/// written at its first use.
type Texts = Box<[OnceLock<Box<str>>]>;

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
    /// Whether modern requests carry the client info.
    with_info: bool,
    /// The same members for requests that declare a capability class of their own.
    by_class: OnceLock<Texts>,
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
        Self {
            info,
            capabilities,
            hosts_tasks,
            streams: false,
            plain,
            holding,
            with_info,
            by_class: OnceLock::new(),
        }
    }

    /// Returns the members of `_meta` after the version, for a modern request.
    pub(in crate::era) fn modern_meta(&self, holds_tasks: bool) -> &str {
        if holds_tasks { &self.holding } else { &self.plain }
    }

    /// Returns the same members for a request that declares exactly this capability class.
    pub(in crate::era) fn class_meta(&self, class: CapabilityClass, holds_tasks: bool) -> &str {
        let texts = self.by_class.get_or_init(|| (0..TEXTS).map(|_| OnceLock::new()).collect());
        let index = usize::from(class.bits()) * 2 + usize::from(holds_tasks);
        // The index has seven bits and `texts` 128 elements, so one is always found.
        let Some(text) = texts.get(index) else { return self.modern_meta(holds_tasks) };
        text.get_or_init(|| {
            let mut capabilities = self.capabilities.clone();
            class.apply(&mut capabilities);
            client_meta(self.with_info.then_some(&self.info), &capabilities, holds_tasks)
        })
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
