//! Killed processes: other processes reclaim their tasks before the leases expire.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use outlive_tasks::store::{
    Bridge, BridgeStore, CancelOutcome, Departure, SqliteStore, TaskId, TaskStore, WorkQueue,
    WorkerId,
};

use super::{Folder, LEASE, OWNER, start, task};

/// Environment variable that makes this test binary act as the process to kill. The value is the
/// file.
const VICTIM: &str = "OUTLIVE_TEST_VICTIM";

/// Line that the process to kill prints once it has a task.
const READY: &str = "task claimed";

/// Longer than the interval between two checks for dead workers.
const LOOKED: Duration = Duration::from_millis(400);

/// Runs a test in another process, which claims or attends a task until it is killed.
fn victim(test: &str, folder: &Folder) -> Child {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([&format!("sqlite::takeover::{test}"), "--exact", "--nocapture"])
        .env(VICTIM, folder.file())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(READY)));
    child
}

async fn be_victim(file: std::ffi::OsString) {
    let store = SqliteStore::open(file).unwrap();
    assert_eq!(
        store.claim(&WorkerId::new("victim"), LEASE, &1_usize.into()).await.unwrap().len(),
        1
    );
    wait_to_be_killed();
}

/// Creates a task in another process, whose call waits for the task until the process is killed.
async fn be_bridging_victim(file: std::ffi::OsString) {
    let store = SqliteStore::open(file).unwrap();
    let bridge = Bridge::new(Some("s".to_owned()), "f", WorkerId::new("victim"), ABANDON);
    assert!(store.create(task("a").bridge(Some(bridge))).await.unwrap().is_new());
    wait_to_be_killed();
}

#[expect(clippy::print_stdout, reason = "the parent process reads stdout")]
fn wait_to_be_killed() {
    // The test runner has already written a part of a line.
    println!("\n{READY}");
    // Returns when the parent is killed.
    let _ = std::io::stdin().read_line(&mut String::new());
}

