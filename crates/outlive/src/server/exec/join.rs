//! Repeated calls: a call joins an equal run whose result was not delivered and for which no
//! request waits.

use std::sync::Arc;

use outlive_protocol::{Call, CallFuture, Outcome, ProtocolError};

use crate::server::{
    env::environment::Env,
    exec::{
        bridge::{self, WaitOptions},
        executable::Executable,
    },
    hosts::{Hosts, Repeat},
    run::bridged::BridgedCall,
    tasks::attendance::{Arrival, Attendance},
};

/// Returns whether a repeated call of this tool joins its run.
pub(crate) fn joins(hosts: &Hosts, target: &Executable) -> bool {
    hosts.repeat_policy(target.policy.repeat) == Repeat::Join
}

/// Joins an equal run, or starts the call. Polls `work` only if it starts.
pub(crate) async fn join_or_start(
    env: Arc<Env>,
    call: Arc<Call>,
    bridged: BridgedCall,
    arrival: Arrival,
    options: WaitOptions,
    work: CallFuture,
) -> Result<Outcome, ProtocolError> {
    match find(&env, &call, &bridged, arrival).await {
        Some(attendance) => {
            drop(work);
            bridge::wait(attendance, options).await
        }
        None => work.await,
    }
}

/// Returns the attendance of an equal run, if there is one. If the store does not respond, the call
/// starts as it would without a store.
async fn find(
    env: &Arc<Env>,
    call: &Arc<Call>,
    bridged: &BridgedCall,
    arrival: Arrival,
) -> Option<Attendance> {
    let (tasks, scope) = (env.tasks().ok()?, bridged.scope.as_deref()?);
    tasks.bridges.settle(&bridged.fingerprint).await;
    let (store, principal) = (tasks.engine().store(), call.principal().key());
    match store.join(principal, scope, &bridged.fingerprint, tasks.worker_id()).await {
        Ok(joined) => {
            let attended = joined?;
            tasks.note(call, &attended.task, "joined", None);
            let fingerprint = Some(Arc::clone(&bridged.fingerprint));
            Some(Attendance::new(env, call, attended, arrival, fingerprint).joined())
        }
        Err(error) => {
            tracing::warn!(%error, "store cannot be searched for an equal call; starting a new run");
            None
        }
    }
}
