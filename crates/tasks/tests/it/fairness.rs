//! Fairness between callers: slots of an engine, and permits of a capacity.

use std::{
    env, fs,
    future::{pending, poll_fn},
    path::PathBuf,
    process,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use outlive_tasks::{
    Journal, JournalLimits,
    engine::{Capacity, Engine, EngineConfig, Permit, StartError, TaskRun, TaskRunner},
    poll_as,
    store::{ClaimedTask, MemoryStore, NewTask, SqliteStore, Store, TaskId, TaskOutcome, WorkerId},
};
use serde_json::{json, value::to_raw_value};
use tokio::{sync::Semaphore, time::timeout};

/// Timeout for events that should occur immediately. It is far below the time after which a task
/// that waits for a permit retries without a grant.
const GUARD: Duration = Duration::from_secs(8);

/// Runner for four tools. `quick` ends immediately. `long` waits for the gate. `job` needs a
/// permit, then waits for the gate. `leaves` passes its permit on and ends.
#[derive(Clone)]
struct Kinds {
    capacity: Capacity,
    /// Ends tasks that wait for it.
    gate: Arc<Semaphore>,
    /// Started `job` and `long` tasks, in order.
    begun: Arc<Mutex<Vec<String>>>,
    /// Permits that `leaves` tasks have passed on.
    left: Arc<Mutex<Vec<Permit>>>,
}

impl Kinds {
    fn new(permits: usize) -> Self {
        let capacity = Capacity::new("jobs", permits);
        let gate = Arc::new(Semaphore::new(0));
        Self { capacity, gate, begun: Arc::default(), left: Arc::default() }
    }

    fn begun(&self) -> Vec<String> {
        self.begun.lock().unwrap().clone()
    }

    async fn until_begun(&self, count: usize) {
        let all = async {
            while self.begun().len() < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(GUARD, all).await.unwrap_or_else(|_| panic!("{:?} of {count}", self.begun()));
    }

    async fn until_waiting(&self, count: usize) {
        let all = async {
            while self.capacity.waiting() < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(GUARD, all).await.unwrap_or_else(|_| panic!("{:?}", self.capacity));
    }
}

impl TaskRunner for Kinds {
    fn start(&self, claimed: ClaimedTask) -> Result<TaskRun, StartError> {
        let bounds = JournalLimits {
            bytes: 1_000,
            open_inputs: 1,
            leaves: false,
            segments: 1,
            segment_bytes: 100,
        };
        let journal = Arc::new(Journal::from_snapshot(bounds, claimed.journal));
        let (kinds, its) = (self.clone(), Arc::clone(&journal));
        let (kind, task) = (claimed.tool, claimed.lease.task);
        let work = async move {
            let mut permit = None;
            if kind == "job" || kind == "leaves" {
                permit = kinds.capacity.acquire_for(&task);
                if permit.is_none() {
                    let waits = || its.yield_run(1, None, Some(&kinds.capacity));
                    poll_fn(|_| Poll::Ready(poll_as(1, waits))).await.unwrap();
                    pending::<()>().await;
                }
            }
            kinds.begun.lock().unwrap().push(task.as_str().to_owned());
            match kind.as_str() {
                "quick" => {}
                "leaves" => kinds.left.lock().unwrap().extend(permit),
                _ => kinds.gate.acquire().await.unwrap().forget(),
            }
            TaskOutcome::Result(to_raw_value(&json!(1)).unwrap())
        };
        let cancel = Box::new(|| ());
        Ok(TaskRun {
            journal,
            work: Box::pin(work),
            cancel,
            resumes: true,
            cleans_up: false,
            reduce: None,
        })
    }
}

fn engine(store: &Arc<dyn Store>, kinds: &Kinds, change: impl Fn(&mut EngineConfig)) -> Engine {
    let mut config = EngineConfig::default();
    change(&mut config);
    Engine::start(store, Arc::new(kinds.clone()), None, WorkerId::new("w"), config)
}

fn task(principal: &str, kind: &str, number: usize) -> NewTask {
    NewTask::new(
        TaskId::new(format!("{principal} {number:03}")),
        principal,
        kind,
        "modern",
        to_raw_value(&json!({})).unwrap(),
    )
    .max_ttl(Duration::from_secs(3600))
    .quota(1_000)
}

async fn make(engine: &Engine, principal: &str, kind: &str, count: usize) {
    for number in 0..count {
        engine.create(task(principal, kind, number)).await.unwrap().acknowledge();
    }
}

/// Waits until a task has ended.
async fn ended(engine: &Engine, principal: &str, number: usize) {
    let id = TaskId::new(format!("{principal} {number:03}"));
    let over = async {
        loop {
            let changed = engine.watch(&id);
            let view = engine.get(principal, &id).await.unwrap().unwrap();
            if view.outcome.is_some() {
                return;
            }
            let _ = timeout(Duration::from_millis(100), changed.notified()).await;
        }
    };
    timeout(GUARD, over).await.unwrap_or_else(|_| panic!("task {id} has not ended"));
}

struct File(PathBuf);

impl File {
    fn new(name: &str) -> (Self, Arc<dyn Store>) {
        let path = env::temp_dir().join(format!("outlive-{name}-{}.db", process::id()));
        let _ = fs::remove_file(&path);
        let store = Arc::new(SqliteStore::open(&path).unwrap());
        (Self(path), store)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{end}", self.0.display()));
        }
    }
}

async fn check_caller_leaves_slots_to_others(store: Arc<dyn Store>) {
    let kinds = Kinds::new(1);
    let engine = engine(&store, &kinds, |_| ());
    make(&engine, "ann", "long", 300).await;
    kinds.until_begun(64).await;
    make(&engine, "bob", "quick", 1).await;
    ended(&engine, "bob", 0).await;
    let begun = kinds.begun();
    assert_eq!(begun.iter().filter(|id| id.starts_with("ann")).count(), 64, "a quarter of 256");
    // The remaining tasks of the caller start when slots become free.
    kinds.gate.add_permits(300);
    kinds.until_begun(301).await;
    ended(&engine, "ann", 299).await;
}

#[tokio::test]
async fn caller_with_many_tasks_does_not_delay_others_in_memory() {
    check_caller_leaves_slots_to_others(Arc::new(MemoryStore::new())).await;
}

#[tokio::test]
async fn caller_with_many_tasks_does_not_delay_others_in_sqlite() {
    let (_file, store) = File::new("fairness");
    check_caller_leaves_slots_to_others(store).await;
}

#[tokio::test]
async fn caller_with_many_queued_tasks_does_not_delay_others() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    for number in 0..300 {
        store.create(task("ann", "long", number)).await.unwrap();
    }
    store.create(task("bob", "quick", 0)).await.unwrap();
    let kinds = Kinds::new(1);
    let engine = engine(&store, &kinds, |_| ());
    ended(&engine, "bob", 0).await;
}

#[tokio::test]
async fn free_slot_goes_to_caller_without_running_task() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let kinds = Kinds::new(1);
    let engine = engine(&store, &kinds, |config| {
        (config.max_running, config.max_running_per_caller) = (8, Some(2));
    });
    // Four callers use all slots and have older queued tasks.
    for caller in ["a", "b", "c", "d"] {
        make(&engine, caller, "long", 50).await;
    }
    kinds.until_begun(8).await;
    make(&engine, "bob", "long", 1).await;
    kinds.gate.add_permits(1);
    kinds.until_begun(9).await;
    assert_eq!(kinds.begun()[8], "bob 000", "{:?}", kinds.begun());
}

