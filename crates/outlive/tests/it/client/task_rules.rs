//! Task messages between the client and scripted servers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive::{
    client::{
        ClientError, Error, ServerErrorKind,
        input::{InputCallbacks, InputResponse},
        request::result_text,
        tasks::{TaskEvent, TaskStatus},
        transport::VersionCache,
    },
    wire::Version,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    kit::builder,
    script::{HttpScript, discovered, empty, initialized, line, ok, pipe, refuse},
};

/// A task object of a modern server.
fn task(status: &str) -> Value {
    json!({"resultType": "complete", "taskId": "t", "status": status, "ttlMs": 3_600_000,
        "createdAt": "2026-01-01T00:00:00.000Z", "lastUpdatedAt": "2026-01-01T00:00:00.000Z"})
}

fn with(mut value: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more}") };
    value.as_object_mut().unwrap().extend(more);
    value
}

fn made() -> Value {
    with(task("working"), json!({"resultType": "task"}))
}

fn completed() -> Value {
    let result = json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]});
    with(task("completed"), json!({"result": result}))
}

fn offering_tasks() -> Value {
    with(
        discovered(),
        json!({"capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}}),
    )
}

fn form() -> Value {
    let schema = json!({"type": "object", "properties": {}});
    json!({"method": "elicitation/create", "params": {"message": "?", "requestedSchema": schema}})
}

fn no(request: &Value) -> String {
    let error = json!({"code": -32601, "message": "no"});
    json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string()
}

fn messages(seen: &Mutex<Vec<String>>, method: &str) -> Vec<Value> {
    let seen = seen.lock().unwrap();
    let all = seen.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|message| message["method"] == method).collect()
}

// T1C-01, T1C-02, T1C-03, T1C-07, T1C-12, T1C-16
#[tokio::test]
async fn task_is_requested_only_from_servers_and_tools_that_support_tasks() {
    let requests = json!({"requests": {"tools": {"call": {}}}});
    for offered in [Some(requests), Some(json!({"list": {}})), None] {
        let may = offered.as_ref().is_some_and(|offered| offered.get("requests").is_some());
        let said = offered.clone();
        let (target, seen) = pipe(move |request| match request["method"].as_str() {
            Some("initialize") => {
                let mut hello = initialized("2025-11-25");
                if let Some(offered) = &said {
                    hello["capabilities"]["tasks"] = offered.clone();
                }
                vec![line(request, &hello)]
            }
            Some("tools/list") => {
                let tool = |name: &str, support: Value| json!({"name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}});
                let tools = json!([
                    tool("required", json!("required")), tool("optional", json!("optional")),
                    tool("forbidden", json!("forbidden")),
                    {"name": "silent", "inputSchema": {"type": "object"}},
                ]);
                vec![line(request, &json!({"tools": tools}))]
            }
            Some("tools/call") if request["params"].get("task").is_some() => {
                let task = json!({"taskId": "t", "status": "working", "ttl": null, "pollInterval": 5,
                    "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"});
                let meta = json!({"io.modelcontextprotocol/model-immediate-response": "soon"});
                vec![line(request, &json!({"task": task, "_meta": meta}))]
            }
            // The server sends no notifications; the client learns the status by polling.
            Some("tasks/get") => {
                let task = json!({"taskId": "t", "status": "completed", "ttl": null,
                    "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"});
                vec![line(request, &task)]
            }
            Some("tools/call" | "tasks/result") => vec![line(request, &json!({"content": []}))],
            _ => Vec::new(),
        });
        let client =
            builder().protocol_version(Version::V2025_11_25).connect(target).await.unwrap();
        for (tool, wanted, called) in [
            ("required", may, may),
            ("optional", may, false),
            ("forbidden", false, false),
            ("silent", false, false),
        ] {
            let mut handle = client.start_tool(tool, json!({})).await.unwrap();
            assert_eq!(handle.task_id().is_some(), wanted, "{tool} {offered:?}");
            let told = handle.immediate_response();
            assert_eq!(told, wanted.then_some("soon"), "{tool} {offered:?}");
            handle.wait().await.unwrap();
            client.call_tool(tool, json!({})).await.unwrap();
            let call = messages(&seen, "tools/call").pop().unwrap();
            assert_eq!(call["params"].get("task").is_some(), called, "{tool} {offered:?}");
        }
        for method in ["tasks/get", "tasks/result"] {
            for message in messages(&seen, method) {
                assert_eq!(message["params"], json!({"taskId": "t"}), "{method}");
            }
        }
    }
}

// T1C-04, T2C-06, T2C-07
#[tokio::test(start_paused = true)]
async fn task_is_polled_at_its_poll_interval() {
    let looks: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let noted = Arc::clone(&looks);
    let (target, _) = pipe(move |request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &offering_tasks())],
        Some("tools/call") => vec![line(request, &with(made(), json!({"pollIntervalMs": 2000})))],
        Some("tasks/get") => {
            let mut looks = noted.lock().unwrap();
            looks.push(Instant::now());
            vec![line(
                request,
                &match looks.len() {
                    1 | 2 => with(task("working"), json!({"pollIntervalMs": 2000})),
                    // A newer interval replaces the old one; a missing interval leaves it
                    // unchanged.
                    3 => with(task("working"), json!({"pollIntervalMs": 7000})),
                    4 => task("working"),
                    _ => completed(),
                },
            )]
        }
        _ => vec![no(request)],
    });
    let client = builder().connect(target).await.unwrap();
    assert_eq!(result_text(&client.call_tool("t", json!({})).await.unwrap()), "done");
    let looks = looks.lock().unwrap();
    let pauses: Vec<f64> = looks.windows(2).map(|two| (two[1] - two[0]).as_secs_f64()).collect();
    for (pause, wanted) in pauses.iter().zip([2.0, 2.0, 7.0, 7.0]) {
        assert!((wanted..wanted * 1.11).contains(pause), "{pauses:?}");
    }
    assert_eq!(looks.len(), 5, "no poll after the end");
}

