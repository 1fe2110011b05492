//! The parts of a campaign that all its threads use.

use std::sync::atomic::{AtomicBool, Ordering};

use super::killer::Killer;
use super::ledger::Ledger;
use crate::console::site::Site;

/// The servers, the votes and the kills of a campaign.
pub(super) struct Shared<'s> {
    pub(super) site: &'s Site,
    pub(super) ledger: &'s Ledger,
    pub(super) killer: &'s Killer,
    over: AtomicBool,
}

impl<'s> Shared<'s> {
    pub(super) fn new(site: &'s Site, ledger: &'s Ledger, killer: &'s Killer) -> Self {
        Self { site, ledger, killer, over: AtomicBool::new(false) }
    }

    /// All replicas: any of them may execute a task.
    pub(super) fn replicas(&self) -> Vec<usize> {
        (0..self.site.replicas()).collect()
    }

    /// Ends the work of the people.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}
