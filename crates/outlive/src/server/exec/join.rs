//! Repeated calls: a call joins an equal run whose result was not delivered and for which no
//! request waits.

use std::{sync::Arc, time::Duration};

use outlive_protocol::{Call, CallFuture, ProtocolError};
use outlive_tasks::store::Bridge;
use tokio::time::Instant;

use crate::server::{
    env::{environment::Env, task_backend::TaskBackend},
    exec::{
        bridge::{self, Patience},
        executable::Executable,
    },
    hosts::{Hosts, Repeat},
    run::bound_args::fingerprint,
    sessions::charge::digest,
    tasks::attendance::Attendance,
};

/// Identity of a bridged call: equal calls have the same one.
#[derive(Clone)]
pub(crate) struct BridgedCall {
    /// Callers that can join the run: all of the principal, or those of one session. `None` if no
    /// call can.
    pub(crate) scope: Option<String>,
    pub(crate) fingerprint: Arc<str>,
    abandon_timeout: Duration,
}

impl BridgedCall {
    /// Returns the identity of a call.
    pub(crate) fn new(
        env: &Env,
        hosts: &Hosts,
        call: &Call,
        target: &Executable,
    ) -> Result<Self, ProtocolError> {
        let fingerprint = fingerprint(env, call, &target.policy.replay.bound_args)?;
        Ok(Self {
            scope: scope(call),
            fingerprint: digest(&fingerprint).into(),
            abandon_timeout: hosts.abandon_after(env.profile.limits.request_state_ttl),
        })
    }

    /// Returns what the store records of the call.
    pub(crate) fn record(&self, tasks: &TaskBackend) -> Bridge {
        let worker = tasks.worker_id().clone();
        Bridge::new(self.scope.clone(), &*self.fingerprint, worker, self.abandon_timeout)
    }
}

/// Returns the part of the principal whose calls are repeats of each other. One network address can
/// stand for many anonymous clients, so these are told apart by their sessions.
pub(crate) fn scope(call: &Call) -> Option<String> {
    match call.principal().is_anonymous() {
        false => Some(String::new()),
        true => {
            let session = call.session().and_then(|session| session.portable());
            session.map(|session| digest(&session.id))
        }
    }
}

/// Joins an equal run, or starts the call.
pub(crate) async fn join_or_start(
    env: Arc<Env>,
    call: Arc<Call>,
    bridged: BridgedCall,
    patience: impl FnOnce() -> Patience + Send,
    work: CallFuture,
) -> Result<outlive_protocol::Outcome, ProtocolError> {
    match find(&env, &call, &bridged).await {
        Some(attendance) => bridge::wait(attendance, patience()).await,
        None => work.await,
    }
}

/// Returns the attendance of an equal run, if there is one. If the store does not respond, the call
/// starts as it would without a store.
async fn find(env: &Arc<Env>, call: &Arc<Call>, bridged: &BridgedCall) -> Option<Attendance> {
    let (tasks, scope) = (env.tasks().ok()?, bridged.scope.as_deref()?);
    tasks.bridges.settle(&bridged.fingerprint).await;
    let (store, principal) = (tasks.engine().store(), call.principal().key());
    match store.join(principal, scope, &bridged.fingerprint, tasks.worker_id()).await {
        Ok(joined) => {
            let attended = joined?;
            tasks.note(call, &attended.task, "joined", None);
            let fingerprint = Some(Arc::clone(&bridged.fingerprint));
            Some(Attendance::new(env, call, attended, fingerprint, true))
        }
        Err(error) => {
            tracing::warn!(%error, "store cannot be searched for an equal call; starting a new run");
            None
        }
    }
}

/// Returns whether a repeated call of this tool joins its run.
pub(crate) fn joins(hosts: &Hosts, target: &Executable) -> bool {
    hosts.repeat_policy(target.policy.repeat) == Repeat::Join
}

/// The arrival of a request, for the wait that follows.
pub(crate) fn arrival() -> Instant {
    Instant::now()
}
