//! What is measured, and how often.

use crate::{peers::Wanted, place::Kind};
use std::time::Duration;

/// How much is measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) slice: Duration,
    /// Sessions and streams that are held open.
    pub(crate) held: usize,
    /// Tasks in a large store.
    pub(crate) stored: u64,
    /// Tasks in a large store of a peer.
    pub(crate) filled: u64,
    /// Tasks that are parked.
    pub(crate) parked: u64,
    pub(crate) peers: Wanted,
    /// The suites that are wanted; all if none is named.
    pub(crate) only: Vec<String>,
    /// Where tasks are kept.
    pub(crate) store: Kind,
    /// The one figure of the tasks that is wanted, if not all are.
    pub(crate) figure: Option<String>,
}
