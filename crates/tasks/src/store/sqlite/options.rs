//! Options of the store in SQLite.

use std::time::Duration;

/// How a file is used.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    pub(super) synchronous: Synchronous,
    pub(super) busy_timeout: Duration,
    pub(super) poll_interval: Duration,
}

/// What survives a power cut. Whatever happens to the process, nothing is lost with either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Synchronous {
    /// Everything that was acknowledged.
    #[default]
    Full,
    /// Everything but the last moments. The file stays whole.
    Normal,
}

impl SqliteOptions {
    /// What is right for most.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What survives a power cut: everything, unless something else is said.
    #[must_use]
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// How long to wait while another process writes. Five seconds by default.
    #[must_use]
    pub fn busy_timeout(mut self, busy_timeout: Duration) -> Self {
        self.busy_timeout = busy_timeout;
        self
    }

    /// How often to look for changes by other processes, while somebody listens: every 100
    /// milliseconds by default. When nothing has changed for a while, ten times less often.
    #[must_use]
    pub fn poll_interval(mut self, poll_interval: Duration) -> Self {
        self.poll_interval = poll_interval;
        self
    }
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            synchronous: Synchronous::Full,
            busy_timeout: Duration::from_secs(5),
            poll_interval: Duration::from_millis(100),
        }
    }
}
