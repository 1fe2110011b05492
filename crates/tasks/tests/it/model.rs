//! Random histories of tasks with several workers and a client, on every store, against a reference
//! model.
//!
//! The real clock advances by less than one unit during a test. Every deadline is in the middle
//! between two units, so the model knows whether it has passed.

mod reference; // the reference model

use std::{
    env, fs, process,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive_tasks::{
    JournalEntry,
    store::{
        Changes, ClaimedTask, CleanupState, CreateOutcome, IdempotencyKey, InputSource, Lease,
        MemoryStore, NewInputRequest, NewTask, RecordedEntry, SqliteOptions, SqliteStore, Store,
        StoreError, Synchronous, TaskId, TaskOutcome, Transition, WorkerId,
    },
};
use outlive_wire::{InputRequest, RawJson};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{json, value::to_raw_value};

use self::reference::{Changed, Model, Next};

const OWNER: &str = "name:ada";

/// Unit of time, which is longer than any test.
const UNIT: Duration = Duration::from_secs(1000);

/// Times are in halves of a unit: the present is even, and deadlines are odd.
const LEASE: u64 = 3;
const TTL: u64 = 9;
const MAX_TTL: u64 = 19;
const RETENTION: u64 = 7;
const PAUSE: u64 = 5;

/// Maximum number of open tasks.
const QUOTA: usize = 4;

fn span(halves: u64) -> Duration {
    UNIT / 2 * u32::try_from(halves).unwrap()
}

/// An operation. Numbers select among the existing tasks and leases, modulo their count.
#[derive(Clone, Debug)]
enum Op {
    Create {
        worker: Option<usize>,
        key: Option<usize>,
        clean_up: bool,
    },
    /// Repeats a creation, as if its result was lost.
    CreateAgain(usize),
    Claim {
        worker: usize,
        limit: usize,
    },
    Renew(usize),
    Release(usize),
    /// By the holder of a current or former lease.
    Write {
        lease: usize,
        wrote: Wrote,
        next: Next,
    },
    /// By the holder of a current or former lease.
    Cleaning {
        lease: usize,
        now: CleanupState,
    },
    Heard(usize),
    Answer {
        task: usize,
        names: Vec<usize>,
        outside: bool,
    },
    Cancel {
        task: usize,
        at_once: bool,
    },
    Sweep,
    Shift(u32),
}

/// Content of a commit.
#[derive(Clone, Debug)]
struct Wrote {
    entry: Option<usize>,
    asked: Vec<usize>,
    withdrawn: Option<usize>,
    says: bool,
}

fn op() -> impl Strategy<Value = Op> {
    let some = |of: usize| prop::option::of(0..of);
    let wrote = (some(3), prop::collection::vec(0..4usize, 0..3), some(4), any::<bool>())
        .prop_map(|(entry, asked, withdrawn, says)| Wrote { entry, asked, withdrawn, says });
    let next = prop_oneof![
        3 => Just(Next::GoOn),
        2 => (any::<bool>(), 0..3usize).prop_map(|(due, seen)| Next::Park { due, seen }),
        1 => Just(Next::End),
    ];
    prop_oneof![
        3 => (some(2), some(3), any::<bool>())
            .prop_map(|(worker, key, clean_up)| Op::Create { worker, key, clean_up }),
        1 => (0..8usize).prop_map(Op::CreateAgain),
        4 => (0..2usize, 1..3usize).prop_map(|(worker, limit)| Op::Claim { worker, limit }),
        1 => (0..2usize).prop_map(Op::Renew),
        1 => (0..2usize).prop_map(Op::Release),
        8 => (0..32usize, wrote, next)
            .prop_map(|(lease, wrote, next)| Op::Write { lease, wrote, next }),
        3 => (0..32usize, prop_oneof![Just(CleanupState::Due), Just(CleanupState::Done)])
            .prop_map(|(lease, now)| Op::Cleaning { lease, now }),
        1 => (0..32usize).prop_map(Op::Heard),
        4 => (0..8usize, prop::collection::vec(0..4usize, 1..3), any::<bool>())
            .prop_map(|(task, names, outside)| Op::Answer { task, names, outside }),
        2 => (0..8usize, any::<bool>()).prop_map(|(task, at_once)| Op::Cancel { task, at_once }),
        2 => Just(Op::Sweep),
        3 => (1..4u32).prop_map(Op::Shift),
    ]
}

/// A store and its model, with the state of workers and clients.
struct Play {
    store: Arc<dyn Store>,
    shift: Box<dyn Fn(Duration)>,
    model: Model,
    /// All leases so far, the newest last.
    leases: Vec<Lease>,
    /// Counter that makes responses and values unique.
    count: usize,
}

impl Play {
    async fn act(&mut self, op: &Op) {
        match op {
            Op::Create { worker, key, clean_up } => self.create(*worker, *key, *clean_up).await,
            Op::CreateAgain(task) => self.create_again(*task).await,
            Op::Claim { worker, limit } => self.claim(*worker, *limit).await,
            Op::Renew(worker) => self.renew(*worker).await,
            Op::Release(worker) => {
                self.store.release(&name(*worker)).await.unwrap();
                self.model.release(*worker);
            }
            Op::Write { lease, wrote, next } => self.write(*lease, wrote, *next).await,
            Op::Cleaning { lease, now } => {
                let Some(lease) = self.lease(*lease) else { return };
                let said = self.store.finish_cleanup(&lease, *now).await;
                let held = self.model.clean_up(&lease, *now);
                assert_eq!(
                    said,
                    if held { Ok(()) } else { Err(StoreError::LeaseLost) },
                    "{lease:?}"
                );
            }
            Op::Heard(lease) => self.heard(*lease).await,
            Op::Answer { task, names, outside } => self.answer(*task, names, *outside).await,
            Op::Cancel { task, at_once } => {
                let Some(id) = self.chosen(*task) else { return };
                let cancelled = self.store.cancel(OWNER, &id, *at_once, span(RETENTION)).await;
                assert_eq!(cancelled, Ok(self.model.cancel(&id, *at_once)));
            }
            Op::Sweep => {
                let swept = self.store.sweep(100, span(RETENTION)).await.unwrap();
                let (mut expired, purged) = self.model.sweep();
                let mut seen: Vec<_> = swept.expired.into_iter().map(|(_, id)| id).collect();
                seen.sort();
                expired.sort();
                assert_eq!((seen, swept.purged), (expired, purged));
            }
            Op::Shift(units) => {
                (self.shift)(UNIT * *units);
                self.model.now += u64::from(*units) * 2;
            }
        }
    }

    async fn create(&mut self, worker: Option<usize>, key: Option<usize>, clean_up: bool) {
        let id = TaskId::new(format!("t{}", self.model.made.len()));
        let new = new_task(&id, worker, key).clean_up(clean_up);
        let created = self.store.create(new).await.unwrap();
        // The model does not know the store's clock, so it takes the creation time from the store.
        let expected = match (self.model.create(&id, worker, key, clean_up), &created) {
            (CreateOutcome::Created { lease, .. }, CreateOutcome::Created { at, .. }) => {
                CreateOutcome::Created { lease, at: *at }
            }
            (other, _) => other,
        };
        assert_eq!(created, expected);
        if let CreateOutcome::Created { lease: Some(lease), .. } = created {
            self.leases.push(lease);
        }
    }

    async fn create_again(&mut self, task: usize) {
        let Some(id) = self.chosen(task).filter(|id| self.model.tasks.contains_key(id)) else {
            return;
        };
        let created = self.store.create(new_task(&id, None, None)).await;
        assert_eq!(created, Ok(CreateOutcome::Existing(id)));
    }

    async fn claim(&mut self, worker: usize, limit: usize) {
        let claimed = self.store.claim(&name(worker), span(LEASE), &limit.into()).await.unwrap();
        let due = self.model.due();
        assert_eq!(claimed.len(), due.len().min(limit), "{due:?}");
        for ClaimedTask {
            lease,
            journal,
            started: begun,
            crash_count: crashes,
            cancel_requested,
            ended,
            ..
        } in claimed
        {
            assert!(due.contains(&lease.task), "{lease:?} is not due");
            let task = self.model.claim(&lease, worker);
            assert_eq!((begun, crashes), (task.begun, task.crashes), "{lease:?}");
            assert_eq!(cancel_requested, task.cancel_requested);
            assert_eq!(ended.as_ref().map(reference::outcome), task.outcome, "{lease:?}");
            assert_eq!(journal.input_requests, task.open(), "{lease:?}");
            let entries: Vec<_> =
                journal.entries.iter().map(|(key, entry)| (key.clone(), shown(entry))).collect();
            assert_eq!(entries, task.entries(), "{lease:?}");
            self.leases.push(lease);
        }
    }

    async fn renew(&mut self, worker: usize) {
        let mut held = self.store.renew(&name(worker), span(LEASE)).await.unwrap();
        held.sort_by(|a, b| a.task.cmp(&b.task));
        let held: Vec<_> = held.into_iter().map(|lease| (lease.task, lease.epoch)).collect();
        assert_eq!(held, self.model.renew(worker));
    }

    async fn write(&mut self, lease: usize, wrote: &Wrote, next: Next) {
        let Some(lease) = self.lease(lease) else { return };
        self.count += 1;
        let value = self.count;
        let entries: Vec<_> = wrote.entry.iter().map(|key| (format!("e{key}"), value)).collect();
        // The last wire key is an external event.
        let request = |name: usize| (name < 3).then_some(InputRequest::ListRoots);
        let asked = wrote.asked.iter().map(|name| {
            NewInputRequest::new(format!("q{name}"), format!("q{name}"), request(*name))
        });
        let withdrawn: Vec<_> = wrote.withdrawn.iter().map(|name| format!("q{name}")).collect();
        let message = wrote.says.then(|| format!("m{value}"));
        let outcome = TaskOutcome::Result(raw(&json!(value)));
        let changes = Changes::default()
            .entries(
                entries
                    .iter()
                    .map(|(key, value)| {
                        RecordedEntry::new(key.as_str(), JournalEntry::Value(raw(&json!(value))))
                    })
                    .collect(),
            )
            .input_requests(asked.collect())
            .withdrawn(withdrawn.clone())
            .status_message(message.clone());
        let then = match next {
            Next::GoOn => Transition::Continue,
            Next::Park { due, seen } => Transition::Park {
                due_at: due.then(|| self.at(&lease.task, PAUSE)),
                responses_seen: seen,
            },
            Next::End => Transition::End { outcome, retention: span(RETENTION) },
        };
        let is_seen = matches!(then, Transition::End { .. })
            || message.is_some()
            || !changes.input_requests.is_empty()
            || !withdrawn.is_empty();
        let changed = if is_seen { Changed::Yes } else { Changed::Recorded };
        let names: Vec<_> = wrote.asked.iter().map(|name| format!("q{name}")).collect();
        let written = self.store.commit(&lease, &changes, &then).await;
        let held = self.model.write(&lease, changed, |task, now| {
            task.record(&entries);
            task.ask(&names, &withdrawn, now);
            task.message = message.or_else(|| task.message.take());
            task.go_on(next, value, now);
        });
        assert_eq!(written, if held { Ok(()) } else { Err(StoreError::LeaseLost) }, "{lease:?}");
    }

    async fn heard(&mut self, lease: usize) {
        let Some(lease) = self.lease(lease) else { return };
        let heard = self.store.inbox(&lease).await;
        match self.model.held(&lease) {
            None => assert_eq!(heard.map(drop), Err(StoreError::LeaseLost), "{lease:?}"),
            Some(task) => {
                let heard = heard.unwrap();
                assert_eq!(heard.cancel_requested, task.cancel_requested);
                assert_eq!(heard.answers.len(), task.answers().count());
            }
        }
    }

    async fn answer(&mut self, task: usize, names: &[usize], outside: bool) {
        let Some(id) = self.chosen(task) else { return };
        self.count += 1;
        let value = self.count;
        let names: Vec<_> = names.iter().map(|name| format!("q{name}")).collect();
        let answers = names.iter().map(|name| (name.clone(), raw(&json!(value)))).collect();
        let from = if outside { InputSource::External } else { InputSource::Client };
        let foreign = self.store.respond("name:eve", &id, from, Vec::new(), u64::MAX).await;
        assert_eq!(foreign, Ok(None));
        let taken = self.store.respond(OWNER, &id, from, answers, u64::MAX).await;
        assert_eq!(taken, Ok(self.model.answer(&id, &names, outside, value)), "{id} {names:?}");
    }

    /// Returns one of the tasks that were ever created.
    fn chosen(&self, task: usize) -> Option<TaskId> {
        let made = &self.model.made;
        (!made.is_empty()).then(|| made[made.len() - 1 - task % made.len()].clone())
    }

    /// Returns one of the leases that were ever granted. The newest are selected most often.
    fn lease(&self, lease: usize) -> Option<Lease> {
        let last = self.leases.len().checked_sub(1)?;
        let back = if lease < 16 { lease % 2 } else { lease };
        Some(self.leases[last.saturating_sub(back)].clone())
    }

    /// Returns a time of the store's clock, `halves` after now.
    fn at(&self, id: &TaskId, halves: u64) -> u64 {
        let (created, seen) = self.model.times(id);
        let elapsed = u64::try_from(span(self.model.now - created + halves).as_millis()).unwrap();
        seen + elapsed
    }

    /// Checks that each task's record matches the model, and that no time decreases.
    async fn look(&mut self) {
        for id in self.model.made.clone() {
            let view = self.store.get(OWNER, &id).await.unwrap();
            assert!(self.store.get("name:eve", &id).await.unwrap().is_none());
            self.model.check(&id, view.as_ref());
        }
        let census = self.store.stats().await.unwrap();
        let counted = [census.queued, census.running, census.parked, census.ended];
        assert_eq!(counted, self.model.census());
        let listed = self.store.list(OWNER, "", None, 100).await.unwrap();
        assert_eq!(listed.len(), self.model.tasks.len());
    }
}

fn name(worker: usize) -> WorkerId {
    WorkerId::new(format!("w{worker}"))
}

fn new_task(id: &TaskId, worker: Option<usize>, key: Option<usize>) -> NewTask {
    NewTask::new(id.clone(), OWNER, "model", "", raw(&json!({})))
        .ttl(Some(span(TTL)))
        .max_ttl(span(MAX_TTL))
        .worker(worker.map(|worker| (name(worker), span(LEASE))))
        .idempotency(key.map(|key| IdempotencyKey::new(format!("k{key}"), "")))
        .quota(QUOTA)
}

fn raw(value: &serde_json::Value) -> RawJson {
    to_raw_value(value).unwrap()
}

fn shown(entry: &JournalEntry) -> String {
    match entry {
        JournalEntry::Value(raw) => format!("value {}", raw.get()),
        JournalEntry::Answer(raw) => format!("answer {}", raw.get()),
        other => format!("{other:?}"),
    }
}

/// A store, and a function that advances its clock.
pub(crate) struct Clocked {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) shift: Box<dyn Fn(Duration)>,
}

