//! A full disk: the store reports it, loses no data, and recovers when space is free.

use std::{path::Path, process::Command};

use outlive_tasks::{
    JournalEntry,
    store::{
        Changes, CreateOutcome, RecordedEntry, SqliteStore, StoreError, TaskId, TaskStore,
        Transition, WorkQueue, WorkerId,
    },
};
use serde_json::json;

use super::{Folder, LEASE, OWNER, raw, start, task};

const KIB: usize = 1 << 10;

fn large(key: &str) -> Changes {
    let value = JournalEntry::Value(raw(&json!("x".repeat(64 * KIB))));
    Changes::default().entries(vec![RecordedEntry::new(key, value)])
}

#[tokio::test]
async fn write_above_size_limit_fails_without_losing_data() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    store.set_max_bytes(1 << 20).await.unwrap();
    let lease = start(&store, task("a")).await;
    let mut written = 0;
    let why = loop {
        match store.commit(&lease, &large(&format!("k{written}")), &Transition::Continue).await {
            Ok(()) => written += 1,
            Err(StoreError::Unavailable(why)) => break why,
            Err(other) => panic!("{other}"),
        }
        assert!(written < 100, "the file has a size limit");
    };
    assert!(why.contains("free some space on the disk"), "{why}");
    assert!(written > 5, "{written}");
    // Reads and writes that need no space succeed.
    assert!(store.get(OWNER, &TaskId::new("a")).await.unwrap().is_some());
    assert_eq!(store.renew(&lease.worker, LEASE).await, Ok(vec![lease.clone()]));
    // With more space, commits succeed and acknowledged data exists.
    store.set_max_bytes(8 << 20).await.unwrap();
    store.commit(&lease, &large("more"), &Transition::Continue).await.unwrap();
    store.release(&lease.worker).await.unwrap();
    let claimed = store.claim(&WorkerId::new("w"), LEASE, &1_usize.into()).await.unwrap().remove(0);
    assert_eq!(claimed.journal.entries.len(), written + 1);
}

#[tokio::test]
async fn batch_on_full_disk_reports_every_failed_write() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file()).unwrap();
    let lease = start(&store, task("a")).await;
    store.set_max_bytes(256 << 10).await.unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..20 {
        let ids = [format!("{round}-a"), format!("{round}-b")];
        let key = format!("k{round}");
        let changes = large(&key);
        let (first, write, second) = tokio::join!(
            store.create(task(&ids[0])),
            store.commit(&lease, &changes, &Transition::Continue),
            store.create(task(&ids[1])),
        );
        for (id, made) in ids.iter().zip([first, second]) {
            match made {
                Ok(CreateOutcome::Created { .. }) => acknowledged.push(id.clone()),
                Err(StoreError::Unavailable(_)) => {
                    let seen = store.get(OWNER, &TaskId::new(id.clone())).await.unwrap();
                    assert!(seen.is_none(), "a rejected task does not exist");
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(write, Ok(()) | Err(StoreError::Unavailable(_))), "{write:?}");
    }
    for id in acknowledged {
        assert!(store.get(OWNER, &TaskId::new(id)).await.unwrap().is_some());
    }
    store.set_max_bytes(8 << 20).await.unwrap();
    let changes = large("more").status_message(Some("more".to_owned()));
    store.commit(&lease, &changes, &Transition::Continue).await.unwrap();
    let seen = store.get(OWNER, &lease.task).await.unwrap().unwrap();
    assert_eq!(seen.status_message.as_deref(), Some("more"));
}

/// A small file system, if this process may mount one.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(path: &'a Path) -> Option<Self> {
        let arguments = ["-t", "tmpfs", "-o", "size=2m", "tmpfs"];
        let mounted = Command::new("mount").args(arguments).arg(path).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(Self(path))
    }

    fn grow(&self) {
        let mut grow = Command::new("mount");
        let grown = grow.args(["-o", "remount,size=32m"]).arg(self.0).output();
        assert!(grown.unwrap().status.success());
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        // Lazily, because the file may still be open.
        let _ = Command::new("umount").arg("-l").arg(self.0).output();
    }
}

#[tokio::test]
async fn store_on_full_disk_recovers_after_space_is_freed() {
    let folder = Folder::new();
    // Without the privilege to mount, a size limit on the file has the same effect.
    let disk = Disk::mount(&folder.0);
    let store = SqliteStore::open(folder.file()).unwrap();
    if disk.is_none() {
        store.set_max_bytes(1 << 20).await.unwrap();
    }
    let lease = start(&store, task("a")).await;
    let mut written = Vec::new();
    let mut refused = Vec::new();
    for number in 0..100 {
        let key = format!("k{number}");
        match store.commit(&lease, &large(&key), &Transition::Continue).await {
            Ok(()) => written.push(key),
            Err(StoreError::Unavailable(why)) => refused.push(why),
            Err(other) => panic!("{other}"),
        }
    }
    assert!(written.len() > 5 && refused.len() > 50, "{written:?} {refused:?}");
    for why in &refused {
        assert!(why.contains("free some space on the disk"), "{why}");
        assert!(why.contains("tasks.db"), "the error names the file: {why}");
    }
    assert!(store.get(OWNER, &TaskId::new("a")).await.unwrap().is_some());
    match &disk {
        Some(disk) => disk.grow(),
        None => store.set_max_bytes(16 << 20).await.unwrap(),
    }
    store.commit(&lease, &large("more"), &Transition::Continue).await.unwrap();
    written.push("more".to_owned());
    drop(store);
    // The file contains exactly the acknowledged data.
    let store = SqliteStore::open(folder.file()).unwrap();
    store.release(&lease.worker).await.unwrap();
    let claimed = store.claim(&WorkerId::new("w"), LEASE, &1_usize.into()).await.unwrap().remove(0);
    written.sort();
    assert_eq!(claimed.journal.entries.keys().cloned().collect::<Vec<_>>(), written);
    drop(store);
    drop(disk);
}
