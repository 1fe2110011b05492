//! Group commits.

use std::{sync::Arc, thread, time::Duration};

use outlive_tasks::{
    JournalEntry,
    store::{
        Changes, NewTask, RecordedEntry, SqliteOptions, SqliteStore, StoreError, TaskId, TaskStore,
        Transition, WorkQueue, WorkerId,
    },
};
use rusqlite::Connection;
use serde_json::json;

use super::{Folder, LEASE, OWNER, raw, start, task};

/// A write lock that makes operations of the store queue up.
struct Held(Connection);

impl Held {
    fn new(folder: &Folder) -> Self {
        let connection = Connection::open(folder.file()).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(connection)
    }

    fn let_go(self) {
        self.0.execute_batch("COMMIT").unwrap();
    }
}

#[tokio::test]
async fn queued_operations_share_a_commit_and_failures_are_isolated() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let lease = start(&store, task("held")).await;
    let lost = lease.clone().epoch(7);
    let entry = |key: &str| {
        Changes::default()
            .entries(vec![RecordedEntry::new(key, JournalEntry::Value(raw(&json!(1))))])
    };
    // A trigger that fails after some rows are written.
    let by_hand = Connection::open(folder.file()).unwrap();
    by_hand
        .execute_batch(
            "CREATE TRIGGER no BEFORE INSERT ON journal_entry WHEN new.key = 'no'
             BEGIN SELECT RAISE(ABORT, 'as the test wants'); END",
        )
        .unwrap();
    let mut half = task("half");
    for key in ["a", "no"] {
        half.journal.entries.insert(key.to_owned(), JournalEntry::Value(raw(&json!(1))));
    }
    let eve = |task: NewTask| task.principal("name:eve".to_owned()).quota(1);
    let entries = ["lost", "k"].map(entry);
    let commits = store.commits();
    let held = Held::new(&folder);
    let (a, refused, b, failed, write, release) = tokio::join!(
        biased;
        store.create(task("a").quota(3)),
        store.commit(&lost, &entries[0], &Transition::Continue),
        store.create(task("b").quota(3)),
        store.create(eve(half)),
        store.commit(&lease, &entries[1], &Transition::Continue),
        async {
            // All other operations are queued by now, and the writer waits for the lock.
            held.let_go();
        },
    );
    let () = release;
    assert!(a.unwrap().is_new() && b.unwrap().is_new());
    assert_eq!(refused, Err(StoreError::LeaseLost));
    assert!(failed.unwrap_err().to_string().contains("as the test wants"));
    assert_eq!(write, Ok(()));
    assert_eq!(store.commits(), commits + 1, "one commit for all operations");
    // The failed operation has left no rows.
    assert!(store.get("name:eve", &TaskId::new("half")).await.unwrap().is_none());
    assert!(store.create(eve(task("c"))).await.unwrap().is_new());
    store.release(&lease.worker).await.unwrap();
    let claimed = store.claim(&WorkerId::new("w"), LEASE, &10_usize.into()).await.unwrap();
    let journal = claimed.iter().find(|claimed| claimed.lease.task == lease.task).unwrap();
    assert_eq!(journal.journal.entries.keys().collect::<Vec<_>>(), ["k"]);
}

#[test]
fn concurrent_callers_share_commits_without_losing_writes() {
    const THREADS: usize = 8;
    const EACH: usize = 200;
    let folder = Folder::new();
    let store = Arc::new(SqliteStore::open(folder.file()).unwrap());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async {
                    // Four concurrent creations from each thread.
                    for count in 0..EACH / 4 {
                        let create =
                            |part: usize| store.create(task(&format!("{thread}-{count}-{part}")));
                        let made = tokio::join!(create(0), create(1), create(2), create(3));
                        for made in [made.0, made.1, made.2, made.3] {
                            assert!(made.unwrap().is_new());
                        }
                    }
                });
            });
        }
    });
    let commits = store.commits();
    assert!(commits < (THREADS * EACH / 2) as u64, "{commits} commits");
    drop(store);
    let by_hand = Connection::open(folder.file()).unwrap();
    let count = |sql: &str| by_hand.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM task"), (THREADS * EACH) as i64);
    assert_eq!(count("SELECT count FROM principal_quota"), (THREADS * EACH) as i64);
}

#[tokio::test]
async fn write_waiting_too_long_for_file_lock_fails_and_next_succeeds() {
    let folder = Folder::new();
    let options = SqliteOptions::new().busy_timeout(Duration::from_millis(50));
    let store = SqliteStore::open_with(folder.file(), options).unwrap();
    let held = Held::new(&folder);
    let (first, second) = tokio::join!(store.create(task("a")), store.create(task("b")));
    for refused in [first, second] {
        let Err(StoreError::Unavailable(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("another process holds the lock"), "{why}");
    }
    assert_eq!(store.get(OWNER, &TaskId::new("a")).await.map(|seen| seen.is_none()), Ok(true));
    held.let_go();
    assert!(store.create(task("a")).await.unwrap().is_new());
}

#[tokio::test]
async fn queued_operation_of_dropped_caller_is_executed() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let held = Held::new(&folder);
    {
        let mut create = store.create(task("a"));
        let waiting = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(create.as_mut().poll(cx).is_pending())
        });
        assert!(waiting.await);
    }
    drop(store);
    held.let_go();
    let store = SqliteStore::open(folder.file()).unwrap();
    for _ in 0..500 {
        if store.get(OWNER, &TaskId::new("a")).await.unwrap().is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the queued operation was not executed");
}

#[tokio::test]
async fn panicking_listener_does_not_stop_the_writer() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    store.subscribe(Arc::new(|_, _| panic!("as the test wants")));
    for id in ["a", "b"] {
        assert!(store.create(task(id)).await.unwrap().is_new());
    }
}
