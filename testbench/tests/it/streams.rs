//! A stream whose server is killed and whose reader resumes on a new server.

use std::time::Duration;

use outlive::{
    client::{Client, request::result_text},
    wire::{ContentBlock, Version},
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    folder::Folder,
    process::Listening,
    support::{
        http::{Connection, Request, Session},
        proxy::Proxy,
    },
};

const SERVER: &str = env!("CARGO_BIN_EXE_crash-server");
const VERSION: &str = "2025-11-25";
/// Longer than any lease here, even on a busy machine.
const GUARD: Duration = Duration::from_secs(60);
/// Ten steps that emit twenty segments each, and ten after each step.
const SEGMENTS: u64 = 300;

async fn listen(folder: &Folder, name: &str) -> Listening {
    let store = format!("sqlite:{}", folder.path("tasks.db"));
    Listening::start(SERVER, &[&store, &folder.path("oracle"), name, "1000"]).await
}

async fn start(folder: &Folder, name: &str) -> (Listening, Session) {
    let server = listen(folder, name).await;
    let session = Session::open(server.address, Request::initialize(VERSION), None).await;
    (server, session)
}

fn blocks(result: &Value) -> Vec<(u64, String)> {
    let block = |block: &Value| {
        (block["seqNr"].as_u64().unwrap(), block["text"].as_str().unwrap().to_owned())
    };
    result["partial-content"].as_array().into_iter().flatten().map(block).collect()
}

/// The segments of an undisturbed run.
fn undisturbed() -> Vec<(u64, String)> {
    let step = |step: u64| {
        let inside = (0..20).map(move |line| format!("{step} inside {line}"));
        inside.chain((0..10).map(move |line| format!("{step} between {line}")))
    };
    (1..).zip((0..10).flat_map(step)).collect()
}

// S-T06, S-38, S-61
#[tokio::test]
async fn reader_resumes_stream_after_server_was_killed() {
    let folder = Folder::new();
    let (server, session) = start(&folder, "ada").await;
    let arguments = json!({"name": "job", "steps": 10, "inside": 20, "between": 10, "step_ms": 50});
    let call = session.request("tools/call").params(json!({
        "name": "lines", "arguments": arguments, "task": {"responseModes": ["streaming"]},
    }));
    let mut stream = Connection::open(server.address).await.open_stream(&call).await;
    let (mut seen, mut task) = (Vec::new(), String::new());
    while seen.len() < SEGMENTS as usize / 2 {
        let message = stream.message().await;
        let related = &message["result"]["_meta"]["io.modelcontextprotocol/related-task"];
        related["taskId"].as_str().unwrap().clone_into(&mut task);
        seen.extend(blocks(&message["result"]));
    }
    server.kill().await;
    drop(stream);
    let (server, session) = start(&folder, "bob").await;
    let rest = async {
        loop {
            let last = seen.last().map_or(0, |(number, _)| *number);
            let params = json!({"taskId": task, "lastSeqNr": last});
            let ask = session.request("tasks/result").params(params);
            let result = Connection::open(server.address).await.send(&ask).await.result();
            seen.extend(blocks(&result));
            if result["isComplete"] == true {
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(GUARD, rest).await.expect("the stream ends");
    assert_eq!(seen, undisturbed(), "no segment is missing or repeated");
}

// S-T06, S-73, T2C-23
#[tokio::test]
async fn client_resumes_stream_after_server_was_killed() {
    for version in [Version::V2025_11_25, Version::V2026_07_28] {
        let folder = Folder::new();
        let server = listen(&folder, "ada").await;
        let proxy = Proxy::before(server.address).await;
        let client = Client::builder("reader", "1").partial_results().protocol_version(version);
        let client = client.connect(proxy.url.as_str()).await.unwrap();
        let arguments =
            json!({"name": "job", "steps": 10, "inside": 20, "between": 10, "step_ms": 50});
        let mut stream = client.stream_tool("lines", arguments).await.unwrap();
        let mut seen = Vec::new();
        let mut server = Some(server);
        let mut heir = None;
        let reading = async {
            while let Some(segment) = stream.next().await {
                let segment = segment.unwrap();
                let ContentBlock::Text(text) = segment.block else { panic!("{segment:?}") };
                seen.push((segment.number, text.text));
                if seen.len() == 45
                    && let Some(server) = server.take()
                {
                    server.kill().await;
                    let next = listen(&folder, "bob").await;
                    proxy.redirect(next.address);
                    heir = Some(next);
                }
            }
            stream.finish().await.unwrap()
        };
        let whole = timeout(GUARD, reading).await.expect("the stream ends");
        assert!(heir.is_some(), "{version}: it was killed");
        assert_eq!(seen, undisturbed(), "{version}: no segment is missing or repeated");
        let texts_of_all: Vec<&str> = seen.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(result_text(&whole), texts_of_all.join("\n"), "{version}");
    }
}
