//! [`Attendance`]: a request that waits for the task of a bridged call.

use std::{sync::Arc, time::Duration};

use outlive_protocol::{Call, CancelReason, Receipt};
use outlive_tasks::store::{Attended, Departure, StoreError, TaskId};
use tokio::runtime::Handle;

use crate::server::env::{environment::Env, task_backend::TaskBackend};

/// Retention of a result that was delivered whole. A client that lost its connection right after
/// the delivery can still read it.
const DELIVERED_RETENTION: Duration = Duration::from_secs(600);

/// Time in which a client repeats a request after an empty round.
const RETURN_TIMEOUT: Duration = Duration::from_secs(30);

/// A request that waits for the task of a bridged call.
///
/// Dropping the value marks the run as unattended, so that a repeated call joins it. A client that
/// cancelled its call cancels the task instead.
pub(crate) struct Attendance {
    env: Arc<Env>,
    call: Arc<Call>,
    attended: Attended,
    fingerprint: Option<Arc<str>>,
    /// Whether the run was started by an earlier call.
    is_joined: bool,
    is_over: bool,
}

impl Attendance {
    /// Creates the attendance of a request that the store has recorded.
    pub(crate) fn new(
        env: &Arc<Env>,
        call: &Arc<Call>,
        attended: Attended,
        fingerprint: Option<Arc<str>>,
        is_joined: bool,
    ) -> Self {
        if let (Some(tasks), Some(fingerprint)) = (&env.tasks, &fingerprint) {
            tasks.bridges.enter(fingerprint);
        }
        let (env, call) = (Arc::clone(env), Arc::clone(call));
        Self { env, call, attended, fingerprint, is_joined, is_over: false }
    }

    pub(crate) fn env(&self) -> &Arc<Env> {
        &self.env
    }

    pub(crate) fn call(&self) -> &Arc<Call> {
        &self.call
    }

    pub(crate) fn task(&self) -> &TaskId {
        &self.attended.task
    }

    /// Returns the number of pending results that were sent for the task.
    pub(crate) fn pending_results(&self) -> u32 {
        self.attended.pending_results
    }

    /// Returns whether the run was started by an earlier call.
    pub(crate) fn is_joined(&self) -> bool {
        self.is_joined
    }

    /// Marks the result as delivered when the response is written. `is_whole` is false for a result
    /// that was cut, which the client reads on.
    pub(crate) fn deliver(self, is_whole: bool) {
        let retention = is_whole.then_some(DELIVERED_RETENTION);
        self.on_receipt(move |attendance| attendance.settle(Settle::Deliver(retention)));
    }

    /// Records the pending result when the response is written.
    pub(crate) fn leave_pending(self) {
        self.on_receipt(|attendance| attendance.settle(Settle::Leave(Departure::PendingResult)));
    }

    /// Records the empty round when the response is written.
    pub(crate) fn leave_for_round(self) {
        let round = Departure::Round { return_timeout: RETURN_TIMEOUT };
        self.on_receipt(move |attendance| attendance.settle(Settle::Leave(round)));
    }

    /// Marks the run as unattended while the request still waits: no client reads its response.
    pub(crate) fn disconnect(&self) {
        self.spawn(Settle::Leave(Departure::Lost));
    }

    /// Passes the attendance to the receipt of the response. If the response is not written, the
    /// receipt drops the attendance.
    fn on_receipt(self, settle: impl FnOnce(Self) + Send + Sync + 'static) {
        let call = Arc::clone(&self.call);
        call.port().set_receipt(Receipt::new(move || settle(self)));
    }

    fn settle(mut self, settle: Settle) {
        self.is_over = true;
        self.spawn(settle);
    }

    /// Writes to the store in the background.
    fn spawn(&self, settle: Settle) {
        // Without a runtime, the process is about to exit; the store finds the run unattended then.
        let (Ok(runtime), Some(tasks)) = (Handle::try_current(), &self.env.tasks) else { return };
        let departure = tasks.bridges.depart();
        let env = Arc::clone(&self.env);
        let (call, task) = (Arc::clone(&self.call), self.attended.task.clone());
        runtime.spawn(async move {
            let Ok(tasks) = env.tasks() else { return };
            if let Err(error) = settle.write(tasks, &call, &task).await {
                tracing::warn!(%error, "departure of a waiting request cannot be stored");
            }
            drop(departure);
        });
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        if let (Some(tasks), Some(fingerprint)) = (&self.env.tasks, &self.fingerprint) {
            tasks.bridges.leave(fingerprint);
        }
        if self.is_over {
            return;
        }
        self.spawn(match self.call.port().cancel_reason() {
            Some(CancelReason::Requested) => Settle::Cancel,
            _ => Settle::Leave(Departure::Lost),
        });
    }
}

/// Change of a task when a request no longer waits for it.
enum Settle {
    Deliver(Option<Duration>),
    Leave(Departure),
    Cancel,
}

impl Settle {
    async fn write(
        self,
        tasks: &TaskBackend,
        call: &Call,
        task: &TaskId,
    ) -> Result<(), StoreError> {
        let (engine, principal) = (tasks.engine(), call.principal().key());
        match self {
            Self::Deliver(retention) => engine.store().deliver(principal, task, retention).await,
            Self::Leave(how) => {
                engine.store().leave(principal, task, tasks.worker_id(), how).await
            }
            Self::Cancel => {
                let cancelled = engine.cancel(principal, task, false).await?;
                if cancelled.is_some() {
                    let reason = Some("cancelled by the client".to_owned());
                    tasks.note(call, task, "cancel-requested", reason);
                }
                Ok(())
            }
        }
    }
}
