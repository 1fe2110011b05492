//! [`LeasedTask`]: writes to a task under its lease.
//!
//! While the store is unavailable, a write is retried for the duration of the lease. If the
//! principal reaches its limit of stored bytes, the engine deletes its delivered results, then the
//! write omits everything that needs bytes.

use std::{future::Future, time::Duration};

use outlive_wire::{ErrorObject, code};
use tokio::time::{Instant, sleep};

use super::{
    events::EngineEvent,
    runner::{Allowance, ReduceResult},
    state::EngineState,
};
use crate::{
    Journal, JournalError,
    store::{
        Changes, Charge, CleanupState, Lease, ResultPart, StoreError, TaskOutcome, Transition,
        max_growth,
    },
};

/// Delay before the first retry of a write. It doubles up to [`MAX_RETRY_DELAY`].
const RETRY_DELAY: Duration = Duration::from_millis(50);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);

/// A task that this worker has a lease on.
#[derive(Clone, Copy)]
pub(super) struct LeasedTask<'a> {
    pub(super) engine: &'a EngineState,
    pub(super) lease: &'a Lease,
    pub(super) principal: &'a str,
}

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The store has all changes.
    All,
    /// The principal has reached this limit of stored bytes. The store has only the changes that
    /// need no bytes.
    WithoutGrowth(&'static str),
    /// The lease is lost, and nothing was written.
    LeaseLost,
}

/// Result of reading a task's inbox.
pub(super) enum InboxRead {
    /// The journal has the new input responses.
    Responses,
    /// Cancellation of the task was requested.
    Cancelled,
    LeaseLost,
    /// The store could not be read.
    Failed,
}

impl Written {
    /// Returns whether the lease is still valid.
    pub(super) fn is_leased(self) -> bool {
        self != Self::LeaseLost
    }
}

impl<'a> LeasedTask<'a> {
    pub(super) fn observe(&self, event: EngineEvent<'_>) {
        self.engine.observe(self.principal, &self.lease.task, event);
    }

    /// Writes the transition of a task that stops. A large result is stored in parts. The status
    /// message tells the client why a task is quarantined.
    pub(super) fn commit_end(
        self,
        mut changes: Changes,
        mut then: Transition,
        reduce: Option<ReduceResult>,
    ) -> impl Future<Output = Written> + Send + use<'a> {
        if let Transition::End { outcome, .. } = &mut then {
            changes.result_parts = outcome.take_parts();
        }
        if let Transition::Quarantine { outcome, .. } = &then {
            let why = match outcome {
                TaskOutcome::Error(error) => error.message.as_str(),
                _ => "the task cannot continue",
            };
            changes.status_message =
                Some(format!("quarantined until an operator retries the task: {why}"));
        }
        self.write(changes, then, reduce)
    }

    /// Writes changes and a transition.
    pub(super) fn commit(
        self,
        changes: Changes,
        then: Transition,
    ) -> impl Future<Output = Written> + Send + use<'a> {
        self.write(changes, then, None)
    }

    // Not an async fn, because its future would reserve space for the arguments twice.
    fn write(
        self,
        mut changes: Changes,
        mut then: Transition,
        reduce: Option<ReduceResult>,
    ) -> impl Future<Output = Written> + Send + use<'a> {
        let Self { engine, lease, principal } = self;
        let allowance = self.charge(&mut changes, &then);
        let limit = allowance.map_or("", |allowance| allowance.limit);
        let evicts = allowance.is_some_and(|allowance| allowance.evicts);
        async move {
            let began = Instant::now();
            let mut delay = RETRY_DELAY;
            let mut written = Written::All;
            loop {
                match engine.store.commit(lease, &changes, &then).await {
                    Ok(()) => {
                        self.observe_commit(began.elapsed(), &then);
                        return written;
                    }
                    Err(StoreError::LeaseLost) => return Written::LeaseLost,
                    Err(StoreError::BytesExceeded) if changes.charge.is_some() => {
                        if evicts && Box::pin(evict(engine, principal, &changes, &then)).await {
                            continue;
                        }
                        tracing::warn!(
                            task_id = lease.task.prefix(),
                            principal,
                            limit,
                            "principal reached its limit of stored bytes; the write is reduced"
                        );
                        written = Written::WithoutGrowth(limit);
                        remove_growth(&mut changes, &mut then, limit, reduce.as_ref());
                        if changes.is_empty() && matches!(then, Transition::Continue) {
                            return written;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(task_id = lease.task.prefix(), %error, "could not write a task");
                        if began.elapsed() + delay > engine.config.lease_duration {
                            return Written::LeaseLost;
                        }
                        Box::pin(sleep(delay)).await;
                        delay = (delay * 2).min(MAX_RETRY_DELAY);
                    }
                }
            }
        }
    }

    fn observe_commit(&self, took: Duration, then: &Transition) {
        self.observe(EngineEvent::Written(took));
        match then {
            Transition::End { outcome, .. } => self.observe(EngineEvent::Ended(outcome)),
            Transition::Quarantine { outcome, .. } => {
                self.observe(EngineEvent::Quarantined(outcome))
            }
            Transition::Continue | Transition::Park { .. } => {}
        }
    }

    /// Sets the principal that the changes are charged to. Returns its limit.
    fn charge(&self, changes: &mut Changes, then: &Transition) -> Option<Allowance> {
        let stores = !changes.is_empty() || matches!(then, Transition::End { .. });
        let allowance = self.engine.runner.allowance(self.principal).filter(|_| stores);
        changes.charge = allowance.map(|Allowance { max_bytes, .. }| Charge {
            principal: self.principal.to_owned(),
            max_bytes,
        });
        allowance
    }

    /// Reads the task's inbox. The journal takes the input responses.
    pub(super) async fn read_inbox(&self, journal: &Journal) -> InboxRead {
        let Self { engine, lease, .. } = self;
        match engine.store.inbox(lease).await {
            Ok(inbox) => {
                journal.take_responses(inbox.answers);
                if inbox.cancel_requested { InboxRead::Cancelled } else { InboxRead::Responses }
            }
            Err(StoreError::LeaseLost) => InboxRead::LeaseLost,
            Err(error) => {
                tracing::warn!(task_id = lease.task.prefix(), %error, "could not read the inbox of a task");
                InboxRead::Failed
            }
        }
    }

    /// Writes the state of the cleanup. Returns `false` if another worker has the cleanup, or none
    /// is due.
    pub(super) async fn set_cleanup(&self, state: CleanupState) -> bool {
        let Self { engine, lease, .. } = self;
        let began = Instant::now();
        let mut delay = RETRY_DELAY;
        loop {
            match engine.store.finish_cleanup(lease, state).await {
                Ok(()) => return true,
                Err(StoreError::LeaseLost) => return false,
                Err(error) => {
                    tracing::warn!(
                        task_id = lease.task.prefix(),
                        %error,
                        "could not write the state of a cleanup"
                    );
                    if began.elapsed() + delay > engine.config.lease_duration {
                        return false;
                    }
                    sleep(delay).await;
                    delay = (delay * 2).min(MAX_RETRY_DELAY);
                }
            }
        }
    }
}

