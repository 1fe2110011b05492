//! Random histories of bridged calls: every store behaves like the memory store.
//!
//! The real clock advances by less than one unit during a test. Every deadline is in the middle
//! between two units, so both stores agree whether it has passed.

use std::{
    env, fs, process,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive_tasks::store::{
    Bridge, Changes, CreateOutcome, Departure, Joined, Lease, MemoryStore, NewInputRequest,
    NewTask, SqliteOptions, SqliteStore, Store, Synchronous, TaskId, TaskOutcome, Transition,
    WorkerId,
};
use outlive_wire::InputRequest;
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{json, value::to_raw_value};

use crate::model::Clocked;

const OWNER: &str = "name:ada";

/// Unit of time, which is longer than any test.
const UNIT: Duration = Duration::from_secs(1000);

/// Times are in halves of a unit: the present is even, and deadlines are odd.
const LEASE: u32 = 99;
const TTL: u32 = 17;
const RETENTION: u32 = 9;
const SHORT_RETENTION: u32 = 1;
const ABANDON: u32 = 5;
const RETURN: u32 = 3;

fn span(halves: u32) -> Duration {
    UNIT / 2 * halves
}

/// An operation. Task numbers select among the created tasks, modulo their count.
#[derive(Clone, Debug)]
enum Op {
    Create { worker: usize, scope: usize, is_started: bool, is_bridged: bool },
    Join { worker: usize, scope: usize },
    Attend { task: usize, worker: usize },
    Leave { task: usize, worker: usize, how: Departure },
    Deliver { task: usize, is_short: bool },
    Ask(usize),
    End(usize),
    Cancel { task: usize, at_once: bool },
    Evict { is_all: bool },
    Sweep,
    Shift(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let (worker, task, scope) = (0..2usize, 0..8usize, 0..2usize);
    let how = prop_oneof![
        2 => Just(Departure::Lost),
        1 => Just(Departure::PendingResult),
        1 => Just(Departure::Round { return_timeout: span(RETURN) }),
    ];
    prop_oneof![
        5 => (worker.clone(), scope.clone(), any::<bool>(), prop::bool::weighted(0.9)).prop_map(
            |(worker, scope, is_started, is_bridged)| {
                Op::Create { worker, scope, is_started, is_bridged }
            }
        ),
        6 => (worker.clone(), scope).prop_map(|(worker, scope)| Op::Join { worker, scope }),
        3 => (task.clone(), worker.clone()).prop_map(|(task, worker)| Op::Attend { task, worker }),
        8 => (task.clone(), worker, how)
            .prop_map(|(task, worker, how)| Op::Leave { task, worker, how }),
        2 => (task.clone(), any::<bool>())
            .prop_map(|(task, is_short)| Op::Deliver { task, is_short }),
        1 => task.clone().prop_map(Op::Ask),
        3 => task.clone().prop_map(Op::End),
        1 => (task, any::<bool>()).prop_map(|(task, at_once)| Op::Cancel { task, at_once }),
        1 => any::<bool>().prop_map(|is_all| Op::Evict { is_all }),
        4 => Just(Op::Sweep),
        4 => (1..3u32).prop_map(Op::Shift),
    ]
}

/// One store, and the leases of its tasks.
struct Side {
    store: Arc<dyn Store>,
    leases: Vec<(TaskId, Option<Lease>)>,
}

impl Side {
    fn new(store: Arc<dyn Store>) -> Self {
        Self { store, leases: Vec::new() }
    }

    fn chosen(&self, task: usize) -> Option<&(TaskId, Option<Lease>)> {
        self.leases.get(task % self.leases.len().max(1))
    }

    /// Executes an operation. Returns its result as text, without times.
    async fn act(&mut self, op: &Op) -> String {
        let store = Arc::clone(&self.store);
        match op {
            Op::Create { worker, scope, is_started, is_bridged } => {
                let id = TaskId::new(format!("t{:03}", self.leases.len()));
                let new = new_task(&id, *worker, *scope, *is_started, *is_bridged);
                let CreateOutcome::Created { lease, .. } = store.create(new).await.unwrap() else {
                    panic!("the task is not created");
                };
                self.leases.push((id, lease));
                String::new()
            }
            Op::Join { worker, scope } => {
                let scope = format!("s{scope}");
                let joined = store.join(OWNER, &scope, "f", &name(*worker)).await.unwrap();
                match joined {
                    // The clocks of two stores differ by milliseconds.
                    Joined::Returning(_) => "returning".to_owned(),
                    joined => {
                        format!("{:?}", joined.run().map(|run| (run.task, run.pending_results)))
                    }
                }
            }
            Op::Evict { is_all } => {
                let bytes = if *is_all { u64::MAX } else { 1 };
                format!("{:?}", store.evict(OWNER, bytes).await)
            }
            Op::Sweep => {
                let mut swept = store.sweep(100, span(RETENTION)).await.unwrap();
                swept.expired.sort();
                swept.abandoned.sort_by(|one, other| one.1.cmp(&other.1));
                format!("{swept:?}")
            }
            Op::Shift(_) => String::new(),
            Op::Attend { task, .. }
            | Op::Leave { task, .. }
            | Op::Deliver { task, .. }
            | Op::Cancel { task, .. }
            | Op::Ask(task)
            | Op::End(task) => match self.chosen(*task) {
                Some((id, lease)) => act_on(&*store, id, lease.as_ref(), op).await,
                None => String::new(),
            },
        }
    }

    /// Returns the visible state of all tasks as text, without times.
    async fn look(&self) -> String {
        let mut seen = String::new();
        for (id, _) in &self.leases {
            let view = self.store.get(OWNER, id).await.unwrap();
            let view = view.map(|view| {
                (view.phase, view.acknowledged, view.outcome.map(|outcome| outcome.kind()))
            });
            seen += &format!("{id}: {view:?}\n");
        }
        for scope in ["s0", "s1"] {
            let open = self.store.open_calls(OWNER, scope, 100).await.unwrap();
            let open: Vec<_> = open.into_iter().map(|call| call.task).collect();
            seen += &format!("{scope}: {open:?}\n");
        }
        seen + &format!("{:?}", self.store.stored_bytes(OWNER).await)
    }
}

/// Executes an operation on one task.
async fn act_on(store: &dyn Store, id: &TaskId, lease: Option<&Lease>, op: &Op) -> String {
    match op {
        Op::Attend { worker, .. } => {
            let attended = store.attend(OWNER, id, &name(*worker)).await.unwrap();
            format!("{:?}", attended.map(|attended| attended.pending_results))
        }
        Op::Leave { worker, how, .. } => {
            format!("{:?}", store.leave(OWNER, id, &name(*worker), *how).await)
        }
        Op::Deliver { is_short, .. } => {
            let retention = is_short.then(|| span(SHORT_RETENTION));
            format!("{:?}", store.deliver(OWNER, id, retention).await)
        }
        Op::Cancel { at_once, .. } => {
            format!("{:?}", store.cancel(OWNER, id, *at_once, span(RETENTION)).await)
        }
        Op::Ask(_) => {
            let Some(lease) = lease else { return String::new() };
            let asked = NewInputRequest::new("k", "n", Some(InputRequest::ListRoots));
            let changes = Changes::default().input_requests(vec![asked]);
            format!("{:?}", store.commit(lease, &changes, &Transition::Continue).await)
        }
        _ => {
            let Some(lease) = lease else { return String::new() };
            let outcome = TaskOutcome::Result(to_raw_value(&json!({"content": []})).unwrap());
            let end = Transition::End { outcome, retention: span(RETENTION) };
            format!("{:?}", store.commit(lease, &Changes::default(), &end).await)
        }
    }
}

fn name(worker: usize) -> WorkerId {
    WorkerId::new(format!("w{worker}"))
}

fn new_task(
    id: &TaskId,
    worker: usize,
    scope: usize,
    is_started: bool,
    is_bridged: bool,
) -> NewTask {
    let bridge = Bridge::new(Some(format!("s{scope}")), "f", name(worker), span(ABANDON));
    let request = to_raw_value(&json!({"number": id.as_str()})).unwrap();
    NewTask::new(id.clone(), OWNER, "render", "modern", request)
        .ttl(Some(span(TTL)))
        .max_ttl(span(TTL))
        .worker(is_started.then(|| (name(worker), span(LEASE))))
        .bridge(is_bridged.then_some(bridge))
}

/// Plays random histories on new stores, each also on a memory store.
pub(crate) fn play(cases: u32, open: impl AsyncFn() -> Clocked) {
    /// Step of the clock before each operation, so that no two have the same time.
    const STEP: Duration = Duration::from_millis(10);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..Default::default() };
    TestRunner::new(config)
        .run(&prop::collection::vec(op(), 1..60), |ops| {
            let Clocked { store, shift } = runtime.block_on(open());
            let memory = Arc::new(MemoryStore::new());
            let mut sides = (Side::new(store), Side::new(Arc::clone(&memory) as _));
            runtime.block_on(async {
                for op in &ops {
                    let units = if let Op::Shift(units) = op { *units } else { 0 };
                    let step = STEP + UNIT * units;
                    shift(step);
                    memory.advance_clock(step);
                    assert_eq!(sides.0.act(op).await, sides.1.act(op).await, "{op:?}");
                    assert_eq!(sides.0.look().await, sides.1.look().await, "after {op:?}");
                }
            });
            Ok(())
        })
        .unwrap();
}

#[test]
fn sqlite_store_matches_memory_store_in_bridged_calls() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let folder = env::temp_dir().join(format!("outlive-bridge-histories-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    play(60, async || {
        let file = folder.join(format!("{}.db", COUNT.fetch_add(1, Ordering::Relaxed)));
        // The test needs no durability, and the disk is slow.
        let options = SqliteOptions::new().synchronous(Synchronous::Normal);
        let store = SqliteStore::open_with(file, options).unwrap();
        Clocked::new(store, SqliteStore::advance_clock)
    });
    let _ = fs::remove_dir_all(folder);
}
