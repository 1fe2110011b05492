//! [`Attendance`]: a request that waits for the task of a bridged call.

use std::{sync::Arc, time::Duration};

use outlive_protocol::{Call, CancelReason, Receipt};
use outlive_tasks::{
    START,
    store::{Attended, Departure, InputSource, StoreError, TaskId},
};
use serde_json::value::RawValue;
use tokio::{runtime::Handle, time::Instant};

use crate::server::{
    env::{bridges::Waiting, environment::Env, task_backend::TaskBackend},
    hosts::{client::Client, observations::ObservedTimeout},
    time::now,
};

/// Retention of a result that was delivered whole. A client that lost its connection right after
/// the delivery can still read it.
const DELIVERED_RETENTION: Duration = Duration::from_secs(600);

/// Time in which a client repeats a request after an empty round. An equal call waits that long
/// before it joins the run.
pub(crate) const RETURN_TIMEOUT: Duration = Duration::from_secs(3);

/// Arrival of a request that may wait for a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// When the request arrived.
    pub(crate) at: Instant,
    /// When the first request of the call arrived, in milliseconds since 1970.
    pub(crate) first_at: u64,
    /// Number of rounds before this request.
    pub(crate) round: u32,
}

impl Arrival {
    /// Returns the arrival of the first request of a call, now.
    pub(crate) fn first(env: &Env) -> Self {
        Self { at: Instant::now(), first_at: now(&env.profile), round: 0 }
    }

    /// Returns the arrival of a later round, now.
    pub(crate) fn of_round(first_at: u64, round: u32) -> Self {
        Self { at: Instant::now(), first_at, round }
    }
}

/// A request that waits for the task of a bridged call.
///
/// Dropping the value marks the run as unattended, so that a repeated call joins it. A client that
/// cancelled its call cancels the task instead.
pub(crate) struct Attendance {
    env: Arc<Env>,
    call: Arc<Call>,
    attended: Attended,
    arrival: Arrival,
    /// Runtime of the request. A transport may write its response on another thread.
    runtime: Handle,
    /// Entry that an equal call of the same client waits for; `None` if the client left or named the
    /// task.
    waiting: Option<Waiting>,
    /// Whether the run was started by an earlier call.
    is_joined: bool,
    /// Whether a client that received a pending result is present for the start of an approved call.
    announces: bool,
    /// Whether the store knows that the request no longer waits.
    is_over: bool,
}

impl Attendance {
    /// Creates the attendance of a request that the store has recorded. Must be called inside a Tokio
    /// runtime.
    pub(crate) fn new(
        env: &Arc<Env>,
        call: &Arc<Call>,
        attended: Attended,
        arrival: Arrival,
        waiting: Option<Waiting>,
    ) -> Self {
        let (env, call) = (Arc::clone(env), Arc::clone(call));
        let runtime = Handle::current();
        Self {
            env,
            call,
            attended,
            arrival,
            runtime,
            waiting,
            is_joined: false,
            announces: false,
            is_over: false,
        }
    }

    /// Marks the run as started by an earlier call.
    pub(crate) fn joined(mut self) -> Self {
        self.is_joined = true;
        self
    }

    /// Lets a pending result count as the presence of the caller, because it names the task.
    pub(crate) fn announcing(mut self, announces: bool) -> Self {
        self.announces = announces;
        self
    }

    pub(crate) fn arrival(&self) -> Arrival {
        self.arrival
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
        // A console shows delivered tasks, so they keep their retention.
        let is_indexed = self.env.tasks.as_ref().is_some_and(|tasks| tasks.config.indexed);
        let retention = (is_whole && !is_indexed).then_some(DELIVERED_RETENTION);
        self.on_receipt(move |attendance| attendance.settle(Settle::Deliver(retention)));
    }

    /// Records the pending result when the response is written.
    pub(crate) fn leave_pending(self) {
        self.on_receipt(|attendance| {
            let settle = match attendance.announces {
                true => Settle::LeaveAnnounced,
                false => Settle::Leave(Departure::PendingResult),
            };
            attendance.settle(settle);
        });
    }

