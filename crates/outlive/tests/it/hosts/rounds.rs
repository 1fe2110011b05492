//! Clients of 2026-07-28 without tasks: the call waits in empty rounds, which the client's SDK
//! follows by itself.

use std::time::Duration;

use outlive::server::{SealKeys, tasks::TaskConfig};
use serde_json::json;

use super::world::{Runs, builder, hosts, server, server_with, task_of, with_rounds};
use crate::support::pipe::{Pipe, error, result, text};

#[tokio::test(start_paused = true)]
async fn quick_call_ends_in_its_first_request() {
    let runs = Runs::default();
    let mut pipe = Pipe::open(&server(&runs));
    for (tool, ms) in [("nap", 100), ("nap", 3_000), ("always", 3_000)] {
        let (done, rounds) = with_rounds(&mut pipe, tool, json!({"ms": ms})).await;
        assert_eq!((text(&done), rounds), (&*format!("slept {ms} ms"), 0), "{tool}");
        assert!(
            done.get("_meta")
                .is_none_or(|meta| meta.get("io.modelcontextprotocol/related-task").is_none())
        );
    }
    assert_eq!(runs.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn slow_call_ends_after_rounds_with_one_execution() {
    for tool in ["nap", "always"] {
        let runs = Runs::default();
        let mut pipe = Pipe::open(&server(&runs));
        let (done, rounds) = with_rounds(&mut pipe, tool, json!({"ms": 20_000})).await;
        assert_eq!((text(&done), rounds), ("slept 20000 ms", 4), "{tool}");
        assert_eq!(runs.count(), 1, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn call_beyond_the_round_limit_gets_pending_result() {
    let runs = Runs::default();
    let mut pipe = Pipe::open(&server(&runs));
    let (pending, rounds) = with_rounds(&mut pipe, "nap", json!({"ms": 60_000})).await;
    assert_eq!(rounds, 8);
    let task = task_of(&pending);
    let (done, rounds) = with_rounds(&mut pipe, "task_result", json!({"task": task})).await;
    assert_eq!((text(&done), runs.count()), ("slept 60000 ms", 1));
    assert!(rounds > 0, "`task_result` waits in rounds, too");
}

#[tokio::test(start_paused = true)]
async fn request_state_of_round_opens_for_its_call_only() {
    let runs = Runs::default();
    let mut pipe = Pipe::open(&server(&runs));
    let params = json!({"name": "nap", "arguments": {"ms": 30_000}});
    let round = result(&pipe.modern("tools/call", params.clone()).await);
    let state = &round["requestState"];
    for changed in [
        json!({"name": "nap", "arguments": {"ms": 30_001}, "requestState": state}),
        json!({"name": "always", "arguments": {"ms": 30_000}, "requestState": state}),
        json!({"name": "task_result", "arguments": {}, "requestState": state}),
        json!({"name": "nap", "arguments": {"ms": 30_000}, "requestState": format!("{}x", state.as_str().unwrap())}),
    ] {
        let refused = error(&pipe.modern("tools/call", changed.clone()).await);
        assert_eq!(refused["code"], -32602, "{changed}");
    }
    // A state that names a task can be used again.
    let mut again = params;
    again["requestState"] = state.clone();
    for _ in 0..2 {
        let round = result(&pipe.modern("tools/call", again.clone()).await);
        assert_eq!(round["resultType"], "input_required");
    }
    assert_eq!(runs.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn drain_ends_waiting_call_with_round_that_another_replica_continues() {
    let runs = Runs::default();
    let config = TaskConfig::in_memory().hosts(hosts());
    let replica =
        || builder(config.clone(), &runs).seal_keys(SealKeys::new([7; 32])).build().unwrap();
    let (first, second) = (replica(), replica());
    let mut pipe = Pipe::open(&first);
    let mut params = json!({"name": "nap", "arguments": {"ms": 8_000}});
    let id = pipe.send("tools/call", params.clone()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = tokio::time::Instant::now();
    let drained = tokio::spawn({
        let first = first.clone();
        async move { first.drain(Duration::from_secs(1)).await }
    });
    let round = result(&pipe.answer(id).await);
    assert_eq!(round["resultType"], "input_required");
    assert!(began.elapsed() < Duration::from_millis(100), "at once: {:?}", began.elapsed());
    drained.await.unwrap();
    let mut other = Pipe::open(&second);
    params["requestState"] = round["requestState"].clone();
    let answer = result(&other.modern("tools/call", params).await);
    assert_ne!(answer["isError"], true, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn client_whose_timeout_spans_rounds_gets_pending_result() {
    let runs = Runs::default();
    let server = server_with(&runs, hosts().max_rounds(0));
    let mut pipe = Pipe::open(&server);
    let (pending, rounds) = with_rounds(&mut pipe, "nap", json!({"ms": 60_000})).await;
    assert_eq!(rounds, 0);
    task_of(&pending);
}
