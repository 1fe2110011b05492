//! Sees what the engine does: counts it, and writes down what an auditor wants to know.

use std::sync::{Arc, Weak};

use outlive_tasks::{
    engine::{Observer, Seen},
    store::{Swept, TaskId, TaskOutcome},
};

use super::audit::Auditor;
use crate::server::{core::Core, metrics::Counters};

pub(super) struct Witness {
    pub(super) core: Weak<Core>,
    pub(super) auditor: Arc<Auditor>,
}

impl Witness {
    /// A task is over.
    fn over(&self, task: &TaskId) {
        if let Some(core) = self.core.upgrade()
            && let Some(tasks) = &core.tasks
        {
            tasks.peers.leave(task);
        }
    }

    fn count(&self, count: impl FnOnce(&Counters)) {
        if let Some(core) = self.core.upgrade() {
            count(&core.counters);
        }
    }
}

impl Observer for Witness {
    fn seen(&self, principal: &str, task: &TaskId, seen: Seen<'_>) {
        let note = |what, cause| self.auditor.note(principal, task, what, cause);
        match seen {
            Seen::Written(took) => self.count(|counters| counters.commits.add(took)),
            Seen::Claimed { again, crashes } => {
                self.count(|counters| counters.claimed.add(1));
                let lost = (crashes > 0).then(|| format!("{crashes} workers were lost"));
                note(if again { "resumed" } else { "begun" }, lost);
            }
            Seen::Created => {
                self.count(|counters| counters.created.add(1));
                note("created", None);
            }
            Seen::Adopted => {
                self.count(|counters| counters.created.add(1));
                note("created", Some("its call took too long".to_owned()));
            }
            Seen::Parked => note("parked", None),
            Seen::Postponed(pause) => {
                note("postponed", Some(format!("for {pause:?}: its workers were lost in a row")));
            }
            Seen::HandedOver => note("handed-over", Some("its worker stops".to_owned())),
            Seen::Lost => {
                self.count(|counters| counters.leases_lost.add(1));
                note("lost", Some("its lease is over, or it has ended".to_owned()));
            }
            Seen::CleanedUp(Ok(())) => note("cleaned-up", None),
            // Why is in the log: it may say what the task was about.
            Seen::CleanedUp(Err(_)) => note("clean-up-failed", None),
            Seen::Undelivered => note("cancel-requested", Some("undelivered".to_owned())),
            // Why is in the store: it may say what the task was about.
            Seen::Kept(outcome) => {
                let code = match outcome {
                    TaskOutcome::Error(error) => Some(format!("error {}", error.code)),
                    _ => None,
                };
                note("kept", code);
            }
            Seen::Ended(outcome) => {
                self.over(task);
                self.count(|counters| counters.ended(outcome));
                let (what, cause) = match outcome {
                    TaskOutcome::Result(_) => ("completed", None),
                    TaskOutcome::Error(error) => ("failed", Some(format!("error {}", error.code))),
                    TaskOutcome::Cancelled => ("cancelled", None),
                    TaskOutcome::Expired => ("expired", None),
                };
                note(what, cause);
            }
            _ => {}
        }
    }

    fn swept(&self, swept: &Swept) {
        self.count(|counters| {
            counters.expired.add(swept.expired.len() as u64);
            counters.purged.add(swept.purged as u64);
        });
        for (principal, task) in &swept.expired {
            self.over(task);
            self.auditor.note(principal, task, "expired", None);
        }
    }
}
