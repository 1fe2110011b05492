//! Random histories of approval requests: every store behaves like the memory store, and no history
//! breaks the rules of a decision.
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
    Audience, Binding, Changes, CreateOutcome, Decision, InboxReader, InputRequestState,
    InputSource, Lease, MemoryStore, NewInputRequest, NewTask, PeopleStore, SqliteOptions,
    SqliteStore, Subscription, Synchronous, TaskEvent, TaskId, TaskOutcome, TaskQuery, TaskState,
    Transition, WorkerId,
};
use outlive_wire::{InputRequest, RawJson};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json, value::to_raw_value};

const OWNER: &str = "name:ann";
const APPROVAL: &str = "#approval";

/// People. The first one is the person of all tasks, and the last one has a scope.
const PEOPLE: [&str; 4] = ["ann", "ada", "ben", "cid"];

/// Unit of time, which is longer than any test.
const UNIT: Duration = Duration::from_secs(1000);

/// Times are in halves of a unit: the present is even, and deadlines are odd.
const LEASE: u32 = 7;
const TTL: u32 = 9;
const MAX_TTL: u32 = 19;
const RETENTION: u32 = 9;
const TIMEOUT: u32 = 5;

fn span(halves: u32) -> Duration {
    UNIT / 2 * halves
}

/// An operation. Task numbers select among the created tasks, modulo their count.
#[derive(Clone, Debug)]
enum Op {
    Create { audience: usize, count: u32, is_timed: bool, is_started: bool },
    Ask { task: usize, audience: usize, count: u32 },
    Withdraw(usize),
    Vote { task: usize, person: usize, accepts: bool, is_same_digest: bool },
    Respond { task: usize, source: InputSource },
    Claim,
    Park(usize),
    Quarantine(usize),
    Retry(usize),
    End(usize),
    Cancel { task: usize, at_once: bool },
    Purge(usize),
    Send,
    Sweep,
    Shift(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let (task, audience, count) = (0..6usize, 0..5usize, 1..4u32);
    let source = prop_oneof![
        2 => Just(InputSource::Client),
        1 => Just(InputSource::Tool),
        1 => Just(InputSource::Link),
        1 => Just(InputSource::External),
    ];
    prop_oneof![
        5 => (audience.clone(), count.clone(), any::<bool>(), any::<bool>()).prop_map(
            |(audience, count, is_timed, is_started)| {
                Op::Create { audience, count, is_timed, is_started }
            }
        ),
        3 => (task.clone(), audience, count)
            .prop_map(|(task, audience, count)| Op::Ask { task, audience, count }),
        1 => task.clone().prop_map(Op::Withdraw),
        16 => (task.clone(), 0..=PEOPLE.len(), prop::bool::weighted(0.8), prop::bool::weighted(0.9))
            .prop_map(|(task, person, accepts, is_same_digest)| {
                Op::Vote { task, person, accepts, is_same_digest }
            }),
        3 => (task.clone(), source).prop_map(|(task, source)| Op::Respond { task, source }),
        3 => Just(Op::Claim),
        2 => task.clone().prop_map(Op::Park),
        1 => task.clone().prop_map(Op::Quarantine),
        1 => task.clone().prop_map(Op::Retry),
        1 => task.clone().prop_map(Op::End),
        1 => (task.clone(), any::<bool>()).prop_map(|(task, at_once)| Op::Cancel { task, at_once }),
        1 => task.prop_map(Op::Purge),
        2 => Just(Op::Send),
        2 => Just(Op::Sweep),
        3 => (1..3u32).prop_map(Op::Shift),
    ]
}

fn raw(json: &Value) -> RawJson {
    to_raw_value(json).unwrap()
}

fn audience(number: usize) -> Audience {
    let names = vec!["ada".to_owned(), "ben".to_owned(), "ann".to_owned()];
    match number {
        0 => Audience::Client,
        1 => Audience::Caller,
        2 => Audience::Names(names),
        3 => Audience::Scope("ops".to_owned()),
        _ => Audience::NamesOrScope(names, "ops".to_owned()),
    }
}

fn scopes(person: &str) -> Vec<String> {
    if person == "cid" { vec!["ops".to_owned()] } else { Vec::new() }
}

fn approval(number: usize, count: u32) -> NewInputRequest {
    NewInputRequest::new(APPROVAL, APPROVAL, Some(InputRequest::ListRoots))
        .audience(audience(number))
        .binding(Some(Binding::new("digest", "definition").count(count)))
}

/// A store under test, with its clock.
pub(crate) struct PeopleUnderTest {
    store: Arc<dyn PeopleStore>,
    shift: Box<dyn Fn(Duration)>,
}

impl PeopleUnderTest {
    pub(crate) fn new<S: PeopleStore>(store: S, shift: fn(&S, Duration)) -> Self {
        let store = Arc::new(store);
        let clock = Arc::clone(&store);
        Self { store, shift: Box::new(move |span| shift(&clock, span)) }
    }
}

/// One store, and the leases of its tasks.
struct Side {
    store: Arc<dyn PeopleStore>,
    tasks: Vec<(TaskId, Option<Lease>)>,
}

impl Side {
    fn new(store: Arc<dyn PeopleStore>) -> Self {
        Self { store, tasks: Vec::new() }
    }

