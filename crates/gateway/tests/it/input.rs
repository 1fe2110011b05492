//! Input requests of upstreams, to clients of both eras.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use outlive::{
    client::{
        Client, Version,
        input::{InputCallbacks, InputResponse},
    },
    server::{
        Cx, Durable, Error, ProtocolError, Result, Server, Tool, durable::ElicitOutcome,
        tasks::TaskPolicy,
    },
    store::{MemoryStore, StoreMonitor as _},
    wire::{ErrorObject, RequestedSchema},
};
use outlive_gateway::{Policy, Upstream};
use serde_json::json;

use crate::support::{
    Counter, HttpUpstream, Served, VERSIONS, eventually, executions_file, lines, process, text,
    tool_names,
};

fn asking_server(executions: &Counter) -> Server {
    let executions = executions.clone();
    let form = move |cx: Durable| {
        let executions = executions.clone();
        async move {
            let schema: RequestedSchema = serde_json::from_value(json!({
                "type": "object", "properties": {"color": {"type": "string"}},
                "required": ["color"]
            }))?;
            let asked = cx.elicit_with::<serde_json::Value>("color", "Which color?", schema);
            let outcome = asked.outcome().await?;
            executions.add();
            let text: Result<String> = Ok(match outcome {
                ElicitOutcome::Accepted(chosen) => format!("painted {}", chosen["color"]),
                _ => "not painted".to_owned(),
            });
            text
        }
    };
    Server::builder("up", "1").tool(Tool::new("form", form)).build().unwrap()
}

/// Versions with forms.
fn with_forms() -> impl Iterator<Item = Version> {
    VERSIONS.into_iter().skip(2)
}

