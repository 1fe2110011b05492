//! A measured store and its concurrent callers.

use crate::suite::Plan;
use crate::{
    machine::{Cores, own_pid},
    place::{Folder, Kind},
    slices::{self, Series, Slice, Target},
};
use anyhow::Result;
use outlive_tasks::{
    engine::{StartError, TaskRun, TaskRunner},
    store::{ClaimedTask, TaskOutcome},
};
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};
use tokio::{runtime::Runtime, task::JoinSet, time::Instant};

/// Number of concurrent callers, and of their principals.
pub(super) const CALLERS: usize = 256;

/// Number of writing connections to PostgreSQL, in our store and in the control.
pub(super) const LANES: usize = 2;

/// The environment of a measurement.
pub(super) struct Bench<'a> {
    pub(super) plan: &'a Plan,
    pub(super) cores: Cores,
    pub(super) folder: &'a Folder,
    /// Uses both cores.
    pub(super) runtime: Arc<Runtime>,
}

impl Bench<'_> {
    /// Gives every target one slice per round, long enough for the disk to reach a steady rate.
    pub(super) fn take(&self, targets: &mut [Box<dyn Target>]) -> Result<Vec<Series>> {
        slices::take(targets, self.plan.rounds.div_ceil(2), self.plan.slice * 3)
    }

    /// A target of concurrent callers in this process that repeat an operation.
    pub(super) fn callers<F>(&self, name: &str, callers: usize, work: F) -> Box<dyn Target>
    where
        F: Fn(usize) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync + 'static,
    {
        let (runtime, work) = (Arc::clone(&self.runtime), Arc::new(work));
        let has_helpers = self.plan.store.has_helpers();
        Box::new(Callers { name: name.to_owned(), callers, runtime, work, has_helpers })
    }

    pub(super) fn is_postgres(&self) -> bool {
        self.plan.store == Kind::Postgres
    }
}

pub(super) struct Callers<F> {
    name: String,
    callers: usize,
    runtime: Arc<Runtime>,
    work: Arc<F>,
    has_helpers: bool,
}

impl<F> Target for Callers<F>
where
    F: Fn(usize) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> u32 {
        own_pid()
    }

    fn has_helpers(&self) -> bool {
        self.has_helpers
    }

    fn load(&mut self, time: Duration) -> Result<u64> {
        let end = Instant::now() + time;
        self.runtime.block_on(async {
            let mut all = JoinSet::new();
            for caller in 0..self.callers {
                let work = Arc::clone(&self.work);
                all.spawn(async move {
                    let mut done = 0;
                    while Instant::now() < end {
                        work(caller).await?;
                        done += 1;
                    }
                    anyhow::Ok(done)
                });
            }
            let mut sum = 0;
            while let Some(done) = all.join_next().await {
                sum += done??;
            }
            Ok(sum)
        })
    }
}

pub(super) fn rate(slice: &Slice) -> f64 {
    slice.rate
}

/// A runner that starts nothing, so that tasks stay unchanged.
pub(super) struct Nothing;

impl TaskRunner for Nothing {
    fn start(&self, _: ClaimedTask) -> Result<TaskRun, StartError> {
        Err(StartError { outcome: TaskOutcome::Cancelled, quarantine: false })
    }
}
