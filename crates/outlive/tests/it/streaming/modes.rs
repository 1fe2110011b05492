//! Negotiation of response modes, and the response in each mode.

use serde_json::{Value, json};

use super::stage::{
    ALL, Change, Client, FALLBACK, RELATED, Wire, World, blocks, declared, numbers, script_of,
    task_of,
};
use crate::support::pipe::text;

const EVERYTHING: Change = |tasks| tasks.response_modes(ALL);

// S-01, S-10
#[tokio::test]
async fn response_modes_are_declared_if_enabled() {
    for wire in Wire::BOTH {
        let client = World::new(EVERYTHING).client(wire).await;
        let tasks = &client.hello["capabilities"]["tasks"];
        assert_eq!(tasks["responses"]["modes"], json!(["immediate", "streaming", "task"]));
        let streaming: Change =
            |tasks| tasks.response_modes([outlive::server::tasks::ResponseMode::Streaming]);
        let client = World::new(streaming).client(wire).await;
        let tasks = &client.hello["capabilities"]["tasks"];
        assert_eq!(tasks["responses"]["modes"], json!(["streaming", "task"]));
        let client = World::new(|tasks| tasks).client(wire).await;
        assert!(client.hello["capabilities"]["tasks"].get("responses").is_none());
    }
}

// S-T01, S-12, S-20, S-21, S-22, S-81
#[tokio::test]
async fn immediate_result_is_returned_without_task() {
    for wire in Wire::BOTH {
        let world = World::new(EVERYTHING);
        let mut client = world.client(wire).await;
        // `instant` always runs as a task; with `immediate` the result replaces the task.
        let mut flow = client.call("instant", json!({}), &["immediate"]).await;
        let answer = client.part(&mut flow).await;
        assert_eq!(text(&answer), "here it is");
        assert!(answer.get("partial-content").is_none() && answer.get("task").is_none());
        assert!(answer["_meta"].get(RELATED).is_none(), "no task is named: {answer}");
        client.over(flow).await;
        let tasks = client.ask("tasks/list", json!({})).await;
        assert_eq!(tasks["tasks"], json!([]), "no task is stored");
    }
}

// S-T01, S-21, S-22, S-23, S-24
#[tokio::test]
async fn stored_immediate_result_is_readable_as_task() {
    for wire in Wire::BOTH {
        let world = World::new(|tasks| tasks.response_modes(ALL).store_immediate_results(true));
        let mut client = world.client(wire).await;
        for (tool, status, is_error) in
            [("instant", "completed", false), ("broken", "failed", true)]
        {
            let mut flow = client.call(tool, json!({}), &["immediate"]).await;
            let answer = client.part(&mut flow).await;
            assert_eq!(answer["isError"].as_bool().unwrap_or_default(), is_error);
            let id = task_of(&answer);
            let task = client.ask("tasks/get", json!({"taskId": id})).await;
            assert_eq!(task["status"], status);
            assert_eq!(client.ask("tasks/result", json!({"taskId": id})).await, answer);
            client.over(flow).await;
        }
    }
}

// S-T02, S-06, S-14
#[tokio::test]
async fn task_mode_or_no_mode_returns_task() {
    for wire in Wire::BOTH {
        let world = World::new(EVERYTHING);
        let mut client = world.client(wire).await;
        for task in [json!({"responseModes": ["task"]}), json!({})] {
            let mut flow = client.call_with("instant", json!({}), task).await;
            let made = client.part(&mut flow).await;
            assert_eq!(made["task"]["status"], "working", "though the result may be ready");
            assert!(made.get("_meta").is_none(), "{made}");
            client.over(flow).await;
            let id = made["task"]["taskId"].as_str().unwrap();
            client.until(id, "completed").await;
            let done = client.ask("tasks/result", json!({"taskId": id})).await;
            assert_eq!((text(&done), task_of(&done).as_str()), ("here it is", id));
        }
    }
}

/// Calls a tool that stops at its gate with these modes, and returns the first response.
async fn first(client: &mut Client, world: &World, tool: &str, modes: &[&str]) -> Value {
    let arguments = if tool == "plain" { json!({}) } else { script_of(&[1], "empty") };
    let mut flow = client.call(tool, arguments, modes).await;
    let first = client.part(&mut flow).await;
    world.gate.open(1);
    let id = match first.get("task") {
        Some(task) => task["taskId"].as_str().unwrap().to_owned(),
        None => task_of(&first),
    };
    match first.get("isComplete") {
        Some(_) => drop(client.parts(&mut flow).await),
        None => client.until(&id, "completed").await,
    }
    client.over(flow).await;
    first
}

// S-T08, S-04, S-05, S-07, S-13, S-16, S-17
#[tokio::test]
async fn slow_call_falls_back_to_stream_or_task() {
    for wire in Wire::BOTH {
        let world = World::new(EVERYTHING);
        let mut client = world.client(wire).await;
        let client = &mut client;
        let task = |answer: &Value| answer["task"]["status"] == "working";
        // No requested mode is possible, so the response names the fallback.
        let slow = first(client, &world, "plain", &["immediate"]).await;
        assert!(task(&slow) && slow["_meta"][FALLBACK] == "task", "{slow}");
        let plain = first(client, &world, "plain", &["immediate", "streaming"]).await;
        assert!(task(&plain) && plain["_meta"][FALLBACK] == "task", "{plain}");
        let listed = first(client, &world, "plain", &["task", "immediate"]).await;
        assert!(task(&listed) && listed.get("_meta").is_none(), "a task was requested: {listed}");
        for modes in [vec!["immediate", "streaming"], vec!["task", "streaming", "immediate"]] {
            let stream = first(client, &world, "script", &modes).await;
            assert_eq!(
                blocks(&stream),
                [(1, "1".to_owned())],
                "the order of modes does not matter"
            );
            assert!(stream["_meta"].get(FALLBACK).is_none());
        }
        let none = first(client, &world, "script", &["later"]).await;
        assert!(task(&none) && none["_meta"][FALLBACK] == "task", "unknown modes: {none}");
        let empty = first(client, &world, "script", &[]).await;
        assert!(task(&empty) && empty["_meta"][FALLBACK] == "task", "{empty}");
    }
}

