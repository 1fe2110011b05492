//! Two servers, as if on two machines, on one database.

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

/// The database for tests, and a schema that is this test's own.
fn database(place: &Place) -> String {
    let url = std::env::var("OUTLIVE_TEST_POSTGRES").expect(
        "these tests need a database: run `cargo xtask test`, or start `cargo xtask postgres` and set \
         OUTLIVE_TEST_POSTGRES to what it prints",
    );
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}schema={}", place.mark())
}

/// Two replicas that both run, and a client of the second.
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

/// Begins a tool on the first replica, and watches it from the second.
async fn begin(
    tool: &str,
    place: &Place,
    first: &Place,
    second: &Client,
) -> outlive::client::tasks::TaskHandle {
    let client = builder().label("both").connect(first.url()).await.unwrap();
    let task = client.start_tool(tool, json!({})).await.unwrap();
    until("it runs", || (place.read("runs") == "run\n").then_some(())).await;
    second.resume(task.to_saved().await).await.unwrap()
}

#[tokio::test]
async fn a_command_whose_machine_is_gone_is_reported() {
    let (place, mut first, _second, client) = two().await;
    let mut task = begin("fails", &place, &first, &client).await;
    first.kill();
    let result =
        tokio::time::timeout(Duration::from_secs(40), task.wait()).await.expect("it ends").unwrap();
    assert_eq!(result.is_error, Some(true));
    let text = result_text(&result);
    assert!(text.contains("the machine it ran on is gone"), "{text}");
    assert_eq!(place.read("runs"), "run\n");
    until("nothing is left of it", || place.left_over().is_empty().then_some(())).await;
}

#[tokio::test]
async fn a_command_whose_machine_is_gone_is_run_again_where_that_is_meant() {
    let (place, mut first, _second, client) = two().await;
    let mut task = begin("again", &place, &first, &client).await;
    first.kill();
    until("it runs again", || (place.read("runs") == "run\nrun\n").then_some(())).await;
    // By then the first one has been ended: never are there two.
    assert_eq!(place.running_jobs().len(), 1);
    fs::write(place.folder.join("go"), "").unwrap();
    let result =
        tokio::time::timeout(Duration::from_secs(40), task.wait()).await.expect("it ends").unwrap();
    // What the first run printed is there as far as it was read in time.
    let text = result_text(&result);
    let end = "[interrupted: the machine it ran on is gone; running again]\nbegun\ndone";
    assert!(text.ends_with(end), "{text}");
}

#[tokio::test]
async fn a_machine_that_comes_back_in_time_keeps_its_command() {
    let (place, mut first, _second, client) = two().await;
    let mut task = begin("fails", &place, &first, &client).await;
    first.kill();
    first.start();
    fs::write(place.folder.join("go"), "").unwrap();
    let result =
        tokio::time::timeout(Duration::from_secs(60), task.wait()).await.expect("it ends").unwrap();
    assert_eq!(result_text(&result), "begun\ndone");
    assert_eq!(place.read("runs"), "run\n");
}

/// It holds its leases and its locks, so nothing but the missing pulse tells.
#[tokio::test]
async fn the_command_of_a_server_that_is_frozen_ends_before_others_may_begin_it_again() {
    let (place, first, _second, client) = two().await;
    let _task = begin("again", &place, &first, &client).await;
    let mut freeze = std::process::Command::new("kill");
    assert!(freeze.args(["-STOP", &first.pid().to_string()]).status().unwrap().success());
    until("it is ended", || place.left_over().is_empty().then_some(())).await;
    assert_eq!(place.read("runs"), "run\n", "nobody else has begun it");
}
