//! The PostgreSQL store: its contract, and failures specific to a database.

mod batches; // group commits, with failing operations
mod connecting; // connections, and errors for those that fail
mod lost_connections; // lost connections and read-only databases
mod model; // random histories against the reference model
mod people; // lists, votes and deliveries
mod replicas; // several stores on one database, and crashes of one

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
        NewTask, Phase, PostgresOptions, PostgresStore, RecordedEntry, StoreMonitor, TaskId,
        TaskOutcome, TaskStore, Transition, WorkQueue, WorkerId,
        contract::{ContractBench, checks, operator_checks, people_checks},
    },
};
use outlive_wire::{InputRequest, RawJson};
use serde_json::{Value, json, value::to_raw_value};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::alternating::Alternating;

/// Runs all checks, several at a time. Each group of checks reuses a schema, which is emptied
/// between checks, because creating a schema takes longer than most checks.
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
            let all = [checks(), operator_checks(), people_checks()].concat();
            for check in all.into_iter().skip(number).step_by(AT_ONCE) {
                // A separate task, because a failing check panics.
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
    assert!(broken.is_empty(), "failed checks: {broken:?}");
}

#[tokio::test]
async fn store_passes_contract() {
    keep_contract(|schema| async move {
        let store = Arc::new(schema.connect().await);
        let clock = Arc::clone(&store);
        ContractBench::people(store, move |span| clock.advance_clock(span))
    })
    .await;
}

#[tokio::test]
async fn two_alternating_replicas_pass_contract() {
    keep_contract(|schema| async move {
        let handles = [schema.connect().await, schema.connect().await];
        let store = Arc::new(Alternating::new(handles));
        let clock = Arc::clone(&store);
        ContractBench::people(store, move |span| {
            clock.handles.iter().for_each(|handle| handle.advance_clock(span))
        })
    })
    .await;
}

