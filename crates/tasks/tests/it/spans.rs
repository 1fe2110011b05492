//! The tracing spans `task.run` and `store.commit`.

use std::{
    env, fmt, fs,
    future::Future,
    process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use outlive_tasks::{
    Journal, JournalLimits,
    engine::{Engine, EngineConfig, StartError, TaskRun, TaskRunner},
    store::{ClaimedTask, MemoryStore, NewTask, SqliteStore, Store, TaskId, TaskOutcome, WorkerId},
};
use serde_json::{json, value::to_raw_value};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// A span: its name, its fields, and the span in which it was created.
#[derive(Clone, Debug, Default)]
struct Seen {
    name: &'static str,
    fields: Vec<(String, String)>,
    parent: Option<u64>,
}

/// Records all spans of one thread.
#[derive(Clone, Default)]
struct Spans {
    seen: Arc<Mutex<Vec<Seen>>>,
    entered: Arc<Mutex<Vec<u64>>>,
    count: Arc<AtomicU64>,
}

struct Fields<'a>(&'a mut Vec<(String, String)>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name().to_owned(), format!("{value:?}")));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let current = self.entered.lock().unwrap().last().copied();
        let parent = if span.is_root() { None } else { current };
        let mut seen = Seen { name: span.metadata().name(), parent, ..Seen::default() };
        span.record(&mut Fields(&mut seen.fields));
        self.seen.lock().unwrap().push(seen);
        Id::from_u64(self.count.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut Fields(&mut self.seen.lock().unwrap()[index(span.into_u64())].fields));
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.entered.lock().unwrap().push(span.into_u64());
    }

    fn exit(&self, _span: &Id) {
        self.entered.lock().unwrap().pop();
    }
}

fn index(id: u64) -> usize {
    usize::try_from(id).unwrap() - 1
}

impl Spans {
    /// Runs a future on this thread, and returns the spans that it created.
    fn of(work: impl Future<Output = ()>) -> Vec<Seen> {
        let spans = Self::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tracing::subscriber::with_default(spans.clone(), || runtime.block_on(work));
        let seen = spans.seen.lock().unwrap();
        seen.clone()
    }
}

/// Runner whose tasks end immediately.
struct Quick;

impl TaskRunner for Quick {
    fn start(&self, claimed: ClaimedTask) -> Result<TaskRun, StartError> {
        let limits = JournalLimits {
            bytes: 1_000,
            open_inputs: 1,
            leaves: false,
            segments: 1,
            segment_bytes: 100,
        };
        let journal = Arc::new(Journal::from_snapshot(limits, claimed.journal));
        let done = to_raw_value(&json!({"content": []})).unwrap();
        let work = Box::pin(async move { TaskOutcome::Result(done) });
        Ok(TaskRun {
            journal,
            work,
            cancel: Box::new(|| ()),
            resumes: true,
            cleans_up: false,
            reduce: None,
        })
    }
}

fn task() -> NewTask {
    NewTask::new(
        TaskId::new("t-1"),
        "name:ada",
        "deploy",
        "modern",
        to_raw_value(&json!({})).unwrap(),
    )
    .max_ttl(Duration::from_secs(3600))
    .quota(10)
}

/// Runs one task on a store until it has ended.
async fn run(store: Arc<dyn Store>) {
    let config = EngineConfig::default();
    let engine = Engine::start(&store, Arc::new(Quick), None, WorkerId::new("w-1"), config);
    let created = engine.create(task()).await.unwrap();
    let id = created.task().clone();
    created.acknowledge();
    loop {
        let watch = engine.watch(&id);
        let changed = watch.notified();
        let record = engine.get("name:ada", &id).await.unwrap().unwrap();
        if record.outcome.is_some() {
            break;
        }
        let _ = tokio::time::timeout(Duration::from_millis(20), changed).await;
    }
    engine.drain(Duration::from_secs(5)).await;
}

#[track_caller]
fn check(seen: &[Seen], store: &str) {
    let runs: Vec<_> = seen.iter().filter(|span| span.name == "task.run").collect();
    let field = |span: &Seen, name: &str| {
        let found = span.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.trim_matches('"').to_owned())
    };
    let [run] = runs[..] else { panic!("expected one run: {seen:?}") };
    let expected = [("task_id", "t-1"), ("tool", "deploy"), ("worker_id", "w-1"), ("epoch", "1")];
    for (name, value) in expected {
        assert_eq!(field(run, name).as_deref(), Some(value), "{run:?}");
    }
    assert_eq!(run.parent, None, "a run has no parent: {run:?}");
    let commits: Vec<_> = seen.iter().filter(|span| span.name == "store.commit").collect();
    let [commit] = commits[..] else { panic!("expected one commit: {seen:?}") };
    let expected = [("store", store), ("changes", "0"), ("transition", "end")];
    for (name, value) in expected {
        assert_eq!(field(commit, name).as_deref(), Some(value), "{commit:?}");
    }
    let parent = commit.parent.map(|id| seen[index(id)].name);
    assert_eq!(parent, Some("task.run"), "the commit span is a child of the run span: {seen:?}");
}

#[test]
fn memory_commit_span_is_child_of_run_span() {
    check(&Spans::of(async { run(Arc::new(MemoryStore::new())).await }), "memory");
}

#[test]
fn sqlite_commit_span_is_child_of_run_span() {
    let folder = env::temp_dir().join(format!("outlive-spans-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("tasks.db");
    let seen = Spans::of(async { run(Arc::new(SqliteStore::open(path).unwrap())).await });
    fs::remove_dir_all(&folder).unwrap();
    check(&seen, "sqlite");
}