const ABANDON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn tasks_of_killed_process_are_reclaimed_before_lease_expiry() {
    if let Some(file) = env::var_os(VICTIM) {
        return be_victim(file).await;
    }
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    store.create(task("a")).await.unwrap();
    let mut victim = victim("tasks_of_killed_process_are_reclaimed_before_lease_expiry", &folder);
    let me = WorkerId::new("heir");
    let is_left_alone = async || {
        for _ in 0..2 {
            assert!(
                store.claim(&me, LEASE, &10_usize.into()).await.unwrap().is_empty(),
                "the process is alive"
            );
            tokio::time::sleep(LOOKED).await;
        }
    };
    is_left_alone().await;
    // A frozen process is not dead, because it may continue at any moment and its lease is valid.
    #[cfg(unix)]
    {
        let pid = victim.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
        is_left_alone().await;
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    let killed = Instant::now();
    let claimed = loop {
        match store.claim(&me, LEASE, &10_usize.into()).await.unwrap().pop() {
            Some(claimed) => break claimed,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
        assert!(killed.elapsed() < LEASE / 2, "the task is not reclaimed before its lease expires");
    };
    assert_eq!((claimed.crash_count, claimed.lease.epoch), (1, 2), "one crash is counted");
    // The file of the dead worker is removed, and this worker is still alive.
    tokio::time::sleep(LOOKED).await;
    assert!(store.claim(&me, LEASE, &10_usize.into()).await.unwrap().is_empty());
    let files = || std::fs::read_dir(folder.0.join("tasks.db-workers")).map(Iterator::count);
    assert_eq!(files().unwrap(), 1);
    drop(store);
    for _ in 0..500 {
        if files().is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("files of gracefully stopped workers remain");
}

#[tokio::test]
async fn two_handles_of_one_process_are_alive() {
    let folder = Folder::new();
    let [mine, theirs] = [0, 1].map(|_| SqliteStore::open(folder.file()).unwrap());
    let lease = start(&theirs, task("a")).await;
    let me = WorkerId::new("w");
    for _ in 0..2 {
        assert!(mine.claim(&me, LEASE, &10_usize.into()).await.unwrap().is_empty());
        tokio::time::sleep(LOOKED).await;
    }
    // A handle that is dropped without releasing its tasks keeps its leases until they expire.
    drop(theirs);
    for _ in 0..2 {
        tokio::time::sleep(LOOKED).await;
        assert!(mine.claim(&me, LEASE, &10_usize.into()).await.unwrap().is_empty());
    }
    mine.advance_clock(LEASE * 2);
    assert_eq!(mine.claim(&me, LEASE, &10_usize.into()).await.unwrap()[0].lease.task, lease.task);
}

/// Joins the run of the killed process.
async fn join(store: &SqliteStore, by: &str) -> Option<TaskId> {
    let joined = store.join(OWNER, "s", "f", &WorkerId::new(by)).await.unwrap();
    joined.run().map(|joined| joined.task)
}

#[tokio::test]
async fn run_of_killed_process_is_joined_at_once() {
    if let Some(file) = env::var_os(VICTIM) {
        return be_bridging_victim(file).await;
    }
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let mut victim = victim("run_of_killed_process_is_joined_at_once", &folder);
    assert_eq!(join(&store, "heir").await, None, "the process is alive");
    victim.kill().unwrap();
    victim.wait().unwrap();
    // No claim has looked for dead workers.
    assert_eq!(join(&store, "heir").await, Some(TaskId::new("a")));
    assert_eq!(join(&store, "other").await, None, "one call joins");
    // A call that knows the task takes over from any worker.
    assert!(
        store.attend(OWNER, &TaskId::new("a"), &WorkerId::new("other")).await.unwrap().is_some()
    );
    store.leave(OWNER, &TaskId::new("a"), &WorkerId::new("other"), Departure::Lost).await.unwrap();
    assert_eq!(join(&store, "heir").await, Some(TaskId::new("a")));
}

#[tokio::test]
async fn run_of_killed_process_is_joined_during_claims() {
    if let Some(file) = env::var_os(VICTIM) {
        return be_bridging_victim(file).await;
    }
    let folder = Folder::new();
    let [mine, theirs] = [0, 1].map(|_| SqliteStore::open(folder.file()).unwrap());
    let mut victim = victim("run_of_killed_process_is_joined_during_claims", &folder);
    victim.kill().unwrap();
    victim.wait().unwrap();
    // Claims of two processes find the dead worker, and remove its file.
    for store in [&mine, &theirs, &mine] {
        let claimed = store.claim(&WorkerId::new("w"), LEASE, &0_usize.into()).await.unwrap();
        assert!(claimed.is_empty());
        tokio::time::sleep(LOOKED).await;
    }
    assert_eq!(join(&mine, "heir").await, Some(TaskId::new("a")));
}

#[tokio::test]
async fn run_of_killed_process_is_abandoned_after_sweep() {
    if let Some(file) = env::var_os(VICTIM) {
        return be_bridging_victim(file).await;
    }
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let mut victim = victim("run_of_killed_process_is_abandoned_after_sweep", &folder);
    let sweep = async || store.sweep(10, LEASE).await.unwrap().abandoned;
    store.advance_clock(ABANDON * 2);
    assert!(sweep().await.is_empty(), "the process is alive");
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(sweep().await.is_empty(), "the timeout starts now");
    store.advance_clock(ABANDON - LEASE);
    assert!(sweep().await.is_empty());
    store.advance_clock(LEASE * 2);
    let abandoned = (OWNER.to_owned(), TaskId::new("a"), CancelOutcome::Cancelled);
    assert_eq!(sweep().await, [abandoned]);
}

#[tokio::test]
async fn run_of_dropped_handle_is_joined() {
    let folder = Folder::new();
    let [mine, theirs] = [0, 1].map(|_| SqliteStore::open(folder.file()).unwrap());
    let bridge = Bridge::new(Some("s".to_owned()), "f", WorkerId::new("v"), ABANDON);
    assert!(theirs.create(task("a").bridge(Some(bridge))).await.unwrap().is_new());
    assert_eq!(join(&mine, "w").await, None);
    drop(theirs);
    for _ in 0..500 {
        if join(&mine, "w").await.is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the run of a gracefully stopped process is not joined");
}
