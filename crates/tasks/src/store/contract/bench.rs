//! [`ContractBench`]: a store under test, and the helpers of the checks.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use outlive_wire::{InputRequest, RawJson};
use serde_json::{Value, json, value::to_raw_value};

use crate::store::{
    Changes, ClaimedTask, CreateOutcome, InputSource, Lease, NewInputRequest, NewTask,
    OperatorStore, PeopleStore, RecordedEntry, Store, TaskId, TaskOutcome, TaskRecord, Transition,
    WorkerId,
};
use crate::{JournalEntry, JournalSnapshot};

/// An empty store under test, with a clock that can be advanced.
#[derive(Clone)]
pub struct ContractBench {
    pub(super) store: Arc<dyn Store>,
    operated: Option<Arc<dyn OperatorStore>>,
    people: Option<Arc<dyn PeopleStore>>,
    advance: Arc<dyn Fn(Duration) + Send + Sync>,
}

/// One check of the contract.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Check {
    /// Name of the check, like the name of a test.
    pub name: &'static str,
    /// Panics if the store breaks the contract. Requires an empty store.
    pub run: fn(ContractBench) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Declares a list of checks, each an async function of the same name.
macro_rules! promises {
    ($($name:ident),* $(,)?) => {
        pub(super) const CHECKS: &[super::bench::Check] = &[
            $(super::bench::Check { name: stringify!($name), run: |bench| Box::pin($name(bench)) },)*
        ];
    };
}
pub(super) use promises;

pub(super) const LEASE: Duration = Duration::from_secs(30);
pub(super) const RETENTION: Duration = Duration::from_secs(3600);
pub(super) const TTL: Duration = Duration::from_secs(600);
pub(super) const MAX_TTL: Duration = Duration::from_secs(7200);

impl ContractBench {
    /// Creates a bench from a store and a function that advances its clock.
    pub fn new(store: Arc<dyn Store>, advance: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self { store, operated: None, people: None, advance: Arc::new(advance) }
    }

    /// Creates a bench from an operator store and a function that advances its clock.
    pub fn operated(
        store: Arc<dyn OperatorStore>,
        advance: impl Fn(Duration) + Send + Sync + 'static,
    ) -> Self {
        let operated = Some(Arc::clone(&store));
        Self { operated, ..Self::new(store, advance) }
    }

    /// Creates a bench from a people store and a function that advances its clock.
    pub fn people(
        store: Arc<dyn PeopleStore>,
        advance: impl Fn(Duration) + Send + Sync + 'static,
    ) -> Self {
        let people = Some(Arc::clone(&store));
        Self { people, ..Self::operated(store, advance) }
    }

    pub(super) fn operator(&self) -> &dyn OperatorStore {
        self.operated.as_deref().expect("operator checks require `ContractBench::operated`")
    }

    pub(super) fn for_people(&self) -> &Arc<dyn PeopleStore> {
        self.people.as_ref().expect("checks for people require `ContractBench::people`")
    }

    pub(super) fn advance(&self, span: Duration) {
        (self.advance)(span);
    }

    /// Creates a queued task.
    pub(super) async fn queue(&self, id: &str) {
        let created = self.store.create(task(id)).await.expect("create succeeds");
        assert!(created.is_new(), "{created:?}");
    }

    /// Creates a task that a worker runs from its creation.
    pub(super) async fn start(&self, id: &str, by: &str) -> Lease {
        let new = NewTask { worker: Some((worker(by), LEASE)), ..task(id) };
        match self.store.create(new).await.expect("create succeeds") {
            CreateOutcome::Created { lease: Some(lease), .. } => lease,
            other => panic!("expected a lease: {other:?}"),
        }
    }

    pub(super) async fn claim(&self, by: &str) -> Vec<ClaimedTask> {
        self.store.claim(&worker(by), LEASE, &100_usize.into()).await.expect("claim succeeds")
    }

    pub(super) async fn claim_one(&self, by: &str) -> ClaimedTask {
        let mut claimed = self.claim(by).await;
        assert_eq!(claimed.len(), 1, "exactly one task is due: {claimed:?}");
        claimed.remove(0)
    }

