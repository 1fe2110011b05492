//! The SQLite store: its contract, and failures specific to a file.

mod batches; // group commits, with failing operations
mod files; // opening files, and errors for those that fail
mod full_disk; // full disks
mod people; // inboxes, votes, tags and deliveries in a file
mod shared; // two handles on one file, like those of two processes
mod takeover; // reclaiming the tasks of killed processes

use std::{
    env, fs,
    path::PathBuf,
    process,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive_tasks::{
    JournalEntry, JournalSnapshot, SegmentRecord,
    store::{
        Changes, CreateOutcome, IdempotencyKey, InputSource, Lease, NewInputRequest, NewTask,
        Phase, RecordedEntry, SqliteStore, TaskId, TaskOutcome, TaskStore, Transition, WorkQueue,
        WorkerId,
        contract::{ContractBench, checks, operator_checks, people_checks},
    },
};
use outlive_wire::{InputRequest, RawJson};
use serde_json::{Value, json, value::to_raw_value};

#[tokio::test]
async fn store_passes_contract() {
    for check in checks().into_iter().chain(operator_checks()).chain(people_checks()) {
        let folder = Folder::new();
        let store = Arc::new(SqliteStore::open(folder.file()).unwrap());
        let clock = Arc::clone(&store);
        println!("{}", check.name);
        (check.run)(ContractBench::people(store, move |span| clock.advance_clock(span))).await;
        is_counted_right(&folder);
    }
}

/// Checks that the maintained counts match the rows.
fn is_counted_right(folder: &Folder) {
    let by_hand = rusqlite::Connection::open(folder.file()).unwrap();
    let count = |sql: &str| by_hand.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    for (phase, column) in
        ["queued", "running", "parked", "ended", "quarantined"].iter().enumerate()
    {
        let counted = count(&format!("SELECT {column} FROM phase_count"));
        assert_eq!(counted, count(&format!("SELECT count(*) FROM task WHERE phase = {phase}")));
    }
    let bytes = "SELECT (SELECT coalesce(sum(2048 + octet_length(task_request.body)
            + coalesce(octet_length(outcome), 0)), 0)
            FROM task JOIN task_request ON task_request.task = task.number)
        + (SELECT coalesce(sum(octet_length(key) + octet_length(body)), 0) FROM journal_entry)
        + (SELECT coalesce(sum(octet_length(scope) + octet_length(body)), 0) FROM segment)
        + (SELECT coalesce(sum(octet_length(wire_key) + octet_length(journal_key)
            + CASE is_external WHEN 0 THEN octet_length(body) ELSE 0 END
            + coalesce((SELECT sum(octet_length(value)) FROM json_tree(people)
                WHERE type = 'text'), 0)
            + coalesce(octet_length(binding ->> 'digest')
                + octet_length(binding ->> 'definition'), 0)
            + coalesce(octet_length(binding ->> 'denial'), 0)), 0) FROM input_request)
        + (SELECT coalesce(sum(128 + octet_length(person) + octet_length(channel)
            + coalesce(octet_length(reason), 0)), 0) FROM vote)
        + (SELECT coalesce(sum(octet_length(body)), 0) FROM result_part)
        + (SELECT coalesce(sum(64 + octet_length(tag)), 0) FROM tag)
        + (SELECT coalesce(sum(256 + octet_length(key) + octet_length(body)), 0) FROM key_value
            WHERE principal IS NOT NULL)";
    assert_eq!(count("SELECT coalesce(sum(bytes), 0) FROM principal_quota"), count(bytes));
    assert_eq!(count("SELECT bytes FROM phase_count"), count(bytes));
    let wrong = "SELECT count(*) FROM task WHERE open <>
        (SELECT count(*) FROM input_request WHERE task = task.number AND state = 0)";
    assert_eq!(count(wrong), 0, "open input requests");
    let wrong = "SELECT count(*) FROM addressee JOIN input_request USING (task, wire_key)
        WHERE state <> 0 OR in_inbox = 0 OR addressee.opened_at <> input_request.opened_at";
    assert_eq!(count(wrong), 0, "inboxes");
    let tags = "SELECT count(*) FROM task, json_each(tags)";
    assert_eq!(count("SELECT count(*) FROM tag"), count(tags), "tags");
}

#[tokio::test]
async fn acknowledged_writes_survive_reopening() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let once = IdempotencyKey::new("k", "d");
    let mut journal = JournalSnapshot::default();
    journal.entries.insert("before".to_owned(), JournalEntry::Value(raw(&json!(0))));
    journal.reasked.insert("before".to_owned(), 2);
    let new = task("a").idempotency(Some(once.clone())).journal(journal);
    let lease = start(&store, new).await;
    let changes = Changes::default()
        .entries(vec![RecordedEntry::new(
            "step",
            JournalEntry::Value(raw(&json!({"x": [1, "ü"]}))),
        )])
        .segments(vec![segment(0), segment(1)])
        .input_requests(vec![asked("q1"), asked("q2")])
        .status_message(Some("half way".to_owned()));
    store
        .commit(&lease, &changes, &Transition::Park { due_at: None, responses_seen: 0 })
        .await
        .unwrap();
    let seen = store.get(OWNER, &lease.task).await.unwrap().unwrap();
    drop(store);

    let store = SqliteStore::open(folder.file()).unwrap();
    let again = store.get(OWNER, &lease.task).await.unwrap().unwrap();
    assert_eq!(format!("{again:?}"), format!("{seen:?}"));
    assert_eq!(again.phase, Phase::Parked);
    assert_eq!(again.input_requests.len(), 2);
    let twice = task("b").idempotency(Some(once));
    assert_eq!(store.create(twice).await, Ok(CreateOutcome::Existing(TaskId::new("a"))));
    let answer = vec![("q2".to_owned(), raw(&json!("yes")))];
    let answered = store.respond(OWNER, &lease.task, InputSource::Client, answer, u64::MAX).await;
    assert_eq!(answered, Ok(Some(1)));
    drop(store);

    let store = SqliteStore::open(folder.file()).unwrap();
    let claimed =
        store.claim(&WorkerId::new("w"), LEASE, &10_usize.into()).await.unwrap().remove(0);
    assert_eq!(claimed.lease.epoch, 2);
    assert!(claimed.started);
    let journal = claimed.journal;
    assert_eq!(journal.entries.keys().collect::<Vec<_>>(), ["before", "q2", "step"]);
    assert_eq!(journal.segments.iter().map(|s| s.ordinal).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(journal.input_requests, ["q1"]);
    assert_eq!(journal.reasked.get("before"), Some(&2), "reissues from before the promotion");
    let then = Transition::End { outcome: TaskOutcome::Cancelled, retention: LEASE };
    store.commit(&claimed.lease, &Changes::default(), &then).await.unwrap();
    drop(store);

    let store = SqliteStore::open(folder.file()).unwrap();
    let ended = store.get(OWNER, &lease.task).await.unwrap().unwrap();
    assert!(matches!(ended.outcome, Some(TaskOutcome::Cancelled)));
    assert!(ended.input_requests.is_empty());
}

