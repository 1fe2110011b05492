//! The store that replicas share: its contract, and what only a database can do wrong.

mod batches; // many operations in one commit, and those that fail among them
mod connecting; // what can be connected to, and what is said about the rest
mod model; // random histories
mod replicas; // several stores on one database, and what happens when one is gone
mod trouble; // connections that are lost, and databases that cannot be written

use std::{
    env, process,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive_tasks::{
    JournalEntry, JournalSnapshot, SegmentRecord,
    store::{
        Changes, CreateOutcome, IdempotencyKey, InputSource, KeyValueStore, Lease, NewInputRequest,
        NewTask, Phase, PostgresOptions, PostgresStore, StoreMonitor, TaskId, TaskOutcome,
        TaskStore, Transition, WorkQueue, WorkerId,
        contract::{ContractBench, checks, operator_checks},
    },
};
use outlive_wire::{InputRequest, RawJson};
use serde_json::{Value, json, value::to_raw_value};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::alternating::Alternating;

/// Puts all checks to stores, some at a time. Each has a schema of its own, which is emptied from
/// check to check: to make one takes longer than most checks.
async fn keep_contract<F>(connect: impl Fn(Arc<Schema>) -> F)
where
    F: Future<Output = ContractBench> + Send + 'static,
{
    const AT_ONCE: usize = 4;
    let mut running = JoinSet::new();
    for number in 0..AT_ONCE {
        let schema = Arc::new(Schema::new());
        let connected = connect(Arc::clone(&schema));
        running.spawn(async move {
            let bench = connected.await;
            let mut broken = Vec::new();
            let all = checks().into_iter().chain(operator_checks());
            for check in all.skip(number).step_by(AT_ONCE) {
                // A task of its own: its panic ends no more than it.
                if tokio::spawn((check.run)(bench.clone())).await.is_err() {
                    broken.push(check.name);
                }
                schema.is_counted_right().await;
                schema.empty().await;
            }
            broken
        });
    }
    let mut broken = Vec::new();
    while let Some(more) = running.join_next().await {
        broken.extend(more.unwrap());
    }
    assert!(broken.is_empty(), "these promises are broken: {broken:?}");
}

#[tokio::test]
async fn the_contract_is_kept() {
    keep_contract(|schema| async move {
        let store = Arc::new(schema.connect().await);
        let clock = Arc::clone(&store);
        ContractBench::operated(store, move |span| clock.advance_clock(span))
    })
    .await;
}

#[tokio::test]
async fn the_contract_is_kept_by_two_replicas_in_turn() {
    keep_contract(|schema| async move {
        let handles = [schema.connect().await, schema.connect().await];
        let store = Arc::new(Alternating::new(handles));
        let clock = Arc::clone(&store);
        ContractBench::operated(store, move |span| {
            clock.handles.iter().for_each(|handle| handle.advance_clock(span))
        })
    })
    .await;
}

#[tokio::test]
async fn what_was_acknowledged_is_there_when_it_is_connected_again() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let once = IdempotencyKey::new("k", "d");
    let mut journal = JournalSnapshot::default();
    journal.entries.insert("before".to_owned(), JournalEntry::Value(raw(&json!(0))));
    journal.segments.push(segment(0));
    journal.reasked.insert("before".to_owned(), 2);
    let new = task("a").idempotency(Some(once.clone())).journal(journal);
    let lease = start(&store, new).await;
    let changes = Changes::default()
        .entries(vec![("step".to_owned(), JournalEntry::Value(raw(&json!({"x": [1, "ü\u{0}"]}))))])
        .segments(vec![segment(0), segment(1)])
        .input_requests(vec![asked("q1"), asked("q2")])
        .status_message(Some("half way".to_owned()));
    store
        .commit(&lease, &changes, &Transition::Park { due_at: None, responses_seen: 0 })
        .await
        .unwrap();
    let seen = store.get(OWNER, &lease.task).await.unwrap().unwrap();
    drop(store);

    let store = schema.connect().await;
    let again = store.get(OWNER, &lease.task).await.unwrap().unwrap();
    assert_eq!(format!("{again:?}"), format!("{seen:?}"));
    assert_eq!((again.phase, again.input_requests.len()), (Phase::Parked, 2));
    let twice = task("b").idempotency(Some(once));
    assert_eq!(store.create(twice).await, Ok(CreateOutcome::Existing(TaskId::new("a"))));
    let answer = vec![("q2".to_owned(), raw(&json!("yes")))];
    let answered = store.respond(OWNER, &lease.task, InputSource::Client, answer, u64::MAX).await;
    assert_eq!(answered, Ok(Some(1)));
    drop(store);

    let store = schema.connect().await;
    let claimed =
        store.claim(&WorkerId::new("w"), LEASE, &10_usize.into()).await.unwrap().remove(0);
    assert_eq!((claimed.lease.epoch, claimed.started, claimed.crash_count), (2, true, 0));
    let journal = claimed.journal;
    assert_eq!(journal.entries.keys().collect::<Vec<_>>(), ["before", "q2", "step"]);
    assert_eq!(journal.segments.iter().map(|s| s.ordinal).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(
        (journal.input_requests, journal.reasked.get("before")),
        (vec!["q1".to_owned()], Some(&2))
    );
    let then = Transition::End { outcome: TaskOutcome::Cancelled, retention: LEASE };
    store.commit(&claimed.lease, &Changes::default(), &then).await.unwrap();
    drop(store);

    let store = schema.connect().await;
    let ended = store.get(OWNER, &lease.task).await.unwrap().unwrap();
    assert!(
        matches!(ended.outcome, Some(TaskOutcome::Cancelled)) && ended.input_requests.is_empty()
    );
}

/// A server answers how many tasks there are without a look at each of them, and that it is ready
/// without a look at any table: any client may ask for both.
#[tokio::test]
async fn census_reads_the_counts_and_readiness_no_table() {
    let schema = Schema::new();
    let store = schema.connect().await;
    store.create(task("a")).await.unwrap();
    let mut by_hand = schema.by_hand().await;
    let counted = "UPDATE phase_count SET ended = ended + 1000000";
    by_hand.batch_execute(counted).await.unwrap();
    let census = store.stats().await.unwrap();
    assert_eq!((census.queued, census.ended), (1, 1_000_000), "rows were counted");

    let locked = by_hand.transaction().await.unwrap();
    let lock = "LOCK TABLE task, phase_count, phase_change IN ACCESS EXCLUSIVE MODE";
    locked.batch_execute(lock).await.unwrap();
    let ready = tokio::time::timeout(Duration::from_secs(10), store.ready()).await;
    assert_eq!(ready, Ok(Ok(())), "readiness waits for a table");
}

#[tokio::test]
async fn a_task_that_cannot_be_read_keeps_no_other_from_running() {
    let schema = Schema::new();
    let store = schema.connect().await;
    for id in ["a", "b", "c"] {
        store.create(task(id)).await.unwrap();
    }
    let torn = "UPDATE task SET request = '{' WHERE id = 'b'";
    schema.by_hand().await.batch_execute(torn).await.unwrap();
    let worker = WorkerId::new("w");
    let claimed = store.claim(&worker, LEASE, &10_usize.into()).await.unwrap();
    let ids: Vec<&str> = claimed.iter().map(|claimed| claimed.lease.task.as_str()).collect();
    assert_eq!(ids, ["a", "c"]);
    assert!(store.claim(&worker, LEASE, &10_usize.into()).await.unwrap().is_empty());
    assert_eq!(store.renew(&worker, LEASE).await.unwrap().len(), 2, "nobody holds it");
}

#[tokio::test]
async fn the_longest_times_are_no_problem() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let worker = Some((WorkerId::new("w"), Duration::MAX));
    let new = task("a").ttl(Some(Duration::MAX)).max_ttl(Duration::MAX).worker(worker);
    let Ok(CreateOutcome::Created { lease: Some(lease), .. }) = store.create(new).await else {
        panic!("a lease")
    };
    store.advance_clock(Duration::from_secs(1 << 40));
    assert_eq!(store.renew(&lease.worker, Duration::MAX).await.unwrap().len(), 1);
    let changes = Changes::default().input_requests(vec![asked("q")]);
    let then = Transition::Park { due_at: Some(u64::MAX), responses_seen: 0 };
    store.commit(&lease, &changes, &then).await.unwrap();
    assert!(store.next_due(&[]).await.unwrap().unwrap() > Duration::from_secs(1 << 40));
    store.cancel(OWNER, &lease.task, true, Duration::MAX).await.unwrap();
    assert_eq!(store.sweep(10, Duration::MAX).await.unwrap().purged, 0);
}

