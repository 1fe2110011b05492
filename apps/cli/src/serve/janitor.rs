//! Terminates orphaned jobs, and deletes their files.
//!
//! Usually a call ends its command. The janitor handles commands that a killed server left behind,
//! and tasks that were cancelled or expired while no server ran.

use std::{collections::HashMap, sync::Arc, time::Duration};

use outlive::{server::Limits, store::Store};
use outlive_jobs::JobInfo;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::command_pool::{Owner, Runner};

/// Interval of the checks.
const ROUND: Duration = Duration::from_secs(10);

/// Time that the command of an inline call may be unattended, such as between two runs of the call.
const PAUSE: Duration = Duration::from_secs(30);

/// Returns how long an input request of an inline call waits for its caller: the TTL of the request
/// state.
pub(super) fn abandon_timeout() -> Duration {
    Limits::default().request_state_ttl
}

/// Checks jobs periodically until dropped.
pub(super) async fn tidy(runner: Arc<Runner>, store: Arc<dyn Store>) {
    let mut alone: HashMap<String, Instant> = HashMap::new();
    let mut rounds = interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        if let Err(error) = round(&runner, &*store, &mut alone).await {
            tracing::warn!(%error, "cannot check the jobs");
        }
    }
}

async fn round(
    runner: &Runner,
    store: &dyn Store,
    alone: &mut HashMap<String, Instant>,
) -> outlive_jobs::Result<()> {
    runner.places.release_ended(&runner.jobs);
    let mut seen = HashMap::new();
    for job in runner.jobs.list()? {
        if runner.is_attended(&job.id) {
            continue;
        }
        let since = alone.get(&job.id).copied().unwrap_or_else(Instant::now);
        if is_wanted(&job, store, since.elapsed()).await {
            seen.insert(job.id, since);
            continue;
        }
        runner.end(&job.id).await?;
        runner.forget(&job.id).await?;
    }
    *alone = seen;
    Ok(())
}

async fn is_wanted(job: &JobInfo, store: &dyn Store, alone: Duration) -> bool {
    match job.note.as_deref().and_then(Owner::read) {
        Some(owner) => owner.may_go_on(store).await,
        None if job.waits_for.is_some() => alone < abandon_timeout() + PAUSE,
        None => alone < PAUSE,
    }
}
