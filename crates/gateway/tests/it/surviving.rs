//! Calls of processes that survive the gateway: one execution each, and no process remains.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use outlive::{
    client::{Client, Version, tasks::TaskStatus},
    server::tasks::{OnCrash, TaskPolicy},
};
use outlive_gateway::{Policy, Upstream, status::State};
use serde_json::json;

use crate::support::{
    Restartable, Served, callbacks, eventually, executions_file, go_file, process, text, tool_names,
};

/// Versions of upstreams: with a handshake, and without.
const ERAS: [Version; 2] = [Version::V2025_06_18, Version::V2026_07_28];

/// Returns an upstream whose calls are tasks at once.
fn at_once(file: &Path, version: Version) -> Upstream {
    process("child", "serves", Some(file))
        .protocol_version(version)
        .policy(Policy::new().task(TaskPolicy::Always))
}

fn go(file: &Path) {
    fs::write(go_file(file), "").unwrap();
}

fn lines(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

async fn executed(file: &Path, what: &str) {
    eventually(&format!("the execution of {what}"), async || {
        lines(file).iter().any(|line| line == what)
    })
    .await;
}

/// Returns the folders of processes.
fn pipes(gateway: &Restartable) -> Vec<PathBuf> {
    let entries = fs::read_dir(gateway.pipes()).into_iter().flatten().flatten();
    let is_pipe = |path: &PathBuf| path.join("spec.json").exists();
    entries.map(|entry| entry.path()).filter(is_pipe).collect()
}

/// Returns the process IDs of all supervised processes.
fn processes(gateway: &Restartable) -> Vec<i64> {
    let process = |folder: PathBuf| {
        let child = fs::read_to_string(folder.join("child")).ok()?;
        serde_json::from_str::<serde_json::Value>(&child).ok()?["pid"].as_i64()
    };
    pipes(gateway).into_iter().filter_map(process).collect()
}

fn lives(process: i64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[tokio::test(flavor = "multi_thread")]
async fn call_of_task_survives_killed_gateways_with_one_execution() {
    for version in ERAS {
        let file = executions_file();
        let mut gateway = Restartable::supervised([at_once(&file, version)]).await;
        let client = gateway.client(Version::V2026_07_28).await;
        let mut task = client.start_tool("child__slow", json!({})).await.unwrap();
        executed(&file, "slow").await;
        let before = processes(&gateway);
        for _ in 0..3 {
            gateway.kill();
            gateway.restart().await;
        }
        go(&file);
        assert_eq!(text(&task.wait().await.unwrap()), "slow result", "{version}");
        assert_eq!(lines(&file), ["slow"], "{version}");
        let client = gateway.client(Version::V2026_07_28).await;
        assert!(tool_names(&client).await.contains(&"child__slow".to_owned()), "{version}");
        assert_eq!(processes(&gateway), before, "lists and calls share the process: {version}");
        gateway.stop().await;
        eventually("the end of the process", async || !lives(before[0])).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_that_became_a_task_survives_a_stopped_gateway() {
    let file = executions_file();
    let policy = Policy::new().task(TaskPolicy::Auto { after: Duration::from_millis(100) });
    let upstream = process("child", "serves", Some(&file)).policy(policy);
    let mut gateway = Restartable::supervised([upstream]).await;
    let client = gateway.client(Version::V2026_07_28).await;
    let mut task = client.start_tool("child__slow", json!({})).await.unwrap();
    assert!(task.task_id().is_some(), "the call became a task");
    gateway.stop().await;
    assert!(lives(processes(&gateway)[0]), "the call needs its process");
    go(&file);
    gateway.restart().await;
    assert_eq!(text(&task.wait().await.unwrap()), "slow result");
    assert_eq!(lines(&file), ["slow"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn open_form_survives_killed_gateway_and_its_response_arrives_once() {
    let file = executions_file();
    let upstream = at_once(&file, Version::V2025_06_18);
    let mut gateway = Restartable::supervised([upstream]).await;
    let builder = Client::builder("test", "1.0.0").protocol_version(Version::V2026_07_28);
    let client = gateway.client_with(builder.input_handler(callbacks())).await;
    let mut task = client.start_tool("child__paint", json!({})).await.unwrap();
    eventually("the form", async || {
        let state = task.get().await.unwrap().unwrap();
        state.status == TaskStatus::InputRequired
    })
    .await;
    gateway.kill();
    gateway.restart().await;
    assert_eq!(text(&task.wait().await.unwrap()), "painted \"red\"");
    assert_eq!(lines(&file), ["painted"]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_calls_use_the_process_of_the_killed_gateway() {
    let file = executions_file();
    let mut gateway = Restartable::supervised([process("child", "serves", Some(&file))]).await;
    let client = gateway.client(Version::V2025_06_18).await;
    let first = text(&client.call_tool("child__pid", json!({})).await.unwrap());
    gateway.kill();
    gateway.restart().await;
    let client = gateway.client(Version::V2025_06_18).await;
    let second = text(&client.call_tool("child__pid", json!({})).await.unwrap());
    assert_eq!(first, second, "without a second handshake");
    assert_eq!(pipes(&gateway).len(), 1);
    gateway.stop().await;
    eventually("the end of the process", async || !lives(first.parse().unwrap())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_call_fails_or_runs_again_as_the_policy_says() {
    for (on_crash, expected) in [(OnCrash::Fail, None), (OnCrash::Rerun, Some("slow result"))] {
        let file = executions_file();
        let policy = Policy::new().task(TaskPolicy::Always).on_crash(on_crash);
        let upstream = process("child", "serves", Some(&file)).policy(policy);
        let mut gateway = Restartable::supervised([upstream]).await;
        let client = gateway.client(Version::V2026_07_28).await;
        let mut task = client.start_tool("child__slow", json!({})).await.unwrap();
        executed(&file, "slow").await;
        gateway.kill();
        let process = processes(&gateway)[0];
        let killed = std::process::Command::new("kill").args(["-9", &process.to_string()]).status();
        assert!(killed.unwrap().success());
        eventually("the end of the process", async || !lives(process)).await;
        go(&file);
        gateway.restart().await;
        let result = task.wait().await.unwrap();
        match expected {
            Some(expected) => {
                assert_eq!(text(&result), expected);
                assert_eq!(lines(&file), ["slow", "slow"]);
            }
            None => {
                let shown = text(&result);
                assert!(
                    shown.contains("it is unknown whether `child` executed the call"),
                    "{shown}"
                );
                assert_eq!(lines(&file), ["slow"]);
            }
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_task_of_killed_gateway_is_cancelled_at_its_process() {
    let file = executions_file();
    let mut gateway = Restartable::supervised([at_once(&file, Version::V2025_06_18)]).await;
    let client = gateway.client(Version::V2026_07_28).await;
    let mut task = client.start_tool("child__slow", json!({})).await.unwrap();
    executed(&file, "slow").await;
    let process = processes(&gateway)[0];
    gateway.kill();
    gateway.restart().await;
    task.cancel().await.unwrap();
    executed(&file, "cancelled").await;
    gateway.stop().await;
    // Nothing needs the process after that.
    eventually("the end of the process", async || !lives(process)).await;
    assert_eq!(lines(&file), ["slow", "cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_of_supervised_process_is_reported_with_code_and_last_line() {
    let served = Served::supervised([process("child", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    let result = client.call_tool("child__exit", json!({})).await.unwrap();
    assert_eq!(result.is_error, Some(true));
    let shown = text(&result);
    assert!(shown.contains("upstream `child`") && shown.contains("going down"), "{shown}");
    eventually("the exit code", async || {
        let reason = served.gateway.status().upstreams[0].reason.clone();
        reason.is_some_and(|reason| reason.contains("code 7"))
    })
    .await;
    eventually("a new process", async || {
        let result = client.call_tool("child__pid", json!({})).await.unwrap();
        result.is_error != Some(true)
    })
    .await;
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn supervised_process_that_exits_in_the_handshake_is_reported() {
    let served = Served::supervised([process("child", "exits", None)]);
    let client = served.client(Version::V2025_06_18).await;
    assert!(!tool_names(&client).await.iter().any(|name| name.starts_with("child__")));
    let status = served.gateway.status();
    assert_eq!(status.upstreams[0].state, State::Failing);
    let reason = status.upstreams[0].reason.as_deref().unwrap();
    assert!(reason.contains("cannot read the configuration"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_supervised_process_is_stopped_and_started_again() {
    let child = process("child", "serves", None).idle_stop(Duration::from_millis(300));
    let served = Served::supervised([child]);
    let client = served.client(Version::V2025_06_18).await;
    let first = text(&client.call_tool("child__pid", json!({})).await.unwrap());
    eventually("the stop", async || !lives(first.parse().unwrap())).await;
    let second = text(&client.call_tool("child__pid", json!({})).await.unwrap());
    assert_ne!(first, second);
    served.gateway.shutdown().await;
    assert!(!lives(second.parse().unwrap()), "the end was awaited");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_inline_call_is_cancelled_at_supervised_process() {
    let file = executions_file();
    let served = Served::supervised([process("child", "serves", Some(&file))]);
    let client = served.client(Version::V2025_06_18).await;
    let calling = client.clone();
    let call = tokio::spawn(async move { calling.call_tool("child__slow", json!({})).await });
    executed(&file, "slow").await;
    call.abort();
    executed(&file, "cancelled").await;
    served.gateway.shutdown().await;
    assert_eq!(lines(&file), ["slow", "cancelled"]);
}
