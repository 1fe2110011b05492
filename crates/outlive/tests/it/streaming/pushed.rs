//! Streams: several responses with one request ID.

use serde_json::{Value, json};

use super::stage::{
    ALL, Change, RELATED, Wire, World, blocks, merged, numbers, script_of, task_of,
};

const STREAMING: Change = |tasks| tasks.response_modes(ALL);

fn texts(pairs: &[(u64, &str)]) -> Vec<(u64, String)> {
    pairs.iter().map(|(number, text)| (*number, (*text).to_owned())).collect()
}

// S-T03, S-33
#[tokio::test]
async fn fast_streaming_call_sends_one_response() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        world.gate.open(1);
        let mut flow = client.call("script", script_of(&[3], "end"), &["streaming"]).await;
        let only = client.part(&mut flow).await;
        assert_eq!(blocks(&only), texts(&[(1, "1"), (2, "2"), (3, "3"), (4, "end")]));
        assert_eq!((&only["isComplete"], &only["isError"]), (&json!(true), &json!(false)));
        assert!(only.get("task").is_none(), "the call is complete: {only}");
        let id = task_of(&only);
        client.over(flow).await;
        assert_eq!(client.status(&id).await, "completed");
        let whole = client.ask("tasks/result", json!({"taskId": id})).await;
        assert_eq!(whole["content"], Value::from(merged(&[only])));
    }
}

// S-T04, S-30, S-31, S-32, S-33, S-35, S-49, S-79, S-80, S-82
#[tokio::test]
async fn streaming_call_sends_responses_with_one_id() {
    for (wire, tool, end) in [
        (Wire::Pipe, "script", "empty"),
        (Wire::Pipe, "once", "5"),
        (Wire::Http, "script", "5"),
        (Wire::Http, "once", "empty"),
    ] {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let mut flow = client.call(tool, script_of(&[2, 2], end), &["streaming"]).await;
        let first = client.next(&mut flow).await;
        assert_eq!(first["id"], flow.id);
        let first = &first["result"];
        assert_eq!(blocks(first), texts(&[(1, "1"), (2, "2")]));
        assert_eq!((&first["isComplete"], &first["isError"]), (&json!(false), &json!(false)));
        let task = &first["task"];
        let id = task["taskId"].as_str().unwrap().to_owned();
        assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(60_000)));
        for member in ["createdAt", "lastUpdatedAt", "pollInterval"] {
            assert!(task.get(member).is_some(), "the task has all members: {task}");
        }
        assert_eq!(first["_meta"][RELATED]["taskId"], id.as_str());
        assert_eq!(client.status(&id).await, "working");
        world.gate.open(1);
        let second = client.part(&mut flow).await;
        assert_eq!(blocks(&second), texts(&[(3, "3"), (4, "4")]));
        assert!(second.get("task").is_none() && task_of(&second) == id, "{second}");
        assert_eq!(
            (client.status(&id).await.as_str(), &second["isComplete"]),
            ("working", &json!(false))
        );
        world.gate.open(1);
        let last = client.part(&mut flow).await;
        let rest = if end == "5" { vec![(5, "5")] } else { vec![] };
        assert_eq!(blocks(&last), texts(&rest));
        assert_eq!((&last["isComplete"], task_of(&last)), (&json!(true), id.clone()));
        client.over(flow).await;
        assert_eq!(client.status(&id).await, "completed");
        let whole = client.ask("tasks/result", json!({"taskId": id})).await;
        let parts = [first.clone(), second, last];
        assert_eq!(whole["content"], Value::from(merged(&parts)));
        assert_eq!(whole["_meta"][RELATED]["taskId"], id.as_str());
    }
}

// S-33
#[tokio::test]
async fn streaming_call_without_content_first_sends_task() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let mut flow = client.call("script", script_of(&[0, 1], "empty"), &["streaming"]).await;
        let first = client.part(&mut flow).await;
        assert_eq!(first["task"]["status"], "working");
        assert!(first.get("partial-content").is_none() && first.get("isComplete").is_none());
        let id = first["task"]["taskId"].as_str().unwrap();
        assert_eq!(task_of(&first), id);
        world.gate.open(2);
        let rest = client.parts(&mut flow).await;
        assert_eq!(numbers(&rest), [1]);
        client.over(flow).await;
    }
}

