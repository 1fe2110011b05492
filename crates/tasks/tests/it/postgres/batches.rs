//! Group commits.

use std::sync::Arc;

use outlive_tasks::{
    JournalEntry,
    store::{
        AuditEvent, AuditLog, Changes, CreateOutcome, IdempotencyKey, InputSource, KeyValueStore,
        NewTask, PostgresStore, StoreError, StoreMonitor, TaskId, TaskOutcome, TaskStore,
        Transition, WorkQueue, WorkerId,
    },
};
use serde_json::json;
use tokio::task::JoinSet;

use super::{LEASE, OWNER, Schema, asked, entry, raw, segment, start, task, until};

/// Lock that another connection takes, so that operations of the store queue up.
const HOLD: &str = "BEGIN; LOCK TABLE task IN SHARE MODE";

#[tokio::test]
async fn queued_operations_share_a_commit_and_failures_are_isolated() {
    let schema = Schema::new();
    let store = schema.connect_with(schema.options().write_connections(1)).await;
    let lease = start(&store, task("held")).await;
    let lost = lease.clone().epoch(7);
    let by_hand = schema.by_hand().await;
    // A trigger that fails after some rows are written.
    by_hand
        .batch_execute(
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF new.key = 'no' THEN RAISE 'as the test wants'; END IF; RETURN new; END $$;
             CREATE TRIGGER no BEFORE INSERT ON journal_entry FOR EACH ROW EXECUTE FUNCTION no()",
        )
        .await
        .unwrap();
    let mut half = task("half");
    for key in ["a", "no"] {
        half.journal.entries.insert(key.to_owned(), JournalEntry::Value(raw(&json!(1))));
    }
    let eve = |task: NewTask| task.principal("name:eve".to_owned()).quota(1);
    let entries = ["lost", "k"].map(entry);
    let commits = store.commits();
    by_hand.batch_execute(HOLD).await.unwrap();
    let (first, a, refused, b, failed, write, ()) = tokio::join!(
        biased;
        store.create(task("first")),
        store.create(task("a").quota(4)),
        store.commit(&lost, &entries[0], &Transition::Continue),
        store.create(task("b").quota(4)),
        store.create(eve(half)),
        store.commit(&lease, &entries[1], &Transition::Continue),
        async {
            until("the first creation waits", async || waits_for(&schema, "task").await).await;
            by_hand.batch_execute("COMMIT").await.unwrap();
        },
    );
    assert!([first, a, b].into_iter().all(|made| made.unwrap().is_new()));
    assert_eq!(refused, Err(StoreError::LeaseLost));
    assert!(failed.unwrap_err().to_string().contains("as the test wants"));
    assert_eq!(write, Ok(()));
    let commits = store.commits() - commits;
    assert!(commits <= 4, "one commit for the first creation, then one per group");
    // The failed operation has left no rows.
    assert!(store.get("name:eve", &TaskId::new("half")).await.unwrap().is_none());
    assert!(store.create(eve(task("c"))).await.unwrap().is_new());
    store.release(&lease.worker).await.unwrap();
    let claimed = store.claim(&WorkerId::new("w"), LEASE, &10_usize.into()).await.unwrap();
    let journal = claimed.iter().find(|claimed| claimed.lease.task == lease.task).unwrap();
    assert_eq!(journal.journal.entries.keys().collect::<Vec<_>>(), ["k"]);
    schema.is_counted_right().await;
}

#[tokio::test]
async fn repeated_or_rejected_commit_does_not_affect_its_batch() {
    let schema = Schema::new();
    let store = schema.connect_with(schema.options().write_connections(1)).await;
    let again = start(&store, task("again")).await;
    let other = start(&store, task("other")).await;
    let lost = start(&store, task("lost")).await.epoch(7);
    // The worker did not receive the result and repeats the commit: alone, and in a batch.
    for _ in 0..2 {
        assert_eq!(store.commit(&again, &entry("k"), &Transition::Continue).await, Ok(()));
    }
    let by_hand = schema.by_hand().await;
    by_hand.batch_execute("BEGIN; LOCK TABLE journal_entry IN SHARE MODE").await.unwrap();
    let entries = ["first", "k", "second"].map(entry);
    let (first, again, other, lost, ()) = tokio::join!(
        biased;
        store.commit(&other, &entries[0], &Transition::Continue),
        store.commit(&again, &entries[1], &Transition::Continue),
        store.commit(&other, &entries[2], &Transition::Continue),
        store.commit(&lost, &entries[1], &Transition::Continue),
        async {
            until("a commit waits", async || waits_for(&schema, "journal_entry").await).await;
            by_hand.batch_execute("COMMIT").await.unwrap();
        },
    );
    assert_eq!([first, again, other, lost], [Ok(()), Ok(()), Ok(()), Err(StoreError::LeaseLost)]);
    let kept = by_hand.query("SELECT key FROM journal_entry ORDER BY key", &[]).await.unwrap();
    let kept: Vec<String> = kept.iter().map(|row| row.get(0)).collect();
    assert_eq!(kept, ["first", "k", "second"]);
}

