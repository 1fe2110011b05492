//! Calls of stdio upstreams whose server is killed: a Python server of 2025-06-18, one execution
//! each, and no process remains.

use std::{fs, process::Command, time::Duration};

use outlive::client::request::result_text;
use serde_json::{Value, json};

use super::{Place, builder, until};
use crate::call::stage::{ERAS, Outlive};

/// A server with two slow tools. Each execution is a line of the file `executions`.
const STUDIO: &str = r#"
import json, os, sys, threading, time

lock, waiting, renders = threading.Lock(), {}, set()

def say(message):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def record(text):
    with open("executions", "a") as file:
        file.write(text + "\n")

def respond(id, text):
    say({"id": id, "result": {"content": [{"type": "text", "text": text}]}})

def render(id, token):
    record("render")
    frame = 0
    while not os.path.exists("go"):
        frame += 1
        say({"method": "notifications/progress",
             "params": {"progressToken": token, "progress": frame, "message": "rendering"}})
        time.sleep(0.02)
    respond(id, "rendered")

def paint(id, number):
    waiting[number] = id
    say({"id": number, "method": "elicitation/create", "params": {
        "message": "Which color?", "requestedSchema": {
            "type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}}})

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("render", "paint")]
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    params = message.get("params") or {}
    if method == "initialize":
        say({"id": id, "result": {
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "studio", "version": "1"}}})
    elif method == "tools/list":
        say({"id": id, "result": {"tools": TOOLS}})
    elif method == "tools/call" and params["name"] == "render":
        renders.add(id)
        token = params.get("_meta", {}).get("progressToken", id)
        threading.Thread(target=render, args=(id, token), daemon=True).start()
    elif method == "tools/call":
        paint(id, len(waiting))
    elif method == "notifications/cancelled" and params["requestId"] in renders:
        record("cancelled")
    elif method is None and id in waiting:
        color = message["result"]["content"]["color"]
        record("painted " + color)
        respond(waiting[id], "painted " + color)
    elif id is not None:
        say({"id": id, "error": {"code": -32601, "message": "method not found"}})
"#;

/// Returns a folder with the server as an upstream.
fn studio(keys: &str) -> Place {
    let mut place = Place::unserved(&format!(
        "[upstreams.studio]\ncommand = [\"python3\", \"studio.py\"]\nenv = {{ MARK = \"1\" }}\n{keys}\n"
    ));
    fs::write(place.folder.join("studio.py"), STUDIO).unwrap();
    place.start();
    place
}

/// Waits until no process of a stopped server is left.
async fn wait_for_end(place: &Place) {
    until("the process ends", || place.left_over().is_empty().then_some(())).await;
    let folder = place.folder.join("data/pipes").display().to_string();
    until("its supervisor ends", || {
        let found = Command::new("pgrep").args(["-f", &format!("__supervise {folder}")]).output();
        found.unwrap().stdout.is_empty().then_some(())
    })
    .await;
}

async fn executed(place: &Place, what: &str) {
    until(what, || place.read("executions").contains(what).then_some(())).await;
}

#[tokio::test]
async fn detached_call_of_killed_server_returns_result_of_single_execution() {
    for era in ERAS {
        let (mut place, outlive) = (studio("task_after = \"100ms\""), Outlive::new());
        let detach = ["call", "--detach", "--protocol-version", era, place.url(), "studio__render"];
        let detached = outlive.run(&detach);
        assert_eq!(detached.code, 0, "{era}: {detached:?}");
        let handle = detached.out.trim();
        let process = place.marked_processes();
        place.kill();
        place.start();
        assert_eq!(place.marked_processes(), process, "{era}: the process was never interrupted");
        fs::write(place.folder.join("go"), "").unwrap();
        outlive.says(&["tasks", "result", handle], "rendered\n");
        assert_eq!(place.read("executions"), "render\n", "{era}");
        place.stop();
        wait_for_end(&place).await;
    }
}

#[tokio::test]
async fn many_kills_in_calls_lose_and_repeat_nothing() {
    const KILLS: u64 = 20;
    let mut place = studio("task = \"always\"");
    let client = place.client().await;
    let mut task = client.start_tool("studio__render", json!({})).await.unwrap();
    let waiting = tokio::spawn(async move { task.wait().await });
    for kill in 0..KILLS {
        // Each time a little later, so that some kills happen while the server attaches.
        tokio::time::sleep(Duration::from_millis(10 * kill)).await;
        assert!(!waiting.is_finished(), "the call ended: {}", place.log());
        place.kill();
        place.start();
    }
    fs::write(place.folder.join("go"), "").unwrap();
    let result = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    let result = result.expect("the task ends").unwrap().unwrap();
    assert_eq!(result_text(&result), "rendered", "{}", place.log());
    assert_eq!(place.read("executions"), "render\n");
    place.stop();
    wait_for_end(&place).await;
}

#[tokio::test]
async fn open_form_of_killed_server_is_answered_once() {
    for era in ERAS {
        let (mut place, outlive) = (studio("task_after = \"100ms\""), Outlive::new());
        let version = ["--protocol-version", era];
        let detach = [&["call", "--detach", place.url(), "studio__paint"][..], &version].concat();
        let detached = outlive.run(&detach);
        assert_eq!(detached.code, 0, "{era}: {detached:?}");
        let handle = detached.out.trim();
        let get = [&["tasks", "get", handle, "--json"][..], &version].concat();
        until("the form is open", || {
            let seen = outlive.json(&get);
            (seen["state"] == "input_required").then_some(())
        })
        .await;
        place.kill();
        place.start();
        let answer = [&["tasks", "answer", handle, "--answer", "color=red"][..], &version].concat();
        let answered = outlive.run(&answer);
        assert_eq!(answered.code, 0, "{era}: {answered:?}\n{}", place.log());
        outlive.says(&[&["tasks", "result", handle][..], &version].concat(), "painted red\n");
        assert_eq!(place.read("executions"), "painted red\n", "{era}");
        place.stop();
        wait_for_end(&place).await;
    }
}

#[tokio::test]
async fn call_that_is_not_a_task_is_cancelled_when_its_server_is_killed() {
    let mut place = studio("task = \"never\"");
    let client = place.client_with(builder()).await;
    let call = tokio::spawn(async move { client.call_tool("studio__render", json!({})).await });
    executed(&place, "render").await;
    place.kill();
    executed(&place, "cancelled").await;
    wait_for_end(&place).await;
    call.abort();
}

#[tokio::test]
async fn processes_of_killed_servers_are_not_orphans() {
    let mut place = studio("");
    for _ in 0..5 {
        let client = place.client().await;
        let tools = client.list_tools().collect().await.unwrap();
        assert!(tools.iter().any(|tool| tool.name == "studio__paint"), "{}", place.log());
        place.kill();
        place.start();
    }
    place.kill();
    wait_for_end(&place).await;
    let folders = fs::read_dir(place.folder.join("data/pipes")).unwrap().flatten();
    for folder in folders.filter(|entry| entry.path().join("spec.json").exists()) {
        let exit = fs::read_to_string(folder.path().join("exit.json")).unwrap();
        let exit: Value = serde_json::from_str(&exit).unwrap();
        assert_eq!(exit["how"], "orphaned", "{exit}");
    }
}