#[tokio::test(flavor = "multi_thread")]
async fn form_of_every_upstream_over_http_reaches_legacy_clients() {
    for version in with_forms() {
        let executions = Counter::default();
        let upstream = HttpUpstream::serve(asking_server(&executions)).await;
        let served = Served::new([upstream.settings("up").protocol_version(version)]);
        for client_version in [Version::V2025_06_18, Version::V2025_11_25] {
            let client = served.answering(client_version).await;
            let result = client.call_tool("up__form", json!({})).await.unwrap();
            assert_eq!(text(&result), r#"painted "red""#, "{client_version} {version}");
        }
        assert_eq!(executions.get(), 2, "{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn form_of_a_modern_upstream_reaches_a_modern_client_by_rounds() {
    let executions = Counter::default();
    let upstream = HttpUpstream::serve(asking_server(&executions)).await;
    let served = Served::new([upstream.settings("up").protocol_version(Version::V2026_07_28)]);
    let client = served.answering(Version::V2026_07_28).await;
    let result = client.call_tool("up__form", json!({})).await.unwrap();
    assert_eq!(text(&result), r#"painted "red""#);
    assert_eq!(executions.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_of_input_request_of_modern_upstream_reaches_modern_client() {
    let upstream = HttpUpstream::serve(asking_server(&Counter::default())).await;
    let served = Served::new([upstream.settings("up").protocol_version(Version::V2026_07_28)]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keys = Arc::clone(&seen);
    let callbacks = InputCallbacks::new().form(move |input| {
        keys.lock().unwrap().push(input.key);
        async { InputResponse::accept(json!({"color": "red"})) }
    });
    let builder = Client::builder("test", "1").protocol_version(Version::V2026_07_28);
    let client = builder.input_handler(callbacks).connect(&served.server).await.unwrap();
    client.call_tool("up__form", json!({})).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [Some("color".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn request_state_of_the_upstream_stays_inside_that_of_the_gateway() {
    let upstream = HttpUpstream::serve(asking_server(&Counter::default())).await;
    let served = Served::new([upstream.settings("up").protocol_version(Version::V2026_07_28)]);
    let client = Client::builder("test", "1")
        .protocol_version(Version::V2026_07_28)
        .input_handler(crate::support::callbacks())
        .connect(&served.server)
        .await
        .unwrap();
    // Two calls in turn: a state of the first must not be usable in the second.
    for _ in 0..2 {
        let result = client.call_tool("up__form", json!({})).await.unwrap();
        assert_eq!(text(&result), r#"painted "red""#);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn form_and_sampling_of_a_process_reach_a_legacy_client() {
    for version in [Version::V2025_06_18, Version::V2025_11_25] {
        let served = Served::new([process("child", "serves", None).protocol_version(version)]);
        let client = served.answering(Version::V2025_06_18).await;
        let result = client.call_tool("child__form", json!({})).await.unwrap();
        assert_eq!(text(&result), r#"painted "red""#, "{version}");
        let result = client.call_tool("child__sample", json!({})).await.unwrap();
        assert_eq!(text(&result), "sampled by test-model", "{version}");
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn client_without_forms_declares_none_to_the_upstream() {
    let served = Served::new([process("child", "serves", None)]);
    let client = served.client(Version::V2025_06_18).await;
    let error = client.call_tool("child__form", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("elicitation"), "{error}");
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn form_of_a_legacy_upstream_reaches_a_modern_client_while_its_call_waits() {
    for version in [Version::V2025_06_18, Version::V2025_11_25] {
        let executions = Counter::default();
        let upstream = HttpUpstream::serve(asking_server(&executions)).await;
        let served = Served::hosted([
            upstream.settings("up").protocol_version(version),
            process("child", "serves", None).protocol_version(version),
        ]);
        let client = served.answering(Version::V2026_07_28).await;
        for tool in ["up__form", "child__form"] {
            let result = client.call_tool(tool, json!({})).await.unwrap();
            assert_eq!(text(&result), r#"painted "red""#, "{tool} {version}");
        }
        assert_eq!(executions.get(), 1, "{version}");
        served.gateway.shutdown().await;
    }
}

/// Serves a tool that requests a form and then, in its first call only, the visit of a URL.
fn paying_server(executions: &Counter) -> Server {
    let executions = executions.clone();
    let pay = move |cx: Durable| {
        let executions = executions.clone();
        async move {
            let schema: RequestedSchema = serde_json::from_value(json!({
                "type": "object", "properties": {"color": {"type": "string"}},
                "required": ["color"]
            }))?;
            let chosen: serde_json::Value = cx.elicit_with("color", "Which color?", schema).await?;
            executions.add();
            if executions.get() > 1 {
                return Ok(format!("paid {}", chosen["color"]));
            }
            let data = json!({"elicitations": [{
                "mode": "url", "elicitationId": "1", "url": "https://pay.example/1",
                "message": "Pay here"
            }]});
            let data = Some(serde_json::value::to_raw_value(&data)?);
            let message = "visit a URL first".to_owned();
            let error = ErrorObject { code: -32042, message, data };
            Err(Error::from(ProtocolError::Custom(error)))
        }
    };
    Server::builder("up", "1").tool(Tool::new("pay", pay)).build().unwrap()
}

/// Returns a client whose user chooses another color each time, and agrees to visit URLs or not.
async fn paying_client(served: &Served, version: Version, agrees: bool) -> (Client, Counter) {
    let (forms, urls) = (Counter::default(), Counter::default());
    let seen = urls.clone();
    let user = InputCallbacks::new()
        .form(move |_| {
            forms.add();
            let color = if forms.get() == 1 { "red" } else { "blue" };
            async move { InputResponse::accept(json!({"color": color})) }
        })
        .url(move |_| {
            seen.add();
            async move { if agrees { InputResponse::accept_url() } else { InputResponse::Decline } }
        });
    let builder = Client::builder("test", "1").protocol_version(version).input_handler(user);
    (builder.connect(&served.server).await.unwrap(), urls)
}

#[tokio::test(flavor = "multi_thread")]
async fn call_repeated_after_a_url_requests_its_input_again() {
    for version in [Version::V2025_11_25, Version::V2026_07_28] {
        let executions = Counter::default();
        let upstream = HttpUpstream::serve(paying_server(&executions)).await;
        let settings = upstream.settings("up").protocol_version(Version::V2025_11_25);
        let served = Served::hosted([settings]);
        let (client, urls) = paying_client(&served, version, true).await;
        let result = client.call_tool("up__pay", json!({})).await.unwrap();
        assert_eq!(text(&result), r#"paid "blue""#, "{version}");
        assert_eq!((executions.get(), urls.get()), (2, 1), "{version}");
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_whose_url_the_user_declines_is_not_repeated() {
    for version in [Version::V2025_11_25, Version::V2026_07_28] {
        let executions = Counter::default();
        let upstream = HttpUpstream::serve(paying_server(&executions)).await;
        let settings = upstream.settings("up").protocol_version(Version::V2025_11_25);
        let served = Served::hosted([settings]);
        let (client, urls) = paying_client(&served, version, false).await;
        let result = client.call_tool("up__pay", json!({})).await.unwrap();
        assert_eq!(result.is_error, Some(true), "{version}");
        assert!(text(&result).contains("did not agree to visit a URL"), "{}", text(&result));
        assert_eq!((executions.get(), urls.get()), (1, 1), "{version}");
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parked_task_continues_with_the_response_to_a_round() {
    let executions = Counter::default();
    let upstream = HttpUpstream::serve(asking_server(&executions)).await;
    let store = Arc::new(MemoryStore::new());
    let settings = upstream.settings("up").protocol_version(Version::V2026_07_28);
    let served = Served::with_engine(
        Arc::clone(&store),
        |engine| engine.park_after = Duration::from_millis(50),
        [settings.policy(Policy::new().task(TaskPolicy::Always))],
    );
    let client = served.answering(Version::V2025_11_25).await;
    let mut task = client.start_tool("up__form", json!({})).await.unwrap();
    eventually("the parked task", async || store.stats().await.unwrap().parked == 1).await;
    assert_eq!(text(&task.wait().await.unwrap()), r#"painted "red""#);
    assert_eq!(executions.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn round_continues_on_another_replica() {
    let executions = Counter::default();
    let upstream = HttpUpstream::serve(asking_server(&executions)).await;
    let store = Arc::new(MemoryStore::new());
    let settings = || {
        let settings = upstream.settings("up").protocol_version(Version::V2026_07_28);
        settings.policy(Policy::new().task(TaskPolicy::Always))
    };
    let parks = |engine: &mut outlive::server::tasks::EngineConfig| {
        engine.park_after = Duration::from_millis(50);
    };
    let first = Served::with_engine(Arc::clone(&store), parks, [settings()]);
    let client = first.answering(Version::V2025_11_25).await;
    let id = {
        let task = client.start_tool("up__form", json!({})).await.unwrap();
        task.task_id().unwrap().to_owned()
    };
    eventually("the parked task", async || store.stats().await.unwrap().parked == 1).await;
    first.server.drain(Duration::ZERO).await;
    first.gateway.shutdown().await;
    let second = Served::with_engine(store, parks, [settings()]);
    let client = second.answering(Version::V2025_11_25).await;
    let mut task = client.task(id).await.unwrap();
    assert_eq!(text(&task.wait().await.unwrap()), r#"painted "red""#);
    assert_eq!(executions.get(), 1);
}

/// Records that it was dropped.
struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawn_input_request_is_withdrawn_from_the_client() {
    let raw = process("raw", "raw", None).protocol_version(Version::V2025_06_18);
    let served = Served::new([raw]);
    let is_withdrawn = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_withdrawn);
    let user = InputCallbacks::new().form(move |_| {
        let guard = OnDrop(Arc::clone(&seen));
        async move {
            let _guard = guard;
            std::future::pending::<InputResponse>().await
        }
    });
    let builder = Client::builder("test", "1").protocol_version(Version::V2025_06_18);
    let client = builder.input_handler(user).connect(&served.server).await.unwrap();
    let result = client.call_tool("raw__withdraw", json!({})).await.unwrap();
    assert_eq!(text(&result), "withdrawn");
    eventually("the withdrawal", async || is_withdrawn.load(Ordering::SeqCst)).await;
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roots_outside_of_a_call_are_the_latest_of_the_client() {
    let notes = executions_file();
    let raw = process("raw", "raw", Some(&notes)).protocol_version(Version::V2025_06_18);
    let served = Served::new([raw]);
    let user = InputCallbacks::new().roots([("file:///work", "work")]);
    let builder = Client::builder("test", "1").protocol_version(Version::V2025_06_18);
    let client = builder.input_handler(user).connect(&served.server).await.unwrap();
    tool_names(&client).await;
    eventually("the first roots", async || lines(&notes).contains(&"0 roots".to_owned())).await;
    let result = client.call_tool("raw__roots", json!({})).await.unwrap();
    assert_eq!(text(&result), "1 roots");
    eventually("the changed roots", async || {
        let noted: Vec<String> = lines(&notes).into_iter().filter(|line| line != "list").collect();
        noted == ["0 roots", "roots changed", "1 roots"]
    })
    .await;
    // The gateway sends no notification if the client repeats its roots.
    client.call_tool("raw__roots", json!({})).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(lines(&notes).iter().filter(|line| *line == "roots changed").count(), 1);
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_request_of_an_upstream_over_http_sse_reaches_clients_of_both_eras() {
    let executions = Counter::default();
    let upstream = HttpUpstream::serve(asking_server(&executions)).await;
    let url = upstream.serving.url().replace("/mcp", "/sse");
    for version in [Version::V2025_06_18, Version::V2026_07_28] {
        let served = Served::hosted([Upstream::url("up", &url)]);
        let client = served.answering(version).await;
        let result = client.call_tool("up__form", json!({})).await.unwrap();
        assert_eq!(text(&result), r#"painted "red""#, "{version}");
        served.gateway.shutdown().await;
    }
    assert_eq!(executions.get(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn log_messages_are_filtered_by_the_level_of_each_call() {
    let work = async |cx: Cx| {
        cx.log(outlive::server::LoggingLevel::Info, "detail");
        cx.log(outlive::server::LoggingLevel::Error, "broken");
        tokio::time::sleep(Duration::from_millis(100)).await;
        "done"
    };
    let server = Server::builder("up", "1").logging(true).tool(Tool::new("work", work));
    let upstream = HttpUpstream::serve(server.build().unwrap()).await;
    for upstream_version in [Version::V2025_06_18, Version::V2026_07_28] {
        let served = Served::new([upstream.settings("up").protocol_version(upstream_version)]);
        // Both clients share one upstream connection, whose level is the most verbose one.
        let mut logged = Vec::new();
        for level in ["info", "error"] {
            let client = served.client(Version::V2025_06_18).await;
            let level = serde_json::from_value(json!(level)).unwrap();
            client.set_log_level(level).await.unwrap();
            let mut notifications = client.notifications();
            client.call_tool("up__work", json!({})).await.unwrap();
            let mut seen = Vec::new();
            loop {
                let next = tokio::time::timeout(Duration::from_millis(500), notifications.next());
                let Ok(Some(next)) = next.await else { break };
                if let outlive::client::notifications::ServerNotification::Log(message) = next {
                    assert!(message.logger.unwrap_or_default().starts_with("up"));
                    seen.push(message.data.get().to_owned());
                }
            }
            logged.push(seen);
        }
        assert_eq!(logged[0], [r#""detail""#, r#""broken""#], "{upstream_version}");
        assert_eq!(logged[1], [r#""broken""#], "{upstream_version}");
        served.gateway.shutdown().await;
    }
}
