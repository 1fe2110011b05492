//! How tasks are run.

use std::time::Duration;

/// How tasks are run. Each default is meant for production.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineConfig {
    /// For how long a worker has a task before it must say that it still lives.
    pub lease: Duration,
    /// How long a task that waits for an answer stays in memory.
    pub park_after: Duration,
    /// How often the store is asked for work when nothing says that there is any.
    pub poll: Duration,
    /// How often tasks whose time is over are looked for.
    pub sweep: Duration,
    /// How many tasks run at once in this process.
    pub running: usize,
    /// How many tasks are claimed or swept at once.
    pub batch: usize,
    /// How long a task that is asked to stop may take.
    pub cancel_grace: Duration,
    /// How long the clean-up after a task that was cancelled or has expired may take.
    pub clean_up: Duration,
    /// How long what has ended can still be read.
    pub retention: Duration,
    /// How many workers in a row a task may lose without recording anything.
    pub crashes: u32,
    /// How long a task that has lost more is kept for somebody to look at it.
    pub crashed_retention: Duration,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            park_after: Duration::from_secs(10),
            poll: Duration::from_secs(1),
            sweep: Duration::from_secs(10),
            running: 256,
            batch: 32,
            cancel_grace: Duration::from_secs(30),
            clean_up: Duration::from_secs(60),
            retention: Duration::from_secs(3600),
            crashes: 5,
            crashed_retention: Duration::from_secs(7 * 24 * 3600),
        }
    }
}
