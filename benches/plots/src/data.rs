//! The figures of the plots: one JSON file per figure in [`FOLDER`].

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The folder of all figures, from the root of the project.
pub const FOLDER: &str = "docs/performance/data/";

/// Rows of [`CallCost`].
pub const CALLS: &str = "docs/performance/data/calls.json";
/// Rows of [`TaskRate`]: Outlive in memory and on SQLite, and peers.
pub const STORED_TASKS_SQLITE: &str = "docs/performance/data/stored-tasks-sqlite.json";
/// Rows of [`TaskRate`]: Outlive on PostgreSQL.
pub const STORED_TASKS_POSTGRES: &str = "docs/performance/data/stored-tasks-postgres.json";
/// Rows of [`StreamMemory`].
pub const STREAMS: &str = "docs/performance/data/streams.json";
/// A [`Takeover`] on SQLite.
pub const TAKEOVER_SQLITE: &str = "docs/performance/data/takeover-sqlite.json";
/// A [`Takeover`] on PostgreSQL.
pub const TAKEOVER_POSTGRES: &str = "docs/performance/data/takeover-postgres.json";

/// The role of a measured server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Our server.
    Outlive,
    /// A bare server that does only the necessary work.
    Control,
    /// A server of another SDK.
    Peer,
}

/// Median and quartiles over the slices of a target.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Spread {
    /// Lower quartile.
    pub p25: f64,
    /// Median.
    pub median: f64,
    /// Upper quartile.
    pub p75: f64,
}

/// CPU time of a server per call.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct CallCost {
    /// Name of the server and its setup.
    pub target: String,
    /// Role of the server.
    pub kind: Kind,
    /// Microseconds of CPU time per call.
    pub cpu_us: Spread,
}

/// Task lifecycles per second at a number of stored tasks.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct TaskRate {
    /// Name of the server and its store.
    pub target: String,
    /// Role of the server.
    pub kind: Kind,
    /// Number of stored tasks.
    pub stored: u64,
    /// Lifecycles per second, median: created, polled until completed, read.
    pub per_second: f64,
}

/// Memory of the server for one open session or stream.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct StreamMemory {
    /// Name of the open object.
    pub name: String,
    /// Measured KiB for one.
    pub kib: f64,
    /// Threshold in KiB.
    pub max_kib: f64,
}

/// Times from the kill of a worker to the next step of its task in another process.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Takeover {
    /// Name of the store.
    pub store: String,
    /// Number of servers.
    pub replicas: u64,
    /// Lease duration in milliseconds.
    pub lease_ms: u64,
    /// Threshold of the 99th percentile in milliseconds.
    pub max_p99_ms: u64,
    /// Milliseconds per kill, sorted.
    pub stopped_ms: Vec<u64>,
}

impl Spread {
    /// Returns the spread with two decimals, which is more than a measurement means.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self { p25: rounded(self.p25), median: rounded(self.median), p75: rounded(self.p75) }
    }
}

/// Returns a value with two decimals.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Writes a figure to one of the files above.
///
/// # Errors
///
/// Returns an error if the file cannot be written.
pub fn write<T: Serialize>(root: &Path, file: &str, figure: &T) -> Result<()> {
    let path = root.join(file);
    let text = serde_json::to_string_pretty(figure)? + "\n";
    fs::create_dir_all(root.join(FOLDER))
        .and_then(|()| fs::write(&path, text))
        .with_context(|| format!("could not write {}", path.display()))
}

/// Parses a figure.
pub(crate) fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).with_context(|| format!("{file} is not a figure of this plot"))
}