    /// Records the empty round when the response is written.
    pub(crate) fn leave_for_round(self) {
        let round = Departure::Round { return_timeout: RETURN_TIMEOUT };
        self.on_receipt(move |attendance| attendance.settle(Settle::Leave(round)));
    }

    /// Marks the run as unattended while the request still waits: no client reads its response.
    pub(crate) fn disconnect(&mut self) {
        self.is_over = true;
        self.spawn(Settle::Leave(Departure::Lost));
        // Ends after the departure has started, so that an equal call waits for one of both.
        self.waiting = None;
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

    /// Returns whether a client that disconnected may have a call timeout that the server does not
    /// know. A disconnect of a known host is intentional.
    fn may_have_timed_out(&self) -> bool {
        let hosts = self.env.hosts();
        hosts.is_some_and(|hosts| !hosts.has_row(&Client::from_call(&self.call)))
    }

    /// Returns the timeout of the client.
    fn observed(&self) -> ObservedTimeout {
        let call = now(&self.env.profile).saturating_sub(self.arrival.first_at);
        ObservedTimeout {
            round: self.arrival.round,
            request: self.arrival.at.elapsed(),
            call: Duration::from_millis(call),
        }
    }

    /// Writes to the store in the background.
    fn spawn(&self, settle: Settle) {
        let Some(tasks) = &self.env.tasks else { return };
        let departure = tasks.bridges.depart();
        let env = Arc::clone(&self.env);
        let (call, task) = (Arc::clone(&self.call), self.attended.task.clone());
        self.runtime.spawn(async move {
            let Ok(tasks) = env.tasks() else { return };
            settle.store(tasks, &call, &task).await;
            drop(departure);
        });
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // `waiting` ends after the departure has started, because fields are dropped later.
        self.spawn(match self.call.port().cancel_reason() {
            Some(CancelReason::Requested) => Settle::Cancel,
            Some(CancelReason::TimedOut) => Settle::TimeOut(self.observed()),
            Some(CancelReason::Disconnected) if self.may_have_timed_out() => {
                Settle::TimeOut(self.observed())
            }
            _ => Settle::Leave(Departure::Lost),
        });
    }
}

/// Change of a task when a request no longer waits for it.
pub(super) enum Settle {
    Deliver(Option<Duration>),
    Leave(Departure),
    /// A pending result was written, and names a task that may wait for its caller.
    LeaveAnnounced,
    /// The request ended without a reply, because the call timeout of the client has passed.
    TimeOut(ObservedTimeout),
    Cancel,
}

impl Settle {
    /// Writes the change to the store. Logs an error, because no client waits for the write.
    pub(super) async fn store(self, tasks: &TaskBackend, call: &Call, task: &TaskId) {
        if let Err(error) = self.write(tasks, call, task).await {
            tracing::warn!(%error, "departure of a waiting request cannot be stored");
        }
    }

    async fn write(
        self,
        tasks: &TaskBackend,
        call: &Call,
        task: &TaskId,
    ) -> Result<(), StoreError> {
        let (engine, principal) = (tasks.engine(), call.principal().key());
        let (store, worker) = (engine.store(), tasks.worker_id());
        // Otherwise the run would stay attended after an outage of the store.
        let leave = |how| engine.retry(move || store.leave(principal, task, worker, how));
        match self {
            Self::Deliver(retention) => {
                engine.retry(|| store.deliver(principal, task, retention)).await
            }
            Self::Leave(how) => leave(how).await,
            Self::LeaveAnnounced => {
                leave(Departure::PendingResult).await?;
                announce(tasks, call, task).await
            }
            Self::TimeOut(observed) => {
                leave(Departure::Lost).await?;
                tasks.record_timeout(call, observed).await;
                Ok(())
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

/// Tells a task that its caller is present. Has no effect on a task that does not wait for it.
pub(crate) async fn announce(
    tasks: &TaskBackend,
    call: &Call,
    task: &TaskId,
) -> Result<(), StoreError> {
    let responses = vec![(START.to_owned(), RawValue::NULL.to_owned())];
    let (store, principal) = (tasks.engine().store(), call.principal().key());
    store.respond(principal, task, InputSource::External, responses, u64::MAX).await.map(drop)
}
