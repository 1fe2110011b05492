//! Lost connections and read-only databases.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use outlive_tasks::store::{CreateOutcome, StoreError, TaskId, TaskStore, Transition, WorkQueue};
use tokio::task::JoinSet;

use super::{OWNER, Schema, entry, start, task, until};

#[tokio::test]
async fn calls_recover_after_all_connections_are_lost() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let lease = start(&store, task("a")).await;
    store.get(OWNER, &lease.task).await.unwrap();
    schema.cut_all().await;
    // Operations in progress fail. Later operations succeed.
    until("the store can be written", async || {
        store.commit(&lease, &entry("k"), &Transition::Continue).await.is_ok()
    })
    .await;
    assert!(store.get(OWNER, &lease.task).await.unwrap().is_some());
    assert!(store.create(task("b")).await.unwrap().is_new());
    until("leases are renewed", async || {
        store.renew(&lease.worker, super::LEASE).await.is_ok_and(|held| held.len() == 1)
    })
    .await;
}

#[tokio::test]
async fn creations_during_connection_loss_are_exactly_once() {
    let schema = Schema::new();
    let store = Arc::new(schema.connect().await);
    let done = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    // Enough callers that one batch is sent while another commits.
    for caller in 0..300 {
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        callers.spawn(async move {
            let mut made = Vec::new();
            for count in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let id = format!("{caller}-{count}");
                match store.create(task(&id)).await {
                    Ok(CreateOutcome::Created { .. }) => made.push(id),
                    Ok(other) => panic!("{other:?}"),
                    Err(StoreError::Unavailable(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            made
        });
    }
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        schema.cut_all().await;
    }
    done.store(true, Ordering::Relaxed);
    let mut made = 0;
    while let Some(ids) = callers.join_next().await {
        for id in ids.unwrap() {
            made += 1;
            let view = store.get(OWNER, &TaskId::new(id.as_str())).await.unwrap();
            assert!(view.is_some(), "acknowledged task {id} exists");
        }
    }
    assert!(made > 0);
    schema.is_counted_right().await;
}

#[tokio::test]
async fn commit_waiting_too_long_for_row_lock_fails_and_next_succeeds() {
    let schema = Schema::new();
    let options = schema.options().with_statement_timeout(Duration::from_millis(200));
    let store = schema.connect_with(options).await;
    let lease = start(&store, task("a")).await;
    let by_hand = schema.by_hand().await;
    by_hand.batch_execute("BEGIN; SELECT FROM task WHERE id = 'a' FOR UPDATE").await.unwrap();
    let begun = Instant::now();
    let error = store.commit(&lease, &entry("k"), &Transition::Continue).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    assert!(error.to_string().contains("the statement timed out"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    by_hand.batch_execute("COMMIT").await.unwrap();
    store.commit(&lease, &entry("k"), &Transition::Continue).await.unwrap();
}

#[tokio::test]
async fn read_only_database_is_reported_with_remedy() {
    let schema = Schema::new();
    schema.connect().await.create(task("a")).await.unwrap();
    let url = format!("{}?options=-c%20default_transaction_read_only=on", super::url());
    let error = outlive_tasks::store::PostgresStore::connect_with(&url, schema.options())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("connect to the primary"), "{error}");
}

#[tokio::test]
async fn oversized_value_does_not_affect_its_batch() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let lease = start(&store, task("a")).await;
    // A journal key is part of an index, whose rows are limited to a third of a page.
    let long: String = {
        use std::hash::{BuildHasher, Hasher, RandomState};
        (0..2_000).map(|_| format!("{:x}", RandomState::new().build_hasher().finish())).collect()
    };
    let changes = entry(&long);
    let (refused, kept) = tokio::join!(
        store.commit(&lease, &changes, &Transition::Continue),
        store.create(task("b")),
    );
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("store smaller values, or use shorter names"), "{error}");
    assert!(kept.unwrap().is_new());
}
