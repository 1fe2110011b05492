//! Durations of steps and tags in an engine.

use std::{future::poll_fn, sync::Arc, time::Duration};

use outlive_tasks::{
    Journal, JournalEntry, JournalLimits, StepStart,
    engine::{Engine, EngineConfig, StartError, TaskRun, TaskRunner},
    poll_as,
    store::{
        ClaimedTask, JournalItem, MemoryStore, NewTask, Phase, Store, TaskId, TaskIndex,
        TaskOutcome, TaskQuery, TaskStore, WorkerId,
    },
};
use outlive_wire::RawJson;
use serde_json::{json, value::to_raw_value};

const OWNER: &str = "name:ada";
const RUN: usize = 1;
const SPAN: Duration = Duration::from_millis(812);

fn raw() -> RawJson {
    to_raw_value(&json!({})).unwrap()
}

/// Runner of a tool with one step and one tag.
struct OneStep;

impl TaskRunner for OneStep {
    fn start(&self, claimed: ClaimedTask) -> Result<TaskRun, StartError> {
        let limits = JournalLimits {
            bytes: 1_000,
            open_inputs: 1,
            leaves: false,
            segments: 1,
            segment_bytes: 100,
        };
        let journal = Arc::new(Journal::from_snapshot(limits, claimed.journal));
        let work = Box::pin(work(Arc::clone(&journal)));
        let cancel = Box::new(|| {});
        Ok(TaskRun { journal, work, cancel, resumes: true, cleans_up: false, reduce: None })
    }
}

async fn work(journal: Arc<Journal>) -> TaskOutcome {
    journal.add_tag("order=1".to_owned()).unwrap();
    let begun = poll_as(RUN, || journal.begin(RUN, "push")).unwrap();
    let StepStart::New(step) = begun else { panic!("{begun:?}") };
    tokio::time::sleep(SPAN).await;
    let (_, ticket) = step.record(JournalEntry::Value(raw()), false).unwrap();
    poll_fn(|cx| journal.poll_written(ticket, cx)).await.unwrap();
    TaskOutcome::Result(raw())
}

/// Runs the tool. Returns its journal, and the number of tasks with its tag.
async fn run(record_durations: bool) -> (Vec<JournalItem>, usize) {
    let store = Arc::new(MemoryStore::new());
    let shared: Arc<dyn Store> = Arc::clone(&store) as _;
    let mut config = EngineConfig::default();
    config.record_durations = record_durations;
    let engine = Engine::start(&shared, Arc::new(OneStep), None, WorkerId::new("v"), config);
    let id = TaskId::new("t");
    let task = NewTask::new(id.clone(), OWNER, "deploy", "modern", raw()).indexed(true);
    engine.create(task).await.unwrap().acknowledge();
    while store.get(OWNER, &id).await.unwrap().unwrap().phase != Phase::Ended {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let tagged = TaskQuery::default().tag(Some("order=1".to_owned()));
    let tagged = store.count(&tagged, 10).await.unwrap().count;
    (store.journal(&id, None, 10).await.unwrap(), tagged)
}

#[tokio::test(start_paused = true)]
async fn step_has_measured_duration_if_engine_records_durations() {
    let (journal, tagged) = run(true).await;
    assert_eq!((journal.len(), journal[0].key.as_str(), tagged), (1, "push", 1));
    assert!(journal[0].duration.is_some_and(|duration| duration >= SPAN), "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn step_has_no_duration_by_default() {
    let (journal, tagged) = run(false).await;
    assert_eq!((journal.len(), journal[0].duration, tagged), (1, None, 1));
}
