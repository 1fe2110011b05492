//! Every promise of [`Store`], and of [`OperatorStore`], as a check that any store can be put to.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use outlive_tasks::store::{MemoryStore, contract::{ContractBench, checks}};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! for check in checks() {
//!     let store = Arc::new(MemoryStore::new());
//!     let clock = Arc::clone(&store);
//!     let bench = ContractBench::new(store, move |span: Duration| clock.advance_clock(span));
//!     (check.run)(bench).await; // panics with what is wrong
//! }
//! # });
//! ```

mod audit;
mod budgets;
mod claim;
mod cleaning;
mod commit;
mod counting;
mod create;
mod elsewhere;
mod end;
mod keeping;
mod key_value;
mod operator;
mod respond;
mod waiting;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use outlive_wire::{InputRequest, RawJson};
use serde_json::{Value, json, value::to_raw_value};

use super::{
    Changes, ClaimedTask, CreateOutcome, InputSource, Lease, NewInputRequest, NewTask,
    OperatorStore, Store, TaskId, TaskOutcome, TaskRecord, Transition, WorkerId,
};
use crate::{JournalEntry, JournalSnapshot};

/// A store that is checked: empty, and with a time that can be moved.
#[derive(Clone)]
pub struct ContractBench {
    store: Arc<dyn Store>,
    operated: Option<Arc<dyn OperatorStore>>,
    advance: Arc<dyn Fn(Duration) + Send + Sync>,
}

/// One promise.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Check {
    /// What is promised, as the name of a test.
    pub name: &'static str,
    /// Panics if it is not kept. Wants an empty store.
    pub run: fn(ContractBench) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// All promises to servers.
pub fn checks() -> Vec<Check> {
    [
        create::CHECKS,
        claim::CHECKS,
        commit::CHECKS,
        respond::CHECKS,
        elsewhere::CHECKS,
        waiting::CHECKS,
        end::CHECKS,
        keeping::CHECKS,
        cleaning::CHECKS,
        counting::CHECKS,
        key_value::CHECKS,
        audit::CHECKS,
        budgets::CHECKS,
    ]
    .concat()
}

/// All promises to operators. They want a [`ContractBench::operated`].
pub fn operator_checks() -> Vec<Check> {
    operator::CHECKS.to_vec()
}

/// A list of checks, each an async function of the same name.
macro_rules! promises {
    ($($name:ident),* $(,)?) => {
        pub(super) const CHECKS: &[super::Check] = &[
            $(super::Check { name: stringify!($name), run: |bench| Box::pin($name(bench)) },)*
        ];
    };
}
use promises;

const LEASE: Duration = Duration::from_secs(30);
const RETENTION: Duration = Duration::from_secs(3600);
const TTL: Duration = Duration::from_secs(600);
const MAX_TTL: Duration = Duration::from_secs(7200);

impl ContractBench {
    /// A store, and how its time is moved.
    pub fn new(store: Arc<dyn Store>, advance: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self { store, operated: None, advance: Arc::new(advance) }
    }

    /// A store that operators look after, and how its time is moved.
    pub fn operated(
        store: Arc<dyn OperatorStore>,
        advance: impl Fn(Duration) + Send + Sync + 'static,
    ) -> Self {
        let operated = Some(Arc::clone(&store));
        Self { operated, ..Self::new(store, advance) }
    }

    fn operator(&self) -> &dyn OperatorStore {
        self.operated.as_deref().expect("a bench for operators is made with `Bench::operated`")
    }

    fn advance(&self, span: Duration) {
        (self.advance)(span);
    }

    /// Makes a task that waits for a worker.
    async fn queue(&self, id: &str) {
        let created = self.store.create(task(id)).await.expect("a task is made");
        assert!(created.is_new(), "{created:?}");
    }

    /// Makes a task that runs from the beginning.
    async fn start(&self, id: &str, by: &str) -> Lease {
        let new = NewTask { worker: Some((worker(by), LEASE)), ..task(id) };
        match self.store.create(new).await.expect("a task is made") {
            CreateOutcome::Created { lease: Some(lease), .. } => lease,
            other => panic!("a lease was expected: {other:?}"),
        }
    }

    async fn claim(&self, by: &str) -> Vec<ClaimedTask> {
        self.store.claim(&worker(by), LEASE, &100_usize.into()).await.expect("a claim")
    }