    /// Executes an operation. Returns its result as text, without times.
    async fn act(&mut self, op: &Op) -> String {
        let store = Arc::clone(&self.store);
        match op {
            Op::Create { audience, count, is_timed, is_started } => {
                let id = TaskId::new(format!("t{:03}", self.tasks.len()));
                let asked = approval(*audience, *count);
                let new = self.new_task(&id, asked, *is_timed, *is_started).await;
                let CreateOutcome::Created { lease, .. } = store.create(new).await.unwrap() else {
                    panic!("the task is not created");
                };
                self.tasks.push((id, lease));
                String::new()
            }
            Op::Claim => {
                let claim = 100_usize.into();
                let claimed = store.claim(&WorkerId::new("w"), span(LEASE), &claim).await.unwrap();
                let mut seen = Vec::new();
                for task in claimed {
                    let known = self.tasks.iter_mut().find(|(id, _)| *id == task.lease.task);
                    known.unwrap().1 = Some(task.lease.clone());
                    let answer = task.journal.entries.contains_key(APPROVAL);
                    seen.push((task.lease.task, answer, task.journal.input_requests.len()));
                }
                seen.sort();
                format!("{seen:?}")
            }
            Op::Send => {
                let mut sent = Vec::new();
                for delivery in store.due("chat", span(1), 100).await.unwrap() {
                    store.sent(&delivery.id).await.unwrap();
                    sent.push((delivery.task, delivery.event.as_str(), delivery.input_request));
                }
                sent.sort();
                format!("{sent:?}")
            }
            Op::Sweep => {
                let mut swept = store.sweep(100, span(RETENTION)).await.unwrap();
                swept.expired.sort();
                swept.failed.sort();
                format!("{swept:?}")
            }
            Op::Shift(_) => String::new(),
            Op::Ask { task, .. }
            | Op::Vote { task, .. }
            | Op::Respond { task, .. }
            | Op::Cancel { task, .. }
            | Op::Withdraw(task)
            | Op::Park(task)
            | Op::Quarantine(task)
            | Op::Retry(task)
            | Op::End(task)
            | Op::Purge(task) => match self.tasks.get(task % self.tasks.len().max(1)) {
                Some((id, lease)) => act_on(&*store, id, lease.as_ref(), op).await,
                None => String::new(),
            },
        }
    }

    async fn new_task(
        &self,
        id: &TaskId,
        asked: NewInputRequest,
        is_timed: bool,
        is_started: bool,
    ) -> NewTask {
        let notify = TaskEvent::ALL.map(|event| Subscription::new(event, "chat"));
        let new = NewTask::new(id.clone(), OWNER, "deploy", "modern", raw(&json!({})))
            .person(Some(PEOPLE[0].to_owned()))
            .indexed(true)
            .ttl(Some(span(TTL)))
            .max_ttl(span(MAX_TTL))
            .notify(notify.to_vec());
        if is_started {
            return new.worker(Some((WorkerId::new("v"), span(LEASE))));
        }
        let timeout = u64::try_from(span(TIMEOUT).as_millis()).unwrap();
        let due = if is_timed { Some(now(&*self.store).await + timeout) } else { None };
        new.input_requests(vec![asked.due(due)])
    }

    /// Returns the visible state of all tasks as text, without times.
    async fn look(&self) -> String {
        let mut seen = String::new();
        for (id, _) in &self.tasks {
            let view = self.store.get(OWNER, id).await.unwrap();
            let view = view.map(|view| {
                let outcome = view.outcome.map(|outcome| outcome.kind());
                (view.phase, outcome, view.input_requests.len())
            });
            let listed = self.store.task(id).await.unwrap().map(|task| task.state);
            let detail = self.store.input_request(id, APPROVAL).await.unwrap();
            let detail = detail.map(|detail| {
                let votes = detail.votes.into_iter().map(|vote| (vote.person, vote.accepts));
                let votes: Vec<_> = votes.collect();
                let response = detail.response.map(|raw| raw.get().to_owned());
                (detail.item.state, detail.item.approvals, votes, response)
            });
            seen += &format!("{id}: {view:?} {listed:?} {detail:?}\n");
        }
        for person in PEOPLE {
            let reader = InboxReader::new(person, scopes(person));
            let open = self.store.open_for(&reader, None, 100).await.unwrap();
            let open: Vec<_> = open.into_iter().map(|item| item.task).collect();
            seen += &format!("{person}: {open:?}\n");
        }
        for state in TaskState::ALL {
            let query = TaskQuery::default().state(Some(state));
            let page = self.store.page(&query, None, 100).await.unwrap().tasks;
            let page: Vec<_> = page.into_iter().map(|task| task.summary.view.id).collect();
            seen += &format!("{state:?}: {page:?}\n");
        }
        seen + &format!("{:?}", self.store.stored_bytes(OWNER).await)
    }

