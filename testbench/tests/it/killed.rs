//! Two processes on one SQLite file; one is killed in the middle of a task.

use std::{collections::HashMap, fs, net::SocketAddr, time::Duration};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    folder::Folder,
    process::Listening,
    support::http::{Connection, Request},
};

const SERVER: &str = env!("CARGO_BIN_EXE_crash-server");
const STEPS: usize = 10;
/// Longer than any lease here, even on a busy machine.
const GUARD: Duration = Duration::from_secs(60);

async fn start(folder: &Folder, name: &str) -> Listening {
    let store = format!("sqlite:{}", folder.path("tasks.db"));
    Listening::start(SERVER, &[&store, &folder.path("oracle"), name, "1000"]).await
}

async fn ask(address: SocketAddr, request: Request) -> Value {
    let capabilities =
        json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    let request = request.reserved("clientCapabilities", capabilities);
    Connection::open(address).await.send(&request).await.result()
}

/// Returns the `begin` lines of the oracle: process, step and token.
fn begun(folder: &Folder) -> Vec<(String, usize, String)> {
    let noted = fs::read_to_string(folder.path("oracle")).unwrap();
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let lines = noted.lines().map(words).filter(|words| words[3] == "begin");
    lines.map(|words| (words[1].clone(), words[4].parse().unwrap(), words[5].clone())).collect()
}

/// Waits until a step has started and returns its process.
async fn owner_at(folder: &Folder, step: usize) -> String {
    loop {
        let found = begun(folder).into_iter().find(|(_, begun, _)| *begun == step);
        match found {
            Some((run, ..)) => return run.split('#').next().unwrap().to_owned(),
            None => sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn completed(address: SocketAddr, task: &str) -> Value {
    loop {
        let get = Request::modern("tasks/get").header("mcp-name", task);
        let view = ask(address, get.param("taskId", json!(task))).await;
        match view["status"].as_str().unwrap() {
            "completed" => return view["result"].clone(),
            "working" => sleep(Duration::from_millis(20)).await,
            _ => panic!("{view}"),
        }
    }
}

// K-06, K-13
#[tokio::test]
async fn task_of_killed_process_is_finished_by_another_process() {
    let folder = Folder::new();
    let mut servers = HashMap::new();
    for name in ["ada", "bob"] {
        servers.insert(name.to_owned(), start(&folder, name).await);
    }
    // Either process may claim the task.
    let arguments = json!({"name": "job", "steps": STEPS, "step_ms": 100});
    let task = ask(servers["ada"].address, Request::call("work", arguments)).await;
    let task = task["taskId"].as_str().unwrap().to_owned();
    let owner =
        timeout(GUARD, owner_at(&folder, 5)).await.expect("the task reaches its fifth step");
    servers.remove(&owner).unwrap().kill().await;
    let (heir, server) = servers.into_iter().next().unwrap();
    let result = timeout(GUARD, completed(server.address, &task)).await.expect("the task finishes");

    let begun = begun(&folder);
    let executions = begun.len();
    assert!((STEPS..=STEPS + 1).contains(&executions), "{executions} executions: {begun:?}");
    let report: Value =
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    let by = |run: &Value, process: &str| run.as_str().unwrap().split('#').next() == Some(process);
    assert!(by(&report["by"], &heir), "{report}");
    let steps = report["steps"].as_array().unwrap();
    assert_eq!(steps.len(), STEPS);
    for (step, token) in steps.iter().enumerate() {
        // The step in flight was recorded before the kill, or ran again.
        assert!(step == 5 || by(token, if step < 5 { &owner } else { &heir }), "{step}: {report}");
        assert!(begun.iter().any(|(_, begun, made)| *begun == step && token == made), "{report}");
    }
}