#[tokio::test]
async fn names_may_hold_any_character() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let odd = "a\0\u{e000}'\"\\ü";
    let new = task(odd).principal(odd.to_owned()).tool(odd.to_owned());
    let lease = start(&store, new).await;
    let changes = Changes::default()
        .entries(vec![(odd.to_owned(), JournalEntry::Value(raw(&json!(odd))))])
        .input_requests(vec![asked(odd)])
        .status_message(Some(odd.to_owned()));
    store.commit(&lease, &changes, &Transition::Continue).await.unwrap();
    let view = store.get(odd, &TaskId::new(odd)).await.unwrap().unwrap();
    assert_eq!((view.id.as_str(), view.tool.as_str()), (odd, odd));
    assert_eq!(
        (view.status_message.as_deref(), view.input_requests[0].0.as_str()),
        (Some(odd), odd)
    );
    store.release(&lease.worker).await.unwrap();
    let claimed = store.claim(&lease.worker, LEASE, &1_usize.into()).await.unwrap().remove(0);
    assert!(claimed.journal.entries.contains_key(odd));
    assert_eq!(
        store.put_if_absent(odd, raw(&json!(1)), LEASE, None).await.unwrap().map(|n| n.to_string()),
        None
    );
    assert_eq!(store.get_value(odd).await.unwrap().unwrap().get(), "1");
}