/// Returns whether a connection waits for a lock on a table of this schema.
async fn waits_for(schema: &Schema, table: &str) -> bool {
    let waiting = format!(
        "SELECT EXISTS (SELECT FROM pg_locks
         WHERE NOT granted AND relation = '{table}'::regclass)"
    );
    schema.by_hand().await.query_one(&waiting, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn concurrent_callers_share_commits_without_losing_writes() {
    // Enough callers that one batch is sent while another commits.
    const CALLERS: usize = 600;
    const EACH: usize = 3;
    let schema = Schema::new();
    let store = Arc::new(schema.connect().await);
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let store = Arc::clone(&store);
        callers.spawn(async move {
            for count in 0..EACH {
                let principal = format!("name:{}", caller % 3);
                let new = task(&format!("{caller}-{count}")).principal(principal);
                assert!(store.create(new).await.unwrap().is_new());
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap();
    }
    let commits = store.commits();
    assert!(commits < (CALLERS * EACH / 2) as u64, "{commits} commits");
    let census = store.stats().await.unwrap();
    assert_eq!(census.queued, (CALLERS * EACH) as u64);
    schema.is_counted_right().await;
}

#[tokio::test]
async fn existing_task_does_not_affect_creations_in_its_batch() {
    // Two batches, of which one is being sent when the other fails.
    const MANY: usize = 300;
    let schema = Schema::new();
    let store = schema.connect_with(schema.options().write_connections(1)).await;
    assert!(store.create(task("50")).await.unwrap().is_new());
    let taken = task("51").principal("name:eve".to_owned());
    assert!(store.create(taken).await.unwrap().is_new());
    let store = Arc::new(store);
    let mut callers = JoinSet::new();
    for number in 0..MANY {
        let store = Arc::clone(&store);
        callers.spawn(async move { (number, store.create(task(&number.to_string())).await) });
    }
    while let Some(done) = callers.join_next().await {
        match done.unwrap() {
            (50, made) => assert_eq!(made, Ok(CreateOutcome::Existing(TaskId::new("50")))),
            (51, made) => {
                assert!(made.unwrap_err().to_string().contains("belongs to another principal"))
            }
            (_, made) => assert!(made.unwrap().is_new()),
        }
    }
    assert_eq!(store.stats().await.unwrap().queued, MANY as u64);
    schema.is_counted_right().await;
}

#[tokio::test]
async fn quota_is_exact_under_concurrent_creations() {
    const QUOTA: usize = 10;
    let schema = Schema::new();
    let stores = Arc::new([schema.connect().await, schema.connect().await]);
    for id in ["0-0", "1-1"] {
        let once = IdempotencyKey::new(id, "d");
        stores[0].create(task(id).idempotency(Some(once))).await.unwrap();
    }
    let mut callers = JoinSet::new();
    for caller in 0..8 {
        let stores = Arc::clone(&stores);
        callers.spawn(async move {
            let mut made = (0, 0);
            for count in 0..6 {
                let id = format!("{caller}-{count}");
                let once = Some(IdempotencyKey::new(id.clone(), "d"));
                let new = task(&id).quota(QUOTA).idempotency(once);
                match stores[caller % 2].create(new).await.unwrap() {
                    CreateOutcome::Created { .. } => made.0 += 1,
                    CreateOutcome::Existing(_) => made.1 += 1,
                    CreateOutcome::QuotaExceeded | CreateOutcome::BytesExceeded => {}
                    CreateOutcome::KeyConflict => panic!("the request is the same"),
                }
            }
            made
        });
    }
    let (mut new, mut before) = (2, 0);
    while let Some(made) = callers.join_next().await {
        let made = made.unwrap();
        (new, before) = (new + made.0, before + made.1);
    }
    assert_eq!((new, before), (QUOTA, 2), "an existing task needs no quota");
    // An ended task frees quota for one more.
    stores[1].cancel(OWNER, &TaskId::new("0-0"), true, LEASE).await.unwrap();
    let mut made = 0;
    for count in 0..3 {
        let new = task(&format!("late-{count}")).quota(QUOTA);
        made += usize::from(stores[0].create(new).await.unwrap().is_new());
    }
    assert_eq!(made, 1);
    schema.is_counted_right().await;
}

#[tokio::test]
async fn statements_never_scan_a_table() {
    let schema = Schema::new();
    // The creation of the tables scans them, so those scans are subtracted.
    let before = scans(&schema, schema.connect().await).await;
    let store = schema.connect().await;
    let worker = WorkerId::new("w");
    for count in 0..20 {
        let once = IdempotencyKey::new(format!("{count}"), "d");
        store
            .create(task(&format!("{count}")).idempotency(Some(once.clone())).quota(15))
            .await
            .unwrap();
        store.find(OWNER, &once).await.unwrap();
    }
    for claimed in store.claim(&worker, LEASE, &10_usize.into()).await.unwrap() {
        let lease = claimed.lease;
        let changes = entry("k")
            .input_requests(vec![asked("q"), asked("r")])
            .withdrawn(vec!["r".to_owned()])
            .segments(vec![segment(0)])
            .invalidated(vec!["x".to_owned()]);
        store
            .commit(&lease, &changes, &Transition::Park { due_at: None, responses_seen: 0 })
            .await
            .unwrap();
        let answer = vec![("q".to_owned(), raw(&json!(1)))];
        store.respond(OWNER, &lease.task, InputSource::Client, answer, u64::MAX).await.unwrap();
        store.get(OWNER, &lease.task).await.unwrap();
        let _ = store.inbox(&lease).await;
    }
    for claimed in store.claim(&worker, LEASE, &3_usize.into()).await.unwrap() {
        let then = Transition::End { outcome: TaskOutcome::Cancelled, retention: LEASE };
        store.commit(&claimed.lease, &Changes::default(), &then).await.unwrap();
    }
    store.list(OWNER, "test", None, 5).await.unwrap();
    store.claim(&worker, LEASE, &3_usize.into()).await.unwrap();
    store.renew(&worker, LEASE).await.unwrap();
    store.release(&worker).await.unwrap();
    store.cancel(OWNER, &TaskId::new("1"), true, LEASE).await.unwrap();
    store.put_if_absent("k", raw(&json!(1)), LEASE, None).await.unwrap();
    store.put("k", raw(&json!(1)), LEASE, None).await.unwrap();
    store.get_value("k").await.unwrap();
    store.delete("k").await.unwrap();
    let event = AuditEvent::new("1", OWNER, "made");
    store.append(vec![event], LEASE, u64::MAX).await.unwrap();
    store.read(None, 0, 10).await.unwrap();
    store.read(Some("1"), 0, 10).await.unwrap();
    store.next_due(&[]).await.unwrap();
    store.advance_clock(LEASE * 1000);
    store.sweep(10, LEASE).await.unwrap();
    store.advance_clock(LEASE * 1000);
    store.sweep(10, LEASE).await.unwrap();
    assert_eq!(scans(&schema, store).await, before);
}

/// Returns the number of scans of each table, after the store is dropped.
async fn scans(schema: &Schema, store: PostgresStore) -> Vec<(String, i64)> {
    drop(store);
    // A connection reports its statistics when it closes.
    let by_hand = schema.by_hand().await;
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
    until("the connections of the store are closed", async || {
        by_hand.query_one(open, &[&schema.program()]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    // Small tables of processes and counts may be scanned.
    let scans = "SELECT relname::text, seq_scan FROM pg_stat_user_tables
         WHERE schemaname = $1 AND relname NOT IN
             ('replica', 'schema_version', 'phase_count', 'phase_change') ORDER BY relname";
    let scans = by_hand.query(scans, &[&schema.0]).await.unwrap();
    scans.iter().map(|row| (row.get(0), row.get(1))).collect()
}
