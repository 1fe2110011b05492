//! Settings of one tool of an upstream, which override its definition.

use super::policy::Policy;

/// Settings of one tool of an upstream. They override the definition of the upstream.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ToolSettings {
    pub(crate) policy: Policy,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) hide: bool,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) max_result: Option<usize>,
    pub(crate) eager: bool,
}

impl ToolSettings {
    /// Creates settings that override nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the policy. Its members override those of the upstream.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the name that stands after the prefix.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Hides the tool from all clients.
    pub fn hide(mut self, hide: bool) -> Self {
        self.hide = hide;
        self
    }

    /// Sets the hint that the tool does not modify its environment.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = Some(read_only);
        self
    }

    /// Sets the hint whether the tool may perform destructive updates.
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.destructive = Some(destructive);
        self
    }

    /// Sets the hint that a repeated call has no additional effect.
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = Some(idempotent);
        self
    }

    /// Sets the bytes of the largest result that the gateway reads.
    pub fn max_result(mut self, bytes: usize) -> Self {
        self.max_result = Some(bytes);
        self
    }

    /// Lists the tool also with [`Discovery::Search`](crate::Discovery::Search).
    pub fn eager(mut self, eager: bool) -> Self {
        self.eager = eager;
        self
    }
}
