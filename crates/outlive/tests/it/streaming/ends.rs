//! The end of a stream: completion, failure, cancellation and expiry.

use std::{sync::Arc, time::Duration};

use outlive::store::MemoryStore;
use serde_json::json;

use super::stage::{ALL, Change, Wire, World, blocks, numbers, script_of, task_of};
use crate::support::fail_points::{FailPoints, Op, before};

const STREAMING: Change = |tasks| tasks.response_modes(ALL);

// S-T09, S-57
#[tokio::test]
async fn expired_task_ends_stream_with_error_response() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let task = json!({"ttl": 300, "responseModes": ["streaming"]});
        let mut flow = client.call_with("ticks", json!({}), task).await;
        let parts = client.parts(&mut flow).await;
        let last = parts.last().unwrap();
        assert_eq!((&last["isError"], blocks(last)), (&json!(true), vec![]), "{last}");
        assert!(parts.len() > 1, "segments were emitted before");
        let id = task_of(last);
        client.over(flow).await;
        assert_eq!(client.status(&id).await, "failed");
    }
}

// S-T10, S-56
#[tokio::test]
async fn cancelled_task_ends_stream_with_error_response() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let mut flow = client.call("script", script_of(&[2, 2], "end"), &["streaming"]).await;
        let first = client.part(&mut flow).await;
        let id = task_of(&first);
        let cancelled = client.ask("tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(cancelled["status"], "cancelled");
        let last = client.part(&mut flow).await;
        assert_eq!((&last["isComplete"], &last["isError"]), (&json!(true), &json!(true)));
        assert_eq!(blocks(&last), [], "no further segment is sent");
        client.over(flow).await;
        world.gate.abandoned().await;
        assert_eq!(client.status(&id).await, "cancelled");
        // Segments after the cancellation are not stored.
        let rest = client.after(&id, 1).await;
        assert_eq!(
            (numbers(std::slice::from_ref(&rest)), &rest["isComplete"]),
            (vec![2], &json!(true))
        );
    }
}

// S-T10, S-56
#[tokio::test]
async fn segments_unsent_at_cancellation_are_not_sent() {
    let world = World::new(STREAMING);
    let mut client = world.client(Wire::Http).await;
    let mut flow = client.call("bulk", json!({}), &["streaming"]).await;
    let first = client.part(&mut flow).await;
    let id = task_of(&first);
    // All segments are stored, but they exceed the buffers of the connection, which the client does
    // not read.
    world.gate.arrived().await;
    while numbers(&[client.after(&id, 199).await]) != [200] {
        tokio::task::yield_now().await;
    }
    client.ask("tasks/cancel", json!({"taskId": id})).await;
    let mut parts = vec![first];
    parts.extend(client.parts(&mut flow).await);
    let sent = numbers(&parts).len();
    assert!(sent < 200, "{sent} blocks");
    assert_eq!(blocks(parts.last().unwrap()), []);
    client.over(flow).await;
}

// S-T11, S-55
#[tokio::test]
async fn failing_tool_sends_error_as_last_segment() {
    for (wire, end, words) in [
        (Wire::Pipe, "fail", "out of paper"),
        (Wire::Http, "fail", "out of paper"),
        (Wire::Pipe, "refuse", "not here"),
        (Wire::Http, "panic", "internal error"),
    ] {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let mut flow = client.call("script", script_of(&[2], end), &["streaming"]).await;
        let first = client.part(&mut flow).await;
        world.gate.open(1);
        let last = client.part(&mut flow).await;
        assert_eq!((&last["isComplete"], &last["isError"]), (&json!(true), &json!(true)));
        assert_eq!(blocks(&last), [(3, words.to_owned())], "with its own number");
        let id = task_of(&first);
        client.over(flow).await;
        assert_eq!(client.status(&id).await, "failed");
        let rest = client.after(&id, 2).await;
        assert_eq!((blocks(&rest), &rest["isError"]), (vec![(3, words.to_owned())], &json!(true)));
        assert_eq!(blocks(&client.after(&id, 3).await), []);
    }
}

