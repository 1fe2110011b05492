//! Input requests of legacy servers: attribution, responses and withdrawal.

use std::{sync::Arc, time::Duration};

use outlive::{
    client::{
        Client,
        input::{InputCallbacks, InputResponse},
        relay::{
            CapabilityClass, RelayEvent, RelayInput, RelayOutcome, RelayRequest, RelayTasks,
            RoutedEvent, RoutedInputs, input_channel,
        },
    },
    server::{
        Server,
        tasks::{TaskConfig, TaskPolicy},
    },
    wire::{InputRequest, Method, Version},
};
use serde_json::{Value, json, value::to_raw_value};
use tokio::sync::Notify;

use super::super::{
    kit::{Place, Wire, builder, greet_tool, server},
    script::{ask, initialized, line, pipe},
};

const WITH_FORMS: [Version; 2] = [Version::V2025_11_25, Version::V2025_06_18];

async fn accept(input: RelayInput, name: &str) {
    let InputRequest::Elicit(_) = input.request().unwrap() else { panic!("{input:?}") };
    let result = json!({"action": "accept", "content": {"name": name}});
    input.respond(&to_raw_value(&result).unwrap()).await.unwrap();
}

async fn routed(inputs: &mut RoutedInputs) -> RelayInput {
    match inputs.next().await {
        Some(RoutedEvent::Input(input)) => input,
        other => panic!("{other:?}"),
    }
}

fn text(outcome: RelayOutcome) -> Value {
    let RelayOutcome::Complete(result) = outcome else { panic!("{outcome:?}") };
    let result: Value = serde_json::from_slice(&result).unwrap();
    result["content"][0]["text"].clone()
}

