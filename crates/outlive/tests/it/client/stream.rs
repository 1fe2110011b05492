//! Partial results arrive in order, each once and complete, on every transport and after every
//! interruption.

use std::time::Duration;

use outlive::{
    Form,
    client::{
        Client, ClientBuilder, ClientError, Error,
        input::{InputCallbacks, InputResponse},
        request::{ToolStream, result_text},
        tasks::TaskEvent,
    },
    server::{
        Durable, Server, State, Tool,
        tasks::{TaskConfig, TaskPolicy},
    },
    wire::Version,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::gate::Gate;

use super::{
    kit::{Place, Wire, builder, server},
    script::{HttpScript, discovered, empty, events, initialized, line, ok, pipe, refuse},
};

const RELATED: &str = "io.modelcontextprotocol/related-task";

fn streaming() -> ClientBuilder {
    builder().partial_results().limits(|limits| {
        limits.min_poll_interval = Duration::from_millis(5);
        limits.default_poll_interval = Duration::from_millis(10);
    })
}

fn agreed() -> Value {
    let mut said = initialized("2025-11-25");
    said["capabilities"]["tasks"] =
        json!({"requests": {"tools": {"call": {}}}, "responses": {"modes": ["streaming", "task"]}});
    said
}

fn task(status: &str) -> Value {
    json!({"taskId": "t", "status": status, "createdAt": "2026-01-01T00:00:00.000Z",
        "lastUpdatedAt": "2026-01-01T00:00:00.000Z", "ttl": 60000, "pollInterval": 10})
}

/// A response with segments whose texts are their numbers.
fn part(numbers: &[u64], is_complete: bool) -> Value {
    let blocks: Vec<Value> = numbers
        .iter()
        .map(|number| json!({"seqNr": number, "type": "text", "text": number.to_string()}))
        .collect();
    json!({"partial-content": blocks, "isError": false, "isComplete": is_complete,
        "_meta": {RELATED: {"taskId": "t"}}})
}

fn first(numbers: &[u64]) -> Value {
    let mut first = part(numbers, false);
    first["task"] = task("working");
    first
}

async fn numbers(stream: &mut ToolStream) -> Result<Vec<u64>, Error> {
    let mut seen = Vec::new();
    while let Some(segment) = stream.next().await {
        seen.push(segment?.number);
    }
    Ok(seen)
}

/// Plays responses to the call, then responds to `tasks/result` with the segments after the given
/// number.
async fn play(responses: Vec<Value>, last: u64) -> (Result<(Vec<u64>, String), Error>, Vec<Value>) {
    let (target, seen) = pipe(move |request| match request["method"].as_str() {
        Some("initialize") => vec![line(request, &agreed())],
        Some("tools/call") => responses.iter().map(|part| line(request, part)).collect(),
        Some("tasks/result") => match request["params"]["lastSeqNr"].as_u64() {
            Some(from) => {
                let rest: Vec<u64> = (from + 1..=last).collect();
                vec![line(request, &part(&rest, true))]
            }
            None => {
                let content: Vec<Value> =
                    (1..=last).map(|n| json!({"type": "text", "text": n.to_string()})).collect();
                vec![line(request, &json!({"content": content}))]
            }
        },
        Some("tasks/get") => vec![line(request, &task("working"))],
        _ => Vec::new(),
    });
    let client = streaming().protocol_version(Version::V2025_11_25).connect(target).await.unwrap();
    let mut stream = client.stream_tool("story", json!({})).await.unwrap();
    let came = match numbers(&mut stream).await {
        Ok(numbers) => stream.finish().await.map(|whole| (numbers, result_text(&whole))),
        Err(error) => Err(error),
    };
    let seen = seen.lock().unwrap();
    (came, seen.iter().map(|line| serde_json::from_str(line).unwrap()).collect())
}

// S-02, S-03, S-50, S-54, S-71, S-76, S-T15, S-T24
#[tokio::test]
async fn responses_with_one_id_form_one_stream() {
    let (came, seen) =
        play(vec![first(&[1]), part(&[2, 3], false), part(&[3], false), part(&[4], true)], 4).await;
    assert_eq!(came.unwrap(), (vec![1, 2, 3, 4], "1\n2\n3\n4".to_owned()));
    let modes = &seen[0]["params"]["capabilities"]["tasks"]["responses"]["modes"];
    assert_eq!(*modes, json!(["task", "immediate", "streaming"]));
    let call = seen.iter().find(|line| line["method"] == "tools/call").unwrap();
    assert_eq!(call["params"]["task"]["responseModes"], json!(["streaming", "task", "immediate"]));
}

// S-73, S-78, S-T07
#[tokio::test]
async fn gap_is_filled_from_last_contiguous_segment() {
    let (came, seen) = play(vec![first(&[1, 3]), part(&[5], true)], 5).await;
    assert_eq!(came.unwrap(), (vec![1, 2, 3, 4, 5], "1\n2\n3\n4\n5".to_owned()));
    let resumed = seen.iter().find(|line| line["method"] == "tasks/result").unwrap();
    assert_eq!(resumed["params"], json!({"taskId": "t", "lastSeqNr": 1}));
}

// S-75, S-T12
#[tokio::test]
async fn repeated_segment_with_other_content_is_protocol_violation() {
    let mut other = part(&[1], false);
    other["partial-content"][0]["text"] = json!("another");
    let (came, _) = play(vec![first(&[1]), other], 1).await;
    assert!(matches!(came, Err(Error::ProtocolViolation(_))), "{came:?}");
}

// S-09, S-52, S-66, S-T13
#[tokio::test]
async fn stream_of_plain_task_or_immediate_result_yields_whole_result() {
    let (came, _) = play(vec![json!({"content": [{"type": "text", "text": "now"}]})], 0).await;
    assert_eq!(came.unwrap(), (vec![1], "now".to_owned()));
    // No segment has arrived, so there is no number to resume from: the client waits for the whole
    // result.
    let (target, _) = pipe(|request| match request["method"].as_str() {
        Some("initialize") => vec![line(request, &agreed())],
        Some("tools/call") => vec![line(request, &json!({"task": task("working")}))],
        Some("tasks/get") => vec![line(request, &task("completed"))],
        Some("tasks/result") => {
            vec![line(request, &json!({"content": [{"type": "text", "text": "late"}]}))]
        }
        _ => Vec::new(),
    });
    let client = streaming().protocol_version(Version::V2025_11_25).connect(target).await.unwrap();
    let mut stream = client.stream_tool("story", json!({})).await.unwrap();
    assert_eq!(result_text(&stream.finish().await.unwrap()), "late");
}

// S-58, S-T09
#[tokio::test]
async fn task_ending_before_its_stream_fails_as_incomplete() {
    let peer = HttpScript::new(|seen, _| async move {
        match (seen.verb.as_str(), seen.method()) {
            ("GET", _) => empty(405),
            (_, "initialize") => ok(&seen, &agreed()),
            (_, "tools/call") => {
                let message = json!({"jsonrpc": "2.0", "id": seen.id(), "result": first(&[1, 2])});
                events(&format!("data: {message}\n\n"))
            }
            (_, "tasks/result") => refuse(&seen, 200, -32602, &json!({})),
            _ => empty(202),
        }
    })
    .await;
    let client: Client = streaming()
        .protocol_version(Version::V2025_11_25)
        .connect(peer.url.as_str())
        .await
        .unwrap();
    let mut stream = client.stream_tool("story", json!({})).await.unwrap();
    let error = stream.finish().await.unwrap_err();
    assert!(matches!(error, Error::Client(ClientError::Incomplete(_))), "{error}");
    assert_eq!(stream.segment_count(), 2);
}

// S-45, S-54, S-T05, S-T06
#[tokio::test]
async fn cut_stream_resumes_after_last_segment() {
    let peer = HttpScript::new(|seen, _| async move {
        match (seen.verb.as_str(), seen.method()) {
            ("GET", _) => empty(405),
            (_, "initialize") => ok(&seen, &agreed()),
            (_, "tools/call") => {
                let message = |part: Value| {
                    format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": seen.id(), "result": part}))
                };
                let status = json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": task("working")});
                let parts = [message(first(&[1])), format!("data: {status}\n\n"), message(part(&[2, 3], false))];
                events(&parts.concat())
            }
            (_, "tasks/result") => {
                assert_eq!(seen.body["params"]["lastSeqNr"], 3);
                ok(&seen, &part(&[4, 5], true))
            }
            _ => empty(202),
        }
    })
    .await;
    let client = streaming()
        .protocol_version(Version::V2025_11_25)
        .connect(peer.url.as_str())
        .await
        .unwrap();
    let mut stream = client.stream_tool("story", json!({})).await.unwrap();
    assert_eq!(numbers(&mut stream).await.unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(result_text(&stream.finish().await.unwrap()), "1\n2\n3\n4\n5");
}

// S-90, S-92
#[tokio::test]
async fn modern_task_segments_are_polled() {
    let mut looks = 0;
    let (target, seen) = pipe(move |request| {
        let found = |status: &str| {
            json!({"resultType": "complete", "taskId": "t", "status": status, "pollIntervalMs": 20,
                "createdAt": "2026-01-01T00:00:00.000Z", "lastUpdatedAt": "2026-01-01T00:00:00.000Z", "ttlMs": 60000})
        };
        match request["method"].as_str() {
            Some("server/discover") => {
                let mut said = discovered();
                said["capabilities"]["extensions"] =
                    json!({"io.modelcontextprotocol/tasks": {}, "dev.outlive/task-partials": {}});
                vec![line(request, &said)]
            }
            Some("tools/call") => {
                let mut made = found("working");
                made["resultType"] = json!("task");
                vec![line(request, &made)]
            }
            Some("tasks/get") => {
                let after = request["params"]["_meta"]["dev.outlive/afterSeq"].as_u64();
                looks += u64::from(after.is_some());
                let mut task = found(if looks > 3 { "completed" } else { "working" });
                if looks > 3 {
                    let content: Vec<Value> =
                        (1..=4).map(|n| json!({"type": "text", "text": n.to_string()})).collect();
                    task["result"] = json!({"resultType": "complete", "content": content});
                }
                if let Some(after) = after {
                    let segments: Vec<Value> = (after + 1..=looks.min(3))
                        .map(
                            |n| json!({"seq": n, "block": {"type": "text", "text": n.to_string()}}),
                        )
                        .collect();
                    task["_meta"] = json!({"dev.outlive/partials": {"segments": segments, "lastSeq": looks.min(3), "complete": false}});
                }
                vec![line(request, &task)]
            }
            _ => {
                let error = json!({"code": -32601, "message": "no"});
                vec![json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string()]
            }
        }
    });
    let client = streaming().connect(target).await.unwrap();
    let mut stream = client.stream_tool("story", json!({})).await.unwrap();
    assert_eq!(numbers(&mut stream).await.unwrap(), [1, 2, 3, 4]);
    assert_eq!(result_text(&stream.finish().await.unwrap()), "1\n2\n3\n4");
    let seen = seen.lock().unwrap();
    let pulled = seen.iter().find(|line| line.contains("afterSeq\":1")).unwrap();
    assert!(pulled.contains(r#""dev.outlive/task-partials":{}"#), "{pulled}");
}

// S-93
#[tokio::test]
async fn stream_without_extension_yields_content_of_result() {
    for version in [Version::V2026_07_28, Version::V2025_11_25, Version::V2024_11_05] {
        let place = Place::of(&server(), Wire::Memory).await;
        let client = place.connect(streaming(), Some(version)).await;
        let mut stream = client.stream_tool("add", json!({"a": 1, "b": 2})).await.unwrap();
        assert_eq!(numbers(&mut stream).await.unwrap(), [1]);
        assert_eq!(result_text(&stream.finish().await.unwrap()), "3");
    }
}

#[derive(Deserialize, JsonSchema, Form)]
struct Sure {
    yes: bool,
}

/// Reports progress, emits and elicits, and waits for the gate after each.
async fn parcel(cx: Durable, gate: State<Gate>) -> outlive::server::Result<String> {
    cx.progress(1.0, 2.0, "packing");
    gate.pass().await;
    cx.emit("a box").await?;
    gate.pass().await;
    let sure: Sure = cx.elicit("sure", "Send it?").await?;
    Ok(format!("sent: {}", sure.yes))
}

#[tokio::test(start_paused = true)]
async fn task_events_include_progress_and_segments() {
    let gate = Gate::default();
    let server = Server::builder("parcels", "1")
        .state(gate.clone())
        .tasks(TaskConfig::in_memory().partial_results(true))
        .tool(Tool::new("parcel", parcel).task(TaskPolicy::Always))
        .build()
        .unwrap();
    let yes = InputCallbacks::new().form(|_| async { InputResponse::accept(json!({"yes": true})) });
    let client = streaming().input_handler(yes).connect(&server).await.unwrap();
    let mut handle = client.start_tool("parcel", json!({})).await.unwrap();
    let mut events = handle.events().with_input_handler();
    let (mut far, mut emitted) = (None, Vec::new());
    let result = loop {
        match events.next().await.unwrap().unwrap() {
            TaskEvent::Status(task) => {
                if let (None, Some(progress)) = (&far, task.progress) {
                    far = Some((progress.done, progress.total, progress.message));
                    gate.open(1);
                }
            }
            TaskEvent::Segment(segment) => {
                emitted.push(segment.number);
                gate.open(1);
            }
            TaskEvent::Done(result) => break *result,
            other => panic!("unexpected event: {other:?}"),
        }
    };
    assert_eq!(far, Some((1.0, Some(2.0), Some("packing".to_owned()))));
    assert_eq!(emitted, [1]);
    assert_eq!(
        result_text(&result),
        "a box\nsent: true",
        "the result starts with the emitted content"
    );
    assert!(events.next().await.is_none());
}

/// Emits until the user responds.
async fn chatty(cx: Durable) -> outlive::server::Result<String> {
    let ticking = async {
        loop {
            cx.emit("tick").await?;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        sure = cx.elicit::<Sure>("sure", "Enough?") => Ok(format!("said: {}", sure?.yes)),
        stopped = ticking => stopped,
    }
}

#[tokio::test]
async fn input_response_is_sent_while_segments_arrive() {
    let server = Server::builder("chats", "1")
        .tasks(TaskConfig::in_memory().partial_results(true))
        .tool(Tool::new("chatty", chatty).task(TaskPolicy::Always))
        .build()
        .unwrap();
    let yes = InputCallbacks::new().form(|_| async { InputResponse::accept(json!({"yes": true})) });
    let client = streaming().input_handler(yes).connect(&server).await.unwrap();
    let mut handle = client.start_tool("chatty", json!({})).await.unwrap();
    let mut events = handle.events().with_input_handler();
    let ending = async {
        loop {
            if let TaskEvent::Done(result) = events.next().await.unwrap().unwrap() {
                return result_text(&result);
            }
        }
    };
    let said = tokio::time::timeout(Duration::from_secs(20), ending).await.expect("the task ends");
    assert!(said.ends_with("said: true"), "{said}");
}
