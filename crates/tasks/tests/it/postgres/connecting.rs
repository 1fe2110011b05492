//! Connections, and errors for those that fail.

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
async fn newer_schema_is_rejected_unchanged() {
    let schema = Schema::new();
    schema.connect().await;
    let by_hand = schema.by_hand().await;
    by_hand.batch_execute("UPDATE schema_version SET number = number + 99").await.unwrap();
    let error = refused(&url(), schema.options()).await;
    assert!(matches!(error, StoreError::Incompatible(_)));
    says(&error, &["schema version 1", "upgrade this program"]);
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
async fn pre_release_schema_is_rejected() {
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
async fn schema_of_another_program_is_rejected() {
    let schema = Schema::new();
    let by_hand = schema.by_hand().await;
    let name = schema.0.replace('"', "\"\"");
    let theirs = format!("CREATE SCHEMA \"{name}\"; CREATE TABLE customers (id integer)");
    by_hand.batch_execute(&theirs).await.unwrap();
    let error = refused(&url(), schema.options()).await;
    assert!(matches!(error, StoreError::Incompatible(_)));
    says(&error, &["belongs to another program", "use another schema"]);
}

#[tokio::test]
async fn wrong_password_is_reported_without_showing_it() {
    let schema = Schema::new();
    let role = "CREATE ROLE outlive_with_password LOGIN PASSWORD 'right'";
    // The role may exist from another run on the same server.
    let _ = schema.by_hand().await.batch_execute(role).await;
    let with = |password: &str| {
        let (_, place) = url().split_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        format!("postgres://outlive_with_password:{password}@{place}")
    };
    let error = refused(&with("wrong-one"), schema.options()).await;
    says(&error, &["password authentication failed", "check the user and the password"]);
    assert!(!error.to_string().contains("wrong-one"));
    // The right password passes authentication, and then a privilege is missing.
    let error = refused(&with("right"), schema.options()).await;
    says(&error, &["permission denied", "GRANT"]);
}

#[tokio::test]
async fn missing_database_is_reported() {
    let schema = Schema::new();
    let (before, _) = url().rsplit_once('/').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let error = refused(&format!("{before}/nowhere"), schema.options()).await;
    says(&error, &["\"nowhere\" does not exist", "create the database"]);
}

#[tokio::test]
async fn missing_host_is_reported_in_time() {
    // A reserved name that never resolves, and a port without a listener.
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
async fn silent_host_times_out() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let options = PostgresOptions::new().with_connect_timeout(Duration::from_millis(200));
    let error = refused(&format!("postgres://ada@127.0.0.1:{port}/d"), options).await;
    says(&error, &["no response in time"]);
}

#[tokio::test]
async fn missing_root_certificates_are_reported() {
    let url = "postgres://ada@127.0.0.1:1/d?sslmode=verify-full&sslrootcert=/nowhere/ca.pem";
    let error = refused(url, PostgresOptions::new()).await;
    says(&error, &["/nowhere/ca.pem", "sslrootcert"]);
}
