//! What can be connected to, and what is said about the rest.

use std::time::{Duration, Instant};

use outlive_tasks::store::{PostgresOptions, PostgresStore, StoreError, TaskId, TaskStore};

use super::{OWNER, Schema, task, url};

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
    by_hand.batch_execute("UPDATE schema_version SET number = number + 99").await.unwrap();
    let error = refused(&url(), schema.options()).await;
    assert!(matches!(error, StoreError::Incompatible(_)));
    says(&error, &["its tables have version 1", "upgrade this program"]);
    by_hand.batch_execute("UPDATE schema_version SET number = number - 99").await.unwrap();
    schema.connect().await.create(task("a")).await.unwrap();
}

#[tokio::test]
async fn current_schema_stays_unchanged() {
    let schema = Schema::new();
    let created = schema.connect().await.create(task("before")).await.unwrap();
    assert!(created.is_new());
    let by_hand = schema.by_hand().await;
    let made = "SELECT number, fingerprint, xmin::text FROM schema_version";
    let read = async || {
        let row = by_hand.query_one(made, &[]).await.unwrap();
        (row.get::<_, i32>(0), row.get::<_, String>(1), row.get::<_, String>(2))
    };
    let before = read().await;
    let store = schema.connect().await;
    assert_eq!((before.0, read().await), (1, before));
    assert!(store.get(OWNER, &TaskId::new("before")).await.unwrap().is_some());
}

#[tokio::test]
async fn schema_of_a_pre_release_is_refused() {
    let older = "ALTER TABLE schema_version RENAME TO version";
    for change in ["UPDATE schema_version SET fingerprint = 'other'", older] {
        let schema = Schema::new();
        schema.connect().await;
        schema.by_hand().await.batch_execute(change).await.unwrap();
        let error = refused(&url(), schema.options()).await;
        assert!(matches!(error, StoreError::Incompatible(_)));
        says(&error, &["created by a pre-release; delete it or start with an empty one"]);
        says(&error, &[&schema.0]);
    }
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