#[tokio::test]
async fn repeated_commit_is_stored_once() {
    // A worker that did not receive the result repeats its commit.
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let lease = start(&store, task("a")).await;
    let changes = Changes::default()
        .entries(vec![RecordedEntry::new("step", JournalEntry::Value(raw(&json!(1))))])
        .segments(vec![segment(0), segment(1)])
        .input_requests(vec![asked("q")]);
    for _ in 0..2 {
        store.commit(&lease, &changes.clone(), &Transition::Continue).await.unwrap();
    }
    store.release(&lease.worker).await.unwrap();
    let journal =
        store.claim(&WorkerId::new("w"), LEASE, &1_usize.into()).await.unwrap().remove(0).journal;
    assert_eq!((journal.entries.len(), journal.segments.len()), (1, 2));
    assert!(journal.reasked.is_empty());
}

#[tokio::test]
async fn unreadable_task_does_not_block_other_claims() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    for id in ["a", "b", "c"] {
        store.create(task(id)).await.unwrap();
    }
    let by_hand = rusqlite::Connection::open(folder.file()).unwrap();
    let torn =
        "UPDATE task_request SET body = '{' WHERE task = (SELECT number FROM task WHERE id = 'b')";
    assert_eq!(by_hand.execute(torn, []).unwrap(), 1);
    let claimed = store.claim(&WorkerId::new("w"), LEASE, &10_usize.into()).await.unwrap();
    let ids: Vec<&str> = claimed.iter().map(|claimed| claimed.lease.task.as_str()).collect();
    assert_eq!(ids, ["a", "c"]);
    assert!(store.claim(&WorkerId::new("w"), LEASE, &10_usize.into()).await.unwrap().is_empty());
    let seen = store.get(OWNER, &TaskId::new("b")).await.unwrap().unwrap();
    assert_eq!(seen.phase, Phase::Queued, "the principal can still read the task");
}

#[tokio::test]
async fn maximum_durations_are_accepted() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let new = task("a").ttl(Some(Duration::MAX)).max_ttl(Duration::MAX);
    let lease = match store.create(new.worker(Some((WorkerId::new("w"), Duration::MAX)))).await {
        Ok(CreateOutcome::Created { lease: Some(lease), .. }) => lease,
        other => panic!("{other:?}"),
    };
    store.advance_clock(Duration::from_secs(1 << 40));
    assert_eq!(store.renew(&lease.worker, Duration::MAX).await.unwrap().len(), 1);
    let then = Transition::Park { due_at: Some(u64::MAX), responses_seen: 0 };
    store.commit(&lease, &Changes::default(), &then).await.unwrap();
    assert!(store.next_due(&[]).await.unwrap().unwrap() > Duration::from_secs(1 << 40));
    store.cancel(OWNER, &lease.task, true, Duration::MAX).await.unwrap();
    assert_eq!(store.sweep(10, Duration::MAX).await.unwrap().purged, 0);
}

const OWNER: &str = "name:ada";
const LEASE: Duration = Duration::from_secs(30);

/// A temporary folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("outlive-sqlite-{}-{number}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("tasks.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn task(id: &str) -> NewTask {
    NewTask::new(
        TaskId::new(id),
        OWNER,
        "deploy",
        "",
        raw(&json!({"name": "deploy", "arguments": {"region": "north"}})),
    )
    .ttl(Some(Duration::from_secs(600)))
    .max_ttl(Duration::from_secs(3600))
    .quota(usize::MAX)
}

/// Creates a task that a worker runs from its creation.
async fn start(store: &SqliteStore, new: NewTask) -> Lease {
    let worker = Some((WorkerId::new("v"), LEASE));
    match store.create(new.worker(worker)).await.unwrap() {
        CreateOutcome::Created { lease: Some(lease), .. } => lease,
        other => panic!("expected a lease: {other:?}"),
    }
}

fn raw(value: &Value) -> RawJson {
    to_raw_value(value).unwrap()
}

fn segment(ordinal: u32) -> SegmentRecord {
    SegmentRecord::new("s", ordinal, raw(&json!(format!("block {ordinal}"))))
}

fn asked(name: &str) -> NewInputRequest {
    let (key, name) = (name.to_owned(), name.to_owned());
    NewInputRequest::new(key, name, Some(InputRequest::ListRoots))
}
