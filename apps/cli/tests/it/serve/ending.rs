//! Commands whose tasks are cancelled or expire, and commands whose callers disconnect: no process
//! remains.

use std::{fs, time::Duration};

use outlive::client::tasks::TaskEvent;
use serde_json::json;

use super::{Place, until};

const COMMANDS: &str = r#"
[tools.stubborn]
description = "Ignores being asked to end."
command = ["sh", "-c", "trap '' TERM; echo ready >&2; while :; do sleep 0.1; done"]
kill_grace = "300ms"
task = "always"
env = { MARK = "1" }

[tools.parent]
description = "Has children, one in a session of its own."
command = ["sh", "-c", "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & wait') & echo ready >&2; wait"]
kill_grace = "1s"
task = "always"
env = { MARK = "1" }

[tools.leaver]
description = "Leaves a child behind."
command = ["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo left"]
task = "never"
env = { MARK = "1" }

[tools.inline]
description = "Takes its time, and is no task."
command = ["sh", "-c", "touch begun; sleep 1000"]
task = "never"
env = { MARK = "1" }
"#;

#[tokio::test]
async fn cancelled_task_ends_all_processes() {
    for tool in ["stubborn", "parent"] {
        let place = Place::new(COMMANDS);
        let client = place.client().await;
        let mut task = client.start_tool(tool, json!({})).await.unwrap();
        let mut events = task.events();
        while let Some(event) = events.next().await {
            match event.unwrap() {
                TaskEvent::Status(status) if status.message.as_deref() == Some("ready") => break,
                _ => {}
            }
        }
        assert!(!place.left_over().is_empty());
        task.cancel().await.unwrap();
        until(tool, || place.left_over().is_empty().then_some(())).await;
    }
}

#[tokio::test]
async fn task_cancelled_after_restart_ends_all_processes() {
    let mut place = Place::new(COMMANDS);
    let client = place.client().await;
    let task = client.start_tool("parent", json!({})).await.unwrap();
    until("the command runs", || (place.left_over().len() >= 4).then_some(())).await;
    place.kill();
    assert!(place.left_over().len() >= 4, "the command survives");
    place.start();
    let mut task = task;
    task.cancel().await.unwrap();
    until("the command has ended", || place.left_over().is_empty().then_some(())).await;
}

#[tokio::test]
async fn exited_command_leaves_no_processes() {
    let place = Place::new(COMMANDS);
    let result = place.client().await.call_tool("leaver", json!({})).await.unwrap();
    assert_eq!(outlive::client::request::result_text(&result), "left");
    assert_eq!(place.left_over(), Vec::<String>::new());
}

#[tokio::test]
async fn disconnected_caller_ends_inline_command() {
    let place = Place::new(COMMANDS);
    let client = place.client().await;
    let call = tokio::spawn(async move { client.call_tool("inline", json!({})).await });
    until("the command runs", || fs::exists(place.folder.join("begun")).unwrap().then_some(()))
        .await;
    call.abort();
    until("the command has ended", || place.left_over().is_empty().then_some(())).await;
}

#[tokio::test]
async fn expired_task_ends_all_processes() {
    let place = Place::new(
        &COMMANDS.replace("[tools.stubborn]", "[tasks]\nttl = \"1s\"\n[tools.stubborn]"),
    );
    let client = place.client().await;
    let mut task = client.start_tool("stubborn", json!({})).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(40), task.wait()).await;
    assert!(ended.expect("the task ends").is_err());
    until("the command has ended", || place.left_over().is_empty().then_some(())).await;
}
