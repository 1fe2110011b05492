//! Tool workers of `outlive serve`, and `outlive test`, with a Python script that speaks the bare
//! protocol.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Command, Output, Stdio},
    time::Duration,
};

use outlive::client::{Client, request::result_text, tasks::TaskHandle};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Place, until};

/// The script of the tests of `outlive-workers`.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/workers/tests/worker.py");

fn place(more: &str) -> Place {
    place_of(&json!(["python3", SCRIPT]), more)
}

fn place_of(command: &Value, more: &str) -> Place {
    Place::new(&format!(
        "[workers.shop]\ncommand = {command}\nkill_grace = \"1s\"\n\
         env = {{ TEST_LOG = \"executions\", MARK = \"1\" }}\n{more}"
    ))
}

fn executions(place: &Place) -> Vec<String> {
    place.read("executions").lines().map(str::to_owned).collect()
}

/// Waits until a step has been executed.
async fn until_executed(place: &Place, step: &str) {
    let is_there = || executions(place).iter().any(|line| line == step).then_some(());
    until(&format!("`{step}` is executed"), is_there).await;
}

async fn result(mut task: TaskHandle) -> String {
    let result = tokio::time::timeout(Duration::from_secs(60), task.wait()).await;
    result_text(&result.expect("the task ends").unwrap())
}

/// Returns the process that runs calls.
async fn worker(client: &Client) -> i32 {
    let result = client.call_tool("whoami", json!({})).await.unwrap();
    let content: Value = serde_json::from_str(result.structured_content.unwrap().get()).unwrap();
    i32::try_from(content["pid"].as_i64().unwrap()).unwrap()
}

fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Sends a request, and returns the response with its head.
fn http(place: &Place, request: &str) -> String {
    let host = place.url().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let mut stream = TcpStream::connect(&host).unwrap();
    write!(stream, "{}", request.replace("HOST", &host)).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[tokio::test]
async fn ten_steps_survive_kill_of_the_server() {
    let mut place = place("");
    let client = place.client().await;
    let old = worker(&client).await;
    let task = client.start_tool("slow", json!({})).await.unwrap();
    until_executed(&place, "step 5").await;
    place.kill();
    until("the process ends with its server", || (!lives(old)).then_some(())).await;
    place.start();
    assert_eq!(result(task).await, "ten");
    let all = executions(&place);
    assert!((10..=11).contains(&all.len()), "{all:?}");
}

#[tokio::test]
async fn ten_steps_survive_kill_of_server_and_process() {
    let mut place = place("");
    let client = place.client().await;
    let old = worker(&client).await;
    let task = client.start_tool("slow", json!({})).await.unwrap();
    until_executed(&place, "step 5").await;
    signal(old, Signal::KILL);
    place.kill();
    place.start();
    assert_eq!(result(task).await, "ten");
    let all = executions(&place);
    assert!((10..=12).contains(&all.len()), "{all:?}");
}

#[tokio::test]
async fn process_that_outlives_its_killed_server_is_ended_by_the_next() {
    // The tool worker reads the end of its input. Its helper reads nothing.
    let script = format!("sleep 1000 </dev/null >/dev/null 2>&1 & exec python3 '{SCRIPT}'");
    let mut place = place_of(&json!(["sh", "-c", script]), "");
    let old = worker(&place.client().await).await;
    place.kill();
    until("the tool worker ends with its server", || (!lives(old)).then_some(())).await;
    let left = place.marked_processes();
    assert_eq!(left.len(), 1, "{left:?}");
    place.start();
    let marked = place.marked_processes();
    assert!(left.iter().all(|process| !marked.contains(process)), "{left:?} {marked:?}");
    assert!(lives(worker(&place.client().await).await));
}

#[tokio::test]
async fn stopped_server_releases_tasks_between_steps() {
    let mut place = place("");
    let client = place.client().await;
    let task = client.start_tool("slow", json!({})).await.unwrap();
    until_executed(&place, "step 3").await;
    place.stop();
    assert!(place.left_over().is_empty(), "{:?}", place.left_over());
    place.start();
    assert_eq!(result(task).await, "ten");
    assert_eq!(executions(&place).len(), 10, "{:?}", executions(&place));
}

#[tokio::test]
async fn external_event_is_delivered_over_http() {
    let place = place("");
    let client = place.client().await;
    let task = client.start_tool("renders", json!({})).await.unwrap();
    let token = until("the function has a token", || {
        Some(executions(&place).first()?.strip_prefix("token ")?.to_owned())
    })
    .await;
    let body = "\"film.mp4\"";
    let request = format!(
        "POST /events/{token} HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let response = http(&place, &request);
    assert!(response.starts_with("HTTP/1.1 204"), "{response}");
    assert_eq!(result(task).await, "film: film.mp4");
    let unknown = http(&place, &request.replace(&token, "x"));
    assert!(unknown.starts_with("HTTP/1.1 404"), "{unknown}");
}

#[tokio::test]
async fn metrics_and_log_name_the_tool_worker() {
    let place = place("");
    let client = place.client().await;
    client.call_tool("hostile", json!({"kind": "output"})).await.unwrap();
    let metrics = http(&place, "GET /metrics HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n");
    assert!(metrics.contains("outlive_tool_worker_processes{tool_worker=\"shop\"} 1"), "{metrics}");
    until("the output is logged", || place.log().contains("output 99").then_some(())).await;
    assert!(place.log().contains("tool_worker=\"shop\""), "{}", place.log());
}

#[tokio::test]
async fn cancelled_task_is_not_logged_as_failed_tool() {
    let place = place("");
    let client = place.client().await;
    let mut task = client.start_tool("slow", json!({})).await.unwrap();
    until_executed(&place, "step 1").await;
    task.cancel().await.unwrap();
    let has_ended = || place.log().contains("outcome=\"cancelled\"").then_some(());
    until("the task ends", has_ended).await;
    assert!(!place.log().contains("a tool failed"), "{}", place.log());
}

#[tokio::test]
async fn policy_of_the_file_overrides_the_code() {
    let place = place("[workers.shop.tools.greet]\ntask = \"always\"\n[workers.shop.tools.none]\n");
    let client = place.client().await;
    let task = client.start_tool("greet", json!({})).await.unwrap();
    assert!(task.task_id().is_some());
    assert_eq!(result(task).await, "hello you");
    assert!(place.log().contains("has no tool `none`"), "{}", place.log());
}

#[tokio::test]
async fn script_is_served_with_its_name_and_traceback_ends_the_start() {
    let place = Place::unserved("");
    let script = place.folder.join("my_tools.py");
    fs::copy(SCRIPT, &script).unwrap();
    let serve = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outlive"));
        command.current_dir(&place.folder).args(["serve", "my_tools.py", "--dev", "--json"]);
        command.args(["--listen", "127.0.0.1:0", "--data-dir", "data"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut server = serve().stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    assert!(said["tools"].as_array().unwrap().contains(&json!("greet")), "{said}");
    let client = super::builder().connect(said["url"].as_str().unwrap()).await.unwrap();
    assert_eq!(client.server_info().await.unwrap().info.unwrap().name, "tests");
    let greeting = async || {
        let greeting = client.call_tool("greet", json!({})).await.unwrap();
        result_text(&greeting)
    };
    assert_eq!(greeting().await, "hello you");
    let code = fs::read_to_string(&script).unwrap();
    fs::write(&script, code.replace("f\"hello {", "f\"good day, {")).unwrap();
    let changed = async {
        while greeting().await != "good day, you" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), changed).await.expect("the new code is served");
    server.kill().unwrap();
    server.wait().unwrap();
    fs::write(&script, "raise ValueError('no such type')\n").unwrap();
    let Output { status, stderr, .. } = serve().output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("ValueError: no such type"), "{stderr}");
}

/// Runs `outlive test` with these words.
fn test(words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outlive"));
    let Output { status, stdout, stderr } = command.arg("test").args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn tool_is_tested_with_prepared_responses_and_crashes() {
    let place = Place::unserved("");
    let script = place.folder.join("tools.py");
    fs::copy(SCRIPT, &script).unwrap();
    let script = script.to_str().unwrap();
    let accepted = [script, "deploy", "--accept", "approve.yes=true", "--crash-after-each"];
    let (code, out, err) = test(&accepted);
    assert_eq!((code, out.as_str()), (Some(0), "shop:1 is out"), "{err}");
    let (_, out, err) = test(&[script, "deploy", "--decline", "approve"]);
    assert_eq!(out, "nothing happened", "{err}");
    let (code, _, err) = test(&[script, "deploy"]);
    assert_eq!(code, Some(5), "{err}");
    assert!(err.contains("`approve`") && err.contains("--accept"), "{err}");
    assert_eq!(test(&[script, "naps"]).1, "awake");
    let (code, out, err) = test(&[script, "hostile", "kind=long"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(out.contains("more than 4 MiB"), "{out}");
    let (code, _, err) = test(&[script, "none"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("has no tool `none`"), "{err}");
}

/// A command with two steps, which waits between them.
const STEPS: &str = r#"
[tools.release]
description = "Builds and pushes."
shell = true
steps = true
task = "always"
env = { MARK = "1" }
command = '''
step() { echo "{\"step\":\"$1\"}" >&3; read -r reply <&4; [ "$reply" = "{\"go\":\"$1\"}" ]; }
done_with() { echo "{\"done\":\"$1\"}" >&3; read -r reply <&4; }
if step build; then echo built >> runs; done_with build; fi
echo "$reply" >> replies
while [ ! -e go ]; do sleep 0.05; done
if step push; then echo pushed >> runs; done_with push; fi
'''
"#;

/// Returns the parent of a process.
fn parent(pid: u32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[tokio::test]
async fn recorded_steps_of_lost_command_do_not_execute_again() {
    let mut place = Place::new(STEPS);
    let client = place.client().await;
    let task = client.start_tool("release", json!({})).await.unwrap();
    until("the step is recorded", || place.read("replies").contains("recorded").then_some(()))
        .await;
    // A server that is killed meanwhile reads the same requests again.
    place.kill();
    place.start();
    // The machine is lost: the supervisor and, with it, the command.
    let server = i32::try_from(place.pid()).unwrap();
    let parents: Vec<i32> = place.marked_processes().into_iter().filter_map(parent).collect();
    let marked = place.marked_processes();
    let is_supervisor = |pid: &&i32| {
        **pid > 1
            && **pid != server
            && !marked.iter().any(|known| i64::from(*known) == i64::from(**pid))
    };
    let supervisor = *parents.iter().find(is_supervisor).expect("the supervisor runs");
    signal(supervisor, Signal::KILL);
    until("the command runs again", || (place.read("replies").lines().count() == 2).then_some(()))
        .await;
    fs::write(place.folder.join("go"), "").unwrap();
    result(task).await;
    assert_eq!(place.read("runs"), "built\npushed\n");
    assert!(place.read("replies").contains(r#"{"recorded":"build","value":null}"#));
}
