//! `outlive store`, on SQLite and PostgreSQL.

mod changing; // retry and purge
mod listing; // list and show
mod migrating; // other schema versions
mod serving; // servers on the same store

use std::{
    env, fs,
    path::PathBuf,
    process::{self, Command, Output},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    store::{
        Changes, CreateOutcome, JournalEntry, Lease, NewTask, RecordedEntry, Store, TaskId,
        TaskOutcome, Transition, WorkerId, open,
    },
    wire::{ErrorObject, RawJson},
};
use serde_json::{Value, json, value::to_raw_value};
use tokio_postgres::NoTls;

/// Runs the program with this data folder.
pub(crate) fn outlive(data: &std::path::Path, args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_outlive"));
    program
        .args(args)
        .env("OUTLIVE_DATA_DIR", data)
        .env("USER", "grace")
        .env_remove("OUTLIVE_STORE");
    program.output().unwrap()
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns standard output, and asserts success.
#[track_caller]
fn fine(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", out(output), err(output));
    out(output)
}

/// Parses each line of the output as JSON.
#[track_caller]
fn lines(output: &Output) -> Vec<Value> {
    fine(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Temporary folder, deleted on drop.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("outlive-cli-{}-{number}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An empty store, and the data folder of its operator.
pub(crate) struct Place {
    pub(crate) folder: Folder,
    pub(crate) url: String,
}

impl Place {
    fn file() -> Self {
        let folder = Folder::new();
        let url = format!("sqlite:{}", folder.0.join("tasks.db").display());
        Self { folder, url }
    }

    /// Creates a database on the PostgreSQL server of the tests.
    pub(crate) async fn database() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let server = env::var("OUTLIVE_TEST_POSTGRES").expect(
            "these tests require a database: run `cargo xtask test`, or start `cargo xtask postgres` \
             and set OUTLIVE_TEST_POSTGRES to what it prints",
        );
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cli_{}_{number}", process::id());
        let (client, connection) = tokio_postgres::connect(&server, NoTls).await.unwrap();
        tokio::spawn(connection);
        // Left over from an earlier process with the same ID.
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {name}")).await.unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let (before, _) = server.rsplit_once('/').unwrap();
        Self { folder: Folder::new(), url: format!("{before}/{name}") }
    }

    async fn both() -> [Self; 2] {
        [Self::file(), Self::database().await]
    }

    async fn open(&self) -> Arc<dyn Store> {
        open(&self.url).await.unwrap()
    }

    /// Runs `outlive store` with the URL after the command.
    fn run(&self, command: &str, args: &[&str]) -> Output {
        outlive(&self.folder.0, &[&["store", command, &self.url], args].concat())
    }
}

pub(crate) fn raw(value: &Value) -> RawJson {
    to_raw_value(value).unwrap()
}

pub(crate) fn task(id: &str, principal: &str, kind: &str) -> NewTask {
    NewTask::new(
        TaskId::new(id),
        principal,
        kind,
        "modern",
        raw(&json!({"name": kind, "arguments": {"long": "x".repeat(500)}})),
    )
    .ttl(Some(Duration::from_secs(600)))
    .max_ttl(Duration::from_secs(7200))
    .quota(1_000)
}

/// Creates a task under the lease of a worker that never writes again.
pub(crate) async fn start(store: &dyn Store, new: NewTask) -> Lease {
    let worker = Some((WorkerId::new("worker-1"), Duration::from_secs(3600)));
    match store.create(new.worker(worker)).await.unwrap() {
        CreateOutcome::Created { lease: Some(lease), .. } => lease,
        other => panic!("a lease was expected: {other:?}"),
    }
}

async fn end(store: &dyn Store, lease: &Lease) {
    let outcome = TaskOutcome::Result(raw(&json!({"content": [], "isError": true})));
    let then = Transition::End { outcome, retention: Duration::from_secs(3600) };
    store.commit(lease, &Changes::default(), &then).await.unwrap();
}

/// Quarantines a task, as the engine does.
async fn keep(store: &dyn Store, lease: &Lease) {
    let message = "its worker crashed 5 times in a row".to_owned();
    let outcome = TaskOutcome::Error(ErrorObject { code: -32603, message, data: None });
    let then = Transition::Quarantine { outcome, ttl: Duration::from_secs(7 * 24 * 3600) };
    let changes = Changes::default().status_message(Some("stopped".to_owned()));
    store.commit(lease, &changes, &then).await.unwrap();
}

fn value(key: &str, json: &Value) -> RecordedEntry {
    RecordedEntry::new(key, JournalEntry::Value(raw(json)))
}
