//! Counts engine events and records them in the audit log.

use std::sync::Arc;

use outlive_tasks::{
    engine::{EngineEvent, EngineObserver},
    store::{CancelOutcome, OutcomeKind, SweepReport, TaskId, TaskOutcome, WorkerId},
};

use crate::server::{
    env::{address_quotas::AddressQuotas, audit::Auditor},
    metrics::Counters,
};

/// Engine observer that updates counters, quotas and the audit log.
pub(crate) struct TaskMetrics {
    pub(crate) counters: Arc<Counters>,
    pub(crate) quotas: Arc<AddressQuotas>,
    pub(crate) auditor: Arc<Auditor>,
    /// Worker of this process.
    pub(crate) worker_id: WorkerId,
}

impl TaskMetrics {
    /// Updates the quotas after a task has ended.
    fn over(&self, task: &TaskId, outcome: Option<&TaskOutcome>) {
        let bytes = outcome.map_or(0, |outcome| match outcome {
            TaskOutcome::Result(result) => result.get().len(),
            TaskOutcome::LargeResult(large) => usize::try_from(large.bytes()).unwrap_or(usize::MAX),
            _ => 0,
        });
        self.quotas.end(task, bytes);
    }
}

impl EngineObserver for TaskMetrics {
    fn seen(&self, principal: &str, task: &TaskId, seen: EngineEvent<'_>) {
        // A client causes these events, and the worker of this process all others.
        let is_of_client = matches!(seen, EngineEvent::Created | EngineEvent::Unacknowledged);
        let worker = (!is_of_client).then_some(&self.worker_id);
        let note = |what, cause| self.auditor.note_by(worker, principal, task, what, cause);
        match seen {
            EngineEvent::Written(took) => self.counters.commits.add(took),
            EngineEvent::Claimed { again, crashes } => {
                self.counters.claimed.add(1);
                let lost = (crashes > 0).then(|| format!("{crashes} workers crashed"));
                note(if again { "resumed" } else { "started" }, lost);
            }
            EngineEvent::Created => {
                self.counters.created.add(1);
                note("created", None);
            }
            EngineEvent::Promoted => {
                self.counters.created.add(1);
                note("created", Some("promoted from an inline call".to_owned()));
            }
            EngineEvent::Parked => note("parked", None),
            EngineEvent::Backoff(pause) => {
                note("backoff", Some(format!("for {pause:?}: several workers crashed in a row")));
            }
            EngineEvent::Released => note("released", Some("the worker shuts down".to_owned())),
            EngineEvent::LeaseLost => {
                self.counters.leases_lost.add(1);
                note("lease-lost", Some("the lease expired or the task ended".to_owned()));
            }
            EngineEvent::Cleanup(Ok(())) => note("cleanup-done", None),
            // The reason is only logged: it may contain data of the task.
            EngineEvent::Cleanup(Err(_)) => note("cleanup-failed", None),
            EngineEvent::Unacknowledged => note("cancel-requested", Some("undelivered".to_owned())),
            // The reason is only in the store: it may contain data of the task.
            EngineEvent::Quarantined(outcome) => {
                let code = match outcome {
                    TaskOutcome::Error(error) => Some(format!("error {}", error.code)),
                    _ => None,
                };
                note("quarantined", code);
            }
            EngineEvent::Ended(outcome) => {
                self.over(task, Some(outcome));
                self.counters.ended(outcome);
                let kind = outcome.kind();
                let cause = match outcome {
                    TaskOutcome::Error(error) => Some(format!("error {}", error.code)),
                    TaskOutcome::Result(_) | TaskOutcome::LargeResult(_)
                        if kind == OutcomeKind::Failed =>
                    {
                        Some("tool error".to_owned())
                    }
                    _ => None,
                };
                note(kind.as_str(), cause);
            }
            _ => {}
        }
    }

    fn swept(&self, swept: &SweepReport) {
        self.counters.expired.add(swept.expired.len() as u64);
        self.counters.failed.add(swept.failed.len() as u64);
        self.counters.purged.add(swept.purged as u64);
        let expired = swept.expired.iter().map(|task| (task, OutcomeKind::Expired));
        let failed = swept.failed.iter().map(|task| (task, OutcomeKind::Failed));
        for ((principal, task), kind) in expired.chain(failed) {
            self.over(task, None);
            self.auditor.note(principal, task, kind.as_str(), None);
        }
        for (principal, task, how) in &swept.abandoned {
            let what = match how {
                CancelOutcome::Cancelled => {
                    self.over(task, None);
                    self.counters.ended(&TaskOutcome::Cancelled);
                    OutcomeKind::Cancelled.as_str()
                }
                // The worker reports the end.
                CancelOutcome::Requested | CancelOutcome::AlreadyEnded => "cancel-requested",
            };
            self.auditor.note(principal, task, what, Some("abandoned by the client".to_owned()));
        }
    }
}