#[tokio::test]
async fn acknowledged_writes_survive_reconnection() {
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
        .entries(vec![step("step", &json!({"x": [1, "ü\u{0}"]}))])
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

/// Any client may request the statistics and the readiness, so statistics read only counts, and
/// readiness reads no table.
#[tokio::test]
async fn stats_read_counts_and_ready_reads_no_table() {
    let schema = Schema::new();
    let store = schema.connect().await;
    store.create(task("a")).await.unwrap();
    let mut by_hand = schema.by_hand().await;
    let counted = "UPDATE phase_count SET ended = ended + 1000000";
    by_hand.batch_execute(counted).await.unwrap();
    let census = store.stats().await.unwrap();
    assert_eq!(
        (census.queued, census.ended),
        (1, 1_000_000),
        "stats read the counts and not the rows"
    );

    let locked = by_hand.transaction().await.unwrap();
    let lock = "LOCK TABLE task, phase_count, phase_change IN ACCESS EXCLUSIVE MODE";
    locked.batch_execute(lock).await.unwrap();
    let ready = tokio::time::timeout(Duration::from_secs(10), store.ready()).await;
    assert_eq!(ready, Ok(Ok(())), "ready reads no table");
}

#[tokio::test]
async fn unreadable_task_does_not_block_other_claims() {
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
    assert_eq!(
        store.renew(&worker, LEASE).await.unwrap().len(),
        2,
        "no worker has the unreadable task"
    );
}

#[tokio::test]
async fn maximum_durations_are_accepted() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let worker = Some((WorkerId::new("w"), Duration::MAX));
    let new = task("a").ttl(Some(Duration::MAX)).max_ttl(Duration::MAX).worker(worker);
    let Ok(CreateOutcome::Created { lease: Some(lease), .. }) = store.create(new).await else {
        panic!("expected a lease")
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
async fn texts_with_any_character_are_stored() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let odd = "a\0\u{e000}'\"\\ü";
    let new = task(odd).principal(odd.to_owned()).tool(odd.to_owned());
    let lease = start(&store, new).await;
    let changes = Changes::default()
        .entries(vec![step(odd, &json!(odd))])
        .input_requests(vec![asked(odd)])
        .status_message(Some(odd.to_owned()));
    store.commit(&lease, &changes, &Transition::Continue).await.unwrap();
    let view = store.get(odd, &TaskId::new(odd)).await.unwrap().unwrap();
    assert_eq!((view.id.as_str(), view.tool.as_str()), (odd, odd));
    assert_eq!(
        (view.status_message.as_deref(), view.input_requests[0].name.as_str()),
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

/// Returns the URL of the test database.
fn url() -> String {
    env::var("OUTLIVE_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!(
            "these tests need a database: run `cargo xtask test`, or start `cargo xtask postgres` \
             and set OUTLIVE_TEST_POSTGRES to what it prints"
        )
    })
}

/// A separate schema for each test.
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
        // With an application name, by which the test finds the connections.
        let url = format!("{}?application_name={}", url(), self.program());
        PostgresStore::connect_with(&url, options).await.unwrap()
    }

    fn program(&self) -> String {
        self.0.replace(['"', ' '], "")
    }

    /// Terminates all connections of the stores on this schema.
    async fn cut_all(&self) {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = $1";
        self.by_hand().await.query(cut, &[&self.program()]).await.unwrap();
    }

    /// Opens a connection that does not belong to the store.
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
             bridged_call, key_value, audit_event, phase_change, addressee, vote, tag, delivery, metric;
             UPDATE phase_count SET queued = 0, running = 0, parked = 0, ended = 0, quarantined = 0,
             bytes = 0";
        self.by_hand().await.batch_execute(empty).await.unwrap();
    }

    /// Checks that the maintained counts match the rows.
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
                     + coalesce((SELECT sum(octet_length(body))
                         FROM result_part WHERE task = t.number), 0)
                     + coalesce((SELECT sum(bytes)
                         FROM input_request WHERE task = t.number), 0)
                     + coalesce((SELECT sum(vote_bytes(person, reason, channel))
                         FROM vote WHERE task = t.number), 0)
                     + coalesce((SELECT sum(tag_bytes(tag))
                         FROM tag WHERE task = t.number), 0) AS bytes FROM task t
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
             UNION ALL SELECT task FROM bridged_call UNION ALL SELECT task FROM vote
             UNION ALL SELECT task FROM tag EXCEPT SELECT number FROM task";
        let left = by_hand.query(left, &[]).await.unwrap();
        assert!(left.is_empty(), "child rows without a task remain");
        let listed = "SELECT a.task FROM addressee a LEFT JOIN input_request q
             ON q.task = a.task AND q.wire_key = a.wire_key WHERE q.state IS DISTINCT FROM 0";
        let listed = by_hand.query(listed, &[]).await.unwrap();
        assert!(listed.is_empty(), "an inbox contains a settled request");
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

/// Creates a task that a worker runs from its creation.
async fn start(store: &PostgresStore, new: NewTask) -> Lease {
    let worker = Some((WorkerId::new("v"), LEASE));
    match store.create(new.worker(worker)).await.unwrap() {
        CreateOutcome::Created { lease: Some(lease), .. } => lease,
        other => panic!("expected a lease: {other:?}"),
    }
}

/// Waits up to five seconds until a condition holds.
async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    for _ in 0..500 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("timeout while waiting until {what}");
}

fn raw(value: &Value) -> RawJson {
    to_raw_value(value).unwrap()
}

fn entry(key: &str) -> Changes {
    Changes::default().entries(vec![step(key, &json!(1))])
}

fn step(key: &str, value: &Value) -> RecordedEntry {
    RecordedEntry::new(key, JournalEntry::Value(raw(value)))
}

fn segment(ordinal: u32) -> SegmentRecord {
    SegmentRecord::new("s", ordinal, raw(&json!(format!("block {ordinal}"))))
}

fn asked(name: &str) -> NewInputRequest {
    let (key, name) = (name.to_owned(), name.to_owned());
    NewInputRequest::new(key, name, Some(InputRequest::ListRoots))
}