// T2C-09
#[tokio::test(start_paused = true)]
async fn task_past_its_ttl_fails_as_gone() {
    let (target, _) = pipe(move |request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &offering_tasks())],
        Some("tools/call") => vec![line(request, &with(made(), json!({"ttlMs": 60_000})))],
        Some("tasks/get") => vec![line(request, &with(task("working"), json!({"ttlMs": 60_000})))],
        _ => vec![no(request)],
    });
    let client = builder().connect(target).await.unwrap();
    let begun = Instant::now();
    let gone = client.call_tool("t", json!({})).await.unwrap_err();
    assert_eq!(gone.kind(), Some(ServerErrorKind::TaskGone), "{gone}");
    // The client measures the elapsed time itself and ignores the server's clock.
    assert!((60..90).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

// T2C-13, T2C-14, T2C-15, T2C-16, T2C-28
#[tokio::test(start_paused = true)]
async fn input_responses_are_sent_by_key_as_soon_as_ready() {
    let mut answered: Vec<String> = Vec::new();
    let (target, seen) = pipe(move |request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &offering_tasks())],
        // The round uses a key that the task uses too; the two are unrelated.
        Some("tools/call") if request["params"].get("requestState").is_none() => vec![line(
            request,
            &json!({"resultType": "input_required", "requestState": "s", "inputRequests": {"a/1#": form()}}),
        )],
        Some("tools/call") => vec![line(request, &with(made(), json!({"pollIntervalMs": 5000})))],
        Some("tasks/update") => {
            let answers = request["params"]["inputResponses"].as_object().unwrap();
            answered.extend(answers.keys().cloned());
            vec![line(request, &json!({"resultType": "complete"}))]
        }
        Some("tasks/get") => {
            let open: serde_json::Map<String, Value> = ["a/1#", " b"]
                .iter()
                .filter(|key| !answered.contains(&(**key).to_owned()))
                .map(|key| ((*key).to_owned(), form()))
                .collect();
            vec![line(
                request,
                &match open.is_empty() {
                    true => completed(),
                    false => with(
                        task("input_required"),
                        json!({"inputRequests": open, "pollIntervalMs": 5000}),
                    ),
                },
            )]
        }
        _ => vec![no(request)],
    });
    // The user takes much longer for the second input request.
    let answers = InputCallbacks::new().form(|question| async move {
        if question.key.as_deref() == Some(" b") {
            tokio::time::sleep(Duration::from_secs(100)).await;
        }
        InputResponse::Decline
    });
    let client = builder().input_handler(answers).connect(target).await.unwrap();
    let begun = Instant::now();
    client.call_tool("t", json!({})).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(107), "{:?}", begun.elapsed());
    let updates = messages(&seen, "tasks/update");
    let keys: Vec<Value> =
        updates.iter().map(|update| update["params"]["inputResponses"].clone()).collect();
    let decline = json!({"action": "decline"});
    assert_eq!(
        keys,
        [json!({"a/1#": decline}), json!({" b": decline})],
        "each response is sent when it is ready"
    );
}