// S-14, S-15
#[tokio::test]
async fn streaming_call_with_immediate_result_streams_it() {
    for wire in Wire::BOTH {
        let world = World::new(EVERYTHING);
        let mut client = world.client(wire).await;
        let mut flow = client.call("script", script_of(&[], "done"), &["streaming"]).await;
        let parts = client.parts(&mut flow).await;
        assert_eq!(numbers(&parts), [1], "the returned text is a segment too");
        client.over(flow).await;
    }
}

// S-08
#[tokio::test]
async fn malformed_response_modes_are_rejected() {
    for wire in Wire::BOTH {
        let mut client = World::new(EVERYTHING).client(wire).await;
        for bad in [json!("streaming"), json!([1]), json!({}), json!(null), json!(["task", null])] {
            let call = json!({"name": "instant", "arguments": {}, "task": {"responseModes": bad}});
            assert_eq!(client.refused("tools/call", call).await, -32602, "{bad}");
        }
        let twice = json!({"responseModes": ["immediate", "immediate", "later"]});
        let mut flow = client.call_with("instant", json!({}), twice).await;
        assert_eq!(text(&client.part(&mut flow).await), "here it is");
    }
}

// S-11
#[tokio::test]
async fn response_modes_of_call_override_declared_modes() {
    for wire in Wire::BOTH {
        let world = World::new(EVERYTHING);
        let mut client = world.client_with(wire, json!({})).await;
        let mut flow = client.call("instant", json!({}), &["immediate"]).await;
        assert_eq!(text(&client.part(&mut flow).await), "here it is");
    }
}

// S-T13, S-53
#[tokio::test]
async fn server_without_response_modes_ignores_them() {
    for wire in Wire::BOTH {
        let world = World::new(|tasks| tasks);
        let mut client = world.client(wire).await;
        for modes in [json!(["immediate", "streaming"]), json!(7)] {
            let task = json!({"ttl": 60_000, "responseModes": modes});
            let mut flow = client.call_with("script", script_of(&[2], "x"), task).await;
            let made = client.part(&mut flow).await;
            assert_eq!(made["task"]["status"], "working");
            assert!(made.get("_meta").is_none(), "the server ignores the member: {made}");
            world.gate.open(1);
            let id = made["task"]["taskId"].as_str().unwrap().to_owned();
            let whole = client.ask("tasks/result", json!({"taskId": id, "lastSeqNr": 0})).await;
            assert_eq!(whole["content"].as_array().unwrap().len(), 3, "{whole}");
            assert!(whole.get("partial-content").is_none());
        }
    }
}

// S-T14, S-06, S-10, S-53
#[tokio::test]
async fn client_without_modes_sees_standard_messages_only() {
    for wire in Wire::BOTH {
        let without = World::new(|tasks| tasks);
        let with = World::new(EVERYTHING);
        let mut seen = Vec::new();
        for world in [&without, &with] {
            let mut client = world.client_with(wire, json!({})).await;
            let task = json!({"ttl": 60_000});
            let mut flow = client.call_with("script", script_of(&[2], "x"), task).await;
            let mut made = client.part(&mut flow).await;
            world.gate.open(1);
            let id = made["task"]["taskId"].as_str().unwrap().to_owned();
            let done = client.ask("tasks/result", json!({"taskId": id})).await;
            client.over(flow).await;
            for own in ["taskId", "createdAt", "lastUpdatedAt"] {
                made["task"][own] = json!("");
            }
            seen.push(format!("{made} {done}").replace(&id, "id"));
        }
        assert_eq!(seen[0], seen[1], "byte for byte");
    }
}

// S-10
#[tokio::test]
async fn client_declaring_modes_can_omit_them_in_call() {
    for wire in Wire::BOTH {
        let world = World::new(EVERYTHING);
        let mut client = world.client_with(wire, declared()).await;
        let mut flow = client.call_with("plain", json!({}), json!({})).await;
        let made = client.part(&mut flow).await;
        assert_eq!(made["task"]["status"], "working");
        world.gate.open(1);
        client.over(flow).await;
    }
}

// S-T08, S-12
#[tokio::test]
async fn input_request_within_immediate_window_creates_task() {
    for wire in Wire::BOTH {
        // The window never ends here; the input request turns the call into a task.
        let patient: Change =
            |tasks| tasks.response_modes(ALL).immediate_window(std::time::Duration::from_secs(600));
        let world = World::new(patient);
        let mut client = world.client(wire).await;
        let mut flow = client.call("asks", json!({}), &["immediate", "streaming"]).await;
        let first = client.part(&mut flow).await;
        assert_eq!(blocks(&first), [(1, "1".to_owned())]);
        let asked = loop {
            let message = client.any(&mut flow).await;
            if message["method"] == "elicitation/create" {
                break message;
            }
        };
        client.reply(&asked, json!({"action": "accept", "content": {"yes": true}})).await;
        let rest = client.parts(&mut flow).await;
        assert_eq!(blocks(&rest[0]), [(2, "said true".to_owned())]);
        client.over(flow).await;
    }
}
