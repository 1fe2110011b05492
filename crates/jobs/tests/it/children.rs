//! Tests of processes that must not outlive their server.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use outlive_jobs::{ChildMark, Children, JOB_VARIABLE};

use crate::support::{Place, lives};

const GRACE: Duration = Duration::from_millis(100);

/// Starts a group leader with a child, and returns both.
fn start(variable: (&str, &str)) -> (Child, String) {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' TERM; sleep 1000 & echo $!; wait"]).process_group(0);
    command.env(variable.0, variable.1).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    (child, line.trim().to_owned())
}

fn folder() -> (Place, PathBuf) {
    let place = Place::new();
    let folder = place.data.join("children");
    (place, folder)
}

#[tokio::test]
async fn ended_child_leaves_no_process_and_no_mark() {
    let (_place, folder) = folder();
    let children = Children::open(&folder).unwrap();
    let mark = children.mark().unwrap();
    let (mut child, grandchild) = start(mark.variable());
    let processes = mark.started(child.id()).unwrap();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    let waits = tokio::task::spawn_blocking(move || child.wait());
    assert!(processes.end(GRACE).await);
    waits.await.unwrap().unwrap();
    assert!(!lives(&grandchild));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[tokio::test]
async fn dropped_processes_are_killed() {
    let mark = ChildMark::unrecorded().unwrap();
    let (mut child, grandchild) = start(mark.variable());
    drop(mark.started(child.id()).unwrap());
    child.wait().unwrap();
    for _ in 0..500 {
        if !lives(&grandchild) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{grandchild} lives");
}

#[tokio::test]
async fn orphans_of_gone_server_are_ended_and_others_stay() {
    let (_place, folder) = folder();
    let children = Children::open(&folder).unwrap();
    let mark = children.mark().unwrap();
    let (mut child, kept) = start(mark.variable());
    let processes = mark.started(child.id()).unwrap();
    // The file of a killed server is not locked.
    let gone = "0123456789abcdef0123456789abcdef";
    fs::write(folder.join(gone), "").unwrap();
    let (mut orphan, left) = start((JOB_VARIABLE, gone));
    let waits = tokio::task::spawn_blocking(move || orphan.wait());
    assert_eq!(children.end_orphans(GRACE).await.unwrap(), 1);
    waits.await.unwrap().unwrap();
    assert!(!lives(&left) && lives(&kept));
    assert!(!folder.join(gone).exists());
    drop(processes);
    child.wait().unwrap();
}