// T2C-21
#[tokio::test]
async fn status_older_than_last_seen_is_ignored() {
    let mut looks = 0;
    let (target, _) = pipe(move |request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &offering_tasks())],
        Some("tools/call") => vec![line(request, &with(made(), json!({"pollIntervalMs": 1})))],
        Some("tasks/get") => {
            looks += 1;
            let at =
                |second: u32| json!({"lastUpdatedAt": format!("2026-01-01T00:00:0{second}.000Z")});
            let say = |text: &str| json!({"statusMessage": text, "pollIntervalMs": 1});
            vec![line(
                request,
                &match looks {
                    1 => with(with(task("working"), at(5)), say("new")),
                    // This result comes from a replica that lags behind.
                    2 => with(with(task("working"), at(3)), say("old")),
                    _ => with(completed(), at(6)),
                },
            )]
        }
        _ => vec![no(request)],
    });
    let client = builder().limits(|limits| limits.min_poll_interval = Duration::from_millis(1));
    let client = client.connect(target).await.unwrap();
    let mut handle = client.start_tool("t", json!({})).await.unwrap();
    let (mut events, mut said) = (handle.events(), Vec::new());
    while let Some(event) = events.next().await {
        if let TaskEvent::Status(task) = event.unwrap() {
            assert_eq!(task.status, TaskStatus::Working);
            said.push(task.message.unwrap());
        }
    }
    assert_eq!(said, ["new"]);
}

// T2C-05, T2C-23
#[tokio::test]
async fn failed_polls_and_input_responses_are_retried() {
    let peer = HttpScript::new(|seen, count| async move {
        match (seen.method(), count) {
            ("server/discover", _) => ok(&seen, &offering_tasks()),
            ("tools/call", _) => ok(&seen, &with(made(), json!({"pollIntervalMs": 1}))),
            // Three requests fail in three ways.
            ("tasks/get", 1) => empty(503),
            ("tasks/get", 2) => String::new(),
            ("tasks/get", 3) | ("tasks/update", 1) => {
                "HTTP/1.1 429 X\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n".to_owned()
            }
            ("tasks/get", 4) => {
                let open = json!({"inputRequests": {"k": form()}, "pollIntervalMs": 1});
                ok(&seen, &with(task("input_required"), open))
            }
            ("tasks/update", 2) => String::new(),
            ("tasks/update", _) => ok(&seen, &json!({"resultType": "complete"})),
            ("tasks/get", _) => ok(&seen, &completed()),
            _ => empty(404),
        }
    })
    .await;
    let asked = Arc::new(Mutex::new(0));
    let noted = Arc::clone(&asked);
    let answers = InputCallbacks::new().form(move |_| {
        *noted.lock().unwrap() += 1;
        async { InputResponse::Decline }
    });
    let client = builder().input_handler(answers).limits(|limits| {
        limits.min_poll_interval = Duration::from_millis(1);
        limits.default_poll_interval = Duration::from_millis(1);
    });
    let client = client.connect(peer.url.as_str()).await.unwrap();
    assert_eq!(result_text(&client.call_tool("tool", json!({})).await.unwrap()), "done");
    assert_eq!(*asked.lock().unwrap(), 1);
    let updates = peer.all("tasks/update");
    assert_eq!(updates.len(), 3);
    for two in updates.windows(2) {
        assert_eq!(
            two[0].body["params"]["inputResponses"],
            two[1].body["params"]["inputResponses"]
        );
        assert_ne!(two[0].id(), two[1].id());
    }
    for seen in updates.iter().chain(&peer.all("tasks/get")) {
        assert_eq!(seen.header("mcp-method"), Some(seen.method()));
        assert_eq!(seen.header("mcp-name"), Some("t"));
    }
}

