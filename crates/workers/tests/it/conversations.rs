//! The recorded conversations of `workers/protocol`: this server sends the lines of their server.
//!
//! The test speaks for the tool worker, and is the client too. It causes each line of the server and
//! compares it. Journals that a conversation starts with are recorded first, in a run that is dropped.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use outlive::server::tasks::TaskPolicy;
use outlive_workers::{ToolNames, ToolPolicy, ToolWorker, WorkerError, WorkerSettings};
use serde_json::{Value, json};
use tokio::{net::UnixListener, task::JoinSet, time::timeout};

use crate::{
    conversation_player::Player,
    spoken::{RELAY, SpokenProcess, declared},
    support::{Place, Served},
};

/// Upper limit of one conversation. Only a failing test waits this long.
const LIMIT: Duration = Duration::from_secs(120);

/// Conversations that need more than one server and one client of 2026-07-28.
const ELSEWHERE: [(&str, &str); 3] = [
    ("drop_cancelled", "only a session of an older client waits for input inline"),
    ("drop_lease_lost", "needs a second server on the same store"),
    ("drop_while_recording", "needs a second server on the same store"),
];

#[tokio::test(flavor = "multi_thread")]
async fn recorded_conversations_are_those_of_this_server() {
    let mut playing = JoinSet::new();
    let mut names = HashSet::new();
    for (name, lines) in transcripts() {
        if !ELSEWHERE.iter().any(|(other, _)| *other == name) {
            playing.spawn(one(name.clone(), lines));
        }
        names.insert(name);
    }
    assert!(names.len() > 40, "{names:?}");
    assert!(ELSEWHERE.iter().all(|(name, _)| names.contains(*name)));
    let failed: Vec<String> = playing.join_all().await.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Plays a conversation. Returns its failure.
async fn one(name: String, lines: Vec<Value>) -> Option<String> {
    let mut playing = JoinSet::new();
    playing.spawn(timeout(LIMIT, play(name.clone(), lines)));
    match playing.join_next().await {
        Some(Ok(Ok(()))) => None,
        Some(Ok(Err(_))) => Some(format!("{name} did not end in time")),
        other => Some(format!("{name}: {other:?}")),
    }
}

pub(crate) fn protocol() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workers/protocol")
}

/// Returns the lines of every conversation that is one of the server.
fn transcripts() -> Vec<(String, Vec<Value>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(protocol()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let header = &lines[0];
        if header["for"].as_array().unwrap().contains(&json!("server")) {
            found.push((header["transcript"].as_str().unwrap().to_owned(), lines[1..].to_vec()));
        }
    }
    found
}

/// The code of a process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    First,
    Next,
    /// Code without the tools of the calls that must stay in the old process.
    Other,
}

async fn play(name: String, lines: Vec<Value>) {
    let place = Place::new();
    let socket = place.folder.join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let starting = ToolWorker::start(settings(&place, &socket, &name), ToolNames::new());
    let first = speak(&listener, &name, Code::First);
    if name == "goodbye" {
        return goodbye(starting, first).await;
    }
    let (worker, process) = tokio::join!(starting, first);
    let parks = matches!(&*name, "parked" | "drop_parked" | "migrate");
    let park_after = if parks { Duration::from_millis(300) } else { Duration::from_secs(600) };
    let served = Served::with(worker.unwrap(), |engine| {
        engine.park_after = park_after;
        // The test responds to a cancellation in time, also on a busy machine.
        engine.cancel_grace = Duration::from_secs(60);
    });
    Player::new(name, lines, listener, served, process).play().await;
}

/// Waits for the next process, and declares its tools.
pub(crate) async fn speak(listener: &UnixListener, name: &str, code: Code) -> SpokenProcess {
    let mut process = SpokenProcess::accept(listener).await;
    process.write(&hello(name, code)).await;
    process
}

/// Another protocol version than that of the server ends the start.
async fn goodbye(
    starting: impl Future<Output = Result<ToolWorker, WorkerError>>,
    first: impl Future<Output = SpokenProcess>,
) {
    let process = async {
        let mut process = first.await;
        let message = process.read().await.unwrap();
        assert!(message["goodbye"].as_str().unwrap().contains("speaks 1"), "{message}");
        process.end().await;
    };
    let (worker, ()) = tokio::join!(starting, process);
    assert!(worker.unwrap_err().to_string().contains("protocol"));
}

fn settings(place: &Place, socket: &Path, name: &str) -> WorkerSettings {
    let command = [Path::new("python3"), Path::new(RELAY), socket];
    let mut settings = WorkerSettings::new("shop", command)
        .data_dir(&place.folder)
        .kill_grace(Duration::from_secs(2))
        // Timers of these conversations wake; others are open at their end.
        .skip_time(matches!(name, "sleep" | "withdraw"));
    if matches!(name, "start" | "back_pressure") {
        // A third of this time is between two pings.
        settings = settings.ping_timeout(Duration::from_secs(9));
    }
    for entry in declared(&protocol()) {
        let is_inline = entry["durable"] == false || name == "drop_suspended";
        let task = if is_inline { TaskPolicy::Never } else { TaskPolicy::Always };
        settings = settings.tool(entry["name"].as_str().unwrap(), ToolPolicy::new().task(task));
    }
    settings
}

/// Returns the `hello` of a process.
fn hello(name: &str, code: Code) -> Value {
    let protocol_version = if name == "goodbye" { 2 } else { 1 };
    let mut tools = declared(&protocol());
    if code == Code::Other {
        tools.retain(|tool| tool["name"] == "greet");
    }
    if name == "migrate" && code == Code::First {
        // The journal of the conversation has an entry of an older revision.
        let shape = tools.iter_mut().find(|tool| tool["name"] == "shape").unwrap();
        shape.insert("handler_revision".to_owned(), json!("1"));
    }
    json!({"hello": {"protocol": protocol_version, "sdk": "test 1", "tools": tools}})
}

/// Returns a value with its placeholders filled in.
pub(crate) fn filled(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let present = members.iter().filter(|(_, value)| **value != "$OPTIONAL");
            Value::Object(present.map(|(name, value)| (name.clone(), filled(value))).collect())
        }
        Value::String(text) if text == "$ANY" => json!("any 1"),
        other => other.clone(),
    }
}