/// Deletes delivered results of a principal that has reached its limit, as many as a write needs.
/// Returns whether any was deleted.
async fn evict(
    engine: &EngineState,
    principal: &str,
    changes: &Changes,
    then: &Transition,
) -> bool {
    let bytes = max_growth(changes, then) as u64;
    match engine.store.evict(principal, bytes).await {
        Ok(freed) => freed > 0,
        Err(error) => {
            tracing::warn!(principal, %error, "could not delete delivered results");
            false
        }
    }
}

/// Removes the changes that need bytes from a write. The end of a task is always written. The
/// outcome is reduced, or becomes an error, if it is too large or if a segment before it is not
/// stored.
fn remove_growth(
    changes: &mut Changes,
    then: &mut Transition,
    limit: &'static str,
    reduce: Option<&ReduceResult>,
) {
    let (charge, emitted) = (changes.charge.take(), !changes.segments.is_empty());
    let stored = !changes.entries.is_empty() || emitted || !changes.input_requests.is_empty();
    let parts = std::mem::take(&mut changes.result_parts);
    *changes = std::mem::take(changes).without_growth();
    match then {
        Transition::End { outcome, .. } if !outcome.needs_cleanup() => match stored && !emitted {
            // An ended task needs no journal, and the outcome alone may fit.
            true => (changes.charge, changes.result_parts) = (charge, parts),
            false => *outcome = reduced(outcome, &parts, limit, reduce),
        },
        _ => {}
    }
}

/// Returns the outcome of a task whose result cannot be stored.
pub(super) fn reduced(
    outcome: &TaskOutcome,
    parts: &[ResultPart],
    limit: &'static str,
    reduce: Option<&ReduceResult>,
) -> TaskOutcome {
    let result = reduce.and_then(|reduce| reduce(outcome, parts, limit));
    result.map_or_else(|| TaskOutcome::Error(over_bytes(limit)), TaskOutcome::Result)
}

/// Returns the error of a task whose principal has reached a limit of stored bytes.
pub(super) fn over_bytes(limit: &'static str) -> ErrorObject {
    let data = serde_json::value::to_raw_value(&serde_json::json!({ "limit": limit })).ok();
    ErrorObject {
        code: code::INTERNAL,
        message: JournalError::BytesExceeded { limit }.to_string(),
        data,
    }
}

/// Returns an internal error with this message.
pub(super) fn internal(message: String) -> ErrorObject {
    ErrorObject { code: code::INTERNAL, message, data: None }
}
