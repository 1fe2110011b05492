//! Two servers with separate data folders, as on two machines, on one database.

use std::{fs, time::Duration};

use outlive::client::{Client, request::result_text};
use serde_json::json;

use super::{Place, builder, until};

const FILE: &str = r#"
[tasks]
replica_timeout = "12s"

[tools.fails]
description = "Is not run again."
command = ["sh", "-c", "echo run >> runs; echo begun; while [ ! -e go ]; do sleep 0.05; done; echo done"]
task = "always"
env = { MARK = "1" }

[tools.again]
description = "Is run again."
command = ["sh", "-c", "echo run >> runs; echo begun; while [ ! -e go ]; do sleep 0.05; done; echo done"]
task = "always"
on_crash = "rerun"
env = { MARK = "1" }
"#;

/// Returns the URL of the test database with a schema for this test.
fn database(place: &Place) -> String {
    let url = std::env::var("OUTLIVE_TEST_POSTGRES").expect(
        "these tests require a database: run `cargo xtask test`, or start `cargo xtask postgres` and set \
         OUTLIVE_TEST_POSTGRES to what it prints",
    );
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}schema={}", place.mark())
}

/// Starts two replicas, and returns a client of the second.
async fn two() -> (Place, Place, Place, Client) {
    let place = Place::unserved(FILE);
    let url = database(&place);
    let mut first = place.replica("first", &url);
    first.start();
    let mut second = place.replica("second", &url);
    second.start();
    let client = builder().label("both").connect(second.url()).await.unwrap();
    (place, first, second, client)
}

/// Starts a tool on the first replica, and resumes its task on the second.
async fn begin(
    tool: &str,
    place: &Place,
    first: &Place,
    second: &Client,
) -> outlive::client::tasks::TaskHandle {
    let client = builder().label("both").connect(first.url()).await.unwrap();
    let task = client.start_tool(tool, json!({})).await.unwrap();
    until("the command runs", || (place.read("runs") == "run\n").then_some(())).await;
    second.resume(task.to_saved().await).await.unwrap()
}

#[tokio::test]
async fn command_of_lost_machine_fails_without_rerun() {
    let (place, mut first, _second, client) = two().await;
    let mut task = begin("fails", &place, &first, &client).await;
    first.kill();
    let result = tokio::time::timeout(Duration::from_secs(40), task.wait())
        .await
        .expect("the task ends")
        .unwrap();
    assert_eq!(result.is_error, Some(true));
    let text = result_text(&result);
    assert!(text.contains("its machine is gone"), "{text}");
    assert_eq!(place.read("runs"), "run\n");
    until("no process is left", || place.left_over().is_empty().then_some(())).await;
}

#[tokio::test]
async fn command_of_lost_machine_is_rerun_if_configured() {
    let (place, mut first, _second, client) = two().await;
    let mut task = begin("again", &place, &first, &client).await;
    first.kill();
    until("the command is rerun", || (place.read("runs") == "run\nrun\n").then_some(())).await;
    // The first command has already ended: two never run at the same time.
    assert_eq!(place.running_jobs().len(), 1);
    fs::write(place.folder.join("go"), "").unwrap();
    let result = tokio::time::timeout(Duration::from_secs(40), task.wait())
        .await
        .expect("the task ends")
        .unwrap();
    // The output of the first attempt may be incomplete.
    let text = result_text(&result);
    let end = "[interrupted: its machine is gone; rerunning]\nbegun\ndone";
    assert!(text.ends_with(end), "{text}");
}

#[tokio::test]
async fn machine_returning_in_time_keeps_its_command() {
    let (place, mut first, _second, client) = two().await;
    let mut task = begin("fails", &place, &first, &client).await;
    first.kill();
    first.start();
    fs::write(place.folder.join("go"), "").unwrap();
    let result = tokio::time::timeout(Duration::from_secs(60), task.wait())
        .await
        .expect("the task ends")
        .unwrap();
    assert_eq!(result_text(&result), "begun\ndone");
    assert_eq!(place.read("runs"), "run\n");
}

/// A frozen server keeps its leases and locks, so only the missing heartbeat reveals it.
#[tokio::test]
async fn command_of_frozen_server_ends_before_rerun() {
    let (place, first, _second, client) = two().await;
    let _task = begin("again", &place, &first, &client).await;
    let mut freeze = std::process::Command::new("kill");
    assert!(freeze.args(["-STOP", &first.pid().to_string()]).status().unwrap().success());
    until("the command has ended", || place.left_over().is_empty().then_some(())).await;
    assert_eq!(place.read("runs"), "run\n", "no other replica has rerun it");
}
