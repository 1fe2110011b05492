//! A real process on real pipes.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{io::duplex, process::Command};

use crate::{
    process::Process,
    support::pipe::{Pipe, result, text, with_meta},
};

fn start() -> Process {
    Process::start(env!("CARGO_BIN_EXE_pipe-server"), &[])
}

// STDIO-01, STDIO-02, STDIO-05, STDIO-07, RPC-13
#[tokio::test]
async fn stdout_carries_only_messages_when_handlers_print() {
    let mut process = start();
    for _ in 0..3 {
        assert_eq!(text(&process.pipe.call("noisy", json!({})).await), "quiet");
    }
    process.pipe.finish().await;
    assert_eq!(process.pipe.read_to_end().await, Vec::<serde_json::Value>::new());
    let (status, stderr) = process.ended().await;
    assert!(status.success());
    for said in [
        "printed by a handler",
        "without an end",
        "said on standard error",
        "printed by a child",
        "printed after the end",
    ] {
        assert!(stderr.contains(said), "`{said}` should be on standard error: {stderr}");
    }
}

// STDIO-12
#[tokio::test]
async fn end_of_input_ends_process_after_running_calls() {
    for era in ["2025-11-25", "2026-07-28"] {
        let mut process = start();
        if era != "2026-07-28" {
            process.pipe.legacy(era).await;
        }
        let start = Instant::now();
        let id =
            process.pipe.send("tools/call", json!({"name": "nap", "arguments": {"ms": 300}})).await;
        process.pipe.finish().await;
        let answers = process.pipe.read_to_end().await;
        assert_eq!(answers.len(), 1, "{era}: {answers:?}");
        assert_eq!(answers[0]["id"], id, "{era}");
        assert_eq!(text(&result(&answers[0])), "rested", "{era}");
        assert!(process.ended().await.0.success(), "{era}");
        assert!(start.elapsed() < Duration::from_secs(4), "{era}: it took {:?}", start.elapsed());
    }
}

// STDIO-12
#[tokio::test]
async fn endless_call_does_not_block_process_exit() {
    let mut process = start();
    process.pipe.send("tools/call", json!({"name": "nap", "arguments": {"ms": 3_600_000}})).await;
    process.pipe.finish().await;
    assert!(process.ended().await.0.success());
}

#[tokio::test]
async fn process_responds_to_last_line_without_newline() {
    let mut process = start();
    process.pipe.send_raw(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#).await;
    process.pipe.finish().await;
    assert_eq!(
        process.pipe.read_to_end().await,
        [json!({"jsonrpc": "2.0", "id": "last", "result": {}})]
    );
    assert!(process.ended().await.0.success());
}

// SUB-11, SUB-12, C-14
#[tokio::test]
async fn subscription_gets_result_when_process_ends() {
    let mut process = start();
    let params = with_meta(json!({"notifications": {"toolsListChanged": true}}));
    let id = process.pipe.send_as_is("subscriptions/listen", params).await;
    assert_eq!(process.pipe.read().await["method"], "notifications/subscriptions/acknowledged");
    process.pipe.finish().await;
    let messages = process.pipe.read_to_end().await;
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[0]["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    assert_eq!(messages[1]["method"], "notifications/cancelled");
    assert_eq!(messages[1]["params"]["requestId"], id);
    assert!(process.ended().await.0.success());
}

// VER-15
#[tokio::test]
async fn process_with_64_calls_in_flight_sends_every_response() {
    let mut process = start();
    let params = with_meta(json!({"name": "nap", "arguments": {"ms": 200}}));
    let calls = (0..64)
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    let lines: String = calls.map(|call| format!("{call}\n")).collect();
    let start = Instant::now();
    process.pipe.send_raw(lines.as_bytes()).await;
    let mut answered = BTreeSet::new();
    for _ in 0..64 {
        let answer = process.pipe.read().await;
        assert_eq!(text(&result(&answer)), "rested");
        answered.insert(answer["id"].as_u64().unwrap());
    }
    assert_eq!(answered, (0..64).collect());
    assert!(
        start.elapsed() < Duration::from_secs(6),
        "sequential calls would take thirteen seconds"
    );
}

#[tokio::test]
async fn process_survives_both_eras_panics_and_large_messages() {
    let mut process = start();
    let pipe = &mut process.pipe;
    assert_eq!(
        pipe.result("server/discover", json!({})).await["supportedVersions"],
        json!(["2026-07-28"])
    );
    assert_eq!(pipe.legacy("2025-06-18").await["protocolVersion"], "2025-06-18");
    assert_eq!(pipe.error("tools/call", json!({"name": "panic"})).await["code"], -32603);
    assert_eq!(pipe.modern("tools/call", json!({"name": "panic"})).await["error"]["code"], -32603);
    let large = "é".repeat(1 << 20);
    assert_eq!(text(&pipe.call("echo", json!({"text": large})).await), large);
    let id = pipe.send("tools/call", json!({"name": "nap", "arguments": {"ms": 3_600_000}})).await;
    pipe.cancel(id).await;
    assert_eq!(pipe.result("ping", json!({})).await, json!({}));
    pipe.finish().await;
    assert_eq!(pipe.read_to_end().await, Vec::<serde_json::Value>::new());
    assert!(process.ended().await.0.success());
}

#[tokio::test]
async fn non_reading_client_does_not_block_process_exit() {
    let mut process = start();
    process
        .pipe
        .send("tools/call", json!({"name": "echo", "arguments": {"text": "x".repeat(1 << 20)}}))
        .await;
    // Dropping the pipe closes both directions, even with unwritten bytes.
    process.pipe = Pipe::on(duplex(1).0);
    process.ended().await;
}

// STDIO-11
#[cfg(unix)]
#[tokio::test]
async fn sigterm_ends_process_gracefully() {
    let mut process = start();
    assert_eq!(text(&process.pipe.call("echo", json!({"text": "x"})).await), "x");
    process.pipe.send("tools/call", json!({"name": "nap", "arguments": {"ms": 3_600_000}})).await;
    let id = process.child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    let status = process.ended().await.0;
    assert!(status.success(), "the process exits on its own after releasing its tasks: {status}");
}
