//! Crashes with a SQLite store that the next process opens again.

use std::{env, fs, path::PathBuf, process, thread, time::Duration};

use outlive::store::{SqliteOptions, SqliteStore, Synchronous};
use serde_json::json;

use super::super::{
    stage::{LEASE, Process, Stage, answer, until_asked},
    world::{get, modern, start, until},
};
use crate::support::{
    fail_points::{Op, after, before},
    pipe::{Pipe, error, text},
};

/// A temporary folder, deleted on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("outlive-crashes-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(self.0.join("tasks.db")).unwrap()
    }

    /// Whether this process has a file of the folder open, according to `/proc`.
    fn is_open(&self) -> bool {
        let files = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        files
            .filter_map(|file| fs::read_link(file.path()).ok())
            .any(|path| path.starts_with(&self.0))
    }

    /// Copies the database files to another folder.
    fn copy_to(&self, other: &Self) {
        for file in fs::read_dir(&other.0).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                fs::remove_file(path).unwrap();
            }
        }
        for file in fs::read_dir(&self.0).unwrap() {
            let file = file.unwrap();
            if file.path().is_file() {
                fs::copy(file.path(), other.0.join(file.file_name())).unwrap();
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// K-06, K-10, K-11, K-13, K-42
#[test]
fn task_resumes_from_sqlite_file_after_crash_at_any_write() {
    let places = [
        before(Op::Record),
        after(Op::Record),
        before(Op::Ask),
        after(Op::Ask),
        after(Op::Park),
        after(Op::Claim),
    ];
    for (number, place) in places.into_iter().enumerate() {
        let folder = Folder::new(&format!("places-{number}"));
        let stage = Stage::over(folder.open());
        let first = Process::start_in_real_time();
        let id = first.run(async {
            let (server, points) = stage.replica();
            let lost = points.hold(place);
            let mut pipe = Pipe::open(&server);
            let id = stage.run(&mut pipe, "order", place.op).await;
            lost.arrived().await;
            id
        });
        drop(first);
        let next = stage.with(folder.open());
        drop(stage);
        next.store.advance_clock(LEASE * 2);
        Process::start_in_real_time().run(async {
            let mut pipe = Pipe::open(&next.replica().0);
            until_asked(&mut pipe, &id, &["sure"]).await;
            answer(&mut pipe, &id, &[("sure", true)]).await;
            let done = until(&mut pipe, &id, "completed").await;
            let content = done["result"]["content"].as_array().unwrap();
            let texts: Vec<_> = content.iter().map(|block| block["text"].clone()).collect();
            assert_eq!(texts, ["reserved", "paid", "ordered: true"], "{place:?}");
        });
        assert_eq!(next.effects.count().0, 2, "{place:?}");
    }
}

/// Closes the store and waits until its files are closed. The threads of a dropped runtime take a
/// moment to end, and a copy made before is not a valid backup.
fn close(stage: Stage<SqliteStore>, folder: &Folder) {
    drop(stage);
    while folder.is_open() {
        thread::sleep(Duration::from_millis(5));
    }
}

// K-25
#[test]
fn restored_backup_resumes_from_its_earlier_state() {
    let (folder, backup) = (Folder::new("restored"), Folder::new("backup"));
    let begin = |stage: &Stage<SqliteStore>| {
        Process::start_in_real_time().run(async {
            let mut pipe = Pipe::open(&stage.replica().0);
            let id = start(&mut pipe, "deploy", json!({})).await;
            until_asked(&mut pipe, &id, &["approve"]).await;
            id
        })
    };
    let finish = |stage: &Stage<SqliteStore>, id: &str, yes: bool| {
        stage.store.advance_clock(LEASE * 2);
        Process::start_in_real_time().run(async {
            let mut pipe = Pipe::open(&stage.replica().0);
            answer(&mut pipe, id, &[("approve", yes)]).await;
            text(&until(&mut pipe, id, "completed").await["result"]).to_owned()
        })
    };
    let stage = Stage::over(folder.open());
    let id = begin(&stage);
    close(stage, &folder);
    folder.copy_to(&backup);
    let stage = Stage::over(folder.open());
    assert_eq!(finish(&stage, &id, true), "shop:1: true");
    let later = begin(&stage);
    close(stage, &folder);
    backup.copy_to(&folder);
    let stage = Stage::over(folder.open());
    Process::start_in_real_time().run(async {
        let mut pipe = Pipe::open(&stage.replica().0);
        assert_eq!(
            get(&mut pipe, &id).await["status"],
            "input_required",
            "the state of the backup"
        );
        let gone = modern(&mut pipe, "tasks/get", json!({"taskId": later})).await;
        assert_eq!(error(&gone)["code"], -32602);
    });
    assert_ne!(begin(&stage), later, "a task ID is never reused");
    assert_eq!(finish(&stage, &id, false), "shop:1: false", "the task continues from there");
}

// K-40
#[test]
fn sqlite_synchronous_mode_defaults_to_full() {
    assert_eq!(Synchronous::default(), Synchronous::Full);
    let options = format!("{:?}", SqliteOptions::new());
    assert!(options.contains("Full"), "{options}");
}
