//! Whole lifecycles: a task is created, records three steps in sequence, and ends. Each of the five
//! writes is on disk before the next one starts. Long journals show whether the hundredth step
//! costs the same as the first.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result, anyhow};
use outlive_tasks::{
    Journal, JournalEntry, JournalLimits, StepStart,
    engine::{Engine, EngineConfig, EngineEvent, EngineObserver, StartError, TaskRun, TaskRunner},
    poll_as,
    store::{ClaimedTask, SweepReport, TaskId, TaskOutcome, WorkerId},
};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{
    Bench, CALLERS, LANES,
    creations::{creation, principal},
    rate,
};
use crate::{
    bare::{Bare, Write},
    place::{fresh_id, new_task, raw_value, value},
    report::{Bar, Report},
    slices::Target,
};

const STEPS: [&str; 3] = ["plan", "apply", "verify"];

/// Lengths of the journals, and the number of concurrent tasks, so that some end in each slice.
const LENGTHS: [usize; 3] = [10, 100, 1_000];
const FEW: usize = 16;

pub(super) fn measure(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let steps = STEPS.map(str::to_owned);
    let mut targets = [control(bench)?, ours(bench, "Outlive", "lives", CALLERS, steps.into())?];
    let series = bench.take(&mut targets)?;
    let [control, ours] = &series[..] else { return Ok(()) };
    let ratio = ours.ratio(control, rate);
    report.title(&format!("Whole lifecycles, {CALLERS} concurrent: created, three steps, ended"));
    report.ratio("Outlive / five bare commits (tasks/s)", ratio);
    report.series(&series);
    let share = Some(ratio.spread.median * 100.0);
    report.bar(Bar::at_least(
        "whole lifecycles, tasks/s relative to five bare commits",
        share,
        40.0,
        "%",
    ));
    Ok(())
}

pub(super) fn journals(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let mut targets = Vec::new();
    for length in LENGTHS {
        let (name, place) = (format!("{length} steps"), format!("journals-{length}"));
        let steps = (0..length).map(|step| format!("step-{step}")).collect();
        targets.push(ours(bench, &name, &place, FEW, steps)?);
    }
    let series = bench.take(&mut targets)?;
    report.title(&format!("Long journals, {FEW} concurrent tasks with sequential steps"));
    for (length, of_length) in LENGTHS.into_iter().zip(&series).skip(1) {
        let ratio = of_length.ratio(&series[0], rate).times(length as f64 / LENGTHS[0] as f64);
        report.ratio(&format!("{length} steps / {} steps (steps/s)", LENGTHS[0]), ratio);
    }
    report.series(&series);
    Ok(())
}

fn control(bench: &Bench<'_>) -> Result<Box<dyn Target>> {
    let bare = bench.runtime.block_on(Bare::open(&bench.folder.place("bare-lives"), LANES))?;
    Ok(bench.callers("five bare commits", CALLERS, move |caller| {
        let bare = bare.clone();
        Box::pin(async move {
            let id = fresh_id();
            bare.commit(caller, creation(caller, id.clone())).await?;
            for step in STEPS {
                let entry = Write::Entry { task: id.clone(), key: step.to_owned(), body: value() };
                bare.commit(caller, entry).await?;
            }
            bare.commit(caller, Write::End { task: id, outcome: value() }).await
        })
    }))
}

fn ours(
    bench: &Bench<'_>,
    name: &str,
    place: &str,
    callers: usize,
    steps: Arc<[String]>,
) -> Result<Box<dyn Target>> {
    let place = bench.folder.place(place);
    let ended = Arc::new(Ended::default());
    let runner = Arc::new(Steps { steps, value: raw_value() });
    let engine = bench.runtime.block_on(async {
        let store = place.open().await?;
        let (observer, worker) = (Some(Arc::clone(&ended) as _), WorkerId::new("bench"));
        anyhow::Ok(Engine::start(&store, runner, observer, worker, EngineConfig::default()))
    })?;
    Ok(bench.callers(name, callers, move |caller| {
        let (engine, ended) = (engine.clone(), Arc::clone(&ended));
        Box::pin(async move {
            let task = new_task(fresh_id(), principal(caller));
            let end = ended.of(&task.id);
            let made = engine.create(task).await;
            made.map_err(|refused| anyhow!("not created: {refused:?}"))?.acknowledge();
            end.await.context("the task was lost")
        })
    }))
}

/// A runner that records these steps.
struct Steps {
    steps: Arc<[String]>,
    value: Box<RawValue>,
}

impl TaskRunner for Steps {
    fn start(&self, claimed: ClaimedTask) -> Result<TaskRun, StartError> {
        let bounds = JournalLimits {
            bytes: 1 << 20,
            open_inputs: 10,
            leaves: false,
            segments: 10,
            segment_bytes: 1_000,
        };
        let journal = Arc::new(Journal::from_snapshot(bounds, claimed.journal));
        let steps = Arc::clone(&self.steps);
        let work = Box::pin(record(Arc::clone(&journal), steps, self.value.clone()));
        let cancel = Box::new(|| {});
        Ok(TaskRun { journal, work, cancel, resumes: true, cleans_up: false, reduce: None })
    }
}

async fn record(journal: Arc<Journal>, steps: Arc<[String]>, value: Box<RawValue>) -> TaskOutcome {
    let run = Arc::as_ptr(&journal) as usize;
    for key in steps.iter() {
        let recorded = poll_as(run, || match journal.begin(run, key) {
            Ok(StepStart::New(step)) => step.record(JournalEntry::Value(value.clone()), false).ok(),
            _ => None,
        });
        // A step that is not recorded or stored ends the task, which the figure shows.
        let Some((_, ticket)) = recorded else { return TaskOutcome::Cancelled };
        if poll_fn(|cx| journal.poll_written(ticket, cx)).await.is_err() {
            return TaskOutcome::Cancelled;
        }
    }
    TaskOutcome::Result(value)
}

/// The waiters for the end of each task.
#[derive(Default)]
struct Ended(Mutex<HashMap<TaskId, oneshot::Sender<()>>>);

impl Ended {
    fn of(&self, task: &TaskId) -> oneshot::Receiver<()> {
        let (ended, wait) = oneshot::channel();
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(task.clone(), ended);
        wait
    }
}

impl EngineObserver for Ended {
    fn seen(&self, _: &str, task: &TaskId, seen: EngineEvent<'_>) {
        // Only tasks that end with a result are reported.
        if let EngineEvent::Ended(TaskOutcome::Result(_)) = seen {
            let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(task);
            ended.into_iter().for_each(|ended| _ = ended.send(()));
        } else if let EngineEvent::Ended(_) | EngineEvent::LeaseLost = seen {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(task);
        }
    }

    fn swept(&self, _: &SweepReport) {}
}
