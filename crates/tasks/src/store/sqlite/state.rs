//! The state that all threads of a store share.

use std::path::PathBuf;

use super::{clock::Clock, listeners::Listeners, workers::Workers};

/// An open file.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) clock: Clock,
    pub(super) listeners: Listeners,
    pub(super) workers: Workers,
    /// Random number that marks the changes of this process.
    pub(super) origin: i64,
}
