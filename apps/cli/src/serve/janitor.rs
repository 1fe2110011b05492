//! Ends commands that nobody wants any more, and removes what is left of those that are over.
//!
//! Most commands never meet it: their calls end them. It is for what a killed server has left
//! behind, and for tasks that were cancelled or have expired while nobody was here.

use std::{collections::HashMap, sync::Arc, time::Duration};

use outlive::{server::Limits, store::Store};
use outlive_jobs::JobInfo;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::command_pool::{Owner, Runner};

/// How often it looks.
const ROUND: Duration = Duration::from_secs(10);

/// How long the command of a call that is no task may be unattended: a run that is dropped while
/// the next one begins.
const PAUSE: Duration = Duration::from_secs(30);

/// How long an input request of a call that is no task waits for its caller to come back: as long as
/// the request state of the call is valid.
pub(super) fn abandon_timeout() -> Duration {
    Limits::default().request_state_ttl
}

/// Looks after jobs, for as long as it is polled.
pub(super) async fn tidy(runner: Arc<Runner>, store: Arc<dyn Store>) {
    let mut alone: HashMap<String, Instant> = HashMap::new();
    let mut rounds = interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        if let Err(error) = round(&runner, &*store, &mut alone).await {
            tracing::warn!(%error, "jobs could not be looked after");
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