#[tokio::test]
async fn task_waiting_for_permit_holds_no_slot() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let kinds = Kinds::new(1);
    let engine = engine(&store, &kinds, |config| {
        (config.max_running, config.max_running_per_caller) = (4, Some(4));
    });
    make(&engine, "ann", "job", 50).await;
    kinds.until_waiting(49).await;
    // Other tasks run, including those of the same caller.
    make(&engine, "bob", "quick", 1).await;
    ended(&engine, "bob", 0).await;
    make(&engine, "cid", "job", 2).await;
    kinds.until_waiting(51).await;
    // All waiting tasks get a permit without retrying on their own.
    kinds.gate.add_permits(52);
    kinds.until_begun(53).await;
    for number in 0..50 {
        ended(&engine, "ann", number).await;
    }
    let jobs: Vec<_> = kinds.begun().into_iter().filter(|id| id != "bob 000").collect();
    let place = |id: &str| jobs.iter().position(|job| job == id).unwrap();
    assert!(place("cid 000") < 4 && place("cid 001") < 6, "callers take turns: {jobs:?}");
    assert!(place("ann 005") < place("ann 040"), "first come, first served: {jobs:?}");
    assert_eq!((kinds.capacity.used(), kinds.capacity.waiting()), (0, 0));
}

#[tokio::test]
async fn permit_outlives_its_run() {
    let (_file, store) = File::new("permits");
    let kinds = Kinds::new(2);
    let engine = engine(&store, &kinds, |_| ());
    make(&engine, "ann", "leaves", 5).await;
    kinds.until_waiting(3).await;
    assert_eq!((kinds.begun().len(), kinds.capacity.used()), (2, 2), "both runs have ended");
    for begun in 3..=5 {
        kinds.left.lock().unwrap().pop();
        kinds.until_begun(begun).await;
    }
    ended(&engine, "ann", 4).await;
    assert_eq!(kinds.capacity.used(), 2);
    kinds.left.lock().unwrap().clear();
    assert_eq!(kinds.capacity.used(), 0);
}

#[tokio::test]
async fn permit_of_cancelled_waiting_task_goes_to_next() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let kinds = Kinds::new(1);
    let engine = engine(&store, &kinds, |_| ());
    make(&engine, "ann", "job", 10).await;
    kinds.until_waiting(9).await;
    let first = kinds.begun().remove(0);
    for number in 0..9 {
        let id = TaskId::new(format!("ann {number:03}"));
        if id.as_str() != first {
            engine.cancel("ann", &id, false).await.unwrap().unwrap();
            ended(&engine, "ann", number).await;
        }
    }
    kinds.gate.add_permits(10);
    ended(&engine, "ann", 9).await;
    assert_eq!(kinds.begun().len(), if first == "ann 009" { 1 } else { 2 });
}