// S-T05, S-34, S-45, S-46, S-47
#[tokio::test]
async fn streaming_call_over_http_sends_one_response_per_event() {
    let world = World::new(STREAMING);
    let client = world.client(Wire::Http).await;
    let (server, session) = client.http().unwrap();
    let mut listening = server.open(session.get()).await;
    let request = session.request("tools/call").params(json!({
        "name": "asks", "arguments": {}, "task": {"responseModes": ["streaming"]},
    }));
    let mut stream = server.open(&request).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let (first, message) = stream.said().await;
    assert_eq!((&message["id"], message.get("method")), (&request.message_id(), None));
    assert_eq!(numbers(&[message["result"].clone()]), [1]);
    // A status notification and an input request may come between two responses.
    let mut ids = vec![first.id.unwrap()];
    let asked = loop {
        let (event, message) = stream.said().await;
        ids.push(event.id.unwrap());
        match message["method"].as_str() {
            Some("elicitation/create") => break message,
            Some("notifications/tasks/status") => {
                assert_eq!(message["params"]["status"], "input_required");
            }
            other => panic!("{other:?}: {message}"),
        }
    };
    let yes = json!({"action": "accept", "content": {"yes": true}});
    assert_eq!(server.send(session.reply(&asked, yes)).await.status(), 202);
    let last = loop {
        let (event, message) = stream.said().await;
        ids.push(event.id.unwrap());
        if message.get("method").is_none() {
            assert_eq!(message["id"], request.message_id());
            if message["result"]["isComplete"] == true {
                break message["result"].clone();
            }
            assert_eq!(numbers(&[message["result"].clone()]), [2]);
        }
    };
    assert_eq!(last["isError"], false);
    stream.ended().await;
    let mut unique = ids.clone();
    unique.dedup();
    assert_eq!(unique, ids, "event IDs are unique");
    // The GET stream got none of this: its first message is the list change.
    server.server.remove_tool("plain");
    assert_eq!(listening.message().await["method"], "notifications/tools/list_changed");
}

// S-46, S-T06
#[tokio::test]
async fn cut_streaming_call_resumes_with_last_event_id() {
    let world = World::new(STREAMING);
    let mut client = world.client(Wire::Http).await;
    let (server, session) = client.http().unwrap();
    let request = session.request("tools/call").params(json!({
        "name": "script", "arguments": script_of(&[2, 2], "end"),
        "task": {"responseModes": ["streaming"]},
    }));
    let mut stream = server.open(&request).await;
    let (event, first) = stream.said().await;
    stream.cut();
    world.gate.open(2);
    let mut stream = server.open(session.resume(&event.id.unwrap())).await;
    let mut parts = vec![first["result"].clone()];
    while parts.last().unwrap()["isComplete"] != true {
        let message = stream.message().await;
        assert_eq!(message["id"], request.message_id());
        parts.push(message["result"].clone());
    }
    assert_eq!(numbers(&parts), [1, 2, 3, 4, 5]);
    let id = task_of(&parts[0]);
    assert_eq!(client.status(&id).await, "completed");
}

// S-T15, S-36, S-79
#[tokio::test]
async fn first_response_stream_and_poll_share_segment_order() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let mut flow = client.call("script", script_of(&[1, 2, 1], "empty"), &["streaming"]).await;
        let mut parts = vec![client.part(&mut flow).await];
        let id = task_of(&parts[0]);
        assert!(parts[0].get("task").is_some() && numbers(&parts) == [1]);
        world.gate.open(1);
        parts.push(client.part(&mut flow).await);
        let polled = client.after(&id, 1).await;
        assert_eq!(blocks(&polled), texts(&[(2, "2"), (3, "3")]));
        world.gate.open(2);
        parts.extend(client.parts(&mut flow).await);
        assert_eq!(numbers(&parts), [1, 2, 3, 4], "each segment is pushed once");
        client.over(flow).await;
        parts.push(polled);
        let whole = client.ask("tasks/result", json!({"taskId": id})).await;
        assert_eq!(whole["content"], Value::from(merged(&parts)));
    }
}

// S-T20, S-35, S-82
#[tokio::test]
async fn streaming_call_sends_input_request() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let mut flow = client.call("asks", json!({}), &["streaming"]).await;
        let first = client.part(&mut flow).await;
        let id = task_of(&first);
        assert_eq!(blocks(&first), texts(&[(1, "1")]));
        let mut told = Vec::new();
        let asked = loop {
            let message = client.any(&mut flow).await;
            match message["method"].as_str() {
                Some("elicitation/create") => break message,
                Some(method) => told.push(method.to_owned()),
                None => panic!("unexpected response: {message}"),
            }
        };
        assert_eq!(asked["params"]["_meta"][RELATED]["taskId"], id.as_str());
        assert!(told.iter().all(|method| method == "notifications/tasks/status"), "{told:?}");
        assert_eq!(client.status(&id).await, "input_required");
        client.reply(&asked, json!({"action": "accept", "content": {"yes": true}})).await;
        let rest = client.parts(&mut flow).await;
        assert_eq!(blocks(&rest[0]), texts(&[(2, "said true")]));
        client.over(flow).await;
        assert_eq!(client.status(&id).await, "completed");
    }
}

