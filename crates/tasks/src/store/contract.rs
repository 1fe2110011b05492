//! Every promise of [`Store`], and of [`Operated`], as a check that any store can be put to.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use outlive_tasks::store::{MemoryStore, contract::{Bench, checks}};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! for check in checks() {
//!     let store = Arc::new(MemoryStore::new());
//!     let clock = Arc::clone(&store);
//!     let bench = Bench::new(store, move |span: Duration| clock.shift(span));
//!     (check.run)(bench).await; // panics with what is wrong
//! }
//! # });
//! ```

mod answering;
mod auditing;
mod budgets;
mod claiming;
mod cleaning;
mod counting;
mod creating;
mod elsewhere;
mod ending;
mod keeping;
mod notes;
mod operating;
mod waiting;
mod writing;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use outlive_wire::{InputRequest, RawJson};
use serde_json::{Value, json, value::to_raw_value};

use super::{
    Answerer, Asked, Changes, Claimed, Created, Lease, NewTask, Operated, Store, TaskId,
    TaskOutcome, Then, View, WorkerId,
};
use crate::{Entry, Restored};

/// A store that is checked: empty, and with a time that can be moved.
#[derive(Clone)]
pub struct Bench {
    store: Arc<dyn Store>,
    operated: Option<Arc<dyn Operated>>,
    advance: Arc<dyn Fn(Duration) + Send + Sync>,
}

/// One promise.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Check {
    /// What is promised, as the name of a test.
    pub name: &'static str,
    /// Panics if it is not kept. Wants an empty store.
    pub run: fn(Bench) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// All promises to servers.
pub fn checks() -> Vec<Check> {
    [
        creating::CHECKS,
        claiming::CHECKS,
        writing::CHECKS,
        answering::CHECKS,
        elsewhere::CHECKS,
        waiting::CHECKS,
        ending::CHECKS,
        keeping::CHECKS,
        cleaning::CHECKS,
        counting::CHECKS,
        notes::CHECKS,
        auditing::CHECKS,
        budgets::CHECKS,
    ]
    .concat()
}

/// All promises to operators. They want a [`Bench::operated`].
pub fn operated_checks() -> Vec<Check> {
    operating::CHECKS.to_vec()
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

impl Bench {
    /// A store, and how its time is moved.
    pub fn new(store: Arc<dyn Store>, advance: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self { store, operated: None, advance: Arc::new(advance) }
    }

    /// A store that operators look after, and how its time is moved.
    pub fn operated(
        store: Arc<dyn Operated>,
        advance: impl Fn(Duration) + Send + Sync + 'static,
    ) -> Self {
        let operated = Some(Arc::clone(&store));
        Self { operated, ..Self::new(store, advance) }
    }

    fn operator(&self) -> &dyn Operated {
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
            Created::New { lease: Some(lease), .. } => lease,
            other => panic!("a lease was expected: {other:?}"),
        }
    }

    async fn claim(&self, by: &str) -> Vec<Claimed> {
        self.store.claim(&worker(by), LEASE, &100_usize.into()).await.expect("a claim")
    }

    async fn claim_one(&self, by: &str) -> Claimed {
        let mut claimed = self.claim(by).await;
        assert_eq!(claimed.len(), 1, "one task is due: {claimed:?}");
        claimed.remove(0)
    }

    async fn view(&self, id: &str) -> View {
        let view = self.store.view(OWNER, &TaskId::new(id)).await.expect("a look");
        view.unwrap_or_else(|| panic!("there is a task {id}"))
    }

    async fn is_gone(&self, id: &str) -> bool {
        self.store.view(OWNER, &TaskId::new(id)).await.expect("a look").is_none()
    }

    async fn write(&self, lease: &Lease, changes: Changes) {
        self.store.write(lease, &changes, &Then::GoOn).await.expect("a write");
    }

    async fn park(&self, lease: &Lease, changes: Changes) {
        self.store
            .write(lease, &changes, &Then::Park { due: None, seen: 0 })
            .await
            .expect("a write");
    }

    async fn end(&self, lease: &Lease, outcome: TaskOutcome) {
        let then = Then::End { outcome, retention: RETENTION };
        self.store.write(lease, &Changes::default(), &then).await.expect("a write");
    }

    async fn answer(&self, id: &str, answers: &[(&str, Value)]) -> Option<usize> {
        self.answer_from(Answerer::Client, id, answers).await
    }

    async fn answer_outside(&self, id: &str, answers: &[(&str, Value)]) -> Option<usize> {
        self.answer_from(Answerer::Outside, id, answers).await
    }

    async fn answer_from(
        &self,
        from: Answerer,
        id: &str,
        answers: &[(&str, Value)],
    ) -> Option<usize> {
        let answers =
            answers.iter().map(|(name, answer)| ((*name).to_owned(), raw(answer))).collect();
        let answered = self.store.answer(OWNER, &TaskId::new(id), from, answers, u64::MAX).await;
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
        kind: "deploy".to_owned(),
        origin: "modern".to_owned(),
        listed: true,
        request: raw(&json!({"name": "deploy", "text": "ü\n"})),
        ttl: Some(TTL),
        max_ttl: MAX_TTL,
        journal: Restored::default(),
        worker: None,
        once: None,
        clean_up: false,
        quota: 1_000,
        max_bytes: u64::MAX,
    }
}

fn raw(value: &Value) -> RawJson {
    to_raw_value(value).expect("a value is JSON")
}

fn value(json: &Value) -> Entry {
    Entry::Value(raw(json))
}

#[expect(clippy::needless_pass_by_value, reason = "checks write a `json!` where they need it")]
fn entry(key: &str, json: Value) -> Changes {
    Changes { entries: vec![(key.to_owned(), value(&json))], ..Changes::default() }
}

fn question(key: &str, name: &str) -> Asked {
    Asked {
        key: key.to_owned(),
        name: name.to_owned(),
        request: Some(InputRequest::ListRoots),
        due: None,
    }
}

fn ask(questions: &[(&str, &str)]) -> Changes {
    let asked = questions.iter().map(|(key, name)| question(key, name)).collect();
    Changes { asked, ..Changes::default() }
}

/// Asks something that is no client.
fn outside(key: &str, name: &str) -> Changes {
    let asked = vec![Asked { request: None, ..question(key, name) }];
    Changes { asked, ..Changes::default() }
}

/// The text of what is recorded under a key.
fn recorded(journal: &Restored, key: &str) -> Option<String> {
    match journal.entries.get(key)? {
        Entry::Value(raw) | Entry::Answer(raw) => Some(raw.get().to_owned()),
        other => Some(format!("{other:?}")),
    }
}

fn names(view: &View) -> Vec<&str> {
    view.questions.iter().map(|(name, _)| name.as_str()).collect()
}

fn done() -> TaskOutcome {
    TaskOutcome::Result(raw(&json!({"content": []})))
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bench")
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Check").field(&self.name).finish()
    }
}