impl Clocked {
    pub(crate) fn new<S: Store>(store: S, shift: fn(&S, Duration)) -> Self {
        let store = Arc::new(store);
        let clock = Arc::clone(&store);
        Self { store, shift: Box::new(move |span| shift(&clock, span)) }
    }
}

/// Plays random histories, each on a new store.
pub(crate) fn play(cases: u32, open: impl AsyncFn() -> Clocked) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..Default::default() };
    TestRunner::new(config)
        .run(&prop::collection::vec(op(), 1..50), |ops| {
            let Clocked { store, shift } = runtime.block_on(open());
            let (model, leases) = (Model::default(), Vec::new());
            let mut play = Play { store, shift, model, leases, count: 0 };
            runtime.block_on(async {
                for op in &ops {
                    play.act(op).await;
                    play.look().await;
                }
            });
            Ok(())
        })
        .unwrap();
}

// K-48
#[test]
fn memory_store_matches_model() {
    play(500, async || Clocked::new(MemoryStore::new(), MemoryStore::advance_clock));
}

// K-48
#[test]
fn sqlite_store_matches_model() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let folder = env::temp_dir().join(format!("outlive-model-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    play(40, async || {
        let file = folder.join(format!("{}.db", COUNT.fetch_add(1, Ordering::Relaxed)));
        // The test needs no durability, and the disk is slow.
        let options = SqliteOptions::new().synchronous(Synchronous::Normal);
        let store = SqliteStore::open_with(file, options).unwrap();
        Clocked::new(store, SqliteStore::advance_clock)
    });
    let _ = fs::remove_dir_all(folder);
}
