//! Options of the SQLite store.

use std::time::Duration;

/// Options of a SQLite store.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    pub(super) synchronous: Synchronous,
    pub(super) busy_timeout: Duration,
    pub(super) poll_interval: Duration,
}

/// Durability after a power failure. A crash of the process loses no acknowledged write in either
/// mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Synchronous {
    /// Every acknowledged write survives.
    #[default]
    Full,
    /// The last moments before the power failure may be lost. The file stays consistent.
    Normal,
}

impl SqliteOptions {
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the durability after a power failure. The default is [`Synchronous::Full`].
    #[must_use]
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// Sets how long an operation waits while another process writes. The default is five seconds.
    #[must_use]
    pub fn busy_timeout(mut self, busy_timeout: Duration) -> Self {
        self.busy_timeout = busy_timeout;
        self
    }

    /// Sets the interval of polls for changes of other processes. The default is 100 milliseconds.
    /// While no other process writes, the interval grows up to ten times.
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
