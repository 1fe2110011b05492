//! Processes that are killed: another one goes on with their tasks at once.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use outlive_tasks::store::{SqliteStore, TaskStore, WorkQueue, WorkerId};

use super::{Folder, LEASE, start, task};

/// Says to this program, started once more, that it is the one to be killed, and on which file.
const VICTIM: &str = "OUTLIVE_TEST_VICTIM";

/// Longer than the store waits between two looks for the dead.
const LOOKED: Duration = Duration::from_millis(400);

/// Takes a task in another process. It holds it until it is killed.
fn victim(test: &str, folder: &Folder) -> Child {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([&format!("sqlite::takeover::{test}"), "--exact", "--nocapture"])
        .env(VICTIM, folder.file())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("it is taken")));
    child
}

async fn be_victim(file: std::ffi::OsString) {
    let store = SqliteStore::open(file).unwrap();
    assert_eq!(
        store.claim(&WorkerId::new("victim"), LEASE, &1_usize.into()).await.unwrap().len(),
        1
    );
    say_that_it_is_taken();
    // Until it is killed, or whoever started it is.
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[expect(clippy::print_stdout, reason = "whoever has started this process reads it")]
fn say_that_it_is_taken() {
    // The runner of the tests has written a part of a line.
    println!("\nit is taken");
}

#[tokio::test]
async fn what_a_killed_process_had_goes_on_at_once() {
    if let Some(file) = env::var_os(VICTIM) {
        return be_victim(file).await;
    }
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    store.create(task("a")).await.unwrap();
    let mut victim = victim("what_a_killed_process_had_goes_on_at_once", &folder);
    let me = WorkerId::new("heir");
    let is_left_alone = async || {
        for _ in 0..2 {
            assert!(
                store.claim(&me, LEASE, &10_usize.into()).await.unwrap().is_empty(),
                "it lives"
            );
            tokio::time::sleep(LOOKED).await;
        }
    };
    is_left_alone().await;
    // One that is frozen is not dead: it may go on any moment, and its lease is not over.
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
        assert!(killed.elapsed() < LEASE / 2, "it waits for the lease");
    };
    assert_eq!((claimed.crash_count, claimed.lease.epoch), (1, 2), "a worker was lost");
    // What it has left is tidied up, and we are still there.
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
    panic!("whoever ends in peace leaves nothing behind");
}

#[tokio::test]
async fn two_handles_of_one_process_are_both_alive() {
    let folder = Folder::new();
    let [mine, theirs] = [0, 1].map(|_| SqliteStore::open(folder.file()).unwrap());
    let lease = start(&theirs, task("a")).await;
    let me = WorkerId::new("w");
    for _ in 0..2 {
        assert!(mine.claim(&me, LEASE, &10_usize.into()).await.unwrap().is_empty());
        tokio::time::sleep(LOOKED).await;
    }
    // Whoever ends in peace has given its tasks back; if not, its leases say when.
    drop(theirs);
    for _ in 0..2 {
        tokio::time::sleep(LOOKED).await;
        assert!(mine.claim(&me, LEASE, &10_usize.into()).await.unwrap().is_empty());
    }
    mine.advance_clock(LEASE * 2);
    assert_eq!(mine.claim(&me, LEASE, &10_usize.into()).await.unwrap()[0].lease.task, lease.task);
}
