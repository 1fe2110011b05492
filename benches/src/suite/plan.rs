//! The scope of a measurement.

use crate::{place::Kind, wanted::Wanted};
use std::time::Duration;

/// The scope of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) slice: Duration,
    /// Number of sessions and streams that are held open.
    pub(crate) held: usize,
    /// Number of tasks in a large store.
    pub(crate) stored: u64,
    /// Number of tasks in a large store of a peer.
    pub(crate) filled: u64,
    /// Number of parked tasks.
    pub(crate) parked: u64,
    pub(crate) peers: Wanted,
    /// The selected suites; all if empty.
    pub(crate) only: Vec<String>,
    /// The store of tasks.
    pub(crate) store: Kind,
    /// The selected figure of the tasks suite; `None` for all.
    pub(crate) figure: Option<String>,
}
