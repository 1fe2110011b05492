//! Results, progress, rounds, tasks and cancellation of relayed requests, with our server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    client::{
        Client, ClientError, Error, Result,
        relay::{
            CapabilityClass, ErrorCategory, RelayEvent, RelayExchange, RelayOutcome, RelayRequest,
            RelayTasks, read_input_request,
        },
        request::result_text,
    },
    server::{
        Durable, Tool,
        tasks::{TaskConfig, TaskPolicy},
    },
    wire::{InputRequest, Version},
};
use serde_json::{Value, json};

use super::super::{
    kit::{EVERYWHERE, Place, Wire, builder, builder_of_server, server},
    script::{discovered, initialized, line, pipe, said},
};

/// Reads events until the outcome. Returns the number of progress notifications too.
async fn outcome(exchange: &mut RelayExchange) -> Result<(RelayOutcome, usize)> {
    let mut progress = 0;
    loop {
        match exchange.next().await? {
            RelayEvent::Outcome(outcome) => return Ok((outcome, progress)),
            RelayEvent::Progress(_) => progress += 1,
            _ => {}
        }
    }
}

async fn complete(client: &Client, request: &RelayRequest<'_>) -> Result<Value> {
    let mut exchange = client.relay(request).await?;
    match outcome(&mut exchange).await?.0 {
        RelayOutcome::Complete(result) => Ok(serde_json::from_slice(&result).unwrap()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn relayed_call_returns_result_unparsed_in_every_version() {
    for (wire, version) in EVERYWHERE {
        let place = Place::of(&server(), wire).await;
        let client = place.connect(builder(), version).await;
        let members = [r#""name":"add","arguments":"#, r#"{"a":1,"b":2}"#];
        let request = RelayRequest::new("tools/call").params(&members).name("add");
        let result = complete(&client, &request).await.unwrap();
        assert_eq!(result["content"][0]["text"], "3", "{wire:?} {version:?}");
        // The header is also read from the parameters.
        let object = RelayRequest::new("resources/read").params_object(r#"{"uri":"file:///a"}"#);
        let read = complete(&client, &object).await.unwrap();
        assert_eq!(read["contents"][0]["text"], "contents", "{wire:?} {version:?}");
        let prompt = RelayRequest::new("prompts/get").params(&[r#""name":"hi""#]);
        let prompt = complete(&client, &prompt).await.unwrap();
        assert_eq!(prompt["messages"][0]["content"]["text"], "say hi", "{wire:?} {version:?}");
    }
}

#[tokio::test]
async fn error_of_server_passes_with_code_in_every_version() {
    for (wire, version) in EVERYWHERE {
        let place = Place::of(&server(), wire).await;
        let client = place.connect(builder(), version).await;
        let request = RelayRequest::new("tools/call").params(&[r#""name":"absent""#]);
        let error = complete(&client, &request).await.unwrap_err();
        let refused = error.server_error().unwrap();
        assert_eq!(refused.code, -32602, "{wire:?} {version:?}");
        assert!(refused.message.contains("absent"), "{}", refused.message);
        assert_eq!(error.category(), ErrorCategory::Server);
    }
}

#[tokio::test]
async fn progress_is_event_only_if_wanted() {
    for (wire, version) in EVERYWHERE {
        let place = Place::of(&server(), wire).await;
        let client = place.connect(builder(), version).await;
        for wanted in [true, false] {
            let request = RelayRequest::new("tools/call")
                .params(&[r#""name":"slow""#])
                .name("slow")
                .meta(r#""x":1"#)
                .progress(wanted);
            let mut exchange = client.relay(&request).await.unwrap();
            let (_, progress) = outcome(&mut exchange).await.unwrap();
            assert_eq!(progress > 0, wanted, "{wire:?} {version:?}");
            let over = exchange.next().await.unwrap_err();
            assert!(matches!(over, Error::Client(ClientError::Closed)), "{over}");
        }
    }
}

#[tokio::test]
async fn modern_round_is_outcome_and_next_round_completes() {
    for wire in [Wire::Memory, Wire::Http] {
        let place = Place::of(&server(), wire).await;
        // The client itself declares nothing: each request has its own class.
        let client = place.connect(builder(), Some(Version::V2026_07_28)).await;
        let call = RelayRequest::new("tools/call").params(&[r#""name":"greet""#]).name("greet");
        let error = complete(&client, &call).await.unwrap_err();
        assert_eq!(error.server_error().unwrap().code, -32021, "{error}");

        let call = call.class(CapabilityClass::FORM | CapabilityClass::ROOTS);
        let mut exchange = client.relay(&call).await.unwrap();
        let (RelayOutcome::InputRequired(round), _) = outcome(&mut exchange).await.unwrap() else {
            panic!("no input request")
        };
        let [(key, asked)] = &round.requests[..] else { panic!("{round:?}") };
        assert!(matches!(read_input_request(asked).unwrap(), InputRequest::Elicit(_)));
        assert!(round.result.starts_with(b"{") && round.retry_after().is_none());
        let responses =
            json!({key.as_str(): {"action": "accept", "content": {"name": "Ada"}}}).to_string();
        let next = call.input_responses(&responses);
        let next = next.request_state(round.request_state.as_deref().unwrap());
        let result = complete(&client, &next).await.unwrap();
        assert_eq!(result["content"][0]["text"], "Hello, Ada!", "{wire:?}");
    }
}

#[tokio::test]
async fn task_is_outcome_and_existing_task_api_follows_it() {
    for wire in [Wire::Memory, Wire::Http] {
        for version in [Version::V2026_07_28, Version::V2025_11_25] {
            let server = builder_of_server()
                .tool(
                    Tool::new("long", |cx: Durable| async move {
                        cx.sleep("nap", Duration::from_millis(50)).await?;
                        Ok::<_, outlive::server::Error>("done")
                    })
                    .task(TaskPolicy::Always),
                )
                .tasks(TaskConfig::in_memory().poll_interval(Duration::from_millis(20)))
                .build()
                .unwrap();
            let place = Place::of(&server, wire).await;
            let builder = builder().limits(|limits| {
                limits.min_poll_interval = Duration::from_millis(5);
            });
            let client = place.connect(builder, Some(version)).await;
            let call = RelayRequest::new("tools/call").params(&[r#""name":"long""#]).name("long");
            let asks = RelayTasks::Request(Some(Duration::from_secs(60)));
            let mut exchange = client.relay(&call.tasks(asks)).await.unwrap();
            let (RelayOutcome::Task(task), _) = outcome(&mut exchange).await.unwrap() else {
                panic!("no task: {wire:?} {version:?}")
            };
            assert!(task.result.starts_with(b"{"));
            let mut handle = client.task(task.snapshot.id.as_str()).await.unwrap();
            assert_eq!(result_text(&handle.wait().await.unwrap()), "done");
            // The state and the result are also there unparsed.
            let id = Value::from(task.snapshot.id.as_str()).to_string();
            let members = [r#""taskId":"#, &id];
            let get = RelayRequest::new("tasks/get").params(&members);
            assert_eq!(complete(&client, &get).await.unwrap()["status"], "completed");
        }
    }
}

/// Counts the runs of its tool that were dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn dropped_or_cancelled_exchange_cancels_run_at_server() {
    for (wire, version) in EVERYWHERE {
        let (begun, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (starts, ends) = (Arc::clone(&begun), Arc::clone(&dropped));
        let server = builder_of_server()
            .tool(Tool::new("forever", move || {
                starts.fetch_add(1, Ordering::SeqCst);
                let guard = Dropped(Arc::clone(&ends));
                async move {
                    tokio::time::sleep(Duration::from_secs(3600)).await;
                    drop(guard);
                    "never"
                }
            }))
            .build()
            .unwrap();
        let place = Place::of(&server, wire).await;
        let client = place.connect(builder(), version).await;
        let call = RelayRequest::new("tools/call").params(&[r#""name":"forever""#]);
        for way in 1..=2 {
            let begins = async {
                while begun.load(Ordering::SeqCst) < way {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            let reading = async {
                let mut exchange = client.relay(&call).await.unwrap();
                let read = tokio::time::timeout(Duration::from_millis(100), exchange.next()).await;
                assert!(read.is_err());
                match way {
                    1 => drop(exchange),
                    _ => exchange.cancel("no longer needed"),
                }
            };
            // Since 2026-07-28 over HTTP, `relay` itself waits for the response.
            let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
            tokio::time::timeout(Duration::from_secs(5), begins).await.unwrap();
            let ended = async {
                while dropped.load(Ordering::SeqCst) < way {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            let ended = tokio::time::timeout(Duration::from_secs(5), ended).await;
            assert!(ended.is_ok(), "{wire:?} {version:?} {way}");
        }
    }
}

#[tokio::test]
async fn modern_request_has_expected_bytes() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        _ => vec![line(request, &said("3"))],
    });
    let client = builder().client_info(None).connect(target).await.unwrap();
    let parts = [r#""name":"add""#, r#","arguments":"#, r#"{"n": 1.50}"#];
    let class = CapabilityClass::SAMPLING_TOOLS | CapabilityClass::APPS;
    let request = RelayRequest::new("tools/call")
        .params(&parts)
        .meta(r#""traceparent":"00-1-2-01""#)
        .class(class)
        .tasks(RelayTasks::Accept)
        .progress(true);
    complete(&client, &request).await.unwrap();
    let seen = seen.lock().unwrap();
    let declared = concat!(
        r#"{"sampling":{"tools":{}},"extensions":{"#,
        r#""io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]},"#,
        r#""io.modelcontextprotocol/tasks":{}}}"#
    );
    assert_eq!(
        seen[1],
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"add","arguments":{{"n": 1.50}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{declared},"traceparent":"00-1-2-01","progressToken":2}}}}}}"#
        )
    );
}

#[tokio::test]
async fn legacy_request_and_handshake_have_expected_bytes() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("initialize") => vec![line(request, &initialized("2025-11-25"))],
        Some("tools/call") => vec![line(request, &json!({"content": []}))],
        _ => Vec::new(),
    });
    let client = builder()
        .capability_class(CapabilityClass::URL | CapabilityClass::APPS)
        .protocol_version(Version::V2025_11_25)
        .connect(target)
        .await
        .unwrap();
    // The server does not offer tasks, so the request asks for none.
    let request = RelayRequest::new("tools/call")
        .params_object(r#" {"name":"t"} "#)
        .params(&[r#""arguments":{}"#])
        .tasks(RelayTasks::Request(None))
        .class(CapabilityClass::ALL);
    complete(&client, &request).await.unwrap();
    let seen = seen.lock().unwrap();
    let hello: Value = serde_json::from_str(&seen[0]).unwrap();
    let apps = json!({"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}});
    assert_eq!(
        hello["params"]["capabilities"],
        json!({"elicitation": {"url": {}}, "extensions": apps})
    );
    assert_eq!(
        seen[2],
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{}}}"#
    );
}

#[tokio::test]
async fn silent_server_times_out_and_progress_restarts_timeout() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        _ => Vec::new(),
    });
    let client = builder().connect(target).await.unwrap();
    let call = RelayRequest::new("tools/call").timeout(Duration::from_millis(30));
    let error = complete(&client, &call).await.unwrap_err();
    assert_eq!(error.category(), ErrorCategory::TimedOut, "{error}");
    let call = call.timeout(None).max_total_timeout(Duration::from_millis(30));
    let mut exchange = client.relay(&call).await.unwrap();
    exchange.pause_timeout(true);
    assert!(tokio::time::timeout(Duration::from_millis(100), exchange.next()).await.is_err());
    exchange.pause_timeout(false);
    let error = exchange.next().await.unwrap_err();
    assert!(error.may_have_executed(), "{error}");
    tokio::time::sleep(Duration::from_millis(20)).await;
    let cancelled =
        seen.lock().unwrap().iter().filter(|line| line.contains("notifications/cancelled")).count();
    assert_eq!(cancelled, 2);
}