// S-T21, S-48
#[tokio::test]
async fn client_not_accepting_sse_gets_first_response_and_polls_rest() {
    let world = World::new(STREAMING);
    let mut client = world.client(Wire::Http).await;
    let (server, session) = client.http().unwrap();
    let request = session.request("tools/call").accept("application/json").params(json!({
        "name": "script", "arguments": script_of(&[2, 1], "end"),
        "task": {"responseModes": ["streaming"]},
    }));
    let first = server.send(&request).await.result();
    assert_eq!(
        (numbers(std::slice::from_ref(&first)), &first["isComplete"]),
        (vec![1, 2], &json!(false))
    );
    let id = task_of(&first);
    world.gate.open(2);
    client.until(&id, "completed").await;
    let rest = client.after(&id, 2).await;
    assert_eq!(blocks(&rest), texts(&[(3, "3"), (4, "end")]));
    assert_eq!(rest["isComplete"], true);
}

// S-T22, S-49
#[tokio::test]
async fn streams_on_one_pipe_stay_separate() {
    let world = World::new(STREAMING);
    let mut client = world.client(Wire::Pipe).await;
    let mut one = client.call("script", script_of(&[1, 1], "one"), &["streaming"]).await;
    let mut two = client.call("script", script_of(&[3, 1], "two"), &["streaming"]).await;
    let mut parts = [Vec::new(), Vec::new()];
    parts[0].push(client.part(&mut one).await);
    parts[1].push(client.part(&mut two).await);
    assert_eq!(client.ask("ping", json!({})).await, json!({}), "other requests still work");
    world.gate.open(4);
    parts[0].extend(client.parts(&mut one).await);
    parts[1].extend(client.parts(&mut two).await);
    assert_eq!((numbers(&parts[0]), numbers(&parts[1])), (vec![1, 2, 3], vec![1, 2, 3, 4, 5]));
    for parts in &parts {
        assert!(parts.iter().all(|part| task_of(part) == task_of(&parts[0])), "{parts:?}");
    }
    client.over(one).await;
    client.over(two).await;
}

// S-35, S-82
#[tokio::test]
async fn task_status_stays_working_until_last_response_is_sent() {
    let world = World::new(STREAMING);
    let mut client = world.client(Wire::Http).await;
    world.gate.open(1);
    let mut flow = client.call("bulk", json!({}), &["streaming"]).await;
    let first = client.part(&mut flow).await;
    let id = task_of(&first);
    // The task has ended for every client except the one that still receives its content.
    let mut other = client.again(&world).await;
    other.until(&id, "completed").await;
    assert_eq!(client.status(&id).await, "working");
    let mut parts = vec![first];
    parts.extend(client.parts(&mut flow).await);
    assert_eq!(numbers(&parts), (1..=200).collect::<Vec<u64>>());
    client.over(flow).await;
    assert_eq!(client.status(&id).await, "completed");
}

// S-39
#[tokio::test]
async fn structured_content_is_sent_in_last_response_only() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let mut flow = client.call("structured", json!({}), &["streaming"]).await;
        let parts = client.parts(&mut flow).await;
        let (last, before) = parts.split_last().unwrap();
        assert!(before.iter().all(|part| part.get("structuredContent").is_none()));
        assert_eq!(last["structuredContent"], json!({"total": 1}));
        let id = task_of(last);
        let whole = client.ask("tasks/result", json!({"taskId": id})).await;
        assert_eq!(whole["structuredContent"], json!({"total": 1}));
        assert_eq!(whole["content"], Value::from(merged(&parts)));
        let again = client.after(&id, 1).await;
        assert_eq!(again["structuredContent"], json!({"total": 1}));
        client.over(flow).await;
    }
}

// S-40
#[tokio::test]
async fn segments_have_protocol_content_types() {
    for wire in Wire::BOTH {
        let world = World::new(STREAMING);
        let mut client = world.client(wire).await;
        let mut flow = client.call("kinds", json!({}), &["streaming"]).await;
        let parts = client.parts(&mut flow).await;
        let kinds: Vec<Value> = merged(&parts).iter().map(|block| block["type"].clone()).collect();
        assert_eq!(kinds, ["text", "image", "audio"]);
        client.over(flow).await;
    }
}