// T2C-25
#[tokio::test]
async fn task_with_unusual_members_is_read() {
    let mut looks = 0;
    let (target, _) = pipe(move |request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &offering_tasks())],
        Some("tools/call") => {
            let made = json!({"resultType": "task", "taskId": "t", "status": "working", "ttl": 60_000, "pollInterval": 1,
                "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"});
            vec![line(request, &made)]
        }
        Some("tasks/get") => {
            looks += 1;
            vec![line(
                request,
                &match looks {
                    1 => with(made(), json!({"result": null, "pollInterval": 1})),
                    _ => with(completed(), json!({"resultType": "task"})),
                },
            )]
        }
        _ => vec![no(request)],
    });
    let client = builder().limits(|limits| limits.min_poll_interval = Duration::from_millis(1));
    let client = client.connect(target).await.unwrap();
    assert_eq!(result_text(&client.call_tool("t", json!({})).await.unwrap()), "done");
}

// T2C-26, T2C-27
#[tokio::test]
async fn input_request_without_declared_capability_cancels_form_or_task() {
    let sample =
        json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
    for (question, is_form) in [(form(), true), (sample, false)] {
        let mut answered = false;
        let (target, seen) = pipe(move |request| match request["method"].as_str() {
            Some("server/discover") => vec![line(request, &offering_tasks())],
            Some("tools/call") => vec![line(request, &with(made(), json!({"pollIntervalMs": 1})))],
            Some("tasks/update" | "tasks/cancel") => {
                answered = true;
                vec![line(request, &json!({"resultType": "complete"}))]
            }
            Some("tasks/get") if answered => vec![line(request, &completed())],
            Some("tasks/get") => {
                let open = json!({"inputRequests": {"k": question}});
                vec![line(request, &with(task("input_required"), open))]
            }
            _ => vec![no(request)],
        });
        let client = builder().limits(|limits| limits.min_poll_interval = Duration::from_millis(1));
        let client = client.connect(target).await.unwrap();
        let call = client.call_tool("t", json!({})).await;
        match is_form {
            // Without an input handler, the client responds with `cancel`.
            true => {
                call.unwrap();
                let update = &messages(&seen, "tasks/update")[0];
                assert_eq!(update["params"]["inputResponses"]["k"], json!({"action": "cancel"}));
            }
            false => {
                let why = call.unwrap_err();
                assert!(matches!(why, Error::Client(ClientError::Unanswered(_))), "{why}");
                assert_eq!(messages(&seen, "tasks/cancel").len(), 1);
            }
        }
    }
}

/// A task that failed with an internal error, as after a panic in its handler.
fn failed(data: Value) -> Value {
    with(task("failed"), json!({"error": {"code": -32603, "message": "broken", "data": data}}))
}

#[tokio::test]
async fn task_failing_with_internal_error_ends_with_that_error() {
    for data in [Value::Null, json!({"retryAfterMs": 1})] {
        let stored = data.clone();
        let peer = HttpScript::new(move |seen, _| {
            let stored = stored.clone();
            async move {
                match seen.method() {
                    "server/discover" => ok(&seen, &offering_tasks()),
                    "tools/call" => ok(&seen, &made()),
                    "tasks/get" => ok(&seen, &failed(stored)),
                    _ => empty(404),
                }
            }
        })
        .await;
        let client = builder().connect(peer.url.as_str()).await.unwrap();
        let error = client.call_tool("work", json!({})).await.unwrap_err();
        assert_eq!(error.kind(), Some(ServerErrorKind::TaskFailed), "{error}");
        assert!(!error.is_transient() && error.to_string().contains("broken"), "{error}");
        // The event stream yields the error once.
        let mut handle = client.start_tool("work", json!({})).await.unwrap();
        let mut events = handle.events().with_input_handler();
        let mut errors = 0;
        while let Some(event) = events.next().await {
            errors += usize::from(event.is_err());
        }
        assert_eq!(errors, 1);
        assert_eq!(handle.wait().await.unwrap_err().kind(), Some(ServerErrorKind::TaskFailed));
    }
}