const OWNER: &str = "name:ada";
const LEASE: Duration = Duration::from_secs(30);

/// Where the database for tests is.
fn url() -> String {
    env::var("OUTLIVE_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!(
            "these tests need a database: run `cargo xtask test`, or start `cargo xtask postgres` \
             and set OUTLIVE_TEST_POSTGRES to what it prints"
        )
    })
}

/// A schema of its own for each test.
struct Schema(String);

impl Schema {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(format!("test \"{}_{number}", process::id()))
    }

    fn options(&self) -> PostgresOptions {
        PostgresOptions::new().with_schema(&self.0).write_connections(2)
    }

    async fn connect(&self) -> PostgresStore {
        self.connect_with(self.options()).await
    }

    async fn connect_with(&self, options: PostgresOptions) -> PostgresStore {
        // Under a name by which the connections can be found.
        let url = format!("{}?application_name={}", url(), self.program());
        PostgresStore::connect_with(&url, options).await.unwrap()
    }

    fn program(&self) -> String {
        self.0.replace(['"', ' '], "")
    }

    /// Cuts all connections of the stores on this schema.
    async fn cut_all(&self) {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = $1";
        self.by_hand().await.query(cut, &[&self.program()]).await.unwrap();
    }

    /// A connection that is not the store's.
    async fn by_hand(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let schema = self.0.replace('"', "\"\"");
        client.batch_execute(&format!("SET search_path = \"{schema}\"")).await.unwrap();
        client
    }

    async fn empty(&self) {
        let empty =
            "TRUNCATE task, principal_quota, quota_release, journal_entry, segment, input_request,
             key_value, audit_event, phase_change;
             UPDATE phase_count SET queued = 0, running = 0, parked = 0, ended = 0, quarantined = 0,
             bytes = 0";
        self.by_hand().await.batch_execute(empty).await.unwrap();
    }

    /// What is counted along the way is what is there.
    async fn is_counted_right(&self) {
        let wrong = "SELECT principal FROM
             (SELECT principal, count(*) AS count FROM task WHERE phase <> 3 GROUP BY principal) AS t
             FULL JOIN (SELECT principal, count - coalesce((SELECT sum(tasks) FROM quota_release e
                 WHERE e.principal = o.principal), 0) AS count FROM principal_quota o) AS o
             USING (principal) WHERE coalesce(t.count, 0) <> coalesce(o.count, 0)";
        let by_hand = self.by_hand().await;
        let wrong = by_hand.query(wrong, &[]).await.unwrap();
        assert!(wrong.is_empty(), "counts of principals");
        let wrong = "SELECT principal FROM (SELECT principal, sum(bytes) AS bytes FROM (
                 SELECT principal, row_bytes(request, outcome)
                     + coalesce((SELECT sum(octet_length(key) + octet_length(body))
                         FROM journal_entry WHERE task = t.number), 0)
                     + coalesce((SELECT sum(octet_length(scope) + octet_length(body))
                         FROM segment WHERE task = t.number), 0)
                     + coalesce((SELECT sum(input_request_bytes(wire_key, journal_key, body))
                         FROM input_request WHERE task = t.number), 0) AS bytes FROM task t
                 UNION ALL SELECT principal, key_value_bytes(key, body) FROM key_value
                     WHERE principal IS NOT NULL) AS each GROUP BY principal) AS t
             FULL JOIN (SELECT principal, sum(bytes) AS bytes FROM (
                 SELECT principal, bytes FROM principal_quota
                 UNION ALL SELECT principal, bytes FROM quota_release) AS each GROUP BY principal) AS o
             USING (principal) WHERE coalesce(t.bytes, 0) <> coalesce(o.bytes, 0)";
        let wrong = by_hand.query(wrong, &[]).await.unwrap();
        assert!(wrong.is_empty(), "bytes of principals");
        let wrong = "SELECT FROM (SELECT
                 count(*) FILTER (WHERE phase = 0), count(*) FILTER (WHERE phase = 1),
                 count(*) FILTER (WHERE phase = 2), count(*) FILTER (WHERE phase = 3),
                 count(*) FILTER (WHERE phase = 4) FROM task
             EXCEPT SELECT sum(queued)::bigint, sum(running)::bigint, sum(parked)::bigint,
                 sum(ended)::bigint, sum(quarantined)::bigint FROM
                 (SELECT * FROM phase_count UNION ALL SELECT * FROM phase_change) AS p) AS w";
        let wrong = by_hand.query(wrong, &[]).await.unwrap();
        assert!(wrong.is_empty(), "tasks in each phase");
        let left = "SELECT task FROM journal_entry UNION ALL SELECT task FROM segment UNION ALL SELECT task FROM input_request
             EXCEPT SELECT number FROM task";
        let left = by_hand.query(left, &[]).await.unwrap();
        assert!(left.is_empty(), "something is kept without its task");
    }
}

