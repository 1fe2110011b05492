//! One handler with two input requests, in both eras and on both transports: the same result, and
//! every step executes once. A file outside the processes counts the steps.

use std::fs;

use serde_json::{Value, json};

use crate::{
    folder::Folder,
    process::{Listening, Process},
    support::{
        http::{Connection, Request, Session, within},
        pipe::{result, text},
    },
};

const SERVER: &str = env!("CARGO_BIN_EXE_asking-server");

/// The processes share the seal keys and record their steps.
impl Folder {
    fn on_stdio(&self) -> Process {
        Process::start(SERVER, &[&self.path("keys"), &self.path("steps"), "--stdio"])
    }

    async fn on_http(&self) -> Listening {
        Listening::start(SERVER, &[&self.path("keys"), &self.path("steps")]).await
    }

    /// The executed steps, sorted, because two of them run in parallel.
    fn steps(&self) -> Vec<String> {
        let noted = fs::read_to_string(self.path("steps")).unwrap();
        let mut steps: Vec<String> = noted.lines().map(str::to_owned).collect();
        steps.sort();
        steps
    }
}

/// The input response for an input request.
fn answer(question: &Value) -> Value {
    let content = match question["params"]["message"].as_str().unwrap() {
        "Deploy shop:1?" => json!({"yes": true}),
        "When should it go live?" => json!({"hour": 9}),
        other => panic!("unexpected input request {other}"),
    };
    json!({"action": "accept", "content": content})
}

fn call() -> Value {
    json!({"name": "deploy", "arguments": {"repo": "shop"}})
}

async fn legacy_stdio(folder: &Folder) -> Value {
    let mut process = folder.on_stdio();
    process.pipe.legacy_with("2025-11-25", json!({"elicitation": {}})).await;
    let id = process.pipe.send("tools/call", call()).await;
    loop {
        let message = process.pipe.read().await;
        if message["id"] == id && message.get("method").is_none() {
            return result(&message);
        }
        process.pipe.reply(&message, answer(&message)).await;
    }
}

async fn legacy_http(folder: &Folder) -> Value {
    let server = folder.on_http().await;
    let hello = Request::initialize("2025-11-25").param("capabilities", json!({"elicitation": {}}));
    let session = Session::open(server.address, hello, None).await;
    let call = session.call("deploy", json!({"repo": "shop"}));
    let mut stream = Connection::open(server.address).await.open_stream(&call).await;
    loop {
        let message = stream.message().await;
        if message.get("method").is_none() {
            return result(&message);
        }
        let reply = session.reply(&message, answer(&message));
        let taken = Connection::open(server.address).await.send(&reply).await;
        assert_eq!(taken.status(), 202);
    }
}

/// Parameters of the next round of a modern call.
fn next_round(mut params: Value, required: &Value) -> Value {
    params["requestState"] = required["requestState"].clone();
    params["inputResponses"] = json!({});
    for (key, question) in required["inputRequests"].as_object().unwrap() {
        params["inputResponses"][key] = answer(question);
    }
    params
}

async fn modern_http(folder: &Folder) -> Value {
    let mut params = call();
    for _ in 0..5 {
        // A new process each time. The processes share only the seal keys.
        let server = folder.on_http().await;
        let mut request = Request::modern("tools/call")
            .name("deploy")
            .reserved("clientCapabilities", json!({"elicitation": {}}));
        for (name, value) in params.as_object().unwrap() {
            request = request.param(name, value.clone());
        }
        let response = within(Connection::open(server.address).await.send(&request)).await;
        let result = response.result();
        if result["resultType"] == "complete" {
            return result;
        }
        params = next_round(params, &result);
    }
    panic!("too many rounds");
}

async fn modern_stdio(folder: &Folder) -> Value {
    let mut params = call();
    for _ in 0..5 {
        let mut process = folder.on_stdio();
        let can = json!({"elicitation": {}});
        let answer = process.pipe.modern_with(can, "tools/call", params.clone()).await;
        process.kill().await;
        let result = result(&answer);
        if result["resultType"] == "complete" {
            return result;
        }
        params = next_round(params, &result);
    }
    panic!("too many rounds");
}

#[track_caller]
fn check(wire: &str, result: &Value, folder: &Folder) {
    assert_eq!(text(result), "built shop:1", "{wire}: {result}");
    let blocks = result["content"].as_array().unwrap();
    assert_eq!(blocks.len(), 2, "{wire}: emitted content appears once: {result}");
    assert_eq!(blocks[1]["text"], "shop:1 eu us at 9", "{wire}");
    let steps = folder.steps();
    assert_eq!(steps, ["build", "push eu", "push us", "switch"], "{wire}: each step once");
}

// M-10, M-29, MT-10
#[tokio::test]
async fn handler_with_input_returns_same_result_on_every_transport() {
    let folder = Folder::new();
    check("legacy stdio", &legacy_stdio(&folder).await, &folder);
    let folder = Folder::new();
    check("legacy HTTP with a session", &legacy_http(&folder).await, &folder);
    let folder = Folder::new();
    check("modern HTTP, a process per round", &modern_http(&folder).await, &folder);
    let folder = Folder::new();
    check("modern stdio, killed between rounds", &modern_stdio(&folder).await, &folder);
}
