//! State that all threads of a store share.

use std::path::PathBuf;

use super::{clock::Clock, listeners::Listeners, workers::Workers};

/// An open file.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) clock: Clock,
    pub(super) listeners: Listeners,
    pub(super) workers: Workers,
    /// Random number that identifies this process in the change log.
    pub(super) origin: i64,
}
