//! What can be connected to, and what is said about the rest.

use std::time::{Duration, Instant};

use outlive_tasks::store::{
    Changes, OperatorStore, Phase, PostgresOptions, PostgresStore, RetryOutcome, StoreError,
    StoreMonitor, TaskId, TaskOutcome, TaskStore, Transition, WorkQueue,
};

use super::{LEASE, OWNER, Schema, start, task, url};

async fn refused(url: &str, options: PostgresOptions) -> StoreError {
    PostgresStore::connect_with(url, options).await.unwrap_err()
}

#[track_caller]
fn says(error: &StoreError, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let schema = Schema::new();
    schema.connect().await;
    let by_hand = schema.by_hand().await;
    by_hand.batch_execute("UPDATE version SET number = number + 99").await.unwrap();
    let error = refused(&url(), schema.options()).await;
    assert!(matches!(error, StoreError::Incompatible(_)));
    says(&error, &["its tables have version 1", "upgrade this program"]);
    by_hand.batch_execute("UPDATE version SET number = number - 99").await.unwrap();
    schema.connect().await.create(task("a")).await.unwrap();
}

#[tokio::test]
async fn a_schema_of_the_first_version_is_brought_up_to_date_with_what_it_holds() {
    let schema = Schema::new();
    let store = schema.connect().await;
    store.create(task("before")).await.unwrap();
    drop(store);
    let back = "ALTER TABLE task DROP COLUMN kept;
        DROP FUNCTION keep_task, find_tasks, retry_task, forget_tasks, purge_task, purge_ended,
            count_tasks, record_steps, end_tasks, spared_until;
        DROP FUNCTION claim_tasks(text, bigint, bigint, bigint, text[], text[], text[], bigint[],
            bigint, bigint), next_due(text[], bigint);
        DROP FUNCTION count_phases CASCADE;
        DROP FUNCTION row_bytes, note_bytes, fold_phases, outcome_kind, stored_bytes,
            exceeds_bytes, over_bytes, put_note, forget_note, question_bytes, without_room, growth;
        DROP TABLE phase_count, phase_change;
        ALTER TABLE task DROP COLUMN outcome_kind;
        ALTER TABLE open_tasks DROP COLUMN bytes;
        ALTER TABLE ended_task DROP COLUMN tasks, DROP COLUMN bytes;
        ALTER TABLE note DROP COLUMN principal;
        ALTER TABLE replica DROP COLUMN since, DROP COLUMN returned;
        ALTER TABLE task ALTER COLUMN number DROP DEFAULT;
        UPDATE version SET number = 1";
    schema.by_hand().await.batch_execute(back).await.unwrap();
    let store = schema.connect().await;
    let before = TaskId::new("before");
    assert_eq!(store.get(OWNER, &before).await.unwrap().unwrap().phase, Phase::Queued);
    assert_eq!(store.stats().await.unwrap().queued, 1);
    assert!(store.stored_bytes(OWNER).await.unwrap() > 2_048);
    let lease = start(&store, task("after")).await;
    let then = Transition::Quarantine { outcome: TaskOutcome::Expired, hold: LEASE };
    store.commit(&lease, &Changes::default(), &then).await.unwrap();
    let retried = store.retry(&lease.task).await.unwrap();
    assert_eq!(retried, Some(RetryOutcome::Queued(OWNER.to_owned())));
}

#[tokio::test]
async fn the_schema_of_another_program_is_refused() {
    let schema = Schema::new();
    let by_hand = schema.by_hand().await;
    let name = schema.0.replace('"', "\"\"");
    let theirs = format!("CREATE SCHEMA \"{name}\"; CREATE TABLE customers (id integer)");
    by_hand.batch_execute(&theirs).await.unwrap();
    let error = refused(&url(), schema.options()).await;
    assert!(matches!(error, StoreError::Incompatible(_)));
    says(&error, &["another program's", "name another one"]);
}

#[tokio::test]
async fn a_wrong_password_is_said_and_not_shown() {
    let schema = Schema::new();
    let role = "CREATE ROLE outlive_with_password LOGIN PASSWORD 'right'";
    // It may be there, from another run on the same server.
    let _ = schema.by_hand().await.batch_execute(role).await;
    let with = |password: &str| {
        let (_, place) = url().split_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        format!("postgres://outlive_with_password:{password}@{place}")
    };
    let error = refused(&with("wrong-one"), schema.options()).await;
    says(&error, &["password authentication failed", "check the user and the password"]);
    assert!(!error.to_string().contains("wrong-one"));
    // The right one comes further: to what it may not do.
    let error = refused(&with("right"), schema.options()).await;
    says(&error, &["permission denied", "GRANT"]);
}

#[tokio::test]
async fn a_database_that_is_not_there_is_said() {
    let schema = Schema::new();
    let (before, _) = url().rsplit_once('/').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let error = refused(&format!("{before}/nowhere"), schema.options()).await;
    says(&error, &["\"nowhere\" does not exist", "create the database"]);
}

#[tokio::test]
async fn a_host_that_is_not_there_is_said_in_time() {
    // A name that is nobody's, by agreement; and a port that nobody listens on.
    for url in ["postgres://ada:secret@db.invalid/d", "postgres://ada:secret@127.0.0.1:1/d"] {
        let begun = Instant::now();
        let options = PostgresOptions::new().with_connect_timeout(Duration::from_secs(2));
        let error = refused(url, options).await;
        assert!(matches!(error, StoreError::Unavailable(_)));
        says(&error, &["check"]);
        assert!(!error.to_string().contains("secret"));
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_given_up() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let options = PostgresOptions::new().with_connect_timeout(Duration::from_millis(200));
    let error = refused(&format!("postgres://ada@127.0.0.1:{port}/d"), options).await;
    says(&error, &["no answer in time"]);
}

#[tokio::test]
async fn roots_that_are_not_there_are_said() {
    let url = "postgres://ada@127.0.0.1:1/d?sslmode=verify-full&sslrootcert=/nowhere/ca.pem";
    let error = refused(url, PostgresOptions::new()).await;
    says(&error, &["/nowhere/ca.pem", "sslrootcert"]);
}