#[tokio::test]
async fn legacy_task_failing_with_internal_error_ends_with_that_error() {
    let looks = Arc::new(Mutex::new(0));
    let count = Arc::clone(&looks);
    let (target, _) = pipe(move |request| {
        let task = json!({"taskId": "t", "status": "failed", "ttl": null, "pollInterval": 10,
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"});
        let refused = |data: Value| {
            let error = json!({"code": -32603, "message": "broken", "data": data});
            vec![json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string()]
        };
        match request["method"].as_str() {
            Some("initialize") => {
                let mut hello = initialized("2025-11-25");
                hello["capabilities"]["tasks"] = json!({"requests": {"tools": {"call": {}}}});
                vec![line(request, &hello)]
            }
            Some("tools/list") => {
                let tool = json!({"name": "work", "inputSchema": {"type": "object"},
                    "execution": {"taskSupport": "required"}});
                vec![line(request, &json!({"tools": [tool]}))]
            }
            Some("tools/call") => vec![line(request, &json!({"task": task}))],
            Some("tasks/get") => vec![line(request, &task)],
            // The store is unavailable twice, then `tasks/result` returns the error of the task.
            Some("tasks/result") => {
                let mut looks = count.lock().unwrap();
                *looks += 1;
                refused(if *looks < 3 { json!({"retryAfterMs": 1}) } else { Value::Null })
            }
            _ => vec![],
        }
    });
    let client = builder().protocol_version(Version::V2025_11_25).connect(target).await.unwrap();
    let mut handle = client.start_tool("work", json!({})).await.unwrap();
    let error = handle.wait().await.unwrap_err();
    assert_eq!(error.kind(), Some(ServerErrorKind::TaskFailed), "{error}");
    assert_eq!(*looks.lock().unwrap(), 3);
}

#[tokio::test]
async fn input_request_reusing_a_key_is_protocol_violation() {
    let peer = HttpScript::new(|seen, count| async move {
        let asks = |message: &str| {
            let mut form = form();
            form["params"]["message"] = message.into();
            with(
                task("input_required"),
                json!({"inputRequests": {"k": form}, "pollIntervalMs": 10}),
            )
        };
        match (seen.method(), count) {
            ("server/discover", _) => ok(&seen, &offering_tasks()),
            ("tools/call", _) => ok(&seen, &made()),
            ("tasks/get", 1) => ok(&seen, &asks("first")),
            ("tasks/get", _) => ok(&seen, &asks("second")),
            ("tasks/update", _) => ok(&seen, &json!({"resultType": "complete"})),
            _ => empty(404),
        }
    })
    .await;
    let answers = InputCallbacks::new().form(|_| async { InputResponse::accept(json!({})) });
    let client = builder().input_handler(answers).connect(peer.url.as_str()).await.unwrap();
    let begun = Instant::now();
    let error = client.call_tool("work", json!({})).await.unwrap_err();
    assert!(matches!(error, Error::ProtocolViolation(_)), "{error}");
    assert!(error.to_string().contains("the key `k` for another input request"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn server_outage_yields_one_unreachable_and_one_reachable_event() {
    let script = HttpScript::new(|seen, count| async move {
        match (seen.method(), count) {
            ("server/discover", _) => ok(&seen, &offering_tasks()),
            ("tools/call", _) => ok(&seen, &made()),
            // The server closes the connection without a response.
            ("tasks/get", 2..5) => String::new(),
            ("tasks/get", 1) => ok(&seen, &task("working")),
            ("tasks/get", _) => ok(&seen, &completed()),
            _ => refuse(&seen, 404, -32601, &Value::Null),
        }
    })
    .await;
    let quickly = Duration::from_millis(10);
    let client = builder()
        .version_cache(VersionCache::new())
        .limits(|limits| {
            (limits.default_poll_interval, limits.min_poll_interval) = (quickly, quickly)
        })
        .connect(script.url.as_str())
        .await
        .unwrap();
    let mut handle = client.start_tool("t", json!({})).await.unwrap();
    let (mut events, mut heard) = (handle.events(), Vec::new());
    while let Some(event) = events.next().await {
        heard.push(match event.unwrap() {
            TaskEvent::Status(_) => "status",
            TaskEvent::Unreachable(_) => "unreachable",
            TaskEvent::Reachable => "reachable",
            TaskEvent::Done(_) => "done",
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(heard, ["status", "unreachable", "reachable", "done"]);
}