    pub(super) async fn view(&self, id: &str) -> TaskRecord {
        let view = self.store.get(OWNER, &TaskId::new(id)).await.expect("read succeeds");
        view.unwrap_or_else(|| panic!("task {id} does not exist"))
    }

    pub(super) async fn is_gone(&self, id: &str) -> bool {
        self.store.get(OWNER, &TaskId::new(id)).await.expect("read succeeds").is_none()
    }

    pub(super) async fn write(&self, lease: &Lease, changes: Changes) {
        self.store.commit(lease, &changes, &Transition::Continue).await.expect("commit succeeds");
    }

    pub(super) async fn park(&self, lease: &Lease, changes: Changes) {
        self.store
            .commit(lease, &changes, &Transition::Park { due_at: None, responses_seen: 0 })
            .await
            .expect("commit succeeds");
    }

    pub(super) async fn end(&self, lease: &Lease, outcome: TaskOutcome) {
        let then = Transition::End { outcome, retention: RETENTION };
        self.store.commit(lease, &Changes::default(), &then).await.expect("commit succeeds");
    }

    pub(super) async fn answer(&self, id: &str, answers: &[(&str, Value)]) -> Option<usize> {
        self.answer_from(InputSource::Client, id, answers).await
    }

    pub(super) async fn answer_outside(
        &self,
        id: &str,
        answers: &[(&str, Value)],
    ) -> Option<usize> {
        self.answer_from(InputSource::External, id, answers).await
    }

    pub(super) async fn answer_from(
        &self,
        from: InputSource,
        id: &str,
        answers: &[(&str, Value)],
    ) -> Option<usize> {
        let answers =
            answers.iter().map(|(name, answer)| ((*name).to_owned(), raw(answer))).collect();
        let answered = self.store.respond(OWNER, &TaskId::new(id), from, answers, u64::MAX).await;
        answered.expect("operation succeeds")
    }
}

/// Principal of all tasks, unless a check says otherwise.
pub(super) const OWNER: &str = "name:ada";

pub(super) fn worker(name: &str) -> WorkerId {
    WorkerId::new(name)
}

pub(super) fn task(id: &str) -> NewTask {
    let request = raw(&json!({"name": "deploy", "text": "ü\n"}));
    NewTask::new(TaskId::new(id), OWNER, "deploy", "modern", request)
        .ttl(Some(TTL))
        .max_ttl(MAX_TTL)
        .quota(1_000)
}

pub(super) fn raw(value: &Value) -> RawJson {
    to_raw_value(value).expect("value is valid JSON")
}

pub(super) fn value(json: &Value) -> JournalEntry {
    JournalEntry::Value(raw(json))
}

#[expect(clippy::needless_pass_by_value, reason = "callers pass a `json!` value in place")]
pub(super) fn entry(key: &str, json: Value) -> Changes {
    Changes { entries: vec![RecordedEntry::new(key, value(&json))], ..Changes::default() }
}

pub(super) fn question(key: &str, name: &str) -> NewInputRequest {
    NewInputRequest::new(key, name, Some(InputRequest::ListRoots))
}

pub(super) fn ask(questions: &[(&str, &str)]) -> Changes {
    let asked = questions.iter().map(|(key, name)| question(key, name)).collect();
    Changes { input_requests: asked, ..Changes::default() }
}

/// Returns changes that open an external event.
pub(super) fn outside(key: &str, name: &str) -> Changes {
    let asked = vec![NewInputRequest { request: None, ..question(key, name) }];
    Changes { input_requests: asked, ..Changes::default() }
}

/// Returns the recorded value under a key, as JSON text.
pub(super) fn recorded(journal: &JournalSnapshot, key: &str) -> Option<String> {
    match journal.entries.get(key)? {
        JournalEntry::Value(raw) | JournalEntry::Answer(raw) => Some(raw.get().to_owned()),
        other => Some(format!("{other:?}")),
    }
}

pub(super) fn names(view: &TaskRecord) -> Vec<&str> {
    view.input_requests.iter().map(|input| input.name.as_str()).collect()
}

pub(super) fn done() -> TaskOutcome {
    TaskOutcome::Result(raw(&json!({"content": []})))
}

impl fmt::Debug for ContractBench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContractBench")
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Check").field(&self.name).finish()
    }
}