// S-T11, S-55
#[tokio::test]
async fn tool_failing_before_first_segment_returns_plain_tool_error() {
    for (wire, end, words) in [
        (Wire::Pipe, "fail", "out of paper"),
        (Wire::Http, "fail", "out of paper"),
        (Wire::Http, "refuse", "not here"),
    ] {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let mut flow = client.call("script", script_of(&[], end), &["streaming"]).await;
        let only = client.part(&mut flow).await;
        assert!(only.get("partial-content").is_none(), "{only}");
        assert_eq!(only["content"][0]["text"], words);
        assert_eq!((&only["isComplete"], &only["isError"]), (&json!(true), &json!(true)));
        let id = task_of(&only);
        client.over(flow).await;
        assert_eq!(client.status(&id).await, "failed");
    }
}

// S-T23, S-46
#[tokio::test]
async fn store_failure_ends_stream_with_error() {
    for wire in Wire::BOTH {
        let store = FailPoints::over(Arc::new(MemoryStore::new()));
        let world = World::over(Arc::clone(&store) as _, STREAMING);
        let mut client = world.client(wire).await;
        let mut flow = client.call("script", script_of(&[1, 1], "end"), &["streaming"]).await;
        let first = client.part(&mut flow).await;
        // The store becomes unreadable. The process still has the emitted segments, but not the
        // result.
        store.fail(before(Op::Segments));
        world.gate.open(1);
        assert_eq!(numbers(&[client.part(&mut flow).await]), [2]);
        world.gate.open(1);
        let mut broken = client.next(&mut flow).await;
        if let Some(last) = broken.get("result") {
            assert_eq!(numbers(std::slice::from_ref(last)), [3]);
            broken = client.next(&mut flow).await;
        }
        assert_eq!(broken["error"]["code"], -32603, "{broken}");
        client.over(flow).await;
        let id = task_of(&first);
        client.until(&id, "completed").await;
        let rest = client.after(&id, 1).await;
        assert_eq!(
            (numbers(std::slice::from_ref(&rest)), &rest["isComplete"]),
            (vec![2, 3], &json!(true))
        );
    }
}

// S-T24, S-46
#[tokio::test]
async fn stream_sends_exactly_one_complete_response() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        for end in ["empty", "end", "fail"] {
            world.gate.open(1);
            let mut flow = client.call("once", script_of(&[1], end), &["streaming"]).await;
            let parts = client.parts(&mut flow).await;
            let last = parts.iter().filter(|part| part["isComplete"] == true).count();
            assert_eq!(last, 1);
            client.over(flow).await;
        }
    }
}

// S-37, S-38
#[tokio::test]
async fn client_leaving_stream_reads_rest_by_number() {
    let world = World::new(STREAMING);
    let mut client = world.client(Wire::Http).await;
    let mut flow = client.call("script", script_of(&[1, 1], "end"), &["streaming"]).await;
    let first = client.part(&mut flow).await;
    client.leave(flow);
    world.gate.open(2);
    let id = task_of(&first);
    let mut other = client.again(&world).await;
    other.until(&id, "completed").await;
    let rest = other.after(&id, 1).await;
    assert_eq!(numbers(&[rest]), [2, 3]);
}

#[tokio::test]
async fn non_reading_stream_client_does_not_block_task() {
    let world = World::new(|tasks| STREAMING(tasks).max_segments(20_000));
    let mut client = world.client(Wire::Http).await;
    let (server, session) = client.http().unwrap();
    let request = session.request("tools/call").params(json!({
        "name": "endless", "arguments": {}, "task": {"responseModes": ["streaming"]},
    }));
    // The client reads nothing. The tool runs until it reaches the segment limit.
    let connection = server.begin(&request).await;
    let ended = async {
        loop {
            let tasks = client.ask("tasks/list", json!({})).await;
            if tasks["tasks"][0]["status"] == "failed" {
                return tasks["tasks"][0]["taskId"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let id = tokio::time::timeout(Duration::from_secs(30), ended).await.expect("the task ends");
    drop(connection);
    let mut last = 1;
    loop {
        let rest = client.after(&id, last).await;
        last += rest["partial-content"].as_array().unwrap().len() as u64;
        if rest["isComplete"] == true {
            break;
        }
    }
    assert_eq!(last, 20_001, "all segments and the error");
}
