//! Tests of ending commands: no process is left.

use std::time::Duration;

use outlive_jobs::{How, record_heartbeat};

use crate::support::{Place, line, lives, read, sh};

#[tokio::test]
async fn command_ended_by_a_signal_reports_the_signal() {
    let (lines, exit) = Place::new().run(&sh("echo started; kill -SEGV $$")).await;
    assert_eq!(lines, ["started"]);
    assert_eq!(exit.how, How::Signal(11));
}

#[tokio::test]
async fn command_gets_sigterm_before_it_is_killed() {
    let place = Place::new();
    let mut job = place
        .start(&sh("trap 'echo bye; exit 3' TERM; echo started; while :; do sleep 0.01; done"))
        .await;
    assert_eq!(line(&mut job).await, "started");
    job.end().await.unwrap();
    let (lines, exit) = read(&mut job).await;
    assert_eq!(lines, ["bye"]);
    assert_eq!(exit.how, How::Ended);
    // A second call has no effect.
    job.end().await.unwrap();
    assert_eq!(read(&mut place.find().await).await.1, exit);
}

#[tokio::test]
async fn command_that_ignores_sigterm_is_killed() {
    let place = Place::new();
    let mut spec = sh("trap '' TERM; echo $$; while :; do sleep 0.01; done");
    spec.kill_grace = Duration::from_millis(100);
    let mut job = place.start(&spec).await;
    let pid = line(&mut job).await;
    job.end().await.unwrap();
    assert!(!lives(&pid));
    assert_eq!(read(&mut job).await.1.how, How::Ended);
}

#[tokio::test]
async fn stopped_command_is_ended() {
    let place = Place::new();
    let mut job = place.start(&sh("echo $$; kill -STOP $$")).await;
    let pid = line(&mut job).await;
    job.end().await.unwrap();
    assert!(!lives(&pid));
}

#[tokio::test]
async fn children_of_the_command_end_with_it() {
    let place = Place::new();
    let script = "sleep 1000 & echo $!; sh -c 'sleep 1000 & echo $!; wait' & wait";
    let mut job = place.start(&sh(script)).await;
    let children = [line(&mut job).await, line(&mut job).await];
    assert!(children.iter().all(|child| lives(child)));
    job.end().await.unwrap();
    assert!(!children.iter().any(|child| lives(child)));
}

#[tokio::test]
async fn children_left_by_an_exited_command_are_killed() {
    let place = Place::new();
    let (lines, exit) = place.run(&sh("sleep 1000 & echo $!; exit 4")).await;
    assert_eq!(exit.how, How::Code(4));
    assert!(!lives(&lines[0]));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn children_in_separate_sessions_are_killed() {
    let place = Place::new();
    let ready = place.data.join("ready");
    let ready = ready.display();
    let daemon =
        format!("trap \"\" TERM; echo $$; setsid sleep 1000 & echo $!; touch {ready}; wait");
    let mut spec = sh(&format!(
        "setsid sh -c '{daemon}' & while ! test -e {ready}; do sleep 0.01; done; exit 4"
    ));
    spec.kill_grace = Duration::from_millis(100);
    let (lines, exit) = place.run(&spec).await;
    assert_eq!(exit.how, How::Code(4));
    assert_eq!(lines.len(), 2);
    assert!(!lines.iter().any(|child| lives(child)));
}

#[tokio::test]
async fn command_that_closes_its_output_keeps_running() {
    let place = Place::new();
    let done = place.data.join("done");
    let script =
        format!("echo first; exec >&- 2>&-; sleep 0.2; echo yes > {}; exit 5", done.display());
    let (lines, exit) = place.run(&sh(&script)).await;
    assert_eq!(lines, ["first"]);
    assert_eq!(exit.how, How::Code(5));
    assert!(done.exists());
}

#[tokio::test]
async fn command_that_exceeds_its_timeout_is_ended() {
    let place = Place::new();
    let mut spec = sh("echo $$; sleep 1000");
    spec.timeout = Some(Duration::from_secs(1));
    let (lines, exit) = place.run(&spec).await;
    assert_eq!(exit.how, How::TimedOut);
    assert!(!lives(&lines[0]));
}

#[tokio::test]
async fn command_ends_after_the_orphan_timeout() {
    let place = Place::new();
    let mut spec = sh("echo $$; sleep 1000");
    spec.orphan_timeout = Some(Duration::from_millis(300));
    let mut job = place.start(&spec).await;
    let pid = line(&mut job).await;
    // Longer than the orphan timeout.
    for _ in 0..18 {
        record_heartbeat(&place.data).unwrap();
        let waited = tokio::time::timeout(Duration::from_millis(50), job.next()).await;
        assert!(waited.is_err(), "{waited:?}");
    }
    assert_eq!(read(&mut job).await.1.how, How::Orphaned);
    assert!(!lives(&pid));
}
