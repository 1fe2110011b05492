//! Repeated calls: a call joins an equal run whose result was not delivered and for which no
//! request waits.

use std::{sync::Arc, time::Duration};

use outlive_protocol::{Call, CallFuture, Outcome, ProtocolError};
use outlive_tasks::store::{Attended, Joined, StoreError};
use tokio::time::{Instant, sleep};

use crate::server::{
    env::environment::Env,
    exec::{
        bridge::{self, WaitOptions},
        executable::Executable,
        gate::text::is_undecided,
    },
    hosts::{Hosts, Repeat},
    run::bridged::BridgedCall,
    tasks::{
        attendance::{Arrival, Attendance, RETURN_TIMEOUT},
        attending::Attending,
    },
};

/// Interval between two searches while a client returns to an equal run.
const LOOK: Duration = Duration::from_millis(100);

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
    let waiting = tasks.bridges.enter(&bridged.fingerprint);
    let attended = match join_equal(env, call, scope, &bridged.fingerprint).await {
        Ok(joined) => joined?,
        Err(error) => {
            tracing::warn!(%error, "store cannot be searched for an equal call; starting a new run");
            return None;
        }
    };
    let attendance = Attendance::new(env, call, attended, arrival, Some(waiting)).joined();
    if join == Join::Undecided {
        let record = tasks.engine().store().get(call.principal().key(), attendance.task()).await;
        // Dropping the attendance leaves the run to its own caller.
        record.ok().flatten().as_ref().filter(|record| is_undecided(record))?;
    }
    tasks.note(call, attendance.task(), "joined", None);
    Some(attendance)
}

/// Attends an equal run in the store.
///
/// Waits while the client of one returns after an empty round. If it returns, this call is another
/// one. If not, it lost the round and repeats the call, so this call joins the run.
async fn join_equal(
    env: &Arc<Env>,
    call: &Arc<Call>,
    scope: &str,
    fingerprint: &Arc<str>,
) -> Result<Option<Attended>, StoreError> {
    // Only a call whose equal ones return one after the other waits longer than one timeout.
    let deadline = Instant::now() + 2 * RETURN_TIMEOUT;
    loop {
        match join_once(env, call, scope, fingerprint).await? {
            Joined::Run(attended) => return Ok(Some(attended)),
            Joined::Returning(wait) if Instant::now() < deadline => sleep(wait.min(LOOK)).await,
            Joined::Returning(_) | Joined::Nothing => return Ok(None),
        }
    }
}

fn join_once(
    env: &Arc<Env>,
    call: &Arc<Call>,
    scope: &str,
    fingerprint: &Arc<str>,
) -> Attending<Result<Joined, StoreError>> {
    let write = {
        let (env, call) = (Arc::clone(env), Arc::clone(call));
        let (scope, fingerprint) = (scope.to_owned(), Arc::clone(fingerprint));
        async move {
            let Some(tasks) = &env.tasks else { return Ok(Joined::Nothing) };
            let (store, principal) = (tasks.engine().store(), call.principal().key());
            store.join(principal, &scope, &fingerprint, tasks.worker_id()).await
        }
    };
    Attending::new(env, call, write, |joined| Some(joined.ok()?.run()?.task))
}
