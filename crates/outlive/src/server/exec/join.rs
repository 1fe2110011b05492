//! Repeated calls: a call joins an equal run whose result was not delivered and for which no
//! request waits.

use std::sync::Arc;

use outlive_protocol::{Call, CallFuture, Outcome, ProtocolError};

use crate::server::{
    env::environment::Env,
    exec::{
        bridge::{self, WaitOptions},
        executable::Executable,
        gate::text::is_undecided,
    },
    hosts::{Hosts, Repeat},
    run::bridged::BridgedCall,
    tasks::attendance::{Arrival, Attendance},
};

/// Runs that a call joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    Never,
    /// Only a run that waits for approval.
    Undecided,
    Any,
}

/// Returns the runs that a repeated call of this tool joins.
pub(crate) fn join_policy(hosts: &Hosts, target: &Executable) -> Join {
    match hosts.repeat_policy(target.policy.repeat) {
        Repeat::Join => Join::Any,
        // A call that waits for approval needs no second request.
        _ if target.policy.gate.is_some() => Join::Undecided,
        _ => Join::Never,
    }
}

/// Joins an equal run, or starts the call. Polls `work` only if it starts.
pub(crate) async fn join_or_start(
    join: Join,
    env: Arc<Env>,
    call: Arc<Call>,
    bridged: BridgedCall,
    arrival: Arrival,
    options: WaitOptions,
    work: CallFuture,
) -> Result<Outcome, ProtocolError> {
    match find(&env, &call, &bridged, arrival, join).await {
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
    join: Join,
) -> Option<Attendance> {
    let (tasks, scope) = (env.tasks().ok()?, bridged.scope.as_deref()?);
    tasks.bridges.settle(&bridged.fingerprint).await;
    let (store, principal) = (tasks.engine().store(), call.principal().key());
    let attended = match store.join(principal, scope, &bridged.fingerprint, tasks.worker_id()).await
    {
        Ok(joined) => joined?,
        Err(error) => {
            tracing::warn!(%error, "store cannot be searched for an equal call; starting a new run");
            return None;
        }
    };
    let fingerprint = Some(Arc::clone(&bridged.fingerprint));
    let attendance = Attendance::new(env, call, attended, arrival, fingerprint).joined();
    if join == Join::Undecided {
        let record = store.get(principal, attendance.task()).await.ok().flatten();
        // Dropping the attendance leaves the run to its own caller.
        record.as_ref().filter(|record| is_undecided(record))?;
    }
    tasks.note(call, attendance.task(), "joined", None);
    Some(attendance)
}
