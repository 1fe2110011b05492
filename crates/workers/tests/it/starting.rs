//! Starts: failures, the environment, orphans.

use std::{fs, time::Duration};

use outlive_workers::{ToolNames, ToolPolicy, ToolWorker, WorkerError, WorkerSettings};
use serde_json::json;

use crate::support::{Place, Served, eventually, lives, pid};

async fn error_of(settings: WorkerSettings) -> WorkerError {
    match ToolWorker::start(settings, ToolNames::new()).await {
        Err(error) => error,
        Ok(_) => panic!("the start must fail"),
    }
}

/// Returns the settings of a script with this text.
fn script(place: &Place, text: &str) -> WorkerSettings {
    let file = place.folder.join("broken.py");
    fs::write(&file, text).unwrap();
    place.settings_of(&file)
}

#[tokio::test]
async fn failed_declaration_is_reported_with_its_traceback() {
    let place = Place::new();
    let error = error_of(script(&place, "import json\nraise ValueError('no such type')\n")).await;
    assert!(error.to_string().contains("it exited with code 1"), "{error}");
    assert!(error.stderr().contains("ValueError: no such type"), "{}", error.stderr());
}

#[tokio::test]
async fn process_without_hello_is_ended_after_start_timeout() {
    let place = Place::new();
    let settings = script(&place, "import time\ntime.sleep(1000)\n");
    let settings = settings.start_timeout(Duration::from_millis(300));
    let error = error_of(settings.kill_grace(Duration::from_millis(100))).await;
    assert!(error.to_string().contains("did not declare its tools in 300ms"), "{error}");
}

#[tokio::test]
async fn other_protocol_and_invalid_tools_are_rejected_with_goodbye() {
    let place = Place::new();
    let error = error_of(place.settings().env("TEST_PROTOCOL", "2")).await;
    assert!(error.to_string().contains("another version of the protocol"), "{error}");
    assert!(error.stderr().contains("this server speaks 1; install outlive"), "{}", error.stderr());
    let invalid = place.settings().env("TEST_ENTRY", r#"{"task":"sometimes"}"#);
    let error = error_of(invalid).await;
    assert!(error.to_string().contains("declared entry of the tool `greet`"), "{error}");
}

#[tokio::test]
async fn missing_program_or_folder_is_reported() {
    let place = Place::new();
    let error = error_of(WorkerSettings::new("shop", ["outlive-no-such-program"])).await;
    assert!(error.to_string().contains("`outlive-no-such-program` was not found"), "{error}");
    let error = error_of(place.settings().working_dir(place.folder.join("none"))).await;
    assert!(error.to_string().contains("does not exist"), "{error}");
}

#[tokio::test]
async fn name_of_another_owner_is_rejected() {
    let place = Place::new();
    let names = ToolNames::new();
    names.claim("greet", "[tools]").unwrap();
    let error = ToolWorker::start(place.settings(), names).await.unwrap_err();
    assert!(
        error.to_string().contains("`greet`") && error.to_string().contains("[tools]"),
        "{error}"
    );
}

#[tokio::test]
async fn policy_of_operator_overrides_declaration() {
    let place = Place::new();
    let policy = ToolPolicy::new().change(|tool| tool.description("Changed."));
    let served = Served::start(place.settings().tool("greet", policy)).await;
    let tools = served.client().ask("tools/list", json!({})).await;
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let greet = tools.iter().find(|tool| tool["name"] == "greet").unwrap();
    assert_eq!(greet["description"], "Changed.");
    let ten = tools.iter().find(|tool| tool["name"] == "ten").unwrap();
    assert_eq!(ten["inputSchema"]["properties"]["kill"]["type"], "integer");
}

#[tokio::test]
async fn orphaned_process_of_killed_server_is_ended_by_the_next() {
    let place = Place::new();
    // A process with the mark of a server whose lock is gone.
    let folder = place.folder.join("tool-workers");
    fs::create_dir_all(&folder).unwrap();
    let mark = "00112233445566778899aabbccddeeff";
    fs::write(folder.join(mark), "").unwrap();
    let mut orphan =
        std::process::Command::new("sleep").arg("1000").env("OUTLIVE_JOB", mark).spawn();
    let orphan = orphan.as_mut().unwrap();
    let served = Served::start(place.settings()).await;
    assert!(!lives(orphan.id().into()));
    orphan.wait().unwrap();
    assert!(!folder.join(mark).exists());
    let running = pid(&mut served.client()).await;
    assert!(lives(running));
}

#[tokio::test]
async fn task_waits_in_store_while_processes_cannot_start() {
    let place = Place::new();
    let copy = place.folder.join("tools.py");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/worker.py");
    fs::copy(script, &copy).unwrap();
    let served = Served::start(place.settings_of(&copy)).await;
    let mut client = served.client();
    let old = pid(&mut client).await;
    fs::write(&copy, "raise ValueError('broken')\n").unwrap();
    crate::support::signal(old, rustix::process::Signal::KILL);
    let worker = &served.worker;
    eventually("the process is gone", || worker.metrics().processes == 0).await;
    let task = client.start("parallel", json!({})).await;
    client.until_says(&task, "waiting for a process").await;
    fs::copy(script, &copy).unwrap();
    assert_eq!(client.completed(&task).await, "a b c");
}
