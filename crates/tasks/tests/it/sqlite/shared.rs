//! Two handles on one file, like those of two processes.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive_tasks::store::{
    Changes, InputSource, SqliteOptions, SqliteStore, TaskId, TaskStore, Transition, WorkQueue,
    WorkerId,
    contract::{ContractBench, checks, operator_checks},
};
use serde_json::json;

use super::{Folder, LEASE, OWNER, asked, raw, start, task};
use crate::alternating::Alternating;

fn two(folder: &Folder) -> [SqliteStore; 2] {
    let options = SqliteOptions::new().poll_interval(Duration::from_millis(20));
    [0, 1].map(|_| SqliteStore::open_with(folder.file(), options.clone()).unwrap())
}

#[tokio::test]
async fn two_alternating_handles_pass_contract() {
    for check in checks().into_iter().chain(operator_checks()) {
        let folder = Folder::new();
        let store = Arc::new(Alternating::new(two(&folder)));
        let clock = Arc::clone(&store);
        println!("{}", check.name);
        let advance =
            move |span| clock.handles.iter().for_each(|handle| handle.advance_clock(span));
        (check.run)(ContractBench::operated(store, advance)).await;
        super::is_counted_right(&folder);
    }
}

#[tokio::test]
async fn listener_is_notified_of_changes_by_other_handle() {
    let folder = Folder::new();
    let [mine, theirs] = two(&folder);
    theirs.create(task("before")).await.unwrap();
    let heard: Arc<Mutex<Vec<TaskId>>> = Arc::default();
    let ears = Arc::clone(&heard);
    mine.subscribe(Arc::new(move |task, _| ears.lock().unwrap().push(task.clone())));
    let lease = start(&theirs, task("a")).await;
    let changes = Changes::default().input_requests(vec![asked("q")]);
    theirs
        .commit(&lease, &changes, &Transition::Park { due_at: None, responses_seen: 0 })
        .await
        .unwrap();
    let answer = vec![("q".to_owned(), raw(&json!(1)))];
    theirs.respond(OWNER, &lease.task, InputSource::Client, answer, u64::MAX).await.unwrap();
    theirs.cancel(OWNER, &lease.task, true, LEASE).await.unwrap();
    mine.create(task("mine")).await.unwrap();
    for _ in 0..250 {
        let heard = heard.lock().unwrap().clone();
        let count = |id: &str| heard.iter().filter(|task| task.as_str() == id).count();
        // The caller gets its result before the notification.
        if count("a") == 3 && count("mine") > 0 {
            assert_eq!(count("mine"), 1, "an own change is notified once");
            assert_eq!(count("before"), 0, "changes before the subscription are not notified");
            return;
        }
        drop(heard);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("missing notifications, got only {:?}", heard.lock().unwrap());
}

#[tokio::test]
async fn listener_behind_change_log_is_notified_of_all_tasks() {
    let folder = Folder::new();
    let [mine, theirs] = two(&folder);
    theirs.create(task("a")).await.unwrap();
    let heard: Arc<Mutex<Vec<TaskId>>> = Arc::default();
    let ears = Arc::clone(&heard);
    mine.subscribe(Arc::new(move |task, _| ears.lock().unwrap().push(task.clone())));
    // Simulates a change log whose rows since the last poll were deleted.
    let by_hand = rusqlite::Connection::open(folder.file()).unwrap();
    by_hand.busy_timeout(Duration::from_secs(5)).unwrap();
    by_hand
        .execute_batch("DELETE FROM change_log; INSERT INTO change_log VALUES (50000, 0, '[]')")
        .unwrap();
    for _ in 0..250 {
        if heard.lock().unwrap().contains(&TaskId::new("a")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no notification");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_claims_return_each_task_once() {
    const TASKS: usize = 200;
    let folder = Folder::new();
    let stores = Arc::new(two(&folder));
    for count in 0..TASKS {
        stores[count % 2].create(task(&format!("{count}"))).await.unwrap();
    }
    let mut claims = tokio::task::JoinSet::new();
    for number in 0..4 {
        let stores = Arc::clone(&stores);
        claims.spawn(async move {
            let worker = WorkerId::new(format!("w{number}"));
            let mut mine = Vec::new();
            loop {
                let claimed =
                    stores[number % 2].claim(&worker, LEASE, &3_usize.into()).await.unwrap();
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(claimed.into_iter().map(|claimed| claimed.lease.task));
            }
        });
    }
    let mut all = Vec::new();
    while let Some(claimed) = claims.join_next().await {
        all.extend(claimed.unwrap());
    }
    all.sort();
    let total = all.len();
    all.dedup();
    assert_eq!((all.len(), total), (TASKS, TASKS));
}

#[test]
fn concurrent_opens_create_file_once() {
    // A long timeout for busy machines.
    let options = SqliteOptions::new().busy_timeout(Duration::from_secs(60));
    for _ in 0..10 {
        let folder = Folder::new();
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| SqliteStore::open_with(folder.file(), options.clone()).unwrap());
            }
        });
    }
}