    /// Asserts the rules of a decision for all requests.
    async fn check(&self) {
        for (id, _) in &self.tasks {
            let detail = self.store.input_request(id, APPROVAL).await.unwrap();
            let Some(detail) = detail else { continue };
            let item = &detail.item;
            let people = |accepts| {
                let votes = detail.votes.iter().filter(move |vote| vote.accepts == accepts);
                votes.map(|vote| vote.person.as_str()).collect::<Vec<_>>()
            };
            let (approved, denied) = (people(true), people(false));
            let needed = item.binding.as_ref().map_or(1, |bound| bound.count) as usize;
            let is_settled = approved.len() >= needed || !denied.is_empty();
            assert!(approved.len() <= needed && denied.len() <= 1, "{detail:?}");
            let mut voters = [approved, denied].concat();
            voters.sort_unstable();
            voters.dedup();
            assert_eq!(voters.len(), detail.votes.len(), "each person votes once: {detail:?}");
            if item.audience.is_people() {
                assert!(!voters.contains(&PEOPLE[0]), "no own vote: {detail:?}");
                let is_answered = item.state == InputRequestState::Answered;
                assert_eq!(is_answered, is_settled, "only votes settle a request: {detail:?}");
                assert!(voters.iter().all(|who| item.audience.contains(who, &scopes(who))));
            }
        }
    }
}

/// Returns the time of the store.
async fn now(store: &dyn PeopleStore) -> u64 {
    let clock = TaskId::new("clock");
    let new = NewTask::new(clock.clone(), "clock", "clock", "modern", raw(&json!({})));
    let CreateOutcome::Created { at, .. } = store.create(new).await.unwrap() else {
        panic!("the task is not created");
    };
    store.purge(&clock, true).await.unwrap();
    at
}

/// Executes an operation on one task.
async fn act_on(store: &dyn PeopleStore, id: &TaskId, lease: Option<&Lease>, op: &Op) -> String {
    let none = Changes::default();
    let (changes, then) = match op {
        Op::Vote { person, accepts, is_same_digest, .. } => {
            // The number after the last person is an operator.
            let person = PEOPLE.get(*person).map(|person| (*person).to_owned());
            let scopes = person.as_deref().map(scopes).unwrap_or_default();
            let digest = if *is_same_digest { "digest" } else { "other" };
            let decision = Decision::new(person, *accepts, raw(&json!({"accepts": accepts})))
                .scopes(scopes)
                .digest(Some(digest.to_owned()));
            return format!("{:?}", store.decide(id, APPROVAL, &decision).await);
        }
        Op::Respond { source, .. } => {
            let responses = vec![(APPROVAL.to_owned(), raw(&json!({"accepts": true})))];
            return format!("{:?}", store.respond(OWNER, id, *source, responses, u64::MAX).await);
        }
        Op::Cancel { at_once, .. } => {
            return format!("{:?}", store.cancel(OWNER, id, *at_once, span(RETENTION)).await);
        }
        Op::Retry(_) => return format!("{:?}", store.retry(id).await),
        Op::Purge(_) => return format!("{:?}", store.purge(id, true).await),
        Op::Ask { audience, count, .. } => {
            (none.input_requests(vec![approval(*audience, *count)]), Transition::Continue)
        }
        Op::Withdraw(_) => (none.withdrawn(vec![APPROVAL.to_owned()]), Transition::Continue),
        Op::Park(_) => (none, Transition::Park { due_at: None, responses_seen: 0 }),
        Op::Quarantine(_) => {
            let outcome = TaskOutcome::Result(raw(&json!({"isError": true})));
            (none, Transition::Quarantine { outcome, ttl: span(TTL) })
        }
        _ => {
            let outcome = TaskOutcome::Result(raw(&json!({"content": []})));
            (none, Transition::End { outcome, retention: span(RETENTION) })
        }
    };
    match lease {
        Some(lease) => format!("{:?}", store.commit(lease, &changes, &then).await),
        None => String::new(),
    }
}

/// Plays random histories on new stores, each also on a memory store.
pub(crate) fn play(cases: u32, open: impl AsyncFn() -> PeopleUnderTest) {
    /// Step of the clock before each operation, so that no two have the same time.
    const STEP: Duration = Duration::from_millis(10);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..Default::default() };
    TestRunner::new(config)
        .run(&prop::collection::vec(op(), 1..60), |ops| {
            let PeopleUnderTest { store, shift } = runtime.block_on(open());
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
                    sides.0.check().await;
                }
            });
            Ok(())
        })
        .unwrap();
}

#[test]
fn memory_store_follows_rules_of_decisions() {
    play(200, async || PeopleUnderTest::new(MemoryStore::new(), MemoryStore::advance_clock));
}

#[test]
fn sqlite_store_matches_memory_store_in_decisions() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let folder = env::temp_dir().join(format!("outlive-decision-histories-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    play(60, async || {
        let file = folder.join(format!("{}.db", COUNT.fetch_add(1, Ordering::Relaxed)));
        // The test needs no durability, and the disk is slow.
        let options = SqliteOptions::new().synchronous(Synchronous::Normal);
        let store = SqliteStore::open_with(file, options).unwrap();
        PeopleUnderTest::new(store, SqliteStore::advance_clock)
    });
    let _ = fs::remove_dir_all(folder);
}
