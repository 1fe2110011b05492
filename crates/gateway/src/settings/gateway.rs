//! Settings of the gateway as a whole.

use std::time::Duration;

/// Settings of the gateway as a whole.
///
/// ```
/// use outlive_gateway::{Discovery, GatewaySettings};
///
/// let settings = GatewaySettings::new().discovery(Discovery::Search).search_results(8);
/// # let _ = settings;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct GatewaySettings {
    pub(crate) discovery: Discovery,
    pub(crate) search_results: usize,
    pub(crate) list_wait: Duration,
    pub(crate) max_processes: usize,
    pub(crate) report_problems: bool,
    pub(crate) audit: CallAudit,
    pub(crate) relist_interval: Duration,
    pub(crate) taken_names: Vec<String>,
}

/// Way in which clients find tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Discovery {
    /// Lists have all tools.
    #[default]
    List,
    /// Lists have `find_tools`, `call_tool` and the eager tools.
    Search,
}

/// Audit events of relayed calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallAudit {
    /// None.
    #[default]
    Off,
    /// One event per call in the audit log of the server's store: principal, upstream, tool, digest
    /// of the arguments, outcome and time, without contents.
    Store,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            discovery: Discovery::List,
            search_results: 5,
            list_wait: Duration::from_secs(5),
            max_processes: 64,
            report_problems: true,
            audit: CallAudit::Off,
            relist_interval: Duration::from_secs(5 * 60),
            taken_names: Vec::new(),
        }
    }
}

impl GatewaySettings {
    /// Creates the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how clients find tools. The default is [`Discovery::List`].
    pub fn discovery(mut self, discovery: Discovery) -> Self {
        self.discovery = discovery;
        self
    }

    /// Sets the number of definitions that `find_tools` returns. The default is 5.
    pub fn search_results(mut self, results: usize) -> Self {
        self.search_results = results.max(1);
        self
    }

    /// Sets how long a list waits for upstreams that were never listed. The default is 5 seconds.
    pub fn list_wait(mut self, wait: Duration) -> Self {
        self.list_wait = wait;
        self
    }

    /// Sets the maximum number of processes of all upstreams. The default is 64.
    pub fn max_processes(mut self, processes: usize) -> Self {
        self.max_processes = processes.max(1);
        self
    }

    /// Sets whether the tool `upstream_problems` is listed while an upstream has a problem, and
    /// whether the instructions name it. The default is `true`.
    pub fn report_problems(mut self, report: bool) -> Self {
        self.report_problems = report;
        self
    }

    /// Sets whether relayed calls are audit events. The default is [`CallAudit::Off`]. Tasks have
    /// their events in any case.
    pub fn audit(mut self, audit: CallAudit) -> Self {
        self.audit = audit;
        self
    }

    /// Sets how often upstreams that do not notify of changed lists are listed again while a client
    /// listens. The default is 5 minutes.
    pub fn relist_interval(mut self, interval: Duration) -> Self {
        self.relist_interval = interval;
        self
    }

    /// Sets the names of the server's own tools. A tool of an upstream with such a name gets a
    /// suffix.
    pub fn taken_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.taken_names = names.into_iter().map(Into::into).collect();
        self
    }
}