fn task(id: &str) -> NewTask {
    NewTask::new(
        TaskId::new(id),
        OWNER,
        "deploy",
        "test",
        raw(&json!({"name": "deploy", "arguments": {"region": "north"}})),
    )
    .ttl(Some(Duration::from_secs(600)))
    .max_ttl(Duration::from_secs(6000))
    .quota(usize::MAX)
}

/// Makes a task that runs from the beginning.
async fn start(store: &PostgresStore, new: NewTask) -> Lease {
    let worker = Some((WorkerId::new("v"), LEASE));
    match store.create(new.worker(worker)).await.unwrap() {
        CreateOutcome::Created { lease: Some(lease), .. } => lease,
        other => panic!("a lease was expected: {other:?}"),
    }
}

/// Waits until something holds, for a moment.
async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    for _ in 0..500 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain until {what}");
}

fn raw(value: &Value) -> RawJson {
    to_raw_value(value).unwrap()
}

fn entry(key: &str) -> Changes {
    let entries = vec![(key.to_owned(), JournalEntry::Value(raw(&json!(1))))];
    Changes::default().entries(entries)
}

fn segment(ordinal: u32) -> SegmentRecord {
    SegmentRecord::new("s", ordinal, raw(&json!(format!("block {ordinal}"))))
}

fn asked(name: &str) -> NewInputRequest {
    let (key, name) = (name.to_owned(), name.to_owned());
    NewInputRequest::new(key, name, Some(InputRequest::ListRoots))
}