    async fn claim_one(&self, by: &str) -> ClaimedTask {
        let mut claimed = self.claim(by).await;
        assert_eq!(claimed.len(), 1, "one task is due: {claimed:?}");
        claimed.remove(0)
    }

    async fn view(&self, id: &str) -> TaskRecord {
        let view = self.store.get(OWNER, &TaskId::new(id)).await.expect("a look");
        view.unwrap_or_else(|| panic!("there is a task {id}"))
    }

    async fn is_gone(&self, id: &str) -> bool {
        self.store.get(OWNER, &TaskId::new(id)).await.expect("a look").is_none()
    }

    async fn write(&self, lease: &Lease, changes: Changes) {
        self.store.commit(lease, &changes, &Transition::Continue).await.expect("a write");
    }

    async fn park(&self, lease: &Lease, changes: Changes) {
        self.store
            .commit(lease, &changes, &Transition::Park { due: None, seen: 0 })
            .await
            .expect("a write");
    }

    async fn end(&self, lease: &Lease, outcome: TaskOutcome) {
        let then = Transition::End { outcome, retention: RETENTION };
        self.store.commit(lease, &Changes::default(), &then).await.expect("a write");
    }

    async fn answer(&self, id: &str, answers: &[(&str, Value)]) -> Option<usize> {
        self.answer_from(InputSource::Client, id, answers).await
    }

    async fn answer_outside(&self, id: &str, answers: &[(&str, Value)]) -> Option<usize> {
        self.answer_from(InputSource::External, id, answers).await
    }

    async fn answer_from(
        &self,
        from: InputSource,
        id: &str,
        answers: &[(&str, Value)],
    ) -> Option<usize> {
        let answers =
            answers.iter().map(|(name, answer)| ((*name).to_owned(), raw(answer))).collect();
        let answered = self.store.respond(OWNER, &TaskId::new(id), from, answers, u64::MAX).await;
        answered.expect("an answer")
    }
}

/// Whom all tasks belong to, unless a check says otherwise.
const OWNER: &str = "name:ada";

fn worker(name: &str) -> WorkerId {
    WorkerId::new(name)
}

fn task(id: &str) -> NewTask {
    NewTask {
        id: TaskId::new(id),
        principal: OWNER.to_owned(),
        tool: "deploy".to_owned(),
        origin: "modern".to_owned(),
        listed: true,
        request: raw(&json!({"name": "deploy", "text": "ü\n"})),
        ttl: Some(TTL),
        max_ttl: MAX_TTL,
        journal: JournalSnapshot::default(),
        worker: None,
        idempotency: None,
        clean_up: false,
        quota: 1_000,
        max_bytes: u64::MAX,
    }
}

fn raw(value: &Value) -> RawJson {
    to_raw_value(value).expect("a value is JSON")
}

fn value(json: &Value) -> JournalEntry {
    JournalEntry::Value(raw(json))
}

#[expect(clippy::needless_pass_by_value, reason = "checks write a `json!` where they need it")]
fn entry(key: &str, json: Value) -> Changes {
    Changes { entries: vec![(key.to_owned(), value(&json))], ..Changes::default() }
}

fn question(key: &str, name: &str) -> NewInputRequest {
    NewInputRequest {
        key: key.to_owned(),
        name: name.to_owned(),
        request: Some(InputRequest::ListRoots),
        due: None,
    }
}

fn ask(questions: &[(&str, &str)]) -> Changes {
    let asked = questions.iter().map(|(key, name)| question(key, name)).collect();
    Changes { input_requests: asked, ..Changes::default() }
}

/// Asks something that is no client.
fn outside(key: &str, name: &str) -> Changes {
    let asked = vec![NewInputRequest { request: None, ..question(key, name) }];
    Changes { input_requests: asked, ..Changes::default() }
}

/// The text of what is recorded under a key.
fn recorded(journal: &JournalSnapshot, key: &str) -> Option<String> {
    match journal.entries.get(key)? {
        JournalEntry::Value(raw) | JournalEntry::Answer(raw) => Some(raw.get().to_owned()),
        other => Some(format!("{other:?}")),
    }
}

fn names(view: &TaskRecord) -> Vec<&str> {
    view.input_requests.iter().map(|(name, _)| name.as_str()).collect()
}

fn done() -> TaskOutcome {
    TaskOutcome::Result(raw(&json!({"content": []})))
}

impl fmt::Debug for ContractBench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bench")
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Check").field(&self.name).finish()
    }
}
