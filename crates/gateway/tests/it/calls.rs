//! Calls of tools between all protocol versions.

use std::time::Duration;

use outlive::{
    client::{Version, notifications::ServerNotification},
    server::{Cx, Error, LoggingLevel, ProtocolError, Result, Server, Tool},
    wire::ErrorObject,
};
use serde_json::json;

use crate::support::{
    Counter, HttpUpstream, Served, VERSIONS, executions_file, named_server, process, text,
    tool_names,
};

#[tokio::test(flavor = "multi_thread")]
async fn call_reaches_every_version_over_http_from_every_version_once() {
    let counter = Counter::default();
    let upstream = HttpUpstream::serve(named_server(&["one"], &counter)).await;
    let mut calls = 0;
    for version in VERSIONS {
        let served = Served::new([upstream.settings("up").protocol_version(version)]);
        for client_version in VERSIONS {
            let client = served.client(client_version).await;
            let names = tool_names(&client).await;
            assert!(names.contains(&"up__one".to_owned()), "{client_version} {version}: {names:?}");
            let result = client.call_tool("up__one", json!({})).await.unwrap();
            assert_eq!(text(&result), "result of one", "{client_version} {version}");
            calls += 1;
        }
        assert_eq!(served.gateway.status().upstreams[0].protocol_versions, [version.to_string()]);
        served.gateway.shutdown().await;
    }
    assert_eq!(counter.get(), calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn call_reaches_a_process_of_every_version_once() {
    for version in VERSIONS {
        let file = executions_file();
        let upstream = process("child", "serves", Some(&file)).protocol_version(version);
        let served = Served::new([upstream]);
        for client_version in [Version::V2024_11_05, Version::V2026_07_28] {
            let client = served.client(client_version).await;
            let result = client.call_tool("child__echo", json!({"text": "hi"})).await.unwrap();
            assert_eq!(text(&result), r#"{"text":"hi"}"#, "{client_version} {version}");
        }
        let executions = std::fs::read_to_string(&file).unwrap();
        assert_eq!(executions.lines().count(), 2, "{version}");
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_and_log_of_the_upstream_reach_the_client() {
    let work = async |cx: Cx| {
        cx.progress(1.0, 2.0, "half");
        cx.log(LoggingLevel::Warning, "careful");
        tokio::time::sleep(Duration::from_millis(100)).await;
        "done"
    };
    let server = Server::builder("up", "1").logging(true).tool(Tool::new("work", work));
    let upstream = HttpUpstream::serve(server.build().unwrap()).await;
    for version in [Version::V2025_06_18, Version::V2026_07_28] {
        let served = Served::new([upstream.settings("up").protocol_version(version)]);
        let client = served.client(Version::V2025_06_18).await;
        let (sender, mut progress) = tokio::sync::mpsc::channel(8);
        let call = client.call_tool("up__work", json!({})).on_progress(move |progress| {
            let _ = sender.try_send(progress.message.unwrap_or_default());
        });
        assert_eq!(text(&call.await.unwrap()), "done");
        assert_eq!(progress.recv().await.unwrap(), "half", "{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_line_before_the_result_of_a_process_reaches_the_client() {
    for version in [Version::V2025_06_18, Version::V2026_07_28] {
        let served = Served::new([process("child", "serves", None).protocol_version(version)]);
        let client = served.client(Version::V2025_06_18).await;
        client.set_log_level(LoggingLevel::Info).await.unwrap();
        let mut notifications = client.notifications();
        for call in 0..50 {
            let result = client.call_tool("child__log", json!({})).await.unwrap();
            assert_eq!(text(&result), "logged");
            let line = async {
                loop {
                    match notifications.next().await {
                        Some(ServerNotification::Log(message)) => return message,
                        Some(_) => {}
                        None => panic!("the client is closed"),
                    }
                }
            };
            let line = tokio::time::timeout(Duration::from_secs(10), line).await;
            let line = line.unwrap_or_else(|_| panic!("call {call} of {version} lost its line"));
            assert_eq!(line.data.get(), r#""the last line""#);
        }
        served.gateway.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_call_is_cancelled_at_the_upstream() {
    let cancelled = Counter::default();
    let seen = cancelled.clone();
    let wait = move |cx: Cx| {
        let seen = seen.clone();
        async move {
            tokio::spawn(async move {
                cx.cancelled().await;
                seen.add();
            });
            tokio::time::sleep(Duration::from_secs(60)).await;
            "late"
        }
    };
    let server = Server::builder("up", "1").tool(Tool::new("wait", wait)).build().unwrap();
    let upstream = HttpUpstream::serve(server).await;
    for (number, version) in VERSIONS.into_iter().enumerate() {
        let served = Served::new([upstream.settings("up").protocol_version(version)]);
        let client = served.client(Version::V2025_06_18).await;
        let call = client.call_tool("up__wait", json!({}));
        let _ = tokio::time::timeout(Duration::from_millis(500), call).await;
        crate::support::eventually("the cancellation", async || cancelled.get() > number).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn error_of_the_upstream_passes_with_code_message_and_data() {
    let fail = async || -> Result<String> {
        let data = serde_json::value::to_raw_value(&json!({"left": 3})).unwrap();
        let error = ErrorObject { code: 77, message: "sold out".to_owned(), data: Some(data) };
        Err(Error::from(ProtocolError::Custom(error)))
    };
    let tool_error = async || -> Result<String> { Err(Error::new("try another lamp")) };
    let server = Server::builder("up", "1")
        .tool(Tool::new("fail", fail))
        .tool(Tool::new("tool_error", tool_error))
        .build()
        .unwrap();
    let upstream = HttpUpstream::serve(server).await;
    let served = Served::new([upstream.settings("up")]);
    for version in VERSIONS {
        let client = served.client(version).await;
        let error = client.call_tool("up__fail", json!({})).await.unwrap_err();
        let error = error.server_error().unwrap();
        assert_eq!((error.code, error.message.as_str()), (77, "sold out"), "{version}");
        assert_eq!(error.data.as_ref().unwrap().get(), r#"{"left":3}"#);
        let result = client.call_tool("up__tool_error", json!({})).await.unwrap();
        assert_eq!(result.is_error, Some(true));
        assert_eq!(text(&result), "try another lamp");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_of_the_client_passes_and_a_loop_is_refused() {
    let show = async |cx: Cx| {
        let meta = cx.meta().unwrap_or_default();
        json!({"trace": meta.get("traceparent"), "via": meta.get("dev.outlive/via")}).to_string()
    };
    let server = Server::builder("up", "1").tool(Tool::new("show", show)).build().unwrap();
    let upstream = HttpUpstream::serve(server).await;
    let served = Served::new([upstream.settings("up")]);
    let client = served.client(Version::V2026_07_28).await;
    let call = client.call_tool("up__show", json!({}));
    let result = call.meta("traceparent", "00-1-2-03").await.unwrap();
    let shown: serde_json::Value = serde_json::from_str(&text(&result)).unwrap();
    assert_eq!(shown["trace"], "00-1-2-03");
    assert_eq!(shown["via"].as_array().unwrap().len(), 1);
    let call = client.call_tool("up__show", json!({}));
    let passed = json!(["1", "2", "3", "4", "5", "6", "7", "8"]);
    let result = call.meta("dev.outlive/via", passed).await.unwrap();
    assert!(text(&result).contains("passed 8 gateways"), "{}", text(&result));
}
