//! Bridged tasks in an engine: unacknowledged tasks, and abandonment.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive_tasks::{
    Journal, JournalLimits,
    engine::{
        Engine, EngineConfig, EngineEvent, EngineObserver, Promotion, StartError, TaskRun,
        TaskRunner,
    },
    store::{
        Bridge, BridgeStore, CancelOutcome, ClaimedTask, MemoryStore, NewTask, Store, SweepReport,
        TaskId, TaskOutcome, TaskStore, WorkerId,
    },
};
use serde_json::{json, value::to_raw_value};
use tokio::{sync::Notify, time::timeout};

const OWNER: &str = "ada";
const ABANDON: Duration = Duration::from_secs(60);
const GUARD: Duration = Duration::from_secs(8);

/// Runner of a tool that runs until it is cancelled.
struct Endless;

impl TaskRunner for Endless {
    fn start(&self, claimed: ClaimedTask) -> Result<TaskRun, StartError> {
        let limits = JournalLimits {
            bytes: 1_000,
            open_inputs: 1,
            leaves: false,
            segments: 1,
            segment_bytes: 100,
        };
        Ok(run(Arc::new(Journal::from_snapshot(limits, claimed.journal))))
    }
}

fn run(journal: Arc<Journal>) -> TaskRun {
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let work = async move {
        stopped.notified().await;
        TaskOutcome::Cancelled
    };
    let cancel = Box::new(move || stop.notify_one());
    TaskRun { journal, work: Box::pin(work), cancel, resumes: true, cleans_up: false, reduce: None }
}

/// Collects the abandoned tasks of all sweeps.
#[derive(Default)]
struct Abandoned(Mutex<Vec<(String, TaskId, CancelOutcome)>>);

impl EngineObserver for Abandoned {
    fn seen(&self, _: &str, _: &TaskId, _: EngineEvent<'_>) {}

    fn swept(&self, swept: &SweepReport) {
        self.0.lock().unwrap().extend(swept.abandoned.iter().cloned());
    }
}

struct Setup {
    store: Arc<MemoryStore>,
    engine: Engine,
    abandoned: Arc<Abandoned>,
}

fn setup() -> Setup {
    let (store, abandoned) = (Arc::new(MemoryStore::new()), Arc::new(Abandoned::default()));
    let shared: Arc<dyn Store> = Arc::clone(&store) as _;
    let observer: Arc<dyn EngineObserver> = Arc::clone(&abandoned) as _;
    let mut config = EngineConfig::default();
    config.sweep_interval = Duration::from_millis(10);
    config.poll_interval = Duration::from_millis(10);
    let worker = WorkerId::new("v");
    let engine = Engine::start(&shared, Arc::new(Endless), Some(observer), worker, config);
    Setup { store, engine, abandoned }
}

impl Setup {
    fn task(&self, id: &str) -> NewTask {
        let worker = self.engine.worker_id().clone();
        let bridge = Bridge::new(Some("s".to_owned()), "f", worker, ABANDON);
        let request = to_raw_value(&json!({})).unwrap();
        NewTask::new(TaskId::new(id), OWNER, "render", "modern", request).bridge(Some(bridge))
    }

    async fn joins(&self) -> bool {
        let joined = self.store.join(OWNER, "s", "f", &WorkerId::new("w")).await.unwrap();
        joined.run().is_some()
    }

    async fn until_joined(&self) {
        let joined = async {
            while !self.joins().await {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(GUARD, joined).await.expect("the run is unattended");
    }

    async fn outcome(&self, id: &str) -> Option<TaskOutcome> {
        let view = self.store.get(OWNER, &TaskId::new(id)).await.unwrap();
        view.expect("the task exists").outcome
    }
}

#[tokio::test]
async fn dropped_unacknowledged_task_with_bridge_is_left_and_not_cancelled() {
    let setup = setup();
    let task = setup.engine.create(setup.task("a")).await.unwrap();
    assert!(!setup.joins().await, "the call waits");
    drop(task);
    setup.until_joined().await;
    let view = setup.store.get(OWNER, &TaskId::new("a")).await.unwrap().unwrap();
    assert!(view.outcome.is_none() && view.cancel_requested.is_none(), "{view:?}");
    assert!(!view.acknowledged);
}

#[tokio::test]
async fn promotion_without_receiver_leaves_bridged_task() {
    let setup = setup();
    let limits = JournalLimits {
        bytes: 1_000,
        open_inputs: 1,
        leaves: false,
        segments: 1,
        segment_bytes: 100,
    };
    let journal = || Arc::new(Journal::from_snapshot(limits, Default::default()));
    drop(setup.engine.promote(setup.task("a"), run(journal())));
    setup.until_joined().await;
    assert!(setup.outcome("a").await.is_none());
    let Promotion::Task(task) =
        setup.engine.promote(setup.task("b"), run(journal())).await.unwrap()
    else {
        panic!("the run is promoted");
    };
    task.acknowledge();
    assert!(!setup.joins().await, "the call waits");
}

#[tokio::test]
async fn abandoned_task_is_stopped_and_observed() {
    let setup = setup();
    drop(setup.engine.create(setup.task("a")).await.unwrap());
    setup.until_joined().await;
    let (task, worker) = (TaskId::new("a"), WorkerId::new("w"));
    setup.store.leave(OWNER, &task, &worker, outlive_tasks::store::Departure::Lost).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(setup.outcome("a").await.is_none());
    setup.store.advance_clock(ABANDON);
    let ended = async {
        while setup.outcome("a").await.is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(GUARD, ended).await.expect("the task ends");
    assert!(matches!(setup.outcome("a").await, Some(TaskOutcome::Cancelled)));
    let abandoned = setup.abandoned.0.lock().unwrap().clone();
    assert_eq!(abandoned, [(OWNER.to_owned(), task, CancelOutcome::Requested)]);
}