#[tokio::test]
async fn input_request_on_own_http_stream_is_event_of_its_call() {
    for version in WITH_FORMS {
        let place = Place::of(&server(), Wire::Http).await;
        let builder = builder().capability_class(CapabilityClass::FORM);
        let client = place.connect(builder, Some(version)).await;
        let call = RelayRequest::new("tools/call").params(&[r#""name":"greet""#]);
        let (mut first, mut second) =
            (client.relay(&call).await.unwrap(), client.relay(&call).await.unwrap());
        for (exchange, name) in [(&mut second, "Bo"), (&mut first, "Ada")] {
            let RelayEvent::Input(input) = exchange.next().await.unwrap() else { panic!() };
            assert_eq!(input.method(), Method::Elicit);
            assert!(input.params().contains("Who are you?"));
            accept(input, name).await;
            let RelayEvent::Outcome(outcome) = exchange.next().await.unwrap() else { panic!() };
            assert_eq!(text(outcome), format!("Hello, {name}!"));
        }
    }
}

#[tokio::test]
async fn input_request_on_pipe_goes_to_channel() {
    for version in WITH_FORMS {
        let place = Place::of(&server(), Wire::Memory).await;
        let (sender, mut inputs) = input_channel(8);
        let builder = builder().capability_class(CapabilityClass::FORM).input_channel(sender);
        let client = place.connect(builder, Some(version)).await;
        let call = RelayRequest::new("tools/call").params(&[r#""name":"greet""#]);
        let mut exchange = client.relay(&call).await.unwrap();
        accept(routed(&mut inputs).await, "Ada").await;
        let RelayEvent::Outcome(outcome) = exchange.next().await.unwrap() else { panic!() };
        assert_eq!(text(outcome), "Hello, Ada!");
        drop((exchange, client));
        assert!(inputs.next().await.is_none());
    }
}

#[tokio::test]
async fn input_request_of_task_is_event_of_exchange_that_awaits_it() {
    for wire in [Wire::Memory, Wire::Http] {
        let server = Server::builder("here", "1")
            .tool(greet_tool().task(TaskPolicy::Always))
            .tasks(TaskConfig::in_memory().poll_interval(Duration::from_millis(20)))
            .build()
            .unwrap();
        let place = Place::of(&server, wire).await;
        let (sender, _inputs) = input_channel(8);
        let builder = builder().capability_class(CapabilityClass::FORM).input_channel(sender);
        let client = place.connect(builder, Some(Version::V2025_11_25)).await;
        let call = RelayRequest::new("tools/call").params(&[r#""name":"greet""#]);
        let mut exchange = client.relay(&call.tasks(RelayTasks::Request(None))).await.unwrap();
        let RelayEvent::Outcome(RelayOutcome::Task(task)) = exchange.next().await.unwrap() else {
            panic!("no task")
        };
        let id = Value::from(task.snapshot.id.as_str()).to_string();
        let members = [r#""taskId":"#, &id];
        let wait = RelayRequest::new("tasks/result").params(&members);
        let mut waiting = client.relay(&wait).await.unwrap();
        let RelayEvent::Input(input) = waiting.next().await.unwrap() else { panic!("{wire:?}") };
        assert_eq!(input.related_task(), Some(task.snapshot.id.as_str()));
        accept(input, "Ada").await;
        let RelayEvent::Outcome(outcome) = waiting.next().await.unwrap() else { panic!() };
        assert_eq!(text(outcome), "Hello, Ada!");
    }
}

/// A client of a scripted server that sends `messages` before it would respond to a call.
async fn scripted(
    messages: Vec<String>,
) -> (Client, RoutedInputs, Arc<std::sync::Mutex<Vec<String>>>) {
    let (target, seen) = pipe(move |request| match request["method"].as_str() {
        Some("initialize") => vec![line(request, &initialized("2025-11-25"))],
        Some("tools/call") => messages.clone(),
        _ => Vec::new(),
    });
    let (sender, inputs) = input_channel(8);
    let class = CapabilityClass::FORM | CapabilityClass::ROOTS;
    let builder = builder().capability_class(class).input_channel(sender);
    let client = builder.protocol_version(Version::V2025_11_25).connect(target).await.unwrap();
    (client, inputs, seen)
}

/// Returns the response of the client to a request of the script, once it has arrived.
async fn response(seen: &std::sync::Mutex<Vec<String>>, id: &str) -> Value {
    for _ in 0..500 {
        let found = seen
            .lock()
            .unwrap()
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .find(|message| message["id"] == id && message.get("method").is_none());
        if let Some(found) = found {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("no response to {id}")
}

fn form() -> Value {
    json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}})
}

fn cancelled(id: &str) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        .to_string()
}

#[tokio::test]
async fn withdrawn_input_request_is_reported_and_gets_no_response() {
    let script = vec![ask("a", "elicitation/create", form()), cancelled("a"), cancelled("other")];
    let (client, mut inputs, seen) = scripted(script).await;
    let call = RelayRequest::new("tools/call");
    let _exchange = client.relay(&call).await.unwrap();
    let input = routed(&mut inputs).await;
    tokio::time::timeout(Duration::from_secs(5), input.withdrawn()).await.unwrap();
    let Some(RoutedEvent::Withdrawn(id)) = inputs.next().await else { panic!() };
    assert!(input.is_withdrawn() && id == *input.id());
    input.reject(-1, "too late", None).await.unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert!(!seen.lock().unwrap().iter().any(|line| line.contains("too late")));
}

#[tokio::test]
async fn withdrawn_input_request_drops_input_handler() {
    struct Guard(Arc<Notify>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, noted) = (Arc::clone(&begun), Arc::clone(&dropped));
    let handler = InputCallbacks::new().form(move |_| {
        let guard = Guard(Arc::clone(&noted));
        begins.notify_one();
        async move {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            drop(guard);
            InputResponse::Decline
        }
    });
    let mut call = Value::Null;
    let (target, _seen) = pipe(move |request| match request["method"].as_str() {
        Some("initialize") => vec![line(request, &initialized("2025-11-25"))],
        Some("tools/call") => {
            call = request.clone();
            vec![ask("a", "elicitation/create", form())]
        }
        Some("ping") => {
            vec![cancelled("a"), line(request, &json!({})), line(&call, &json!({"content": []}))]
        }
        _ => Vec::new(),
    });
    let builder = builder().input_handler(handler).protocol_version(Version::V2025_11_25);
    let client = builder.connect(target).await.unwrap();
    let withdrawing = async {
        begun.notified().await;
        client.ping().await.unwrap();
    };
    let (result, ()) = tokio::join!(client.call_tool("t", json!({})).into_future(), withdrawing);
    result.unwrap();
    tokio::time::timeout(Duration::from_secs(5), dropped.notified()).await.unwrap();
}

#[tokio::test]
async fn undeclared_dropped_and_rejected_input_requests_get_errors() {
    let script = vec![
        ask("undeclared", "sampling/createMessage", json!({"messages": [], "maxTokens": 1})),
        ask("dropped", "roots/list", json!({})),
        ask("rejected", "elicitation/create", form()),
        ask("ping", "ping", json!({})),
        ask("unknown", "acme/unknown", json!({})),
    ];
    let (client, mut inputs, seen) = scripted(script).await;
    let _exchange = client.relay(&RelayRequest::new("tools/call")).await.unwrap();
    // Input requests are handled concurrently, so their order is open.
    for _ in 0..2 {
        let input = routed(&mut inputs).await;
        match input.method() {
            Method::RootsList => drop(input),
            _ => {
                let data = to_raw_value(&json!({"why": "policy"})).unwrap();
                input.reject(-32042, "no", Some(&data)).await.unwrap();
            }
        }
    }
    assert_eq!(response(&seen, "undeclared").await["error"]["code"], -32601);
    assert_eq!(response(&seen, "dropped").await["error"]["code"], -32603);
    let rejected = json!({"code": -32042, "message": "no", "data": {"why": "policy"}});
    assert_eq!(response(&seen, "rejected").await["error"], rejected);
    assert_eq!(response(&seen, "ping").await["result"], json!({}));
    assert_eq!(response(&seen, "unknown").await["error"]["code"], -32601);
}

#[tokio::test]
async fn open_input_request_stops_timeout_and_gets_progress() {
    let with_token = json!({"_meta": {"progressToken": "t"}});
    let task = json!({"io.modelcontextprotocol/related-task": {"taskId": "x"}});
    let script = vec![
        ask("roots", "roots/list", with_token),
        ask("task", "roots/list", json!({"_meta": task})),
    ];
    let (client, mut inputs, seen) = scripted(script).await;
    let wait = RelayRequest::new("tasks/result")
        .params(&[r#""taskId":"x""#])
        .timeout(Duration::from_millis(50));
    let mut waiting = client.relay(&wait).await.unwrap();
    let _call = client.relay(&RelayRequest::new("tools/call")).await.unwrap();
    let RelayEvent::Input(input) = waiting.next().await.unwrap() else { panic!() };
    assert!(tokio::time::timeout(Duration::from_millis(150), waiting.next()).await.is_err());
    input.respond(&to_raw_value(&json!({"roots": []})).unwrap()).await.unwrap();
    assert!(waiting.next().await.is_err());

    let input = routed(&mut inputs).await;
    assert!(input.has_progress_token() && input.related_task().is_none());
    input.report_progress(1.0, Some("the user thinks")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    let progress = r#""progressToken":"t","progress":1"#;
    assert!(seen.lock().unwrap().iter().any(|line| line.contains(progress)), "{seen:?}");
}
