//! Opening files, and errors for those that fail.

use std::fs;

use outlive_tasks::store::{
    SqliteOptions, SqliteStore, StoreError, Synchronous, TaskId, TaskStore,
};
use rusqlite::Connection;

use super::{Folder, OWNER, task};

#[track_caller]
fn refused(opened: Result<SqliteStore, StoreError>, path: &str, remedy: &str) -> StoreError {
    let error = opened.expect_err("open fails");
    let text = error.to_string();
    assert!(text.contains(path) && text.contains(remedy), "{text}");
    error
}

#[tokio::test]
async fn open_creates_folders_and_private_file() {
    let folder = Folder::new();
    let path = folder.0.join("some/where/tasks.db");
    let store = SqliteStore::open(&path).unwrap();
    store.create(task("a")).await.unwrap();
    #[cfg(unix)]
    for file in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path.with_file_name(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[tokio::test]
async fn synchronous_option_sets_durability() {
    let folder = Folder::new();
    for durability in [Synchronous::Full, Synchronous::Normal] {
        let options = SqliteOptions::new().synchronous(durability);
        let store = SqliteStore::open_with(folder.file(), options).unwrap();
        store.create(task(&format!("{durability:?}"))).await.unwrap();
        assert!(store.get(OWNER, &TaskId::new("Full")).await.unwrap().is_some());
    }
    let by_hand = Connection::open(folder.file()).unwrap();
    let mode: String = by_hand.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal", "the journal mode is permanent");
}

#[test]
fn file_of_newer_version_is_rejected_unchanged() {
    let folder = Folder::new();
    drop(SqliteStore::open(folder.file()).unwrap());
    let by_hand = Connection::open(folder.file()).unwrap();
    by_hand.execute_batch("PRAGMA user_version = 99").unwrap();
    let error = refused(SqliteStore::open(folder.file()), "tasks.db", "upgrade this program");
    assert!(matches!(&error, StoreError::Incompatible(what) if what.contains("version 99")));
    let version: i64 = by_hand.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 99);
}

#[test]
fn file_that_is_not_a_database_is_rejected_unchanged() {
    let folder = Folder::new();
    let text = "dear diary, ".repeat(1_000);
    fs::write(folder.file(), &text).unwrap();
    refused(SqliteStore::open(folder.file()), "tasks.db", "use another file");
    assert_eq!(fs::read_to_string(folder.file()).unwrap(), text);
}

#[test]
fn database_of_another_program_is_rejected_unchanged() {
    let folder = Folder::new();
    let by_hand = Connection::open(folder.file()).unwrap();
    by_hand.execute_batch("CREATE TABLE account (id INTEGER)").unwrap();
    refused(SqliteStore::open(folder.file()), "tasks.db", "use another file");
    let tables = "SELECT count(*) FROM sqlite_schema";
    assert_eq!(by_hand.query_row(tables, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    let mode: String = by_hand.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete", "the journal mode is unchanged");
}

#[test]
fn open_on_folder_is_rejected() {
    let folder = Folder::new();
    refused(SqliteStore::open(&folder.0), "outlive-sqlite", "check that the path is a file");
    refused(SqliteStore::open(""), "``", "use a file");
}

#[test]
fn open_below_a_file_is_rejected() {
    let folder = Folder::new();
    fs::write(folder.0.join("text"), "text").unwrap();
    refused(SqliteStore::open(folder.0.join("text/tasks.db")), "text", "may write");
}

#[test]
fn open_on_read_only_file_is_rejected() {
    let folder = Folder::new();
    drop(SqliteStore::open(folder.file()).unwrap());
    let mut permissions = fs::metadata(folder.file()).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(folder.file(), permissions).unwrap();
    // A privileged user may write any file, so the test is skipped.
    if fs::OpenOptions::new().append(true).open(folder.file()).is_err() {
        refused(
            SqliteStore::open(folder.file()),
            "tasks.db",
            "allow the user of this process to write",
        );
    }
}
